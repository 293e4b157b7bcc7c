"""Paragraphs of LibreOffice's help: pairs by page and number, each English text once, whole pages in a split."""

import hashlib
import subprocess
import sys

from contract.recipes import EXAMPLES


def test_pairs(tmp_path):
    page = '<p id="par_id{}" class="paragraph"><a name="x"></a>{}</p>\n<p id="hd_id9">A heading is left out</p>\n'
    pages = [f"text/{number}.html" for number in range(40)]
    for name in pages:
        texts = {"en-US": f"One &amp; <b>two</b>\nthree   four five {name}", "pt-BR": f"Um &amp; dois {name}"}
        for language, text in texts.items():
            path = tmp_path / "help" / language / name
            path.parent.mkdir(parents=True, exist_ok=True)
            same = page.format(2, "The same text on every page") + page.format(4, f"Not translated on the page {name}")
            path.write_text(page.format(1, text) + (same if language == "en-US" else same.replace("The", "O")))
    arguments = [EXAMPLES / "libreoffice" / "paragraphs.py", tmp_path / "help", "pt-br", tmp_path / "raw"]
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    found = {}
    for split in ("train", "valid", "test"):
        sides = [(tmp_path / "raw" / f"{split}.{language}").read_text().splitlines() for language in ("en", "pt_br")]
        found |= {english: (other, split) for english, other in zip(*sides, strict=True)}
    assert found.pop("The same text on every page")[0] == "O same text on every page"
    parts = {name: int(hashlib.sha256(name.encode()).hexdigest(), 16) % 10 for name in pages}
    assert found == {
        f"One & two three four five {name}": (f"Um & dois {name}", {0: "valid", 1: "test"}.get(parts[name], "train"))
        for name in pages
    }

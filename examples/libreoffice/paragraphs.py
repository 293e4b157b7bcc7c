"""Paragraphs that the help of LibreOffice has in English and in another language: paragraphs.py HELP LANGUAGE OUTPUT

A paragraph has the same page and number in both. Each English text of five words or more is taken once. One page in ten
is for validation, one for the test, by a hash of its name, so that all languages have the same pages in each.
"""

import hashlib
import html
import re
import sys
from pathlib import Path

_PARAGRAPH = re.compile(r'<p id="(par_\w+)"[^>]*>(.*?)</p>', re.DOTALL)


def paragraphs(folder: Path) -> dict[tuple[str, str], str]:
    """(page, number) -> text of every paragraph of a language."""
    return {
        (page.relative_to(folder).as_posix(), number): " ".join(html.unescape(re.sub("<[^>]*>", "", text)).split())
        for page in sorted(folder.rglob("*.html"))
        for number, text in _PARAGRAPH.findall(page.read_text(encoding="utf-8"))
    }


def main(arguments: list[str]) -> None:
    help_folder, language, output = Path(arguments[0]), arguments[1], Path(arguments[2])
    [folder] = [path for path in help_folder.iterdir() if path.name.lower() == language.lower()]
    english, other = paragraphs(help_folder / "en-US"), paragraphs(folder)
    pairs: dict[str, list[tuple[str, str]]] = {"train": [], "valid": [], "test": []}
    seen = set()
    for place, text in english.items():
        if len(text.split()) >= 5 and text not in seen and other.get(place, text) != text:
            seen.add(text)
            share = int(hashlib.sha256(place[0].encode()).hexdigest(), 16) % 10
            pairs[{0: "valid", 1: "test"}.get(share, "train")].append((text, other[place]))
    output.mkdir(parents=True, exist_ok=True)
    for name, lines in pairs.items():
        for suffix, side in zip(("en", language.replace("-", "_")), zip(*lines, strict=True), strict=True):
            (output / f"{name}.{suffix}").write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
        print(f"{output}/{name}: {len(lines):,} pairs")


if __name__ == "__main__":
    main(sys.argv[1:])

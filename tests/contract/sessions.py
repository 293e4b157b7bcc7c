"""The pages of the site as a script: their shell and Python, block by block, in one folder of a checkout.

    python tests/contract/sessions.py FOLDER

copies the checkout's programs to FOLDER, which is new, and runs there what the pages say, with three changes that make
it short: few updates (`UPDATES`), the `_tiny` presets, and Stanza's files from ../shared/data where
they would be downloaded.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
UPDATES = 3
# they share their files, from top to bottom
PAGES = (
    "docs/getting-started.md",
    *(f"docs/systems/{name}.md" for name in "pascal lisa planted tags multitask sa-nmt sdatt".split()),
    *(f"docs/systems/{name}.md" for name in "distance-transformers lgp parser latent-tree".split()),
    *(f"docs/{name}.md" for name in "look-inside checkpoints data evaluation recipes gpus".split()),
)
# languages of the blocks that are run; indented blocks are equations, `console` shows what cannot be run here
RUN = {"bash": "sh", "python": "python", "py": "python"}


class Block(NamedTuple):
    """A block of code of a page."""

    page: str
    line: int
    language: str
    code: str


FENCED = re.compile(r"^```(?P<language>\w*)\n(?P<code>(?:.*\n)*?)```$", re.MULTILINE)


def blocks(page: str, text: str) -> list[Block]:
    """Fenced blocks, in order."""
    return [
        Block(page, text.count("\n", 0, part.start()) + 1, part["language"], part["code"])
        for part in FENCED.finditer(text)
    ]


def to_run() -> list[Block]:
    """The blocks that are run."""
    found = [block for page in PAGES for block in blocks(page, (REPOSITORY / page).read_text(encoding="utf-8"))]
    return [block._replace(language=RUN[block.language]) for block in found if block.language in RUN]


def small(code: str) -> str:
    """With the `_tiny` preset of every architecture."""
    return re.sub(r"--arch (\w+?)(_iwslt_de_en|_small|_tiny)?(?!\w)", r"--arch \1_tiny", code)


def script(prelude: str = "", python: str = "python - <<'PYTHON'\n{code}PYTHON\n") -> str:
    """All blocks as one script of bash, which says where it is."""
    parts = ["set -euo pipefail", prelude]
    for block in to_run():
        parts.append(f'echo "== {block.page}:{block.line}, after $SECONDS s" >&2')
        parts.append(python.format(code=block.code) if block.language == "python" else block.code)
    return "\n".join(parts)


def checkout(folder: Path) -> Path:
    """A copy of the checkout's programs."""
    for name in ("fairseq_syntax", "examples"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def stanza_models(source: Path, folder: Path) -> Path:
    """A folder such as Stanza makes when it downloads the default models of English, with files of `source`."""
    package = {"tokenize": "default", "pos": "default", "lemma": "identity", "depparse": "default"}
    models: dict = {
        "lang_name": "English",
        "lemma": {},
        "default_processors": package,
        "packages": {"default": package},
    }
    # pre-tokenised text needs no tokeniser, but Stanza wants to see one
    for kind, name in (("tokenize", None), ("pos", "tagger.pt"), ("depparse", "parser.pt")):
        content = (source / name).read_bytes() if name else b""
        path = folder / "en" / kind / "default.pt"
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        models[kind] = {"default": {"md5": hashlib.md5(content).hexdigest()}}
    (folder / "resources.json").write_text(json.dumps({"en": models, "url": "none"}), encoding="utf-8")
    return folder


def run(folder: Path, data: Path) -> int:
    """Run all blocks in a new folder; returns the exit status.

    Args:
        data: the folder with stanza_en/.
    """
    checkout(folder)
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(folder),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "STANZA_RESOURCES_DIR": str(stanza_models(data / "stanza_en", folder / "stanza")),
    }
    capped = f'fairseq-train() {{ command fairseq-train "$@" --max-update {UPDATES}; }}'
    return subprocess.run(["bash", "-c", small(script(capped))], cwd=folder, env=environment).returncode


if __name__ == "__main__":
    shared = Path(os.environ.get("FAIRSEQ_SYNTAX_DATA", REPOSITORY.parent / "shared" / "data"))
    sys.exit(run(Path(sys.argv[1]).resolve(), shared))

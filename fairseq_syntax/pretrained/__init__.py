"""Small models that are bundled, a folder each: parameters in half precision, and dictionaries.

manifest.json has a hash of every file. A wheel has five of the models; a checkout has all.

A name is accepted wherever a model or a parser's checkpoint is named: `from_pretrained("agreement-pascal")`,
`--parser-model agreement-parser`. examples/experiments/publish.py makes them.
"""

import hashlib
import json
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
MANIFEST = FOLDER / "manifest.json"
MODEL = "model.pt"


@cache
def _manifest() -> dict[str, dict[str, str]]:
    try:
        return json.loads(MANIFEST.read_text(encoding="utf8"))
    except (OSError, ValueError):
        raise ValueError(f"{MANIFEST}: missing or damaged; install fairseq-syntax again") from None


def names() -> list[str]:
    """Names of the bundled models."""
    return sorted(_manifest())


@cache
def folder(name: str) -> Path:
    """Folder of a model: `model.pt`, and its dictionaries.

    Raises ValueError: there is none of this name, this installation is a wheel without it, or a file is not the
    published one.
    """
    if name not in _manifest():
        raise ValueError(f"{name}: no bundled model has this name; choose from {', '.join(names())}")
    if not (FOLDER / name).is_dir():
        raise ValueError(f"{name}: not in the wheel; work in a checkout of the repository, which has all models")
    for file, digest in _manifest()[name].items():
        path = FOLDER / name / file
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            raise ValueError(f"{path}: missing or damaged; install fairseq-syntax again")
    return FOLDER / name


def checkpoint(path: str) -> str:
    """The checkpoint of a bundled model, by its name; any other path as it is."""
    return str(folder(path) / MODEL) if path in _manifest() and not Path(path).exists() else path

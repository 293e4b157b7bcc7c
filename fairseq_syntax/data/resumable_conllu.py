"""A CoNLL-U file that is made in chunks: a run that is stopped or killed can be resumed."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..files import locked, staged_bytes, written
from ..trees.conllu import TreeFormatError


@contextmanager
def chunks_of(output: Path, settings: dict) -> Iterator[Path]:
    """The folder `output`.chunks; its files NUMBER.conllu become `output` when the block ends without an error.

    A file has its name when it is whole, so those that are there need not be made again.

    Args:
        output: the file to be, gzipped if it ends in `.gz`.
        settings: what the trees depend on: the text, and how it is parsed.

    Raises BlockingIOError: another process is writing it; TreeFormatError: it was begun with other settings.
    """
    folder = Path(f"{output}.chunks")
    folder.mkdir(parents=True, exist_ok=True)
    said, text = folder / "settings.json", json.dumps(settings)
    with locked(folder, output):
        if any(folder.glob("[0-9]*.conllu")) and said.read_text(encoding="utf-8") != text:
            raise TreeFormatError(
                f"{folder}: was begun with another text or other settings ({said.read_text(encoding='utf-8')}); run "
                "with the same ones to resume, or delete it to start over"
            )
        with written(str(said)) as file:
            file.write(text)
        yield folder
        with staged_bytes(output) as joined:
            for path in sorted(folder.glob("[0-9]*.conllu")):
                joined.write(path.read_bytes())
        shutil.rmtree(folder)

"""CoNLL-U files written in chunks, so that a run that was stopped or killed can be resumed."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..files import locked, staged_bytes, written
from ..trees.conllu import TreeFormatError


@contextmanager
def chunks_of(output: Path, settings: dict) -> Iterator[Path]:
    """The folder `output`.chunks; its files NUMBER.conllu are joined to `output` if the block ends without an error.

    Files in it are complete, so they need not be made again.

    Args:
        output: path of the final file, gzipped if it ends in `.gz`.
        settings: of the text and the parser, on which the trees depend.

    Raises BlockingIOError: another process is writing it; TreeFormatError: it was begun with other settings.
    """
    folder = Path(f"{output}.chunks")
    folder.mkdir(parents=True, exist_ok=True)
    stored, text = folder / "settings.json", json.dumps(settings)
    with locked(folder, output):
        if any(folder.glob("[0-9]*.conllu")) and stored.read_text(encoding="utf-8") != text:
            raise TreeFormatError(
                f"{folder}: was begun with another text or other settings ({stored.read_text(encoding='utf-8')}); run "
                "with the same ones to resume, or delete it to start over"
            )
        with written(str(stored)) as file:
            file.write(text)
        yield folder
        with staged_bytes(output) as joined:
            for path in sorted(folder.glob("[0-9]*.conllu")):
                joined.write(path.read_bytes())
        shutil.rmtree(folder)

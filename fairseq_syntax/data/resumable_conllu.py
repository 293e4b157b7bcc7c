"""A CoNLL-U file in the making: a run that is stopped or killed can be resumed."""

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from ..files import lock, named, staged_bytes
from ..trees.conllu import Sentence, TreeFormatError, format_sentence


class PartFile:
    """Trees on their way to `output`, in `output`.part.

    Its first line, which is not in the output, says what made the trees. It is locked as long as it is open.

    Args:
        output: the file to be, gzipped if it ends in `.gz`.
        settings: what the trees depend on: the text, and how it is parsed.

    Raises BlockingIOError: another process is writing it.
    """

    def __init__(self, output: Path, settings: dict):
        self.output = output
        self.path = Path(f"{output}.part")
        self._header = f"# fairseq-syntax-parse {json.dumps(settings)}\n".encode()
        output.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(self.path, "a+b")
        # a shard with the same --output
        lock(self._file, f"{self.path}: another process is writing it; give every run its own --output")

    def close(self) -> None:
        """Unlock the file."""
        self._file.close()

    def resume(self) -> int:
        """Keep the complete trees of the file, and leave it ready for appending; returns their number.

        Raises TreeFormatError: the file was begun with other settings.
        """
        self._file.seek(0)
        header = self._file.readline()
        kept, place = 0, len(header)
        for line in self._file:
            place += len(line)
            if line == b"\n":
                kept, end = kept + 1, place
        if not kept:  # say because a model file did not load
            self._file.truncate(0)
            self._file.write(self._header)
        elif header != self._header:
            raise TreeFormatError(
                f"{self.path}: was begun with another text or other settings "
                f"({header.decode(errors='replace').strip()}); run with the same ones to resume, or delete it to start "
                "over"
            )
        else:
            self._file.truncate(end)
        return kept

    def append(self, trees: Iterable[Sentence]) -> None:
        """Write some trees; they are on disk after that."""
        with named(self.path):
            self._file.write("".join(map(format_sentence, trees)).encode("utf-8"))
            self._file.flush()
            os.fsync(self._file.fileno())

    def finish(self) -> None:
        """Make the output of it, at once, and delete it."""
        self._file.seek(len(self._header))
        with staged_bytes(self.output) as file:
            shutil.copyfileobj(self._file, file)
        self.path.unlink()

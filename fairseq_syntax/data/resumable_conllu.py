"""A CoNLL-U file in the making: a run that is stopped or killed can be resumed."""

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..files import lock, staged_bytes
from ..trees.conllu import Sentence, TreeFormatError, block_forms, format_sentence, quoted


class PartFile:
    """Trees on their way to `output`, in `output`.part.

    Its first line, which is not in the output, says what made the trees. It is locked as long as it is open.

    Args:
        output: the file to be, gzipped if it ends in `.gz`.
        settings: what the trees depend on.

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

    def resume(self, words: Iterator[list[str]], name: str) -> int:
        """Keep the complete trees of the file, and leave it ready for appending.

        Args:
            words: of the sentences of the input; those of the trees that are kept are taken from it.
            name: of the input, for messages.

        Returns number of trees that are kept. Raises TreeFormatError: the file was made of another text or with other
        settings.
        """
        self._file.seek(0)
        header = self._file.readline()
        if not self._file.read(1):  # no tree yet, say because a model file did not load
            self._file.truncate(0)
            self._file.write(self._header)
            return 0
        if header != self._header:
            raise TreeFormatError(
                f"{self.path}: was begun with other settings ({header.decode(errors='replace').strip()}); "
                "run with the same ones to resume, or delete it to start over"
            )
        self._file.seek(len(header))
        kept, end, line = 0, len(header), 2
        for block in _complete_blocks(self._file):
            forms, expected = _forms(block), next(words, None)
            # a word of a tree may hold a space, where the text has two words
            if expected is None or [part for form in forms for part in form.split()] != expected:
                text = "the end" if expected is None else quoted(" ".join(expected))
                raise TreeFormatError(
                    f"{self.path}:{line}: the sentence is {quoted(' '.join(forms))}, but sentence {kept + 1} of "
                    f"{name} is {text}; give the same --input and --shard to resume, or delete the file to start over"
                )
            kept, end, line = kept + 1, end + len(block), line + block.count(b"\n")
        self._file.seek(end)
        self._file.truncate()
        return kept

    def append(self, trees: Iterable[Sentence]) -> None:
        """Write some trees; they are on disk after that."""
        self._file.write("".join(map(format_sentence, trees)).encode("utf-8"))
        self._file.flush()
        os.fsync(self._file.fileno())

    def finish(self) -> None:
        """Make the output of it, at once, and delete it."""
        self._file.seek(len(self._header))
        with staged_bytes(self.output) as file:
            shutil.copyfileobj(self._file, file)
        self.path.unlink()


def _forms(block: bytes) -> list[str]:
    """The words of a tree that this program wrote."""
    return block_forms(list(filter(None, block.decode("utf-8", "replace").split("\n"))))


def _complete_blocks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The trees of a part file, each with its final empty line; a tree that is cut off is left."""
    block: list[bytes] = []
    for line in lines:
        block.append(line)
        if line == b"\n":
            yield b"".join(block)
            block = []

"""What verbs read: UTF-8 text of a file or of stdin, whatever encoding the locale has."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from ...files import STDIO
from ...trees.text import numbered_lines, open_text


def input_name(path: str) -> str:
    """What messages call an input."""
    return "stdin" if path == STDIO else path


@contextmanager
def open_input(path: str) -> Iterator[IO[str]]:
    """A text, or stdin (`-`), which stays open, as by `open_text`. Raises TreeFormatError: it cannot be opened."""
    if path == STDIO:
        sys.stdin.reconfigure(encoding="utf-8-sig", newline="\n")
        yield sys.stdin
        return
    with open_text(path) as lines:
        yield lines


def input_lines(path: str) -> Iterator[str]:
    """The lines of a text, or of stdin (`-`), without line ends (LF or CRLF). TreeFormatErrors name the line."""
    with open_input(path) as lines:
        for _, line in numbered_lines(lines, input_name(path)):
            yield line.rstrip("\r\n")


def is_conllu(path: str) -> bool:
    """Whether this is the name of a file of trees, plain or gzipped."""
    return path.removesuffix(".gz").endswith(".conllu")

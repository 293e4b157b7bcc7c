"""What programs leave behind: files, whole or not at all and never over others unasked; and an exit status."""

import argparse
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ..files import staged_bytes
from ..trees.conllu import TreeFormatError

STDIO = "-"
PICTURES = (".svg", ".png", ".pdf")
"""What names of pictures end in."""


def is_picture(path: str) -> bool:
    """Whether a picture can have this name."""
    return Path(path).suffix.lower() in PICTURES


def picture(path: str) -> str:
    """Type of an option that names a picture to draw."""
    if not is_picture(path):
        raise argparse.ArgumentTypeError(f"{path}: give a name that ends in .svg, .png or .pdf")
    return path


def refuse_existing(paths: list[str | None], overwrite: bool) -> None:
    """Raise TreeFormatError if a file that is to be written exists; call it before the work begins.

    Args:
        paths: of the files; None and `-` are passed over.
        overwrite: whether to replace them.
    """
    for path in paths:
        if path not in (None, STDIO) and Path(path).exists() and not overwrite:
            raise TreeFormatError(f"{path}: exists already; give --overwrite to replace it")


@contextmanager
def written(path: str) -> Iterator[IO[str]]:
    """A UTF-8 text file, gzipped if it ends in `.gz`, that gets its name when the block ends without an error.

    Args:
        path: of the file; its folder is made; `-` is stdout, whatever encoding the locale has.
    """
    if path == STDIO:
        sys.stdout.reconfigure(encoding="utf-8")
        yield sys.stdout
        sys.stdout.flush()
        return
    with staged_bytes(path) as raw, io.TextIOWrapper(raw, encoding="utf-8", newline="\n") as file:
        yield file


def exit_status(program: str, work: Callable[[], None]) -> int:
    """Run a program's work; wrong data becomes one message on stderr.

    Args:
        program: its name.
        work: raises ValueError or OSError for wrong data.

    Returns:
        0; 1 for wrong data; 130 when interrupted.
    """
    try:
        work()
    except BrokenPipeError:
        # whoever read stdout has gone (`| head`); keep Python from complaining when it closes it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        return 130
    return 0

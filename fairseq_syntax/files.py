"""Files that are there whole or not at all."""

import fcntl
import gzip
import io
import os
import sys
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

STDIO = "-"
"""What stands for stdin and stdout."""


@contextmanager
def staged(path: str | Path) -> Iterator[Path]:
    """Where to write a file, which gets its name when the block ends without an error; its folder is made.

    The name to write to has the same suffix, and is one of its own: several processes may write the same file.
    """
    final = Path(path)
    final.parent.mkdir(parents=True, exist_ok=True)
    partial = final.with_name(f".{final.stem}.{uuid.uuid4().hex[:8]}.partial{final.suffix}")
    try:
        yield partial
        with open(partial, "rb") as file:
            os.fsync(file.fileno())
        partial.replace(final)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def staged_bytes(path: str | Path) -> Iterator[IO[bytes]]:
    """A file as by `staged`, open for writing; gzipped if it ends in `.gz`.

    Without time and name of the file, so that the same content is the same bytes.
    """
    with staged(path) as partial, open(partial, "wb") as raw:
        if partial.suffix == ".gz":
            with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
                yield packed
        else:
            yield raw


def lock(file: int | IO, message: str) -> None:
    """Lock an open file for this process; BlockingIOError with the message if another one has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BlockingIOError(message) from None
    except OSError:
        pass  # a file system without locks


def refuse_existing(paths: Iterable[str | Path | None], overwrite: bool) -> None:
    """Look at the names of files to be written, before the work begins; None is passed over.

    Raises:
        ValueError: two have the same name, which may be `-`.
        FileExistsError: one exists.
    """
    named = [str(path) for path in paths if path is not None]
    for path in named:
        if named.count(path) > 1:
            raise ValueError(f"{path}: two outputs have this name; give each its own")
        if path != STDIO and Path(path).exists() and not overwrite:
            raise FileExistsError(f"{path}: exists already; give --overwrite to replace it")


@contextmanager
def written(path: str) -> Iterator[IO[str]]:
    """A UTF-8 text file, gzipped if it ends in `.gz`, that gets its name when the block ends without an error.

    Its folder is made; `-` is stdout, whatever encoding the locale has.
    """
    if path == STDIO:
        sys.stdout.reconfigure(encoding="utf-8")
        yield sys.stdout
        sys.stdout.flush()
        return
    with staged_bytes(path) as raw, io.TextIOWrapper(raw, encoding="utf-8", newline="\n") as file:
        yield file

"""Files that are written completely or not at all."""

import fcntl
import gzip
import hashlib
import io
import os
import shutil
import sys
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from errno import EDQUOT, EFBIG, ENOSPC
from pathlib import Path
from typing import IO

STDIO = "-"
"""File name for stdin and stdout."""


@contextmanager
def named(path: str | Path) -> Iterator[None]:
    """Add the path to errors of writing without a file name: a full disk, or a file that is too large."""
    try:
        yield
    except OSError as error:
        if error.errno in (ENOSPC, EDQUOT, EFBIG):
            error.filename = str(path)
        raise
    except RuntimeError as error:
        if "inline_container" not in str(error):  # torch's writer of checkpoints does not say more
            raise
        raise OSError(ENOSPC, os.strerror(ENOSPC), str(path)) from None


@contextmanager
def staged(path: str | Path, follow: bool = True) -> Iterator[Path]:
    """A temporary path to write to, renamed to `path` when the block ends without an error; its folder is made.

    The temporary name is unique, since several processes may write the same file, and has the same suffix. A device or
    a FIFO is written to directly. A link stays, and its target gets the new content, unless `follow` is False, for
    names that the user has not given: a data folder from a stranger may have links.
    """
    path = Path(path)
    if follow and _is_special(path):
        yield path
        return
    final = Path(os.path.realpath(path)) if follow else path
    final.parent.mkdir(parents=True, exist_ok=True)
    partial = final.with_name(f".{uuid.uuid4().hex}.partial{path.suffix[-50:]}")  # at most 255 bytes
    try:
        with named(path):
            yield partial
            with open(partial, "rb") as file:
                os.fsync(file.fileno())
        if final.exists():
            shutil.copymode(final, partial)
        partial.replace(final)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def staged_bytes(path: str | Path) -> Iterator[IO[bytes]]:
    """A file as by `staged`, open for writing; gzipped if it ends in `.gz`.

    Gzip headers have no time and name, so that equal content gives equal bytes.
    """
    with staged(path) as partial, open(partial, "wb") as raw:
        if partial.suffix == ".gz":
            with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
                yield packed
        else:
            yield raw


@contextmanager
def staged_directory(path: str | Path) -> Iterator[Path]:
    """An empty folder, which takes the place of the folder `path` when the block ends without an error.

    What `path` held is deleted then; a block keeps files by `link_or_copy`. A program that is killed leaves the old
    folder or the new one, except between two renames, where there is neither: the next call restores the old one.

    Raises BlockingIOError: another process is writing the same folder; ValueError: `path` cannot be renamed, because it
    is a mount point or holds the current folder.
    """
    final = Path(path).resolve()
    if os.path.ismount(final) or Path.cwd().is_relative_to(final):
        raise ValueError(
            f"{path}: the current folder and mount points cannot be replaced as a whole; name a folder inside, or run "
            "the command in another folder"
        )
    new, old = (final.with_name(f".{final.name}.{end}") for end in ("partial", "old"))
    if new.exists():
        with locked(new, path):
            shutil.rmtree(new)
    new.mkdir(parents=True)
    if final.exists():
        shutil.copymode(final, new)
    with locked(new, path):
        if old.exists() and not final.exists():
            old.rename(final)
        shutil.rmtree(old, ignore_errors=True)
        try:
            with named(path):
                yield new
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        if final.exists():
            final.rename(old)
        new.rename(final)
        shutil.rmtree(old, ignore_errors=True)


@contextmanager
def locked(folder: Path, path: str | Path) -> Iterator[None]:
    """Lock a folder for this process, which writes `path`. Raises BlockingIOError: another process has locked it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        lock(descriptor, f"{path}: another process is writing it; wait for it to end")
        yield
    finally:
        os.close(descriptor)


def link_or_copy(old: str | Path, new: str | Path) -> None:
    """Give a file, or every file of a folder, a second name; copy it where the file system has no hard links."""
    if Path(old).is_dir() and not Path(old).is_symlink():
        shutil.copytree(old, new, symlinks=True, copy_function=link_or_copy)
        return
    try:
        os.link(old, new, follow_symlinks=False)
    except OSError:
        shutil.copy2(old, new, follow_symlinks=False)


def checksum(path: str | Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_special(path: Path) -> bool:  # a device, a FIFO
    return path.exists() and not path.is_file() and not path.is_dir()


def lock(file: int | IO, message: str) -> None:
    """Lock an open file for this process. Raises BlockingIOError, with the message: another process has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BlockingIOError(message) from None
    except OSError:
        pass  # a file system without locks


def refuse_existing(paths: Iterable[str | Path | None], overwrite: bool) -> None:
    """Check the names of files to be written before the work begins; None is ignored.

    Raises:
        ValueError: one has no name; or two are the same file, however it is spelled, or both are `-`.
        IsADirectoryError: one is a folder.
        FileExistsError: one exists, which is not a device or a FIFO.
    """
    named = [str(path) for path in paths if path is not None]
    places = [path if path == STDIO else os.path.realpath(path) for path in named]
    for path, place in zip(named, places, strict=True):
        if not path:
            raise ValueError("an output has an empty name; name a file")
        if path != STDIO and Path(path).is_dir():
            raise IsADirectoryError(f"{path}: is a folder; name a file")
        if places.count(place) > 1:
            raise ValueError(f"{path}: two outputs have this name; give each its own")
        if path != STDIO and Path(path).exists() and not _is_special(Path(path)) and not overwrite:
            raise FileExistsError(f"{path}: exists already; give --overwrite to replace it")


@contextmanager
def written(path: str) -> Iterator[IO[str]]:
    """Open a UTF-8 text file, gzipped if it ends in `.gz`, which gets its name when the block ends without an error.

    Its folder is made; `-` is stdout, which a `Verb` has made UTF-8.
    """
    if path == STDIO:
        yield sys.stdout
        sys.stdout.flush()
        return
    with staged_bytes(path) as raw, io.TextIOWrapper(raw, encoding="utf-8", newline="\n") as file:
        yield file

"""Replacing an old data directory with a new one: whatever kills the program, no mixture can be trained on.

New files are made in a staging directory. When they are complete, a journal there says what will be done, and files are
moved. First goes what vouches for the old files: the manifest, then the dictionaries, without which fairseq itself
loads nothing. They come last, in the reverse order. A run that finds a journal finishes what it says.
"""

import json
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..files import lock, staged
from ..trees.conllu import TreeFormatError

logger = logging.getLogger("fairseq_syntax.preprocess")

STAGING = ".syntax.partial"
JOURNAL = "publishing.json"
"""In a staging directory: everything is made, and its files are being moved to their place."""


def staging_directories(destination: Path) -> tuple[Path, Path]:
    """Where new files wait: for a whole data directory, and for trees alone."""
    # beside the directory itself, also where it is given as `.` or by a symbolic link
    return destination.resolve().with_name(f".{destination.resolve().name}.partial"), destination / STAGING


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keep a second run with the same --destdir from taking this one's files for left-overs."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        lock(descriptor, f"{directory}: another fairseq-syntax preprocess is writing it; wait for it to end")
        yield
    finally:
        os.close(descriptor)


def write_json(path: Path, content: dict) -> None:
    """Write a readable JSON file with a fixed order of keys."""
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


@contextmanager
def staging_directory(destination: Path, inside: bool) -> Iterator[Path]:
    """A directory for new files, from which `publish` moves them; with an error it goes, unless they are being moved.

    Args:
        destination: the data directory.
        inside: whether to stage within it: for trees alone.
    """
    for left in staging_directories(destination):
        if left.exists():
            with locked(left):
                logger.info("%s: left by an interrupted run, removed", left)
                shutil.rmtree(left)
    beside, within = staging_directories(destination)
    # files can be renamed within a file system only, and nothing be made in a folder that others own
    shut_in = destination.exists() and (os.path.ismount(destination.resolve()) or not os.access(beside.parent, os.W_OK))
    staging = within if inside or shut_in else beside
    staging.mkdir(parents=True)
    with locked(staging):
        try:
            yield staging
        except BaseException:
            if not (staging / JOURNAL).exists():
                shutil.rmtree(staging, ignore_errors=True)
            raise


def publish(staging: Path, destination: Path, manifest: str, stale: set[str]) -> None:
    """Move the staged files to their place.

    Args:
        manifest: name of the manifest.
        stale: names of files in `destination` that must not stay beside the new ones.
    """
    # all at once, unless a shell stands in that very directory
    if not destination.exists() or not (any(destination.iterdir()) or destination.samefile(".")):
        os.rename(staging, destination.resolve())
        return
    plan = {"manifest": manifest, "stale": sorted(stale - {path.name for path in staging.iterdir()})}
    with staged(staging / JOURNAL) as partial:
        write_json(partial, plan)
    _finish(staging, destination)


def finish_publishing(destination: Path) -> None:
    """Finish what a killed run has begun, if there is one."""
    for left in staging_directories(destination):
        if (left / JOURNAL).exists():
            with locked(left):
                logger.info("%s: left by a run that was killed while it moved files; finishing that", left)
                _finish(left, destination)


def _finish(staging: Path, destination: Path) -> None:
    """Move files by the plan in the journal, as often as it takes: what was moved already is not there any more."""
    try:
        plan = json.loads((staging / JOURNAL).read_text(encoding="utf-8"))
        manifest, stale = plan["manifest"], plan["stale"]
        # a folder of somebody else's may have a journal, too
        if any(name == ".." or Path(name).name != name for name in stale):
            raise ValueError(stale)
    except (ValueError, KeyError, TypeError):
        raise TreeFormatError(
            f"{staging / JOURNAL}: damaged, so what a killed run began cannot be finished; delete {staging} and "
            "preprocess again with --overwrite"
        ) from None

    def rank(name: str) -> int:
        return 2 if name == manifest else int(name.startswith("dict."))

    names = sorted({path.name for path in staging.iterdir()} - {JOURNAL}, key=lambda name: (rank(name), name))
    for name in reversed(names):
        if rank(name):
            (destination / name).unlink(missing_ok=True)
    for name in stale:
        (destination / name).unlink(missing_ok=True)
    for name in names:
        os.replace(staging / name, destination / name)
    (staging / JOURNAL).unlink()
    staging.rmdir()


def check_published(data_path: str | Path) -> None:
    """Raise TreeFormatError if a run of fairseq-syntax preprocess has not finished what is in this directory."""
    path = Path(data_path)
    whole, trees = staging_directories(path)
    unfinished = (path / JOURNAL).exists() or (path.resolve().name[:1] == "." and path.resolve().suffix == ".partial")
    for left in (whole, trees):
        try:
            plan = json.loads((left / JOURNAL).read_text(encoding="utf-8"))
            # before anything was moved, and after everything was, the data are whole
            unfinished |= not (path / plan["manifest"]).is_file()
        except FileNotFoundError:
            pass
        except (ValueError, KeyError, TypeError):
            unfinished = True
    if unfinished:
        raise TreeFormatError(
            f"{path}: half replaced, because fairseq-syntax preprocess was killed or is still running; run it again "
            "with this --destdir, which finishes that"
        )

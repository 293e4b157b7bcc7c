"""What a test session makes once, although several processes of pytest-xdist run its tests."""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def once(factory: pytest.TempPathFactory, key: str, make: Callable[[Path], object]) -> Path:
    """The folder that `make(folder)` has filled, in this process or in another one of the session.

    Args:
        factory: of temporary folders.
        key: what is made; everything on which it depends.
        make: fills the folder, which is not there yet. If it fails, the next one that asks tries again.
    """
    base = factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    name = "".join(c if c.isalnum() or c in "_-" else "-" for c in key)[:60]
    folder = base / "shared" / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:8]}" / "made"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name("lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder.with_name("done")
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            make(folder)
            done.touch()
    return folder

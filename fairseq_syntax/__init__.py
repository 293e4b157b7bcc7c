"""fairseq-syntax: syntax for fairseq's translation models.

Importing the package, or naming it with `--user-dir`, registers tasks, models and criterions with fairseq. The
algorithms in `fairseq_syntax.trees` also work where fairseq is not installed.
"""

import importlib
import importlib.util
import pkgutil

from .version import __version__

__all__ = ["__version__", "register"]

_PLUGINS = (
    "training.blackout",
    "task",
)


def register() -> None:
    """Register everything with fairseq, once; later calls do nothing.

    fairseq imports `tasks/` and `models/` of a user directory by itself only if the package is not loaded yet, and
    never `criterions/`; so this list does it in either order.

    Raises:
        ImportError: fairseq is missing or cannot be imported.
    """
    from .compat import REPAIRS, apply, import_quietly

    with import_quietly():
        importlib.import_module("fairseq")
    # "quiet" is first to make, and the task makes its own
    for repair in sorted(REPAIRS.keys() - {"default-task"}, key=lambda name: (name != "quiet", name)):
        apply(repair)
    for plugin in _PLUGINS:
        importlib.import_module(f"{__name__}.{plugin}")
    for system in pkgutil.iter_modules(importlib.import_module(f"{__name__}.systems").__path__):
        importlib.import_module(f"{__name__}.systems.{system.name}")


if importlib.util.find_spec("fairseq") is not None:
    register()

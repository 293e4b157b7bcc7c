"""Registers tasks, models and criterions with fairseq as soon as that is imported, and not before: it takes seconds."""

import importlib
import pkgutil
import sys

from .compat import REPAIRS, apply, import_quietly

_PACKAGE = __name__.partition(".")[0]
_PLUGINS = ("training.blackout", "task")


def register() -> None:
    """Register everything with fairseq, once; later calls do nothing. Raises ImportError: fairseq cannot be imported.

    fairseq imports `tasks/` and `models/` of a user directory by itself only if the package is not loaded yet, and
    never `criterions/`; so this does it in either order.
    """
    with import_quietly():
        importlib.import_module("fairseq")
    repair()
    load_plugins()


def repair() -> None:
    """Make all repairs of fairseq but that of the task, which makes its own; "quiet" is the first."""
    for name in sorted(REPAIRS.keys() - {"default-task"}, key=lambda name: (name != "quiet", name)):
        apply(name)


def load_plugins() -> None:
    """Import whatever registers something: systems are found by looking into their folder."""
    for plugin in _PLUGINS:
        importlib.import_module(f"{_PACKAGE}.{plugin}")
    for system in pkgutil.iter_modules(importlib.import_module(f"{_PACKAGE}.systems").__path__):
        importlib.import_module(f"{_PACKAGE}.systems.{system.name}")


class FollowFairseq:
    """Finder of modules that finds none itself: it registers everything once fairseq has been imported.

    A module of ours may be what imports fairseq. To register there and then would import modules that need the one
    that is halfway; so this waits until no module of ours is, in whatever thread. Repairs do not wait.
    """

    def __init__(self):
        self.halfway: set[str] = set()
        self.imported = False

    def find_spec(self, name, path=None, target=None):
        """What the other finders find, with an eye on its execution."""
        execute = None
        if name == "fairseq":
            execute = self.execute_fairseq
        elif name.startswith(f"{_PACKAGE}."):
            execute = self.execute_own
        if execute is None:
            return None
        others = (finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec"))
        spec = next((spec for finder in others if (spec := finder.find_spec(name, path, target)) is not None), None)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            # on the loader itself, which stays what everybody knows
            original = spec.loader.exec_module
            spec.loader.exec_module = lambda module: execute(spec.loader, original, module)
        return spec

    def execute_fairseq(self, loader, original, module) -> None:
        """Import fairseq without its noise, and repair it."""
        del loader.exec_module
        with import_quietly():
            original(module)
        self.imported = True
        repair()
        self.register_when_whole()

    def execute_own(self, loader, original, module) -> None:
        """Import a module of ours."""
        del loader.exec_module
        self.halfway.add(module.__name__)
        try:
            original(module)
        finally:
            self.halfway.discard(module.__name__)
            self.register_when_whole()

    def register_when_whole(self) -> None:
        """Register unless fairseq is not there, a module of ours is halfway, or it is done."""
        if self.imported and not self.halfway and self in sys.meta_path:
            sys.meta_path.remove(self)
            load_plugins()


def register_with_fairseq() -> None:
    """Register everything now if fairseq is loaded, and otherwise when it will be."""
    if "fairseq" in sys.modules:
        register()
    else:
        sys.meta_path.insert(0, FollowFairseq())

"""Registry of repairs, by name, for one version of fairseq."""

import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any

logger = logging.getLogger(__name__)
VERSION = "0.12."
REPAIRS: dict[str, Callable[[], None]] = {}


def repair(name: str):
    """Decorator of functions that make a repair, described by the first line of their docstrings."""
    return lambda make: REPAIRS.setdefault(name, make)


def replace(owner: Any, name: str, function: Callable) -> None:
    """Call `function` instead of a function of fairseq's, with that function as its first argument."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def replaced(*arguments, **options):
        return function(original, *arguments, **options)

    static = isinstance(inspect.getattr_static(owner, name), staticmethod)
    setattr(owner, name, staticmethod(replaced) if static else replaced)


@functools.cache
def repair_fairseq() -> None:
    """Make all repairs, once; with another version of fairseq, change nothing and log so."""
    import fairseq

    if not fairseq.__version__.startswith(VERSION):
        message = "fairseq %s is not repaired, as %sx would be; what is wrong with that is in docs/troubleshooting.md"
        logger.warning(message, fairseq.__version__, VERSION)
        return
    for make in REPAIRS.values():
        make()

"""Repairs of fairseq by name: applied one by one, unless fairseq differs."""

import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

logger = logging.getLogger(__name__)
REPAIRS: dict[str, Callable] = {}


class Differs(Exception):
    """This fairseq differs from what a repair expects; the message says how."""


class Replacement(NamedTuple):
    """What is called instead of a function of fairseq's, with that function as its first argument."""

    owner: Any
    name: str
    parameters: str  # of fairseq's function; further ones may follow, and are passed on
    function: Callable

    def check(self) -> None:
        """Raise Differs unless the function takes what the repair will give it."""
        where = f"{self.owner.__name__}.{self.name}"
        parameters = list(inspect.signature(getattr(self.owner, self.name)).parameters)
        expected = self.parameters.split()
        if parameters[: len(expected)] != expected:
            raise Differs(f"{where} takes ({', '.join(parameters)}), not ({', '.join(expected)})")

    def install(self) -> None:
        """Put the function in its place."""
        original = getattr(self.owner, self.name)

        @functools.wraps(original)
        def replaced(*arguments, **options):
            return self.function(original, *arguments, **options)

        static = isinstance(inspect.getattr_static(self.owner, self.name), staticmethod)
        setattr(self.owner, self.name, staticmethod(replaced) if static else replaced)


def expect(function: Callable, has: str = "", lacks: str = "") -> None:
    """Raise Differs unless the source of a function of fairseq's has one text, and lacks another."""
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        raise Differs(f"no source of {function.__qualname__}") from None
    if has not in source:
        raise Differs(f"{function.__qualname__} has no {has!r}")
    if lacks and lacks in source:
        raise Differs(f"{function.__qualname__} has {lacks!r}")


def repair(name: str):
    """Decorator: a function that makes a repair, or returns the Replacements that do; its first line says which."""
    return lambda make: REPAIRS.setdefault(name, make)


@functools.cache
def repair_fairseq() -> None:
    """Make all repairs, once."""
    for name in REPAIRS:
        apply(name)


def apply(name: str) -> None:
    """Make a repair; or log that fairseq differs, and change nothing."""
    try:
        replacements = REPAIRS[name]() or []
        for replacement in replacements:
            replacement.check()
    except (Differs, ImportError, AttributeError) as difference:
        logger.warning(
            "the repair %s does not fit this fairseq and is left out (%s); what it repairs is in "
            "docs/troubleshooting.md",
            *(name, difference),
        )
        return
    for replacement in replacements:
        replacement.install()

"""Repairs of fairseq by name: applied one by one, unless fairseq differs or they are left out."""

import functools
import inspect
import logging
import os
from collections.abc import Callable
from typing import Any, NamedTuple

logger = logging.getLogger(__name__)
if os.environ.get("LOGLEVEL", "").upper() != "DEBUG":
    # importing fairseq leaves the root logger at DEBUG, though nobody asked for it
    logger.setLevel(logging.INFO)

VARIABLE = "FAIRSEQ_SYNTAX_WITHOUT"
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

    def install(self, repair: str) -> None:
        """Put the function in its place, unless it is there: the package may be imported under two names."""
        original = getattr(self.owner, self.name)
        if repair in getattr(original, "repairs", ()):
            return

        @functools.wraps(original)
        def replaced(*arguments, **options):
            return self.function(original, *arguments, **options)

        replaced.repairs = (*getattr(original, "repairs", ()), repair)
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

    def register(make: Callable) -> Callable:
        REPAIRS[name] = make
        return make

    return register


def left_out() -> set[str]:
    """Names in the environment variable. Raises ValueError: there is no such repair."""
    names = set(filter(None, os.environ.get(VARIABLE, "").replace(",", " ").split()))
    if names - REPAIRS.keys():
        unknown, known = ", ".join(sorted(names - REPAIRS.keys())), ", ".join(sorted(REPAIRS))
        raise ValueError(f"{VARIABLE}: there is no repair {unknown}; choose from {known}")
    return names


def apply(name: str, *arguments) -> None:
    """Make a repair; or log that it is left out, or that fairseq differs, and change nothing."""
    if name in left_out():
        logger.debug("%s: left out by %s", name, VARIABLE)
        return
    try:
        replacements = REPAIRS[name](*arguments) or []
        for replacement in replacements:
            replacement.check()
    except (Differs, ImportError, AttributeError) as difference:
        logger.warning(
            "the repair %s does not fit this fairseq and is left out (%s); what it repairs is in "
            "docs/troubleshooting.md; %s=%s accepts that",
            *(name, difference, VARIABLE, name),
        )
        return
    for replacement in replacements:
        replacement.install(name)
    logger.debug("%s: %s", name, REPAIRS[name].__doc__.splitlines()[0])

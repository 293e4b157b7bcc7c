"""Fields of JSON records that tables and pages read; other keys are allowed."""

import json
import textwrap
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from ..trees.text import read_lines


class Score(TypedDict):
    score: float
    signature: str


class Scores(TypedDict):
    BLEU: Score


class Run(TypedDict):
    """Record of a run of an experiment."""

    system: str
    seed: int | str
    scores: dict[str, Scores]
    family: str
    trees: str
    commit: str
    stopped: str
    updates: float
    minutes: dict[str, float]
    sha256: dict[str, str]
    commands: dict[str, str]


class Contrast(TypedDict):
    """Record of `contrast --output`."""

    format: Literal[1]
    name: str
    digest: str
    details: dict[str, list[str]]
    measure: str
    correct: list[float]
    incorrect: list[float]


def read_json(path: str | Path, kind: type, advice: str) -> dict:
    """Read a JSON file, plain or gzipped, and check it.

    Args:
        kind: one of this module.
        advice: what a user can do about a file that is wrong.

    Raises ValueError: it cannot be read, or is of another kind; the message names the place.
    """
    try:
        content = json.loads("\n".join(read_lines(path)), parse_constant=_no_number)
        _adapter(kind).validate_python(content, strict=True)
    except ValidationError as error:
        fault = error.errors()[0]
        said = f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
        raise ValueError(f"{path}: not a record ({textwrap.shorten(said, 150)}); {advice}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not a record ({error}); {advice}") from None
    return content


_adapter = cache(TypeAdapter)


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number")

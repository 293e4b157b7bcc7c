"""Fields of JSON records that tables and pages read; other keys are allowed."""

import json
import textwrap
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Literal, Required

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from ..trees.text import read_lines

FORMAT = 3
"""Of what `compare --format json` prints."""


class Score(TypedDict):
    score: float
    signature: str


class Scores(TypedDict):
    BLEU: Score


class Run(TypedDict, total=False):
    """Record of a run of a system, as `compare --results` and `report` read it."""

    system: Required[str]
    seed: Required[int | str]
    scores: Required[dict[str, Scores]]
    corpus: str
    family: str
    trees: str
    commit: str
    commits: list[str]
    stopped: str
    updates: float
    minutes: dict[str, float]
    sha256: dict[str, str]
    commands: dict[str, str]


TRAINED = Run.__annotations__.keys() - {"corpus", "commits"}
"""Fields that every record of an experiment has."""


class Contrast(TypedDict):
    """Record of `contrast --output`."""

    format: Literal[1]
    name: str
    digest: str
    details: dict[str, list[str]]
    measure: str
    correct: list[float]
    incorrect: list[float]


def read_json(path: str | Path, kind: type, advice: str, needed: Collection[str] = ()) -> dict:
    """Read a JSON file, plain or gzipped, and check it.

    Args:
        kind: one of this module.
        advice: what a user can do about a file that is wrong.
        needed: fields that it must have besides.

    Raises ValueError: it cannot be read, or is of another kind; the message names the place.
    """
    try:
        content = json.loads("\n".join(read_lines(path)), parse_constant=_no_number)
        _adapter(kind).validate_python(content, strict=True)
        if missing := sorted(needed - content.keys()):
            raise ValueError(f"{missing[0]} is missing")
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


def check_name(path: Path, record: dict) -> None:
    """Raise ValueError unless a file is called SYSTEM-SEED, as its record says."""
    name = f"{record['system']}-{record['seed']}"
    if path.name.split(".json")[0] != name:
        raise ValueError(f"{path}: the record is of {name}; give the file its name, or leave it out")

"""Types of JSON records, and a reader that checks a file against them."""

import textwrap
from pathlib import Path

from pydantic import TypeAdapter, with_config
from typing_extensions import TypedDict

from ..trees.text import read_lines


@with_config(extra="allow", allow_inf_nan=False)
class Score(TypedDict):
    score: float
    signature: str


@with_config(extra="allow")
class Scores(TypedDict):
    BLEU: Score


@with_config(extra="allow", allow_inf_nan=False)
class RunRecord(TypedDict):
    """Record of a run of an experiment: the keys that tables and pages read; others are allowed."""

    system: str
    seed: int | str
    scores: dict[str, Scores]
    family: str
    trees: str
    commit: str
    stopped: str
    updates: int | float
    minutes: dict[str, float]
    sha256: dict[str, str]
    commands: dict[str, str]


def read_json(path: str | Path, kind: type, advice: str):
    """Read a JSON file, plain or gzipped, and check its type; the error for a wrong file ends with `advice`.

    Raises ValueError: it cannot be read, or is of another kind; the message names the place.
    """
    try:
        return TypeAdapter(kind).validate_json("\n".join(read_lines(path)), strict=True)
    except ValueError as error:
        message = textwrap.shorten(" ".join(str(error).split()), 150)
        raise ValueError(f"{path}: not a record ({message}); {advice}") from None

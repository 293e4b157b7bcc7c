"""JSON records that are checked when they are read."""

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
class Run(TypedDict):
    """Record of a run of an experiment: what tables and pages read of it; other keys are allowed."""

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
    """Read a JSON file, plain or gzipped, as a type of pydantic; `advice` is what to do about one that is wrong.

    Raises ValueError: it cannot be read, or is of another kind; the message names the place.
    """
    try:
        return TypeAdapter(kind).validate_json("\n".join(read_lines(path)), strict=True)
    except ValueError as error:
        said = textwrap.shorten(" ".join(str(error).split()), 150)
        raise ValueError(f"{path}: not a record ({said}); {advice}") from None

"""What JSON records must hold for the tables and pages that read them; other keys are allowed."""

import json
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path

import fastjsonschema

from ..trees.text import read_lines

TEXT = {"type": "string"}
NUMBER = {"type": "number"}
COUNT = {"type": "integer", "minimum": 0}


def _keys(required: dict, optional: dict | None = None) -> dict:
    """Schema of an object with named keys."""
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


def _map(values: dict) -> dict:
    """Schema of an object with keys of any name."""
    return {"type": "object", "additionalProperties": values}


def _list(items: dict, length: int | None = None) -> dict:
    return {"type": "array", "items": items, **({} if length is None else {"minItems": length, "maxItems": length})}


def _or_null(schema: dict) -> dict:
    return {"anyOf": [schema, {"type": "null"}]}


_SCORE = _keys({"score": NUMBER}, {"signature": TEXT})
_SHARE = _keys({"accuracy": NUMBER})
_AGREEMENT = _keys({"overall": _SHARE}, {"attractors": _map(_SHARE), "distance": _map(_SHARE)})
_SCORES = _keys({"BLEU": _keys({"score": NUMBER, "signature": TEXT})}, {"chrF": _SCORE, "agreement": _AGREEMENT})
_WHOSE = {"system": TEXT, "seed": {"type": ["integer", "string"]}}

# what the tables of an experiment need besides
_OF_TRAINING = {
    **{"family": TEXT, "trees": TEXT, "commit": TEXT, "stopped": TEXT, "updates": NUMBER, "minutes": _map(NUMBER)},
    **{"sha256": _map(TEXT), "checkpoint": _keys({"chosen": TEXT})},
}
_SOMETIMES = {
    **{"corpus": TEXT, "commits": _list(TEXT)},
    "curve": _list(_keys({"updates": NUMBER, "loss": NUMBER}, {"bleu": NUMBER})),
}
_COMMANDS = {"train": TEXT, "generate": TEXT}

RUN = _keys({**_WHOSE, "scores": _map(_SCORES)}, {**_OF_TRAINING, **_SOMETIMES, "commands": _keys({}, _COMMANDS)})
"""Record of a run of a system, as `compare --results` and `report` read it."""
TRAINED = _keys({**_WHOSE, "scores": _map(_SCORES), **_OF_TRAINING, "commands": _keys(_COMMANDS)}, _SOMETIMES)
"""The same as an experiment writes it."""

_PAIRS = {"format": {"const": 1}, "name": TEXT, "digest": TEXT, "details": _map(_list(TEXT))}
_HEADS = _keys(
    {"DA": NUMBER, "UA": NUMBER, "UAS": NUMBER, "relations": _map(_keys({"words": COUNT, "DA": NUMBER}))},
)
CONTRAST = _keys({**_PAIRS, "measure": TEXT, "correct": _list(NUMBER), "incorrect": _list(NUMBER)})
"""Record of `contrast --output`."""
FORMAT = 3
"""Of what `compare --format json` prints."""


def read_json(path: str | Path, schema: dict, advice: str) -> dict:
    """Read a JSON file, plain or gzipped, and check it.

    Args:
        schema: one of this module.
        advice: what a user can do about a file that is wrong.

    Raises ValueError: it cannot be read, or differs from the schema; the message names the place.
    """
    try:
        content = json.loads("\n".join(read_lines(path)), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not a record ({error}); {advice}") from None
    try:
        _checker(json.dumps(schema))(content)
    except fastjsonschema.JsonSchemaValueException as error:
        raise ValueError(f"{path}: not a record ({textwrap.shorten(error.message, 150)}); {advice}") from None
    return content


@cache
def _checker(schema: str) -> Callable[[object], object]:
    return fastjsonschema.compile(json.loads(schema), use_default=False)


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number")


def check_name(path: Path, record: dict) -> None:
    """Raise ValueError unless a file is called SYSTEM-SEED, as its record says."""
    name = f"{record['system']}-{record['seed']}"
    if path.name.split(".json")[0] != name:
        raise ValueError(f"{path}: the record is of {name}; give the file its name, or leave it out")

"""Accuracy on minimal pairs, with confidence intervals and McNemar's test between two systems."""

import json
import logging
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from .minimal_pairs import Pairs
from .schemas import Contrast, read_json
from .significance import binomial
from .tables import format_table

logger = logging.getLogger(__name__)

SOURCE_WORDS = "source words"

_FORMAT = 1
_MOST_VALUES = 12  # most groups of a table
_LARGEST = (0, 1, 4, 7, 10)  # largest number of each group of numbers, above which one group is open
_NONE = "none"  # group of empty cells


class McNemar(NamedTuple):
    """Result of `mcnemar`.

    Attributes:
        first, second: number of pairs that only the first or only the second system has right.
        p: exact two-sided p-value.
    """

    first: int
    second: int
    p: float


def mcnemar(first: Sequence[bool] | np.ndarray, second: Sequence[bool] | np.ndarray) -> McNemar:
    """The exact test of McNemar (1947): a binomial test against one half, over the pairs on which two systems differ.

    Args:
        first, second: (N,) whether each system has each pair right.
    """
    first, second = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    alone = int((first & ~second).sum()), int((second & ~first).sum())
    return McNemar(*alone, binomial(*alone))


def wilson(right: float, size: int, share: float = 0.95) -> tuple[float, float]:
    """Wilson's (1927) confidence interval for a proportion: its ends, 0 to 1, or NaN without trials.

    Args:
        right: number of successes, which may be a mean over several runs.
        size: number of trials.
        share: confidence level.
    """
    if not size:
        return math.nan, math.nan
    z = float(ndtri((1 + share) / 2))
    centre = (right + z * z / 2) / (size + z * z)
    half = z / (size + z * z) * math.sqrt(right * (size - right) / size + z * z / 4)
    # rounding could otherwise pass 0 and 1
    return max(0.0, centre - half), min(1.0, centre + half)


@dataclass
class Record:
    """The scores of N pairs by one system.

    Attributes:
        name: name of the system.
        digest: digest of the pairs.
        measure: `sum` or `mean` of log-probabilities.
        correct, incorrect: N scores of both members, natural logarithms.
        details: see `Pairs`.
    """

    name: str
    digest: str
    measure: str
    correct: list[float]
    incorrect: list[float]
    details: dict[str, list[str]]

    @property
    def right(self) -> np.ndarray:
        """Whether the correct member of each pair has the higher score, (N,); False for ties."""
        return np.asarray(self.correct) > np.asarray(self.incorrect)

    @property
    def ties(self) -> int:
        return int((np.asarray(self.correct) == np.asarray(self.incorrect)).sum())

    def as_json(self) -> str:
        """The record as JSON, for `read_record`."""
        right, size = int(self.right.sum()), len(self.correct)
        low, high = wilson(right, size)
        summary = {"pairs": size, "right": right, "ties": self.ties, "accuracy": right / size, "interval": [low, high]}
        return json.dumps({"format": _FORMAT, **summary, **asdict(self)}, ensure_ascii=False, indent=1) + "\n"


def record_of(content: dict) -> Record:
    """The record from parsed JSON that `schemas.Contrast` allows. Raises ValueError: lists differ in length."""
    record = Record(**{name: content[name] for name in Record.__dataclass_fields__})
    if not len(record.correct) == len(record.incorrect) > 0:
        raise ValueError(f"{len(record.correct)} and {len(record.incorrect)} scores")
    if any(len(column) != len(record.correct) for column in record.details.values()):
        raise ValueError(f"{len(record.correct)} pairs, and details of another number")
    return record


def read_record(path: str | Path) -> Record:
    """Read a record, plain or gzipped. Raises ValueError: the file is not a record."""
    advice = "give a file of fairseq-syntax contrast --output"
    content = read_json(path, Contrast, advice)
    try:
        return record_of(content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}; {advice}") from None


def check_records(records: Sequence[Record]) -> None:
    """Raise ValueError unless all records have the same pairs and measure, and different names."""
    for record in records[1:]:
        if record.digest != records[0].digest:
            raise ValueError(
                f"{record.name} and {records[0].name} were scored on different pairs ({len(record.correct)} and "
                f"{len(records[0].correct)}); score both on the same files"
            )
        if record.measure != records[0].measure:
            raise ValueError(f"{record.name} and {records[0].name} have different --score; score both with the same")
    names = [record.name for record in records]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two systems are called {name!r}; give another --name")


def columns_of(pairs: Pairs) -> dict[str, list[str]]:
    """The columns for `groups_of`: the details of pairs, and the lengths of their sources in words."""
    return {**pairs.details, SOURCE_WORDS: [str(len(source.split())) for source in pairs.sources]}


def groups_of(columns: dict[str, list[str]], tell: bool = False) -> dict[str, list[tuple[str, np.ndarray]]]:
    """Group pairs by the values of each column: name of a column -> (name of a group, indices of its pairs).

    Integers are grouped into ranges if there are many. Columns without 2 to `_MOST_VALUES` groups are left out.

    Args:
        columns: name -> N values, as `columns_of` gives them.
        tell: whether to log the columns left out.
    """
    groups = {}
    for name, values in columns.items():
        distinct = {value for value in values if value}
        numbers = bool(distinct) and all(re.fullmatch(r"-?\d+", value) for value in distinct)
        if numbers and name == SOURCE_WORDS:
            labels = [
                f"{10 * ((n - 1) // 10) + 1}-{10 * ((n - 1) // 10) + 10}" if n <= 50 else ">50"
                for n in map(int, values)
            ]
        elif numbers and len(distinct) > len(_LARGEST):
            labels = [_group(int(value)) if value else _NONE for value in values]
        else:
            labels = [value or _NONE for value in values]
        size = len(set(labels))
        if 1 < size <= _MOST_VALUES:
            order = sorted(set(labels), key=lambda label: _first_number(label) if numbers else (0, label))
            groups[name] = [(label, np.array([i for i, x in enumerate(labels) if x == label])) for label in order]
        elif tell and name != SOURCE_WORDS:
            logger.warning(
                f"details: no table by {name!r}; tables have 2 to {_MOST_VALUES} groups, and it would have {size}"
            )
    return groups


def _group(number: int) -> str:
    """The group of a number: <0, 0, 1, 2-4, 5-7, 8-10 or >10."""
    if number < 0:
        return "<0"
    for low, high in zip((0, *(n + 1 for n in _LARGEST)), _LARGEST, strict=False):
        if number <= high:
            return str(high) if low == high else f"{low}-{high}"
    return f">{_LARGEST[-1]}"


def _first_number(label: str) -> tuple[float, str]:
    number = re.match(r"-?\d+", label)
    return float(number[0]) if number else -math.inf if label == "<0" else math.inf, label


# --- tables -------------------------------------------------------------------------------------------------------


def tables(records: list[Record], pairs: Pairs, form: str) -> str:
    """Tables of accuracies, tests against the first system, and accuracies by group, in a `TableFormat`."""
    rows: list[tuple] = [
        (record.name, len(pairs), int(record.right.sum()), *share(record.right), record.ties) for record in records
    ]
    shown = [format_table(["system", "pairs", "right", "accuracy", "low", "high", "ties"], rows, form)]
    if len(records) > 1:
        first, *others = records
        tests = [mcnemar(first.right, record.right) for record in others]
        rows = [
            (o.name, t.first, t.second, f"{t.p:.4f}" if t.p >= 1e-4 else f"{t.p:.0e}")
            for o, t in zip(others, tests, strict=True)
        ]
        header = [f"against {first.name}", f"{first.name} alone", "system alone", "p McNemar"]
        shown.append(format_table(header, rows, form))
    for name, groups in groups_of(columns_of(pairs), tell=True).items():
        header = [name, "pairs"]
        for record in records:
            header += [record.name if len(records) > 1 else "accuracy", "low", "high"]
        rows = [(label, len(group), *(x for r in records for x in share(r.right[group]))) for label, group in groups]
        shown.append(format_table(header, rows, form))
    return "\n\n".join(shown)


def share(hits: np.ndarray) -> tuple[float, float, float]:
    """The percentage of hits, and the ends of its 95 % interval."""
    low, high = wilson(int(hits.sum()), len(hits))
    return 100 * float(hits.mean()), 100 * low, 100 * high

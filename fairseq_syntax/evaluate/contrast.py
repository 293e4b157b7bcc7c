"""Accuracy on minimal pairs, with confidence intervals and McNemar's test between two systems."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass
from scipy.stats import binomtest

from .buckets import Scale, lengths
from .minimal_pairs import Pairs
from .schemas import read_json
from .tables import format_table

SOURCE_WORDS = "source words"

_FORMAT = 1
_MOST_VALUES = 12  # largest number of groups of a table
_FEW = 5  # up to so many different numbers, each is a group of its own
_RANGES = Scale((-np.inf, 0, 1, 2, 5, 8, 11, np.inf), ("<0", "0", "1", "2-4", "5-7", "8-10", ">10"))
_NONE = "none"  # group of empty cells


def mcnemar(first: np.ndarray, second: np.ndarray) -> tuple[int, int, float]:
    """The exact test of McNemar (1947): a binomial test against one half, over the pairs on which two systems differ.

    Args:
        first, second: (N,) whether each system has each pair right.

    Returns: number of pairs that only the first or only the second system has right; two-sided p-value.
    """
    alone = int((first & ~second).sum()), int((second & ~first).sum())
    return *alone, float(binomtest(alone[0], sum(alone)).pvalue) if sum(alone) else 1.0


def wilson(right: int, size: int) -> tuple[float, float]:
    """The ends of Wilson's (1927) 95 % confidence interval for a proportion of `right` in `size` trials, 0 to 1."""
    interval = binomtest(right, size).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


@dataclass(config=ConfigDict(allow_inf_nan=False))
class PairScores:
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


def read_record(path: str | Path) -> PairScores:
    """Read a record, plain or gzipped. Raises ValueError: the file is not a record, or its lists differ in length."""
    advice = "give a file of fairseq-syntax contrast --output"
    record = read_json(path, PairScores, advice)
    if len({*map(len, (record.correct, record.incorrect, *record.details.values()))}) > 1 or not record.correct:
        raise ValueError(f"{path}: lists of different lengths, or empty; {advice}")
    return record


def check_records(records: Sequence[PairScores]) -> None:
    """Raise ValueError unless all records have the same pairs and measure, and different names."""
    for record in records[1:]:
        if (record.digest, record.measure) != (records[0].digest, records[0].measure):
            raise ValueError(
                f"{record.name} and {records[0].name} were scored on different pairs, or with another --score; score "
                "both on the same files"
            )
    names = [record.name for record in records]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two systems are called {name!r}; give another --name")


def pair_columns(pairs: Pairs) -> dict[str, list[str]]:
    """Columns for `pair_groups`: the details of pairs, and the lengths of their sources in words."""
    return {**pairs.details, SOURCE_WORDS: [str(len(source.split())) for source in pairs.sources]}


def pair_groups(columns: dict[str, list[str]]) -> dict[str, list[tuple[str, np.ndarray]]]:
    """Group pairs by the values of each column: name of a column -> (name of a group, indices of its pairs).

    Integers are grouped into ranges if there are many, and empty cells are `none`. Columns without 2 to `_MOST_VALUES`
    groups are left out.

    Args:
        columns: name -> N values, as `pair_columns` gives them.
    """
    groups = {}
    for name, values in columns.items():
        distinct = set(values) - {""}
        numbers = all(re.fullmatch(r"-?\d+", value) for value in distinct)
        order: list[str] = sorted(distinct, key=int if numbers else str)
        labels = {value: value for value in order} | {"": _NONE}
        if numbers and (name == SOURCE_WORDS or len(distinct) > _FEW):
            scale = lengths(50) if name == SOURCE_WORDS else _RANGES
            bins = np.digitize([int(value) for value in order], scale.edges).tolist()
            labels |= {value: scale.label(i - 1, i - 1) for value, i in zip(order, bins, strict=True)}
        members: dict[str, list[int]] = {labels[value]: [] for value in [*order, *([""] if "" in values else [])]}
        for i, value in enumerate(values):
            members[labels[value]].append(i)
        if 1 < len(members) <= _MOST_VALUES:
            groups[name] = [(label, np.array(indices)) for label, indices in members.items()]
    return groups


# --- tables -------------------------------------------------------------------------------------------------------


def tables(records: list[PairScores], pairs: Pairs, form: str) -> str:
    """Tables of accuracies, tests against the first system, and accuracies by group, in a `TableFormat`."""
    rows: list[tuple] = [
        (record.name, len(pairs), int(record.right.sum()), *share(record.right), record.ties) for record in records
    ]
    shown = [format_table(["system", "pairs", "right", "accuracy", "low", "high", "ties"], rows, form)]
    if len(records) > 1:
        first, *others = records
        tests = [mcnemar(first.right, record.right) for record in others]
        rows = [
            (other.name, *alone, f"{p:.4f}" if p >= 1e-4 else f"{p:.0e}")
            for other, (*alone, p) in zip(others, tests, strict=True)
        ]
        header = [f"against {first.name}", f"{first.name} alone", "system alone", "p McNemar"]
        shown.append(format_table(header, rows, form))
    hits = {record.name if len(records) > 1 else "accuracy": record.right for record in records}
    return "\n\n".join([*shown, *group_tables(pair_columns(pairs), hits, form)])


def group_tables(columns: dict[str, list[str]], hits: dict[str, np.ndarray], form: str) -> Iterator[str]:
    """Tables of shares by group, for each of `columns`; hits: name -> (N,) whether it is true of each pair."""
    header = [x for name in hits for x in (name, "low", "high")]
    for name, groups in pair_groups(columns).items():
        rows = [
            (label, len(group), *(x for hit in hits.values() for x in share(hit[group]))) for label, group in groups
        ]
        yield format_table([name, "pairs", *header], rows, form)


def share(hits: np.ndarray) -> tuple[float, float, float]:
    """The percentage of hits, and the ends of its 95 % interval."""
    low, high = wilson(int(hits.sum()), len(hits))
    return 100 * float(hits.mean()), 100 * low, 100 * high

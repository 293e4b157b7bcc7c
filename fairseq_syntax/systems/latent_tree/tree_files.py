"""The trees of translations as they were written to a file (`--rnng-tree-output`).

Three lines a sentence, tab-separated, the number of the sentence behind the hyphen: `TS-7` and `TT-7` with the trees of
source and target in brackets (see `brackets`), and `TA-7` with JSON: "source_spans" and "target_spans" of the
constituents in the order of opening, [start, end] in symbols, those of the source with the root and those of the
target without; "attention", a row for each constituent of the target with a weight for each of the source; where it is
known, "source_capped" and "target_capped": whether the budget of actions forbade to open a constituent.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ...trees.conllu import TreeFormatError
from .brackets import from_brackets
from .constituents import NONE, Constituents, constituents

_RECORD = re.compile(r"(TS|TT|TA)-(\d+)(?:\t(.*))?", re.DOTALL)
_ROUNDING = 5e-5  # numbers have four digits


@dataclass(frozen=True)
class Tree:
    """A tree over the symbols of a sentence."""

    symbols: list[str]  # without the end of the sentence
    actions: list[int]  # that build it, see `transitions.Action`
    capped: bool | None = None  # whether the budget of actions forbade to open a constituent; None if that is not known

    def constituents(self) -> Constituents:
        """Those of the tree, root first, then in the order of opening."""
        return constituents(np.array([self.actions]))


@dataclass(frozen=True)
class TreeRecord:
    """A sentence and its translation."""

    sentence: int  # its number
    source: Tree
    target: Tree
    # (J, I) weights of the target's constituents but the root over those of the source, in the order of opening;
    # column 0 is the source's root
    attention: np.ndarray


def read_tree_file(lines: Iterable[tuple[int, str]], name: str) -> list[TreeRecord]:
    """All trees and attention of numbered lines, by number of sentence, whatever the order of the lines; one or more.

    Lines of other kinds are passed over: what was written to stdout stands between the lines of fairseq-generate.

    Raises TreeFormatError, naming file (`name`) and line: no trees; a line that is missing, there twice or damaged; or
    attention that is not between the constituents of the trees.
    """
    found: dict[int, dict[str, tuple[int, str]]] = {}
    for line, text in lines:
        if match := _RECORD.fullmatch(text.rstrip("\r\n")):
            kind, sentence = match[1], int(match[2])
            records = found.setdefault(sentence, {})
            if kind in records:
                raise TreeFormatError(
                    f"{name}:{line}: a second {kind}- line of sentence {sentence}, the first is line "
                    f"{records[kind][0]}; give the output of one run"
                )
            records[kind] = line, match[3] or ""
    if not found:
        raise TreeFormatError(f"{name}: no tree (a line such as TS-0); give what --rnng-tree-output has written")
    return [_pair(sentence, found[sentence], name) for sentence in sorted(found)]


def _pair(sentence: int, records: dict[str, tuple[int, str]], name: str) -> TreeRecord:
    for kind in ("TS", "TT", "TA"):
        if kind not in records:
            other, (line, _) = next(iter(records.items()))
            raise TreeFormatError(
                f"{name}:{line}: sentence {sentence} has a {other}- line, but no {kind}- line; is the file complete?"
            )
    line, text = records["TA"]
    place = f"{name}:{line}"
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise TreeFormatError(f"{place}: TA-{sentence} is not JSON ({error}); is the file complete?") from None
    expected = ("source_spans", "target_spans", "attention")
    if not isinstance(values, dict) or not values.keys() >= set(expected):
        raise TreeFormatError(f"{place}: TA-{sentence} is not a JSON object with {', '.join(expected)}")
    source, target = (
        _tree(*records[kind], values.get(f"{side}_capped"), name) for kind, side in (("TS", "source"), ("TT", "target"))
    )
    spans = [_spans(source, True), _spans(target, False)]
    for kind, key, own in zip(("TS", "TT"), expected, spans, strict=False):
        if values[key] != own:
            raise TreeFormatError(
                f"{place}: the {key} of sentence {sentence} are not those of the tree in line {records[kind][0]}; the "
                "file has been changed, or holds the output of several runs"
            )
    return TreeRecord(sentence, source, target, _attention(values["attention"], len(spans[1]), len(spans[0]), place))


def _tree(line: int, text: str, capped, name: str) -> Tree:
    try:
        actions, symbols = from_brackets(text)
    except ValueError as error:
        raise TreeFormatError(f"{name}:{line}: {error}") from None
    return Tree(symbols, actions, capped if isinstance(capped, bool) else None)


def _spans(tree: Tree, root: bool) -> list[list[int]]:
    built = tree.constituents()
    kept = (built.parent != NONE) | root
    return np.stack((built.start, built.end), axis=1)[kept].tolist()


def _attention(values, rows: int, columns: int, place: str) -> np.ndarray:
    try:
        weights = np.array(values, dtype=float)
    except (TypeError, ValueError):
        weights = None
    if weights is None or weights.shape != ((rows, columns) if rows else (0,)):
        raise TreeFormatError(
            f"{place}: the attention is not a table of {rows} rows and {columns} columns, for the constituents of "
            "target and source"
        )
    weights = weights.reshape(rows, columns)
    # each of the weights may be rounded
    if not ((weights >= 0) & (weights <= 1)).all() or (abs(weights.sum(axis=1) - 1) > 1e-4 + _ROUNDING * columns).any():
        raise TreeFormatError(f"{place}: the attention is not one of weights from 0 to 1 whose rows add up to 1")
    return weights

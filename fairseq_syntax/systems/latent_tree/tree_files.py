"""Trees over symbols as lines of brackets, and files of translations with their trees (`--rnng-tree-output`).

The text `E i n ▁ M a n n` with its second word a constituent is `(X E i n ▁ (X M a n n ) )`: the root is written too.
Symbols are separated by spaces; brackets of the text are written -LRB- and -RRB-, as in treebanks.

A file has three lines a sentence, tab-separated, the number of the sentence after the hyphen: `TS-7` and `TT-7` with
the trees of source and target in brackets, and `TA-7` with JSON: "source_spans" and "target_spans" of constituents in
the order of opening, [start, end] in symbols, with the source's root and without the target's; "attention", a row for
each constituent of the target with a weight for each of the source; where it is known, "source_capped" and
"target_capped": whether the budget of actions forbade a constituent.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...trees.conllu import TreeFormatError
from .transitions import NONE, Action, Constituents, constituents

OPEN, CLOSE = "(X", ")"
EXAMPLE = "(X a (X b c ) )"
_ESCAPES = (("(", "-LRB-"), (")", "-RRB-"))


def to_brackets(actions: np.ndarray, symbols: Sequence[Sequence[str]]) -> list[str]:
    """The trees of B sentences as lines without a line break.

    Args:
        actions: (B, T) of `Action`, padded with NOP; legal and complete (see `legality`). Constituents that the end
            of the sentence closes are written, empty ones are not.
        symbols: those of each sentence, without its end; none is empty or has a space in it.
    """
    lines = []
    for taken, opens, sentence in zip(actions.tolist(), constituents(actions).opens.tolist(), symbols, strict=True):
        text = iter([*map(escape, sentence), None])
        tokens = [OPEN]
        for action, opened in zip(taken, opens, strict=True):
            if opened != NONE:
                tokens.append(OPEN)
            elif action == Action.REDUCE:
                tokens.append(CLOSE)
            elif action == Action.GEN and (symbol := next(text)) is not None:  # else it is the end of the sentence
                tokens.append(symbol)
        still_open = tokens.count(OPEN) - tokens.count(CLOSE)
        lines.append(" ".join(tokens + [CLOSE] * still_open))
    return lines


def from_brackets(line: str) -> tuple[list[int], list[str]]:
    """The actions that build a bracketed tree, and its symbols without the end: the inverse of `to_brackets`.

    An action closes every constituent but the root, which the last action, the GEN of the end, closes. A symbol -LRB-
    or -RRB- of the text itself becomes a bracket. Raises TreeFormatError, naming the token (the first is 1): no tree.
    """
    actions: list[int] = []
    symbols: list[str] = []
    children: list[int] = []  # of every open constituent
    tokens = line.split()
    for place, token in enumerate(tokens, 1):
        if not children and (place > 1 or token != OPEN):
            raise TreeFormatError(f"token {place}: {token!r} is outside of the root; a line is a tree, as in {EXAMPLE}")
        if token == OPEN:
            if children:
                actions.append(int(Action.NT))
            children.append(0)
        elif token == CLOSE:
            if len(children) > 1:
                if not children[-1]:
                    raise TreeFormatError(f"token {place}: {token!r} closes a constituent with nothing in it")
                actions.append(int(Action.REDUCE))
            children.pop()
            if children:
                children[-1] += 1
        elif "(" in token or ")" in token:
            raise TreeFormatError(
                f"token {place}: {token!r} is neither {OPEN!r}, {CLOSE!r} nor a symbol; put spaces around brackets, "
                "and write those of the text -LRB- and -RRB-"
            )
        else:
            actions.append(int(Action.GEN))
            symbols.append(unescape(token))
            children[-1] += 1
    if children or not tokens:
        raise TreeFormatError(
            f"token {len(tokens)}: the line ends here, inside {len(children)} constituents; a line is a tree, as in "
            f"{EXAMPLE}"
        )
    actions.append(int(Action.GEN))
    return actions, symbols


def escape(symbol: str) -> str:
    """The token that stands for a symbol of the text."""
    for bracket, name in _ESCAPES:
        symbol = symbol.replace(bracket, name)
    return symbol


def unescape(token: str) -> str:
    """The symbol of the text that a token stands for."""
    for bracket, name in _ESCAPES:
        token = token.replace(name, bracket)
    return token


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
    """All trees and attention in numbered lines, sorted by sentence; the lines may have any order.

    Lines of other kinds are skipped, for fairseq-generate writes its own between them on stdout. Raises
    TreeFormatError, naming file (`name`) and line: no trees; a line is missing, repeated or damaged; or the attention
    is not between the constituents of the trees.
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
    # every weight may be rounded
    if not ((weights >= 0) & (weights <= 1)).all() or (abs(weights.sum(axis=1) - 1) > 1e-4 + _ROUNDING * columns).any():
        raise TreeFormatError(f"{place}: the attention is not one of weights from 0 to 1 whose rows add up to 1")
    return weights


STDOUT = "-"


def tree_lines(number: int, hypothesis: dict) -> str:
    """The three lines about a sentence and a hypothesis from `TreeGenerator`."""
    attention = {
        "source_spans": [list(span) for span in hypothesis["src_spans"]],
        "target_spans": [list(span) for span in hypothesis["tgt_spans"]],
        # rounded as float64: float32 would be written with all its digits
        "attention": hypothesis["node_attention"].double().cpu().numpy().round(4).tolist(),
        "source_capped": bool(hypothesis["src_capped"]),
        "target_capped": bool(hypothesis["tgt_capped"]),
    }
    fields = {"TS": hypothesis["src_tree"], "TT": hypothesis["tgt_tree"], "TA": json.dumps(attention)}
    return "".join(f"{name}-{number}\t{value}\n" for name, value in fields.items())


class TreeFile:
    """A file whose name ends in `.part` until all announced sentences are in it.

    So whatever stops the program, a file with the final name is complete; only then does it replace an older one. `-`
    is stdout.
    """

    def __init__(self, path: str):
        if Path(path).is_dir():
            raise IsADirectoryError(f"--rnng-tree-output {path}: is a folder; name a file")
        self.path = path
        self.missing = 0
        self._file = None
        self._whole = False

    @property
    def _part(self) -> str:
        return f"{self.path}.part"

    def expect(self, sentences: int) -> None:
        """Announce sentences, in place of those announced before that are still missing."""
        self.missing = sentences
        if self.path == STDOUT or not sentences:
            return
        if self._file is None:
            Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self._part, "w", encoding="utf-8", newline="\n")
        elif self._whole:
            # the open file can be written under either name
            os.replace(self.path, self._part)
            self._whole = False

    def write(self, lines: str, sentences: int) -> None:
        """Add the lines of sentences that were announced."""
        file = sys.stdout if self.path == STDOUT else self._file
        file.write(lines)
        file.flush()
        self.missing -= sentences
        if self._file is not None and not self.missing:
            os.replace(self._part, self.path)
            self._whole = True

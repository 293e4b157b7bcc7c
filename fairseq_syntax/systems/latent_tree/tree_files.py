"""Trees over symbols as lines of brackets, and lines about translations with their trees (`--rnng-tree-output`).

The text `E i n ▁ M a n n` with its second word a constituent is `(X E i n ▁ (X M a n n ) )`: the root is written too.
Symbols are separated by spaces; brackets of the text are written -LRB- and -RRB-, as in treebanks.

There are three lines a sentence, tab-separated, the number of the sentence after the hyphen: `TS-7` and `TT-7` with
the trees of source and target in brackets, and `TA-7` with JSON: "attention", a row for each constituent of the target
but the root, with a weight for each of the source, root first, both in the order of opening.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...trees.conllu import TreeFormatError
from .transitions import NONE, Action, Constituents, constituents

OPEN, CLOSE = "(X", ")"
EXAMPLE = "(X a (X b c ) )"


def to_brackets(actions: np.ndarray, symbols: Sequence[Sequence[str]]) -> list[str]:
    """The trees of B sentences as lines without a line break.

    Args:
        actions: (B, T) of `Action`, padded with NOP; legal and complete (see `legality`). Constituents that the end
            of the sentence closes are written, empty ones are not.
        symbols: those of each sentence, without its end; none is empty or has a space in it.
    """
    lines = []
    for taken, opens, sentence in zip(actions.tolist(), constituents(actions).opens.tolist(), symbols, strict=True):
        text = iter([*map(escape_bracket, sentence), None])
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
    or -RRB- of the text itself becomes a bracket. Raises ValueError: not a tree.
    """
    tokens = line.split()
    kinds = {OPEN: Action.NT, CLOSE: Action.REDUCE}
    actions = [int(kinds.get(token, Action.GEN)) for token in tokens]
    depths = np.cumsum([(token == OPEN) - (token == CLOSE) for token in tokens])
    if not len(depths) or tokens[0] != OPEN or depths[-1] != 0 or (depths[:-1] < 1).any():
        raise ValueError(f"{line[:60]!r} is not a tree, such as {EXAMPLE}")
    symbols = [unescape_bracket(token) for token in tokens if token not in kinds]
    return [*actions[1:-1], int(Action.GEN)], symbols


def escape_bracket(symbol: str) -> str:
    """Escape a bracket among the symbols of a text."""
    return symbol.replace("(", "-LRB-").replace(")", "-RRB-")


def unescape_bracket(token: str) -> str:
    """Inverse of `escape_bracket`."""
    return token.replace("-LRB-", "(").replace("-RRB-", ")")


_RECORD = re.compile(r"(TS|TT|TA)-(\d+)(?:\t(.*))?", re.DOTALL)


@dataclass(frozen=True)
class Tree:
    """A tree over the symbols of a sentence."""

    symbols: list[str]  # without the end of the sentence
    actions: list[int]  # that build it, see `transitions.Action`

    def constituents(self) -> Constituents:
        """Constituents of the tree, root first, then in the order of opening."""
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
    TreeFormatError, naming the file (`name`): no trees; or a line is missing or damaged.
    """
    records: dict[int, dict[str, str]] = {}
    for _, text in lines:
        if match := _RECORD.fullmatch(text.rstrip("\r\n")):
            records.setdefault(int(match[2]), {})[match[1]] = match[3] or ""
    if not records:
        raise TreeFormatError(f"{name}: no tree (a line such as TS-0); give fairseq-generate --rnng-tree-output")
    return [_record(sentence, records[sentence], name) for sentence in sorted(records)]


def _record(sentence: int, records: dict[str, str], name: str) -> TreeRecord:
    try:
        source, target = (Tree(*reversed(from_brackets(records[kind]))) for kind in ("TS", "TT"))
        shape = len(target.constituents().parent) - 1, len(source.constituents().parent)
        attention = np.array(json.loads(records["TA"])["attention"], dtype=float).reshape(shape)
    except (KeyError, TypeError, ValueError) as error:
        raise TreeFormatError(
            f"{name}: the lines TS-, TT- and TA-{sentence} are not two trees and the attention between them ({error}); "
            "is the file complete?"
        ) from None
    return TreeRecord(sentence, source, target, attention)


def tree_lines(number: int, hypothesis: dict) -> str:
    """The three lines about a sentence and a hypothesis from `TreeGenerator`."""
    # rounded as float64: float32 would be written with all its digits
    attention = hypothesis["node_attention"].double().cpu().numpy().round(4).tolist()
    fields = {"TS": hypothesis["src_tree"], "TT": hypothesis["tgt_tree"], "TA": json.dumps({"attention": attention})}
    return "".join(f"{name}-{number}\t{value}\n" for name, value in fields.items())

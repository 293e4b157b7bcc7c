"""The top-down transition system NT / GEN / REDUCE of recurrent neural network grammars, with unlabelled constituents.

A sentence of n symbols starts with the root open. NT opens a constituent in the innermost open one, GEN generates the
next symbol into it, REDUCE closes it. GEN of the end of the sentence (the symbol after the n-th) ends the sentence from
any depth: open constituents are then closed automatically, and empty ones are dropped.

Everything is batched: B sentences are rows, and each row takes at most one action in a step (Dyer et al. 2016, Bradbury
& Socher 2017, Sec. 2.1). Legal actions do not depend on the length of the text left, since a policy that saw the end of
the text could not stop without it; the one exception is a budget of actions, so that every sentence can end.

`Transitions` follows trees that are being built; `legality` and `constituents` look at all steps of known trees at
once. All integers are on the host, and nothing loops over sentences or actions.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np


class Action(IntEnum):
    """Actions of a step; NOP pads rows of sentences that have ended."""

    NT = 0
    GEN = 1
    REDUCE = 2
    NOP = 3


NUM_ACTIONS = 3  # those that a policy chooses among
NONE = -1  # no such constituent, or no such action


@dataclass(frozen=True)
class Limits:
    """Limits of the size of trees."""

    max_open: int = 16  # constituents open at a time, root included
    max_consecutive: int = 4  # NTs in a row
    actions_per_symbol: int = 3  # k >= 2; a sentence of n symbols may take k n + 2 max_open actions

    def max_actions(self, lengths):
        """Budget of actions for sentences of these lengths (a number or an array)."""
        return self.actions_per_symbol * lengths + 2 * self.max_open


# The counts of a row; NT is legal while the first three are positive, REDUCE while the next three are.
_DEPTH_LEFT, _ROW_LEFT, _BUDGET_LEFT, _INSIDE, _FILLED, _LIVE, _CONSUMED, _TAKEN = range(8)
_END = len(Action)  # the GEN that ends a sentence, beside the actions


class Transitions:
    """State of B sentences whose trees are being built.

    Args:
        lengths: (B,) symbols of each sentence without its end; for text that is not known yet, the most it may have.
        limits: of the size of trees.
    """

    def __init__(self, lengths: np.ndarray, limits: Limits):
        self.lengths = lengths
        row = limits.max_consecutive
        self._counts = np.tile([limits.max_open - 1, row, 0, 0, 1, 1, 0, 0], (len(lengths), 1))
        # the budget must cover an NT with its REDUCE, REDUCEs of open constituents, and the symbols to come
        self._counts[:, _BUDGET_LEFT] = limits.max_actions(lengths) - lengths - 3
        # An action multiplies the counts of its row by `kept` and adds `added`. The innermost constituent is empty
        # only after an NT; an end leaves neither budget nor life.
        self._kept = np.array(
            [
                [1, 1, 1, 1, 0, 1, 1, 1],  # NT
                [1, 0, 1, 1, 0, 1, 1, 1],  # GEN
                [1, 0, 1, 1, 0, 1, 1, 1],  # REDUCE
                [1, 1, 1, 1, 1, 1, 1, 1],  # NOP
                [1, 0, 0, 1, 0, 0, 1, 1],  # the end
            ]
        )
        self._added = np.array(
            [
                [-1, -1, -2, 1, 0, 0, 0, 1],
                [0, row, 0, 0, 1, 0, 1, 1],
                [1, row, 0, -1, 1, 0, 0, 1],
                [0, 0, 0, 0, 0, 0, 0, 0],
                [0, row, 0, 0, 0, 0, 1, 1],
            ]
        )

    inside = property(lambda self: self._counts[:, _INSIDE], doc="(B,) open constituents without the root.")
    consumed = property(lambda self: self._counts[:, _CONSUMED], doc="(B,) generated symbols, the end included.")
    taken = property(lambda self: self._counts[:, _TAKEN], doc="(B,) actions taken.")
    live = property(lambda self: self._counts[:, _LIVE] > 0, doc="(B,) bool, sentences that have not ended.")

    def structure(self) -> np.ndarray:
        """(B, 2) bool: whether NT and REDUCE are legal in each row; GEN always is.

        REDUCE needs an open constituent other than the root, with something in it. NT must keep to the limits, with a
        budget in which all constituents can still be closed.
        """
        return (self._counts[:, : _LIVE + 1] > 0).reshape(-1, 2, 3).all(2)

    def step(self, actions: np.ndarray, ends: np.ndarray | None = None) -> None:
        """Let each row take an action (B,), which is not checked; NOP leaves a row as it is.

        `ends` (B,) are rows whose GEN is the end of the sentence; by default, those that have used up their symbols.
        """
        ends = self.consumed >= self.lengths if ends is None else ends
        changes = np.where(ends & (actions == Action.GEN), _END, actions)
        self._counts = self._counts * self._kept[changes] + self._added[changes]


# --- known trees -----------------------------------------------------------------------------------------------------


def legality(
    actions: np.ndarray, lengths: np.ndarray, limits: Limits, most: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Legal actions at every step of known trees, as `Transitions.structure` computes them step by step.

    Args:
        actions: (B, T) of `Action`, padded with NOP.
        lengths: (B,) symbols of each sentence without its end.
        most: (B,) symbols that the sentences might have had when the trees were built, if not `lengths`.

    Returns (B, T, 3) bool, GEN alone for NOP; and (B,) bool, the sentences in which only the budget of actions forbade
    an NT somewhere. Raises ValueError, naming row and step: an action was not legal, or a sentence ends too early or
    not at all.
    """
    rows, steps = actions.shape
    nt, gen, reduce = (actions == action for action in (Action.NT, Action.GEN, Action.REDUCE))
    real = actions != Action.NOP
    opened = 1 + _before(nt) - _before(reduce)
    step = np.arange(steps)
    last_other = np.maximum.accumulate(np.where(nt, -1, step), axis=1)
    consecutive = np.concatenate((np.zeros((rows, 1), dtype=int), (step - last_other)[:, :-1]), axis=1)
    most = lengths if most is None else most
    generated = _before(gen)
    to_come = most[:, None] + 1 - generated
    room = (opened < limits.max_open) & (consecutive < limits.max_consecutive) & real
    affordable = limits.max_actions(most)[:, None] - step >= to_come + opened + 2
    # the innermost constituent is empty only right after it was opened
    filled = np.concatenate((np.zeros((rows, 1), dtype=bool), ~nt[:, :-1]), axis=1)
    legal = np.stack((room & affordable, np.ones_like(nt), (opened > 1) & filled & real), axis=2)

    taken = np.where(real, actions, Action.GEN)
    wrong = ~np.take_along_axis(legal, taken[:, :, None], axis=2).squeeze(2)
    wrong |= real & ((generated > lengths[:, None]) | np.logical_or.accumulate(~real, axis=1))
    if wrong.any():
        row, column = (int(index[0]) for index in wrong.nonzero())
        raise ValueError(
            f"row {row}, step {column}: {Action(actions[row, column]).name} is not legal there "
            f"({opened[row, column]} constituents open, {consecutive[row, column]} NTs right before it, "
            f"{generated[row, column]} of {lengths[row] + 1} symbols generated, the end among them)"
        )
    short = gen.sum(1) != lengths + 1
    if short.any():
        row = int(short.nonzero()[0][0])
        raise ValueError(
            f"row {row}: the actions generate {gen[row].sum()} of {lengths[row] + 1} symbols, the end among them"
        )
    return legal, (room & ~affordable).any(1)


def _before(which: np.ndarray) -> np.ndarray:
    """(B, T) number of True before each step."""
    return which.cumsum(1) - which


@dataclass(frozen=True)
class Constituents:
    """C constituents of B sentences, in the order of sentences and, within them, of opening: roots come first.

    Closings by the end of the sentence count like all others; constituents with nothing in them are left out.
    """

    row: np.ndarray  # (C,) sentence
    parent: np.ndarray  # (C,) constituent around it; `NONE` for roots
    opened: np.ndarray  # (C,) step of the NT; `NONE` for roots
    closed: np.ndarray  # (C,) step of the REDUCE; `NONE` where the closing was automatic, as that of roots always is
    start: np.ndarray  # (C,) first symbol in it
    end: np.ndarray  # (C,) the symbol after the last in it
    terminals: np.ndarray  # (C,) number of symbols that are children
    nonterminals: np.ndarray  # (C,) number of constituents that are children
    height: np.ndarray  # (C,) 1 without constituents in it, else one more than the highest of them
    # (B, T) the innermost open constituent when each action was taken; `NONE` for NOP, and inside of constituents
    # that were dropped
    innermost: np.ndarray
    closes: np.ndarray  # (B, T) the constituent that a REDUCE closes; `NONE` elsewhere
    opens: np.ndarray  # (B, T) the constituent that an NT opens; `NONE` elsewhere and if it was dropped
    empty: np.ndarray  # (B,) number of constituents of each sentence that were dropped
    lengths: np.ndarray  # (B,) symbols without the end
    actions: np.ndarray  # (B, T) that build them

    def __len__(self) -> int:
        return len(self.row)


def constituents(actions: np.ndarray) -> Constituents:
    """The constituents that (B, T) actions build, legal and complete (see `legality`) and padded with NOP."""
    rows, steps = actions.shape
    nt, gen, reduce = (actions == action for action in (Action.NT, Action.GEN, Action.REDUCE))
    symbols = gen.cumsum(1)
    lengths = symbols[:, -1] - 1
    ends = gen & (symbols == (lengths + 1)[:, None])
    # NTs right before the end open constituents that will be dropped
    end = ends.argmax(1)
    steps_before_end = np.where(~nt & (np.arange(steps) < end[:, None]), np.arange(steps), NONE)
    empty = end - 1 - steps_before_end.max(1, initial=NONE)
    dropped = nt & (symbols == lengths[:, None]) & (np.arange(steps) >= (end - empty)[:, None])

    opener = _innermost(nt, reduce)
    # constituents by number: the root of a sentence, then its NTs
    kept = np.concatenate((np.ones((rows, 1), dtype=bool), nt & ~dropped), axis=1)
    number = np.where(kept, kept.reshape(-1).cumsum().reshape(kept.shape) - 1, NONE)  # (B, 1 + T)
    row, column = kept.nonzero()
    opened = np.where(column == 0, NONE, column - 1)
    real = actions != Action.NOP
    innermost = np.where(real, np.take_along_axis(number, opener + 1, axis=1), NONE)
    closes = np.where(reduce, innermost, NONE)
    opens = number[:, 1:]

    count = len(row)
    parent = np.where(opened == NONE, NONE, innermost[row, opened])
    closed = np.full(count, NONE)
    where = reduce.nonzero()
    closed[closes[where]] = where[1]
    terminals = np.bincount(innermost[gen & ~ends], minlength=count)
    nonterminals = np.bincount(parent[parent != NONE], minlength=count)
    # symbols generated before the opening, and before the closing
    start = np.where(opened == NONE, 0, symbols[row, opened])
    end = np.where(closed == NONE, lengths[row], symbols[row, closed])

    tree = (row, parent, opened, closed, start, end, terminals, nonterminals, _heights(parent))
    return Constituents(*tree, innermost, closes, opens, empty, lengths, actions)


def _heights(parent: np.ndarray) -> np.ndarray:
    """(C,) heights of constituents, in loops over depths."""
    depth = np.zeros(len(parent), dtype=int)
    height = np.ones(len(parent), dtype=int)
    around = parent.copy()
    while (inside := around != NONE).any():
        depth[inside] += 1
        around[inside] = parent[around[inside]]
    for level in range(depth.max(initial=0), 0, -1):
        here = depth == level
        np.maximum.at(height, parent[here], height[here] + 1)
    return height


def _innermost(nt: np.ndarray, reduce: np.ndarray) -> np.ndarray:
    """(B, T) step of the NT that opened the innermost constituent open before each action; `NONE` for the root.

    The state before each action has a depth. In the order of row, depth and time, the states within a constituent come
    right after the state in which it was opened.
    """
    depth = (nt.astype(int) - reduce).cumsum(1)
    depth = np.concatenate((np.zeros((len(nt), 1), dtype=int), depth[:, :-1]), axis=1)
    opening = np.concatenate((np.ones((len(nt), 1), dtype=bool), nt[:, :-1]), axis=1)
    row, step = (index.ravel() for index in np.indices(nt.shape))
    order = np.lexsort((step, depth.ravel(), row))
    first = np.maximum.accumulate(np.where(opening.ravel()[order], np.arange(order.size), 0))
    result = np.empty(order.size, dtype=int)
    result[order] = step[order[first]] - 1
    return result.reshape(nt.shape)

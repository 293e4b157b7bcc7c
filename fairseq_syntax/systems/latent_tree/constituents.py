"""The constituents that the actions of a transition system build, as arrays.

Closings that are automatic (see `transitions`) count like all others; constituents with nothing in them do not exist.
No loop runs over sentences or actions: an action's constituent is found by sorting, see `_innermost`.
"""

from dataclasses import dataclass

import numpy as np

from .transitions import Action

NONE = -1  # no such constituent, or no such action


@dataclass(frozen=True)
class Constituents:
    """C constituents of B sentences, in the order of sentences and, within them, of opening: roots come first."""

    row: np.ndarray  # (C,) sentence
    parent: np.ndarray  # (C,) constituent around it; `NONE` for roots
    opened: np.ndarray  # (C,) step of the NT; `NONE` for roots
    closed: np.ndarray  # (C,) step of the REDUCE; `NONE` where the closing was automatic, as that of roots always is
    start: np.ndarray  # (C,) first symbol in it
    end: np.ndarray  # (C,) the symbol behind the last in it
    terminals: np.ndarray  # (C,) symbols that are children
    nonterminals: np.ndarray  # (C,) constituents that are children
    depth: np.ndarray  # (C,) constituents around it
    height: np.ndarray  # (C,) 1 with no constituents in it, else one more than the highest of them
    # (B, T) the innermost open constituent when each action was taken; `NONE` for NOP, and inside of constituents
    # that were dropped
    innermost: np.ndarray
    closes: np.ndarray  # (B, T) the constituent that a REDUCE closes; `NONE` elsewhere
    opens: np.ndarray  # (B, T) the constituent that an NT opens; `NONE` elsewhere and if it was dropped
    empty: np.ndarray  # (B,) constituents of each sentence that were dropped
    lengths: np.ndarray  # (B,) symbols without the end
    actions: np.ndarray  # (B, T) that build them

    def __len__(self) -> int:
        return len(self.row)


def constituents(actions: np.ndarray) -> Constituents:
    """What (B, T) actions build, which are legal and complete (see `legality`) and filled up with NOP."""
    rows, steps = actions.shape
    if not steps:
        raise ValueError("a sentence has at least one action, that of its end")
    nt, gen, reduce = (actions == action for action in (Action.NT, Action.GEN, Action.REDUCE))
    symbols = gen.cumsum(1)
    lengths = symbols[:, -1] - 1
    ends = gen & (symbols == (lengths + 1)[:, None])
    # The NTs right before the end open what will be dropped.
    empty = _run_before(nt, ends)
    dropped = nt & (symbols == lengths[:, None]) & (np.arange(steps) >= (ends.argmax(1) - empty)[:, None])

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

    depth, height = _levels(parent)
    tree = (row, parent, opened, closed, start, end, terminals, nonterminals, depth, height)
    return Constituents(*tree, innermost, closes, opens, empty, lengths, actions)


def _levels(parent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(C,) depth and height of constituents; no loop is longer than trees are deep."""
    depth = np.zeros(len(parent), dtype=int)
    height = np.ones(len(parent), dtype=int)
    around = parent.copy()
    while (inside := around != NONE).any():
        depth[inside] += 1
        around[inside] = parent[around[inside]]
    for level in range(depth.max(initial=0), 0, -1):
        here = depth == level
        np.maximum.at(height, parent[here], height[here] + 1)
    return depth, height


def _run_before(nt: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """(B,) how many NTs stand right before the end of each sentence."""
    steps = np.arange(nt.shape[1])
    end = ends.argmax(1)
    other = np.where(~nt & (steps < end[:, None]), steps, NONE).max(1, initial=NONE)
    return end - 1 - other


def _innermost(nt: np.ndarray, reduce: np.ndarray) -> np.ndarray:
    """(B, T) step of the NT that opened the innermost constituent open before each action; `NONE` for the root.

    The state before an action has a depth. In the order of row, depth and time, the states within a constituent follow
    the one in which it was opened, and before that in which the next one of this depth is.
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

"""The top-down transition system NT / GEN / REDUCE of recurrent neural network grammars, with unlabelled constituents.

A sentence of n symbols starts with the root open. NT opens a constituent in the innermost open one, GEN generates the
next symbol into it, REDUCE closes it. GEN of the end of the sentence (the symbol after the n-th) ends the sentence from
any depth: what is still open is then closed automatically, and constituents that have nothing in them are dropped.

Everything is batched: B sentences are rows, and each row takes at most one action in a step (Dyer et al. 2016, Bradbury
& Socher 2017, Sec. 2.1). What is legal never depends on how much text is left (a policy that could see the end of the
text could not stop without it), with one exception: a budget of actions, that keeps every sentence able to end.
"""

from dataclasses import dataclass
from enum import IntEnum

import torch
from torch import Tensor


class Action(IntEnum):
    """What a row does in a step; NOP fills up rows of sentences that have ended."""

    NT = 0
    GEN = 1
    REDUCE = 2
    NOP = 3


NUM_ACTIONS = 3  # those that a policy chooses among


@dataclass(frozen=True)
class Limits:
    """How large a tree may be."""

    max_open: int = 16  # constituents open at a time, root included
    max_consecutive: int = 4  # NTs in a row
    actions_per_symbol: int = 3  # k >= 2; a sentence of n symbols may take k n + 2 max_open actions

    def max_actions(self, lengths):
        """The budget of sentences of these lengths (a number or a tensor of them)."""
        return self.actions_per_symbol * lengths + 2 * self.max_open


# Of a row, what its actions change; it may open a constituent while the first three are positive, and close one while
# the next three are.
_DEPTH_LEFT, _ROW_LEFT, _BUDGET_LEFT, _INSIDE, _FILLED, _LIVE, _CONSUMED, _TAKEN = range(8)
_END = len(Action)  # the GEN that ends a sentence, beside the actions


class Transitions:
    """Where B sentences are in their trees.

    Args:
        lengths: (B,) symbols of each sentence without its end; for text that is not known yet, the most it may have.
        limits: how large a tree may be.

    Attributes:
        open: (B,) constituents that are open, the root among them.
        consumed: (B,) symbols generated, the end among them.
        consecutive: (B,) NTs since the last other action.
        taken: (B,) actions taken.
        live: (B,) bool, sentences that have not ended.
    """

    def __init__(self, lengths: Tensor, limits: Limits):
        self.limits = limits
        self.lengths = lengths
        self.budget = limits.max_actions(lengths)
        start = lengths.new_tensor([limits.max_open - 1, limits.max_consecutive, 0, 0, 1, 1, 0, 0])
        self._counts = start.repeat(len(lengths), 1)
        # NT and its REDUCE, that of all others and the symbols to come are affordable
        self._counts[:, _BUDGET_LEFT] = self.budget - lengths - 3
        self._kept, self._added = self._changes(lengths)

    def _changes(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """(actions, counts) what a row's counts are multiplied by when it acts, and what is then added to them."""
        row = self.limits.max_consecutive
        added = like.new_tensor(
            [
                [-1, -1, -2, 1, 0, 0, 0, 1],  # NT
                [0, row, 0, 0, 1, 0, 1, 1],  # GEN
                [1, row, 0, -1, 1, 0, 0, 1],  # REDUCE
                [0, 0, 0, 0, 0, 0, 0, 0],  # NOP
                [0, row, 0, 0, 0, 0, 1, 1],  # the end
            ]
        )
        # only after an NT, nothing is in the innermost constituent; of an end, neither budget nor life is left
        kept = like.new_tensor(
            [
                [1, 1, 1, 1, 0, 1, 1, 1],
                [1, 0, 1, 1, 0, 1, 1, 1],
                [1, 0, 1, 1, 0, 1, 1, 1],
                [1, 1, 1, 1, 1, 1, 1, 1],
                [1, 0, 0, 1, 0, 0, 1, 1],
            ]
        )
        return kept, added

    open = property(lambda self: self._counts[:, _INSIDE] + 1)
    consumed = property(lambda self: self._counts[:, _CONSUMED])
    consecutive = property(lambda self: self.limits.max_consecutive - self._counts[:, _ROW_LEFT])
    taken = property(lambda self: self._counts[:, _TAKEN])
    live = property(lambda self: self._counts[:, _LIVE] > 0)
    inside = property(lambda self: self._counts[:, _INSIDE], doc="(B,) open constituents without the root.")

    def legal(self) -> Tensor:
        """(B, 3) bool: which of NT, GEN and REDUCE each row may take now; GEN alone for sentences that have ended.

        GEN is always legal, so no row is without an action. REDUCE needs an open constituent beside the root, with
        something in it. NT needs room: a depth, a number in a row, and a budget that still lets all be closed.
        """
        nt, reduce = self.structure().unbind(1)
        return torch.stack((nt, torch.ones_like(nt), reduce), dim=1)

    def structure(self, rows: Tensor | None = None) -> Tensor:
        """(n, 2) bool: whether NT and REDUCE are legal, in some of the rows or all."""
        counts = self._counts if rows is None else self._counts.index_select(0, rows)
        return (counts[:, : _LIVE + 1] > 0).unflatten(1, (2, 3)).all(2)

    def step(self, actions: Tensor, ends: Tensor | None = None) -> None:
        """Let each row take an action (B,), which is not checked; NOP leaves a row as it is.

        `ends` (B,) are rows whose GEN is the end of the sentence; by default, those that have used up their symbols.
        """
        ends = self.consumed >= self.lengths if ends is None else ends
        changes = actions.masked_fill(ends & (actions == Action.GEN), _END)
        self._counts.mul_(self._kept.index_select(0, changes)).add_(self._added.index_select(0, changes))

    def stop_last(self) -> None:
        """End the last sentence without an action."""
        self._counts[-1:] = 0

    def select(self, rows: Tensor) -> None:
        """Go on with these rows, (R,): some may be dropped, others be there more than once."""
        for name in ("lengths", "budget", "_counts"):
            setattr(self, name, getattr(self, name).index_select(0, rows))

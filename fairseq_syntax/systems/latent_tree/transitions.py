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

    max_open: int = 16  # constituents open at a time, the root among them
    max_consecutive: int = 4  # NTs in a row
    actions_per_symbol: int = 3  # k >= 2; a sentence of n symbols may take k n + 2 max_open actions

    def max_actions(self, lengths):
        """The budget of sentences of these lengths (a number or a tensor of them)."""
        return self.actions_per_symbol * lengths + 2 * self.max_open


class Transitions:
    """Where B sentences are in their trees.

    Args:
        lengths: (B,) symbols of each sentence without its end; for text that is not known yet, the most it may have.
        limits: how large a tree may be.

    Attributes:
        open: (B,) constituents that are open, the root among them.
        children: (B, max_open) what each open constituent has in it, outermost first.
        consumed: (B,) symbols generated, the end among them.
        consecutive: (B,) NTs since the last other action.
        taken: (B,) actions taken.
        live: (B,) bool, sentences that have not ended.
    """

    def __init__(self, lengths: Tensor, limits: Limits):
        rows = len(lengths)
        self.limits = limits
        self.lengths = lengths
        self.budget = limits.max_actions(lengths)
        self.open = torch.ones_like(lengths)
        self.children = lengths.new_zeros((rows, limits.max_open))
        self.consumed = torch.zeros_like(lengths)
        self.consecutive = torch.zeros_like(lengths)
        self.taken = torch.zeros_like(lengths)
        self.live = torch.ones_like(lengths, dtype=torch.bool)

    def legal(self) -> Tensor:
        """(B, 3) bool: which of NT, GEN and REDUCE each row may take now; GEN alone for sentences that have ended.

        GEN is always legal, so no row is without an action. REDUCE needs an open constituent beside the root, with
        something in it. NT needs room: a depth, a number in a row, and a budget that still lets all be closed.
        """
        inside = self.children.gather(1, (self.open - 1)[:, None]).squeeze(1)
        to_come = self.lengths + 1 - self.consumed
        nt = (self.open < self.limits.max_open) & (self.consecutive < self.limits.max_consecutive)
        nt &= self.budget - self.taken >= to_come + self.open + 2
        return torch.stack((nt & self.live, torch.ones_like(nt), (self.open > 1) & (inside > 0) & self.live), dim=1)

    def step(self, actions: Tensor, ends: Tensor | None = None) -> None:
        """Let each row take an action (B,), which is not checked; NOP leaves a row as it is.

        `ends` (B,) are rows whose GEN is the end of the sentence; by default, those that have used up their symbols.
        """
        nt, gen, reduce = (actions == action for action in (Action.NT, Action.GEN, Action.REDUCE))
        self.consumed += gen
        ends = gen & (self.consumed > self.lengths if ends is None else ends)
        # a constituent that closes becomes a child of the one around it
        self.open += nt.long() - reduce.long()
        top = (self.open - 1)[:, None]
        self.children.scatter_add_(1, top, ((gen & ~ends) | reduce).to(self.children)[:, None])
        self.children.masked_fill_(nt[:, None] & (self._columns() == top), 0)
        self.consecutive = (self.consecutive + 1) * nt + self.consecutive * (actions == Action.NOP)
        self.taken += actions != Action.NOP
        self.live &= ~ends

    def _columns(self) -> Tensor:
        return torch.arange(self.children.shape[1], device=self.children.device)

    def select(self, rows: Tensor) -> None:
        """Go on with these rows, (R,): some may be dropped, others be there more than once."""
        names = ("lengths", "budget", "open", "children", "consumed", "consecutive", "taken", "live")
        for name in names:
            setattr(self, name, getattr(self, name).index_select(0, rows))

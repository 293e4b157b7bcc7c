"""What a policy of trees earns for their shape (Bradbury & Socher 2017, Sec. 2.3).

Constituents earn for what is in them; unary ones, and an NT after an NT or a closing after a closing, cost. Amounts
are options: the paper's could not be read. Its text can be taken to add cost and earnings. Then chains of unary
constituents earn most, which the cost is to prevent; so by default a constituent that costs earns nothing. Its best
trees branch to the left.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from .constituents import NONE, Constituents
from .transitions import Action

COST = 1.0  # of each fault


RewardMode = StrEnum("RewardMode", "exclusive additive")
"""What a constituent that has faults earns: their cost alone, or what is in it less their cost."""
ForcedClosings = StrEnum("ForcedClosings", "all penalty")
"""What constituents earn that the end of the sentence closes: as all others, or only the cost of their faults."""


@dataclass(frozen=True)
class TreeRewards:
    """Amounts of the rewards; ValueError if the mode or what is forced is none of those."""

    terminal_reward: float = 4.0  # c_t, for each symbol in a constituent of symbols alone
    nonterminal_reward: float = 9.0  # c_n, times the root of how many constituents are in a constituent that has some
    mode: RewardMode = RewardMode.exclusive  # what constituents with faults earn
    forced: ForcedClosings = ForcedClosings.all  # what constituents earn that the end of the sentence closes

    def __post_init__(self):
        for choices, given in ((RewardMode, self.mode), (ForcedClosings, self.forced)):
            if given not in list(choices):
                raise ValueError(f"tree rewards: {given!r} is none of {', '.join(choices)}; choose one of them")


def tree_rewards(
    actions: np.ndarray, built: Constituents, options: TreeRewards | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The rewards r^tree (B, T) float64 of every action, 0 at GEN and NOP, and (B,) of what happens at the end.

    An NT after an NT costs 1. A REDUCE earns c_t t with t symbols and no constituents, or c_n √m with m constituents in
    what it closes; it has a fault, which costs 1, where that has one child, and another one where the last child is a
    constituent: then it comes after a REDUCE. The root neither earns nor costs.

    Closings at the end of the sentence follow the same rules. The end puts nothing into a tree, so such a closing comes
    after a REDUCE too where the last child is a constituent: with `ForcedClosings.all`, a tree earns the same, whether
    the policy closes its last constituents or leaves it to the end. Each constituent that was dropped costs 1.
    """
    options = options or TreeRewards()
    nt = actions == Action.NT
    rewards = np.zeros(actions.shape)
    rewards[:, 1:][nt[:, 1:] & nt[:, :-1]] = -COST

    inner = built.parent != NONE
    last_is_constituent = np.zeros(len(built), dtype=bool)
    last_is_constituent[built.parent[inner & (built.end == built.end[built.parent])]] = True
    faults = (built.terminals + built.nonterminals == 1).astype(float) + last_is_constituent
    earned = np.where(
        built.nonterminals == 0,
        options.terminal_reward * built.terminals,
        options.nonterminal_reward * np.sqrt(built.nonterminals),
    )
    automatic = inner & (built.closed == NONE)
    if options.forced == ForcedClosings.penalty:
        earned[automatic] = 0.0
    closing = earned - COST * faults if options.mode == RewardMode.additive else np.where(faults > 0, -COST, earned)

    closes = built.closes != NONE
    rewards[closes] = closing[built.closes[closes]]
    at_end = np.bincount(built.row[automatic], closing[automatic], minlength=len(actions))
    return rewards, at_end - COST * built.empty

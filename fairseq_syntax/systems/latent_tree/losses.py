"""Formulas of training with latent trees: coverage loss, rewards to go, baselines (Bradbury & Socher 2017, Sec. 2.3).

Functions of tensors alone; what is put together of them is in `reinforce_tree`.
"""

from enum import StrEnum

import torch
from torch import Tensor

from .transitions import Action


class CoverageRoot(StrEnum):
    """How much attention the source's root should get in all."""

    zero = "zero"  # the target's root takes its phrase without attention
    one = "one"


GenCount = StrEnum("GenCount", "exclusive inclusive")
"""Which GENs discount the reward of an action: those before it, or itself too."""


def coverage_loss(
    attention: Tensor, attending: Tensor, attended: Tensor, root: CoverageRoot = CoverageRoot.zero
) -> Tensor:
    """(B,) how far attention is from one source constituent for each of the target, and the other way (eq. 2).

    mean_i (1 - Σ_j α_ij)² + mean_i (1 - max_j α_ij)² + mean_j (1 - max_i α_ij)². The source's root is in the first
    term alone, with 0 instead of 1 unless `root` is one. A mean over nothing is 0; without target constituents
    sums and maxima over them are 0. Of equal maxima, the first gets the gradient.

    Args:
        attention: (B, J, I) of J target constituents, roots left out, over I of the source, whose root is the first.
        attending, attended: (B, J) and (B, I) bool, constituents of target and source that exist.
        root: what the sum of the root should be.
    """
    rows, target, _ = attention.shape
    exists = attending[:, :, None] & attended[:, None]
    attention = torch.where(exists, attention, 0)
    others = attended[:, 1:]
    wanted = torch.ones_like(attended, dtype=attention.dtype)
    if root == CoverageRoot.zero:
        wanted[:, 0] = 0
    in_all = _mean((wanted - attention.sum(1)) ** 2, attended)
    inner = attention[:, :, 1:]
    # a 0 behind everything, for there may be nothing; it is never the first maximum of something
    most = torch.cat((inner, inner.new_zeros(rows, 1, inner.shape[2])), 1).max(1).values
    source = _mean((1 - most) ** 2, others)
    most = torch.cat((inner, inner.new_zeros(rows, target, 1)), 2).max(2).values
    return in_all + source + _mean((1 - most) ** 2, attending & others.any(1)[:, None])


def _mean(values: Tensor, exists: Tensor) -> Tensor:
    """(B,) means of rows where something exists; 0 where nothing does."""
    return torch.where(exists, values, 0).sum(1) / exists.sum(1).clamp(min=1)


def generated(actions: Tensor, count: GenCount = GenCount.exclusive) -> Tensor:
    """(B, T + 1) how many GENs count before each of (B, T) actions, and at the end."""
    gen = (actions == Action.GEN).long()
    counts = torch.nn.functional.pad(gen.cumsum(1), (1, 0))
    if count == GenCount.inclusive:
        counts[:, :-1] += gen
    return counts


def reward_to_go(rewards: Tensor, counts: Tensor, discount: float) -> Tensor:
    """(B, T) float64 R_i = Σ_{k≥i} γ^(g_k - g_i) r_k (eq. 4), of rewards r, 0 in padding, and counts g that never fall.

    R_i = r_i + γ^(g_{i+1} - g_i) R_{i+1}, which doubles in reach at each of log T steps: there are no powers γ^-g, that
    overflow with long sentences, and γ may be 0.
    """
    total = rewards.double()
    steps = torch.nn.functional.pad(counts[:, 1:] - counts[:, :-1], (0, 1))
    factor = torch.tensor(discount, dtype=torch.float64, device=rewards.device) ** steps
    reach = 1
    while reach < total.shape[1]:
        # `factor` is the discount of what lies `reach` actions ahead, `total` what comes up to there
        ahead = torch.nn.functional.pad(total[:, reach:], (0, reach))
        total = total + factor * ahead
        factor = factor * torch.nn.functional.pad(factor[:, reach:], (0, reach))
        reach *= 2
    return total


def by_symbols(returns: Tensor, actions: Tensor) -> Tensor:
    """(B, T) the return, of (B, T), of the first action after n symbols, for every n from 0; 0 if there is none."""
    counts = generated(actions)[:, :-1]
    first = torch.ones_like(actions, dtype=torch.bool)
    first[:, 1:] = actions[:, :-1] == Action.GEN
    first &= actions != Action.NOP
    # at most one is the first after n symbols
    result = returns.new_zeros(len(actions), actions.shape[1])
    return result.scatter_add(1, counts.clamp(max=actions.shape[1] - 1), torch.where(first, returns, 0))


def at_actions(of_symbols: Tensor, actions: Tensor) -> Tensor:
    """The reverse: (B, T), the column of (B, N) that belongs to the symbols before each action; 0 for NOP."""
    counts = generated(actions)[:, :-1].clamp(max=of_symbols.shape[1] - 1)
    return torch.where(actions == Action.NOP, 0, of_symbols.gather(1, counts))


def mean_of_others(values: Tensor, copies: int) -> Tensor:
    """(B K, N) for each of K consecutive rows of a sentence, the mean of its K - 1 other rows."""
    values = values.unflatten(0, (-1, copies))
    return ((values.sum(1, keepdim=True) - values) / (copies - 1)).flatten(0, 1)


def by_symbol_kind(symbols: Tensor, losses: Tensor, where: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """(V,) float64 sums of losses (B, T) at the places `where`, for each of V symbols, and of how many they are."""
    zero = torch.zeros(size, dtype=torch.float64, device=losses.device)
    counted = torch.stack((torch.where(where, losses.detach().double(), 0), where.double())).flatten(1)
    return tuple(zero.index_add(0, symbols.flatten(), values) for values in counted)

"""What training with latent trees logs, and the warning about policies that have stopped to make trees."""

import logging
import math

import numpy as np
import torch
from fairseq.distributed import utils as distributed_utils
from fairseq.logging import metrics
from torch import Tensor

from .constituents import NONE
from .transitions import Action

logger = logging.getLogger(__name__)

SIDES = ("src", "tgt")
DEGENERATE = 0.9  # share of trees

# logged for both sides as `name_src`, `name_tgt` -> sum, of how many, factor, digits
_RATIOS = {
    "entropy": ("entropy", "actions", 1 / math.log(2), 3),
    "nts_per_char": ("nts", "chars", 1, 3),
    "depth": ("depth", "trees", 1, 2),
    "tree_reward": ("reward", "chars", 1, 3),
    "flat": ("flat", "trees", 100, 1),
    "capped": ("capped", "trees", 100, 1),
}


def sums_of(side: str, scores, tree_reward: Tensor, advantages: Tensor | None) -> dict[str, Tensor]:
    """What is logged of one side of a batch, "src" or "tgt", as float64 sums and counts.

    Args:
        scores: TreeScores of B sentences.
        tree_reward: (B,) of each sentence.
        advantages: (B, T) what the policy was taught with, 0 for NOP; None where it was not.
    """
    actions, trees = scores.actions, scores.constituents
    real = actions != Action.NOP
    roots = trees.parent == NONE
    depth = np.zeros(len(actions))
    np.maximum.at(depth, trees.row, trees.depth)
    if advantages is None:
        taught, advantages = real.new_zeros(()), tree_reward.new_zeros(())
    else:
        taught = real.sum()
    values = {
        "loss": scores.symbol_loss.detach().double().sum(),
        "symbols": (actions == Action.GEN).sum(),
        "chars": trees.lengths.sum(),
        "entropy": scores.entropy.detach().double().sum(),
        "actions": real.sum(),
        "nts": (actions == Action.NT).sum(),
        "depth": depth.sum(),
        "trees": len(actions),
        "reward": tree_reward.sum(),
        "flat": (trees.nonterminals[roots] == 0).sum(),
        "capped": scores.capped.sum(),
        "advantages": advantages.sum(),
        "advantages_squared": (advantages**2).sum(),
        "taught": taught,
    }
    device = actions.device
    return {f"{name}_{side}": torch.as_tensor(value).to(device, torch.float64) for name, value in values.items()}


def log_sums(logging_outputs) -> None:
    """Log what `ReinforceTreeCriterion` says it logs."""

    def total(key: str) -> float:
        return float(sum(log.get(key, 0) for log in logging_outputs))

    def ratio(name: str, above: str, below: str, factor: float, digits: int) -> None:
        count = total(below)
        metrics.log_scalar(name, factor * total(above) / max(count, 1), count, round=digits)

    ratio("loss", "loss_tgt", "symbols_tgt", 1 / math.log(2), 3)
    ratio("loss_src", "loss_src", "symbols_src", 1 / math.log(2), 3)
    ratio("att", "att", "trees_src", 1, 3)
    for side in SIDES:
        for name, (above, below, factor, digits) in _RATIOS.items():
            ratio(f"{name}_{side}", f"{above}_{side}", f"{below}_{side}", factor, digits)
        taught = total(f"taught_{side}")
        if taught:
            mean = total(f"advantages_{side}") / taught
            variance = total(f"advantages_squared_{side}") / taught - mean**2
            metrics.log_scalar(f"adv_std_{side}", math.sqrt(max(variance, 0)), taught, round=3)


class TreeHealth:
    """Counts the trees of training that are flat or met their limit, and warns if nearly all of them are."""

    def __init__(self):
        self._counts = {}

    def count(self, side: str, sums: dict[str, Tensor]) -> None:
        """Take in what `sums_of` found in a batch."""
        here = torch.stack([sums[f"{name}_{side}"] for name in ("flat", "capped", "trees")])
        self._counts[side] = self._counts.get(side, 0) + here

    def report(self) -> None:
        """Warn of what has been counted since the last report, once, and forget it."""
        counts, self._counts = self._counts, {}
        flat = "are flat (nothing but the root)", "raise --rnng-entropy-weight or lower --rnng-policy-weight"
        capped = (
            "were kept from opening constituents by the limit of actions",
            "lower --rnng-policy-weight or raise --rnng-entropy-weight",
        )
        for side, numbers in counts.items():
            *degenerate, trees = numbers.tolist()
            for count, (what, cure) in zip(degenerate, (flat, capped), strict=True):
                if count / trees > DEGENERATE and distributed_utils.get_global_rank() == 0:
                    logger.warning(
                        "%.0f %% of the %s trees since the last epoch or validation began %s, from which no trees are "
                        "learned: %s",
                        100 * count / trees,
                        {"src": "source", "tgt": "target"}[side],
                        what,
                        cure,
                    )

"""REINFORCE: training of translators whose trees are drawn from a policy (Bradbury & Socher 2017, Sec. 2.3).

A policy is rewarded for the shape of its trees (`tree_rewards`) and for how probable the symbols are under them. Moving
averages are subtracted (`MovingBaselines`), and later rewards count with a discount (`reward_to_go`). All other weights
learn by backpropagation from the losses of symbols and the coverage loss of attention.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Optional

import numpy as np
import torch
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from omegaconf import II
from torch import Tensor, distributed, nn

from ...options import check_values, option
from .transitions import NONE, Action, Constituents

SIDES = ("source", "target")

# --- options ---------------------------------------------------------------------------------------------------------

TreePreset = StrEnum("TreePreset", "default paper shallow literal")
"""Sets of weights and rewards."""
TreeBaseline = StrEnum("TreeBaseline", "gen reduce")
"""Actions at which the average tree reward is subtracted: GENs, or REDUCEs (the paper, literally; biased)."""
ValidTrees = StrEnum("ValidTrees", "sample greedy")
"""Trees under which losses of validation are computed."""
RewardMode = StrEnum("RewardMode", "exclusive additive")
"""Reward of a constituent with faults: minus their cost, or the usual reward less their cost."""
GenCount = StrEnum("GenCount", "exclusive inclusive")
"""GENs that discount the reward of an action: those before it, or itself too (the paper, literally; biased)."""
SymbolGradient = StrEnum("SymbolGradient", "path softmax")
"""Weights trained by the losses of symbols: all on their path, or the output layers (the paper, literally)."""


class Preset(NamedTuple):
    """Settings of a `TreePreset`."""

    source_weight: float = 1.0
    target_weight: float = 1.0
    coverage_weight: float = 1.0
    policy_weight: float = 0.02
    terminal_reward: float = 4.0
    nonterminal_reward: float = 9.0
    reward_mode: RewardMode = RewardMode.exclusive
    gen_count: GenCount = GenCount.exclusive
    tree_baseline: TreeBaseline = TreeBaseline.gen
    lm_grad: SymbolGradient = SymbolGradient.path


PRESETS = {
    TreePreset.default: Preset(),
    TreePreset.paper: Preset(source_weight=10.0, coverage_weight=100.0),
    TreePreset.shallow: Preset(coverage_weight=0.1, terminal_reward=1.0, nonterminal_reward=0.0),
    TreePreset.literal: Preset(
        reward_mode=RewardMode.additive,
        gen_count=GenCount.inclusive,
        tree_baseline=TreeBaseline.reduce,
        lm_grad=SymbolGradient.softmax,
    ),
}


@dataclass
class ReinforceTreeConfig(FairseqDataclass):
    """Options of `reinforce_tree`; those without a default get the preset's value."""

    rnng_preset: TreePreset = option(
        TreePreset.default,
        "values of --rnng-source-weight, --rnng-target-weight, --rnng-coverage-weight, --rnng-policy-weight, "
        "--rnng-terminal-reward and --rnng-nonterminal-reward that are not given themselves: "
        "1 1 1 0.02 4 9 (default), 10 1 100 0.02 4 9 (paper), 1 1 0.1 0.02 1 0 (shallow: nesting earns nothing). "
        "literal is default with the wording of the paper, whose weights and amounts could not be read: constituents "
        "with faults earn as others do, an action's own symbol discounts its reward, the average tree reward is "
        "subtracted at each REDUCE, and --rnng-lm-grad is softmax; gradients are biased",
        reading=True,
    )
    rnng_source_weight: Optional[float] = option(
        None, "weight of the loss of source symbols, also in rewards", "[0, inf)"
    )
    rnng_target_weight: Optional[float] = option(
        None, "weight of the loss of target symbols, also in rewards", "[0, inf)"
    )
    rnng_coverage_weight: Optional[float] = option(None, "weight of the coverage loss of attention", "[0, inf)")
    rnng_policy_weight: Optional[float] = option(
        None, "weight of the policy gradient, that is, of all rewards", "[0, inf)"
    )
    rnng_action_xent: float = option(
        1.0, "weight of -log p(action) for given trees (--rnng-forced-trees), which have no policy gradient", "[0, inf)"
    )
    rnng_terminal_reward: Optional[float] = option(
        None, "reward per symbol of a constituent that contains symbols alone", "(-inf, inf)"
    )
    rnng_nonterminal_reward: Optional[float] = option(
        None, "reward of a constituent that contains constituents, times the root of their number", "(-inf, inf)"
    )
    rnng_reward_discount: float = option(0.95, "discount of later rewards, per symbol", "[0, 1]")
    rnng_lm_grad: Optional[SymbolGradient] = option(
        None,
        "weights that the losses of symbols train: all that they depend on (path, the default but for the preset "
        "literal), or those of the output layers alone (softmax)",
        reading=True,
    )
    rnng_valid_trees: ValidTrees = option(
        ValidTrees.sample,
        "trees of validation: drawn, the same each time; or the most probable ones, which are flat at first",
    )
    seed: int = II("common.seed")


# --- formulas --------------------------------------------------------------------------------------------------------


def tree_rewards(
    built: Constituents,
    terminal_reward: float = 4.0,
    nonterminal_reward: float = 9.0,
    mode: RewardMode = RewardMode.exclusive,
) -> tuple[np.ndarray, np.ndarray]:
    """Rewards for the shape of trees: (B, T) float64 of every action, 0 at GEN and NOP, and (B,) of the end.

    An NT after an NT costs 1. A REDUCE earns `terminal_reward` times t if it closes t symbols and no constituent, or
    `nonterminal_reward` times √m if it closes m constituents. A single child is a fault, and so is a last child that is
    a constituent (the REDUCE then follows another); each costs 1. The root neither earns nor costs.

    The paper can also be read to add cost and earnings (`additive`). Chains of unary constituents then earn most,
    which the cost is meant to prevent, so by default a constituent with faults costs 1 and earns nothing.

    Closings at the end of the sentence follow the same rules, so a tree earns the same whether the policy closes its
    last constituents or leaves them to the end. Each empty constituent that was dropped costs 1.
    """
    nt = built.actions == Action.NT
    rewards = np.zeros(built.actions.shape)
    rewards[:, 1:][nt[:, 1:] & nt[:, :-1]] = -1.0

    inner = built.parent != NONE
    last_is_constituent = np.zeros(len(built), dtype=bool)
    last_is_constituent[built.parent[inner & (built.end == built.end[built.parent])]] = True
    faults = (built.terminals + built.nonterminals == 1).astype(float) + last_is_constituent
    earned = np.where(
        built.nonterminals == 0, terminal_reward * built.terminals, nonterminal_reward * np.sqrt(built.nonterminals)
    )
    closing = earned - faults if mode == RewardMode.additive else np.where(faults > 0, -1.0, earned)

    closes = built.closes != NONE
    rewards[closes] = closing[built.closes[closes]]
    automatic = inner & (built.closed == NONE)
    at_end = np.bincount(built.row[automatic], closing[automatic], minlength=len(rewards))
    return rewards, at_end - built.empty


def coverage_loss(attention: Tensor, attending: Tensor, attended: Tensor) -> Tensor:
    """(B,) distance of attention from a one-to-one mapping between constituents (eq. 2).

    mean_i (1 - Σ_j α_ij)² + mean_i (1 - max_j α_ij)² + mean_j (1 - max_i α_ij)². The source's root is in the first
    term alone, with 0 instead of 1: the target's root takes its phrase without attention. A mean over nothing is 0;
    without target constituents, sums and maxima over them are 0. Of equal maxima, the first gets the gradient.

    Args:
        attention: (B, J, I) of J target constituents, roots left out, over I of the source, whose root is the first.
        attending, attended: (B, J) and (B, I) bool, constituents of target and source that exist.
    """
    rows, target, _ = attention.shape
    attention = torch.where(attending[:, :, None] & attended[:, None], attention, 0)
    others = attended[:, 1:]
    wanted = torch.ones_like(attended, dtype=attention.dtype)
    wanted[:, 0] = 0
    in_all = _mean((wanted - attention.sum(1)) ** 2, attended)
    inner = attention[:, :, 1:]
    # append a 0, because a maximum needs an element; it is never the first of equal ones
    most = torch.cat((inner, inner.new_zeros(rows, 1, inner.shape[2])), 1).max(1).values
    source = _mean((1 - most) ** 2, others)
    most = torch.cat((inner, inner.new_zeros(rows, target, 1)), 2).max(2).values
    return in_all + source + _mean((1 - most) ** 2, attending & others.any(1)[:, None])


def _mean(values: Tensor, exists: Tensor) -> Tensor:
    """(B,) means of the values of each row that exist; 0 where none does."""
    return torch.where(exists, values, 0).sum(1) / exists.sum(1).clamp(min=1)


def generated(actions: Tensor, count: GenCount = GenCount.exclusive) -> Tensor:
    """(B, T + 1) number of GENs that count before each of (B, T) actions, and at the end."""
    gen = (actions == Action.GEN).long()
    counts = nn.functional.pad(gen.cumsum(1), (1, 0))
    if count == GenCount.inclusive:
        counts[:, :-1] += gen
    return counts


def reward_to_go(rewards: Tensor, counts: Tensor, discount: float) -> Tensor:
    """(B, T) float64 R_i = Σ_{k≥i} γ^(g_k - g_i) r_k (eq. 4), of rewards r, 0 in padding, and counts g that never fall.

    R_i = r_i + γ^(g_{i+1} - g_i) R_{i+1}, which doubles in reach at each of log T steps: this needs no powers γ^-g,
    which overflow for long sentences, and γ may be 0.
    """
    total = rewards.double()
    steps = nn.functional.pad(counts[:, 1:] - counts[:, :-1], (0, 1))
    factor = torch.tensor(discount, dtype=torch.float64, device=rewards.device) ** steps
    reach = 1
    while reach < total.shape[1]:
        # `factor` discounts what lies `reach` actions ahead; `total` is the sum up to there
        total = total + factor * nn.functional.pad(total[:, reach:], (0, reach))
        factor = factor * nn.functional.pad(factor[:, reach:], (0, reach))
        reach *= 2
    return total


class MovingBaselines(nn.Module):
    """Exponential moving averages of the losses of symbols and the rewards of trees.

    A batch uses the averages before it updates them, so that no sample is part of its own baseline; a number that has
    no average yet is its own baseline. They are buffers of the model, because fairseq does not save a criterion without
    parameters, and always float32: `--store-ema` multiplies all buffers by a decay, so none is bool.

    Args:
        source_size, target_size: V of either side.

    Attributes, all float32:
        source, target: (V,) loss of each symbol, in nats; 0 where it has not been seen.
        tree: (2,) tree reward of source and target, per GEN or REDUCE (`TreeBaseline`).
        source_seen, target_seen, tree_seen: more than 0 where there is an average.
        cross, cross_seen: not used; checkpoints have them.
    """

    NAMES = ("source", "target", "tree", "cross")
    DECAY = 0.95

    def __init__(self, source_size: int, target_size: int):
        super().__init__()
        for name, size in zip(self.NAMES, (source_size, target_size, 2, 2), strict=True):
            self.register_buffer(name, torch.zeros(size))
            self.register_buffer(f"{name}_seen", torch.zeros(size))

    def lookup(self, name: str, index: int | Tensor, own: Tensor) -> Tensor:
        """Averages `name` at `index` (a side or symbols), or the values `own` without averages; no gradients."""
        average, seen = getattr(self, name)[index], getattr(self, f"{name}_seen")[index]
        return torch.where(seen > 0, average.to(own), own.detach())

    @torch.no_grad()
    def update(self, **totals: tuple[Tensor, Tensor]) -> None:
        """Update the averages of some names with the sums and counts of a training batch.

        Both have the shape of the buffer and are added up over processes, which must all give the same names.
        """
        packed = torch.stack(
            [torch.cat([part.double() for part in parts]) for parts in zip(*totals.values(), strict=True)]
        )
        if distributed.is_available() and distributed.is_initialized():
            distributed.all_reduce(packed)
        sizes = [len(getattr(self, name)) for name in totals]
        for name, (sums, counts) in zip(totals, packed.split(sizes, 1), strict=True):
            average, seen = getattr(self, name), getattr(self, f"{name}_seen")
            here = counts > 0
            mean = sums / counts.clamp(min=1)
            moved = torch.where(seen > 0, self.DECAY * average.double() + (1 - self.DECAY) * mean, mean)
            average.copy_(torch.where(here, moved, average.double()))
            seen.masked_fill_(here, 1)

    def _apply(self, fn, recurse=True):
        """Move to another device, but keep float32: lower precision would round small changes away."""
        before = dict(self.named_buffers(recurse=False))
        super()._apply(fn, recurse)
        for name, buffer in before.items():
            now = getattr(self, name)
            if now.dtype != buffer.dtype:
                setattr(self, name, buffer.to(now.device))
        return self


# --- criterion -------------------------------------------------------------------------------------------------------


class SideRewards(NamedTuple):
    """Trees and rewards of one side of B sentences; only `scores` have gradients."""

    scores: object  # TreeScores
    weight: float  # of the symbols' losses
    tree: Tensor  # (B, T) float64 tree rewards of actions
    at_end: Tensor  # (B,) float64 tree reward after the last of them
    is_forced: bool  # the trees are not drawn from the policy

    def at(self, which: Action) -> Tensor:
        """(B, T) bool, where this action is."""
        return self.scores.actions == which

    def symbol_losses(self) -> Tensor:
        """(B, T) float64, in nats."""
        return self.scores.symbol_loss.detach().double()

    def tree_total(self) -> Tensor:
        """(B,) float64 tree rewards of sentences."""
        return self.tree.sum(1) + self.at_end


class Losses(NamedTuple):
    """The losses of B sentences and their parts."""

    total: Tensor  # (B,) eq. 3
    coverage: Tensor  # (B,) eq. 2
    sides: tuple[SideRewards, SideRewards]  # source and target
    # (B, T) float64 of either side, rewards to go less baselines; None where they do not train the policy
    advantages: list[Tensor | None]


@register_criterion("reinforce_tree", dataclass=ReinforceTreeConfig)
class ReinforceTreeCriterion(FairseqCriterion):
    """w_att L_att + w_src L_src + w_tgt L_tgt - w_pg Σ R_i log π(a_i), summed over sentences (eq. 3).

    L_src and L_tgt are -Σ log p(symbol), L_att is the coverage loss (eq. 2), R_i the reward to go (eq. 4) less a
    baseline. An action's own reward is its tree reward, less w L for a GEN. Nothing flows back through rewards and
    baselines. `sample_size` is the number of sentences.

    The average loss of each symbol and the average tree reward are the baselines. The latter is by default the average
    per GEN, subtracted at each GEN: the number of GENs to come does not depend on the actions, so the gradient is not
    biased.

    Sides with forced trees (`net_input` has src_actions or tgt_actions) learn by `--rnng-action-xent`, not by rewards.
    Validation has no rewards; its trees are drawn by `--seed` and the number of the sentence alone, so they are the
    same each time, in any batch, and do not disturb training.

    The log has, in bits, `loss` of target and `loss_src` of source symbols (the end counts as one); `att`, the coverage
    loss of a sentence; for both sides NTs (`nts_per_char_*`) and tree reward (`tree_reward_*`) per symbol without the
    end, and `flat_*` and `capped_*` (% of trees that are nothing but a root, or met the limit of actions).

    A dummy batch (`sample` has a true stand_in), of a process without more data, does not move the averages.

    Raises ValueError: options out of range.
    """

    def __init__(self, task, cfg: ReinforceTreeConfig):
        super().__init__(task)
        check_values(cfg, ReinforceTreeConfig)
        preset = PRESETS[TreePreset(cfg.rnng_preset)]
        chosen = {name: getattr(cfg, f"rnng_{name}", None) for name in Preset._fields}
        self.weights = preset._replace(**{name: value for name, value in chosen.items() if value is not None})
        self.action_xent = cfg.rnng_action_xent
        self.discount = cfg.rnng_reward_discount
        self.valid_trees = ValidTrees(cfg.rnng_valid_trees)
        self.seed = cfg.seed

    def forward(self, model, sample, reduce=True):
        """Compute the loss, the number of sentences and the figures to log; see the class.

        Raises ValueError: the model has no latent trees.
        """
        if not hasattr(model, "baselines"):
            raise ValueError("--criterion reinforce_tree: learns latent trees; use --arch latent_tree_rnng")
        training = model.training
        inputs = {name: sample["net_input"].get(name) for name in ("src_tokens", "src_lengths", *_GIVEN)}
        inputs["target"] = sample["target"]
        drawn = {"trees": "sample"} if training else {"trees": str(self.valid_trees), "seeds": self._seeds(sample)}
        pair = model(**inputs, **drawn, detach_output=self.weights.lm_grad == SymbolGradient.softmax)
        forced = tuple(inputs[name] is not None for name in _GIVEN)
        losses = self.losses(pair, model.baselines, forced, learning=training)
        if training:
            self.update(model.baselines, losses, sample.get("stand_in", False))
        log = {
            "ntokens": sample["ntokens"],
            "nsentences": sample["nsentences"],
            "sample_size": sample["nsentences"],
            "att": losses.coverage.detach().double().sum(),
        }
        for name, side in zip(_LOG_SIDES, losses.sides, strict=True):
            log |= _sums(name, side)
        return losses.total.sum() if reduce else losses.total, sample["nsentences"], log

    def losses(self, pair, baselines, forced=(False, False), learning: bool = True) -> Losses:
        """The losses of a TreePair.

        Args:
            baselines: MovingBaselines, which are not updated.
            forced: whether the trees of source and target are not drawn from the policies.
            learning: whether to add the losses of the policies.
        """
        coverage = coverage_loss(pair.attention, pair.attending, pair.attended)
        sides = self._sides(pair, forced)
        total = self.weights.coverage_weight * coverage
        for side in sides:
            total = total + side.weight * side.scores.symbol_loss.sum(1)
        advantages: list[Tensor | None] = [None, None]
        for index, side in enumerate(sides if learning else ()):
            scores = side.scores
            if side.is_forced:
                total = total - self.action_xent * scores.log_policy.sum(1)
                continue
            advantages[index] = advantage = self._advantage(side, index, baselines)
            total = total - self.weights.policy_weight * (advantage.to(scores.log_policy) * scores.log_policy).sum(1)
        return Losses(total, coverage, sides, advantages)

    def _sides(self, pair, forced: tuple[bool, bool]) -> tuple[SideRewards, SideRewards]:
        sides = []
        chosen = self.weights
        weights = (chosen.source_weight, chosen.target_weight)
        for scores, weight, is_forced in zip((pair.source, pair.target), weights, forced, strict=True):
            rewards = tree_rewards(
                scores.constituents, chosen.terminal_reward, chosen.nonterminal_reward, chosen.reward_mode
            )
            tree, at_end = (torch.from_numpy(part).to(scores.actions.device) for part in rewards)
            sides.append(SideRewards(scores, weight, tree, at_end, is_forced))
        return tuple(sides)

    def _advantage(self, side: SideRewards, index: int, baselines) -> Tensor:
        """(B, T) reward to go of each action of source or target (eq. 4) less baselines; 0 for NOP."""
        actions = side.scores.actions
        rewards = side.tree - side.weight * side.symbol_losses()
        average = baselines.lookup(SIDES[index], side.scores.symbols, side.symbol_losses())
        added = torch.where(side.at(Action.GEN), side.weight * average, 0)
        places, total = self._tree_places(side)
        average = baselines.lookup("tree", index, total / places.sum(1).clamp(min=1))
        rewards = rewards + (added - torch.where(places, average[:, None], 0))
        rewards = torch.cat((rewards, side.at_end[:, None]), 1)
        to_go = reward_to_go(rewards, generated(actions, self.weights.gen_count), self.discount)[:, :-1]
        return torch.where(actions == Action.NOP, 0, to_go)

    def _tree_places(self, side: SideRewards) -> tuple[Tensor, Tensor]:
        """(B, T) bool, where average tree rewards are subtracted, and (B,) the sum of the rewards they average."""
        if self.weights.tree_baseline == TreeBaseline.reduce:
            places = side.at(Action.REDUCE)
            return places, torch.where(places, side.tree, 0).sum(1)
        return side.at(Action.GEN), side.tree_total()

    def update(self, baselines: MovingBaselines, losses: Losses, stand_in: bool = False) -> None:
        """Update the moving averages; a dummy batch (`stand_in`) takes part with zeros."""
        totals = {}
        for name, side in zip(SIDES, losses.sides, strict=True):
            zero = torch.zeros_like(getattr(baselines, name), dtype=torch.float64)
            counted = torch.stack((side.symbol_losses(), side.at(Action.GEN).double())).flatten(1)
            totals[name] = tuple(zero.index_add(0, side.scores.symbols.flatten(), values) for values in counted)
        places, sums = zip(*map(self._tree_places, losses.sides), strict=True)
        totals["tree"] = (torch.stack([part.sum() for part in sums]), torch.stack([part.sum() for part in places]))
        if stand_in:
            totals = {name: tuple(map(torch.zeros_like, parts)) for name, parts in totals.items()}
        baselines.update(**totals)

    def _seeds(self, sample) -> list[tuple[int, int]]:
        """Seeds by sentence, so that validation depends on no batch and does not disturb training."""
        ids = sample["id"].tolist() if "id" in sample else range(len(sample["target"]))
        return [(self.seed % 2**32, i) for i in ids]

    @classmethod
    def reduce_metrics(cls, logging_outputs) -> None:
        """See the class."""

        def total(key: str) -> float:
            return float(sum(log.get(key, 0) for log in logging_outputs))

        def ratio(name: str, above: str, below: str, factor: float = 1, digits: int = 3) -> None:
            count = total(below)
            metrics.log_scalar(name, factor * total(above) / max(count, 1), count, round=digits)

        ratio("loss", "loss_tgt", "symbols_tgt", 1 / math.log(2))
        ratio("loss_src", "loss_src", "symbols_src", 1 / math.log(2))
        ratio("att", "att", "trees_src")
        for side in _LOG_SIDES:
            ratio(f"nts_per_char_{side}", f"nts_{side}", f"chars_{side}")
            ratio(f"tree_reward_{side}", f"reward_{side}", f"chars_{side}")
            ratio(f"flat_{side}", f"flat_{side}", f"trees_{side}", 100, 1)
            ratio(f"capped_{side}", f"capped_{side}", f"trees_{side}", 100, 1)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """True: fairseq's other way of gathering logs needs a GPU."""
        return True


_GIVEN = ("src_actions", "tgt_actions")
_LOG_SIDES = ("src", "tgt")


def _sums(name: str, side: SideRewards) -> dict[str, Tensor]:
    """Float64 sums and counts of one side of a batch, "src" or "tgt", for `reduce_metrics`."""
    scores, trees = side.scores, side.scores.constituents
    roots = trees.parent == NONE
    device = scores.actions.device
    values = {
        "loss": side.symbol_losses().sum(),
        "symbols": side.at(Action.GEN).sum(),
        "chars": trees.lengths.sum(),
        "nts": side.at(Action.NT).sum(),
        "trees": roots.sum(),
        "reward": side.tree_total().sum(),
        "flat": (trees.nonterminals[roots] == 0).sum(),
        "capped": scores.capped.sum(),
    }
    return {f"{key}_{name}": torch.as_tensor(value).to(device, torch.float64) for key, value in values.items()}

"""Options of `reinforce_tree`.

What a policy of trees earns for their shape (Bradbury & Socher 2017, Sec. 2.3).

Constituents earn for what is in them; unary ones, and an NT after an NT or a closing after a closing, cost. Amounts
are options: the paper's could not be read. Its text can be taken to add cost and earnings. Then chains of unary
constituents earn most, which the cost is to prevent; so by default a constituent that costs earns nothing. Its best
trees branch to the left.

Exponential moving averages that are subtracted from rewards (Bradbury & Socher 2017, Sec. 2.3).

Formulas of training with latent trees: coverage loss, rewards to go, baselines (Bradbury & Socher 2017, Sec. 2.3).

Functions of tensors alone; what is put together of them is in `reinforce_tree`.

What training with latent trees logs, and the warning about policies that have stopped to make trees.

REINFORCE: training of translators whose trees are drawn from a policy (Bradbury & Socher 2017, Sec. 2.3).

A function `_less_…` is a baseline; `moving_baselines` has the averages, `losses` the formulas.
"""

import logging
import math
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Optional

import numpy as np
import torch
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.distributed import utils as distributed_utils
from fairseq.logging import metrics
from omegaconf import II
from torch import Tensor, distributed, nn

from ...options import check_values, option
from .transitions import NONE, Action, Constituents

TreePreset = StrEnum("TreePreset", "default paper pf shallow literal")
"""Sets of weights and rewards."""
Baseline = StrEnum("Baseline", "ema none loo greedy value")
"""What is subtracted from rewards."""
TreeBaseline = StrEnum("TreeBaseline", "gen reduce action none")
"""Where the average tree reward is subtracted."""
CrossReward = StrEnum("CrossReward", "none scg")
"""Whether a side's policy answers for what its trees cost the other side."""
ValidTrees = StrEnum("ValidTrees", "sample greedy")
"""Which trees the losses of validation are of."""


RewardMode = StrEnum("RewardMode", "exclusive additive")
"""What a constituent that has faults earns: their cost alone, or what is in it less their cost."""
ForcedClosings = StrEnum("ForcedClosings", "all penalty")
"""What constituents earn that the end of the sentence closes: as all others, or only the cost of their faults."""


class CoverageRoot(StrEnum):
    """How much attention the source's root should get in all."""

    zero = "zero"  # the target's root takes its phrase without attention
    one = "one"


GenCount = StrEnum("GenCount", "exclusive inclusive")
"""Which GENs discount the reward of an action: those before it, or itself too."""


class Preset(NamedTuple):
    """What a `TreePreset` stands for."""

    source_weight: float = 1.0
    target_weight: float = 1.0
    coverage_weight: float = 1.0
    policy_weight: float = 0.02
    terminal_reward: float = 4.0
    nonterminal_reward: float = 9.0
    reward_forced: ForcedClosings = ForcedClosings.all
    reward_mode: RewardMode = RewardMode.exclusive
    gen_count: GenCount = GenCount.exclusive
    tree_baseline: TreeBaseline = TreeBaseline.gen


PRESETS = {
    TreePreset.default: Preset(),
    TreePreset.paper: Preset(source_weight=10.0, coverage_weight=100.0),
    TreePreset.pf: Preset(10.0, 10.0, 10.0, nonterminal_reward=10.0, reward_forced=ForcedClosings.penalty),
    TreePreset.shallow: Preset(coverage_weight=0.1, terminal_reward=1.0, nonterminal_reward=0.0),
    TreePreset.literal: Preset(
        reward_mode=RewardMode.additive, gen_count=GenCount.inclusive, tree_baseline=TreeBaseline.reduce
    ),
}


@dataclass
class ReinforceTreeConfig(FairseqDataclass):
    """Options of `reinforce_tree`; what has no default takes that of the preset."""

    rnng_preset: TreePreset = option(
        TreePreset.default,
        "values of --rnng-source-weight, --rnng-target-weight, --rnng-coverage-weight, --rnng-policy-weight, "
        "--rnng-terminal-reward, --rnng-nonterminal-reward and --rnng-reward-forced that are not given themselves: "
        "1 1 1 0.02 4 9 all (default), 10 1 100 0.02 4 9 all (paper), 10 10 10 0.02 4 10 penalty (pf), "
        "1 1 0.1 0.02 1 0 all (shallow: nesting earns nothing); all with --rnng-reward-mode exclusive, "
        "--rnng-gen-count exclusive and --rnng-tree-baseline gen. literal is default with additive, inclusive and "
        "reduce: the wording of the paper, whose weights and amounts could not be read; gradients are biased",
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
    rnng_entropy_weight: float = option(0.0, "weight of a bonus for the policy's entropy, in nats", "[0, inf)")
    rnng_action_xent: float = option(
        0.0, "weight of -log p(action) where trees are given, which have no policy gradient", "[0, inf)"
    )
    rnng_terminal_reward: Optional[float] = option(
        None, "reward of a constituent of symbols alone, for each of them", "(-inf, inf)"
    )
    rnng_nonterminal_reward: Optional[float] = option(
        None, "reward of a constituent with constituents in it, times the root of how many they are", "(-inf, inf)"
    )
    rnng_reward_mode: Optional[RewardMode] = option(
        None, "constituents with faults cost 1 and earn nothing (exclusive), or earn as others, too", reading=True
    )
    rnng_reward_forced: Optional[ForcedClosings] = option(
        None, "constituents that the end of the sentence closes earn as others (all), or can only cost", reading=True
    )
    rnng_reward_discount: float = option(0.95, "discount of rewards per symbol until they are earned", "[0, 1]")
    rnng_gen_count: Optional[GenCount] = option(
        None, "discount from the symbols before an action, or (inclusive, as in the paper) with its own", reading=True
    )
    rnng_baseline: Baseline = option(
        Baseline.ema,
        "subtracted from rewards: moving averages, nothing, the mean of other samples of the sentence "
        "(loo), the reward of the most likely trees (greedy), or what a value head predicts",
    )
    rnng_tree_baseline: Optional[TreeBaseline] = option(
        None,
        "with --rnng-baseline ema, where the average tree reward is subtracted; at reduce or action, gradients "
        "are biased",
        reading=True,
    )
    rnng_loo_samples: int = option(8, "samples of each sentence with --rnng-baseline loo", "[2, inf)")
    rnng_value_weight: float = option(
        0.01, "weight of the squared error of the value head with --rnng-baseline value", "[0, inf)"
    )
    rnng_cross_reward: CrossReward = option(
        CrossReward.none, "also reward policies for costs that their trees cause later (scg)"
    )
    rnng_coverage_root: CoverageRoot = option(
        CoverageRoot.zero, "how much attention the source's root should get in all", reading=True
    )
    rnng_valid_trees: ValidTrees = option(
        ValidTrees.sample, "trees of validation: drawn, always the same way; or the most likely, flat in the beginning"
    )
    seed: int = II("common.seed")


# --- rewards ---


COST = 1.0  # of each fault


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


# --- moving baselines ---


SOURCE, TARGET = 0, 1  # sides, in buffers that have one number for each


class MovingBaselines(nn.Module):
    """What symbols cost, trees earn and the other side costs, on average over the last batches.

    A batch uses the averages and then updates them, so that no sample is part of its own baseline. A number that has
    not been seen yet is its own baseline. The averages are buffers, as fairseq saves a model's state but not that of a
    criterion without parameters; they stay in single precision whatever the model is converted to. None of them is
    bool: fairseq's exponential moving average of a model (`--store-ema`) multiplies all buffers by its decay.

    Args:
        source_size, target_size: V of either side.
        decay: of the averages, below 1.

    Attributes, all float32:
        source, target: (V,) loss of each symbol, in nats; 0 where it has not been seen.
        tree: (2,) tree reward of source and target; of what, is the criterion's choice.
        cross: (2,) what comes after source and target trees.
        source_seen, target_seen, tree_seen, cross_seen: more than 0 where there is an average.
    """

    NAMES = ("source", "target", "tree", "cross")

    def __init__(self, source_size: int, target_size: int, decay: float = 0.95):
        super().__init__()
        if not 0 <= decay < 1:
            raise ValueError(f"decay of the moving averages: {decay} found, at least 0 and below 1 is needed")
        self.decay = decay
        for name, size in zip(self.NAMES, (source_size, target_size, 2, 2), strict=True):
            self.register_buffer(name, torch.zeros(size))
            self.register_buffer(f"{name}_seen", torch.zeros(size))

    def of_symbols(self, side: int, symbols: Tensor, losses: Tensor) -> Tensor:
        """The baseline of each symbol's loss, without a gradient; losses of unseen symbols are their own baselines.

        Args:
            side: SOURCE or TARGET.
            symbols, losses: of one shape, which the result has, too.
        """
        name = self.NAMES[side]
        average, seen = getattr(self, name)[symbols], getattr(self, f"{name}_seen")[symbols]
        return torch.where(seen > 0, average.to(losses), losses.detach())

    def of(self, name: str, side: int, own: Tensor) -> Tensor:
        """The baseline of numbers of a side, of the kind `name`, "tree" or "cross"; as `own`, without a gradient."""
        average, seen = getattr(self, name)[side], getattr(self, f"{name}_seen")[side]
        return torch.where(seen > 0, average.to(own), own.detach())

    @torch.no_grad()
    def update(self, **totals: tuple[Tensor, Tensor]) -> None:
        """Take in a batch; once for each, in training alone. All processes must call it, with the same names.

        Args:
            totals: of "source", "target", "tree" and "cross", those in use: sums, and of how many numbers each is the
                sum; both of the shape of the buffer. Averages are of the sums and numbers of all processes, so all have
                the same.
        """
        names = list(totals)
        packed = torch.stack(
            [torch.cat([part.double() for part in parts]) for parts in zip(*totals.values(), strict=True)]
        )
        if distributed.is_available() and distributed.is_initialized():
            distributed.all_reduce(packed)
        for name, (sums, counts) in zip(names, packed.split([len(getattr(self, n)) for n in names], 1), strict=True):
            average, seen = getattr(self, name), getattr(self, f"{name}_seen")
            here = counts > 0
            mean = sums / counts.clamp(min=1)
            moved = torch.where(seen > 0, self.decay * average.double() + (1 - self.decay) * mean, mean)
            average.copy_(torch.where(here, moved, average.double()))
            seen.masked_fill_(here, 1)

    def _apply(self, fn, recurse=True):
        """Go to another device but not to another precision: half of it would round small changes away."""
        before = dict(self.named_buffers(recurse=False))
        super()._apply(fn, recurse)
        for name, buffer in before.items():
            now = getattr(self, name)
            if now.dtype != buffer.dtype:
                setattr(self, name, buffer.to(now.device))
        return self


# --- losses ---


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


# --- metrics ---


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


# --- reinforce ---


class Side(NamedTuple):
    """What one side of B sentences did and got for it; nothing has a gradient but `scores`."""

    scores: object  # TreeScores
    weight: float  # of the symbols' losses
    tree: Tensor  # (B, T) float64 tree rewards of actions
    at_end: Tensor  # (B,) float64 tree reward after the last of them
    given: bool  # the trees were not drawn from the policy

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
    """Of B sentences."""

    total: Tensor  # (B,) eq. 3.
    coverage: Tensor  # (B,) eq. 2.
    sides: tuple[Side, Side]  # source and target
    advantages: list[Tensor | None]  # (B, T) float64 of either side, or None where its policy was not taught by rewards
    # (B,) float64 of either side, what its trees bring about later, as a reward; see `CrossReward`
    ahead: tuple[Tensor, Tensor]


@register_criterion("reinforce_tree", dataclass=ReinforceTreeConfig)
class ReinforceTreeCriterion(FairseqCriterion):
    """w_att L_att + w_src L_src + w_tgt L_tgt - w_pg Σ R_i log π(a_i) - w_ent Σ H(π_i), summed over sentences (eq. 3).

    L_src and L_tgt are -Σ log p(symbol), L_att is the coverage loss (eq. 2), R_i the reward to go (eq. 4) less a
    baseline. An action's own reward is its tree reward, less w L for a GEN. Nothing flows back through rewards and
    baselines. `sample_size` is the number of sentences.

    Baselines (`--rnng-baseline`):
        ema: moving averages of each symbol's loss, and of the tree reward. The latter is by default that per GEN,
            subtracted at each GEN: how many GENs are to come does not depend on the actions, so that there is no bias.
        loo: each sentence is drawn K times; losses are means over them. Subtracted from R_i is the mean reward to go of
            the other K - 1 from where they had generated as many symbols.
        greedy: the same of the most likely trees, which need another pass.
        value: what the model's value head expects; its squared error is added with `--rnng-value-weight`.

    `--rnng-cross-reward scg` adds to R_i what comes later on the other side, without discount: to the source's
    -(w_tgt L_tgt + w_att L_att) and the target's tree reward, to the target's -w_att L_att. Their moving averages are
    those per target symbol, and per sentence.

    Sides with given trees (`net_input` has src_actions or tgt_actions) are not taught by rewards but by
    `--rnng-action-xent`. In validation there are no rewards; the trees of a sentence are drawn by its number and
    `--seed` alone, so the same are drawn each time, in whatever batch, and training goes on undisturbed.

    Logged are, in bits, `loss` of target and `loss_src` of source symbols (the end counts as one) and `entropy_*` of an
    action; `att`, the coverage loss of a sentence; for both sides NTs (`nts_per_char_*`) and tree reward
    (`tree_reward_*`) per symbol without the end, `depth_*` of a tree, `flat_*` and `capped_*` (% of trees that are
    nothing but a root, or met the limit of actions), and `adv_std_*`, the deviation of rewards from baselines.
    `report_trees`, which the task calls when an epoch or a validation begins, warns of training trees that are nearly
    all flat or capped: of those of the last epoch only with validation.

    A batch that stands in for one (`sample` has a true stand_in), where a process has run out of data before the
    others, neither moves the averages nor counts among those trees.

    Raises ValueError: options out of range.
    """

    def __init__(self, task, cfg: ReinforceTreeConfig):
        super().__init__(task)
        check_values(cfg, ReinforceTreeConfig)
        preset = PRESETS[TreePreset(cfg.rnng_preset)]
        given = {name: getattr(cfg, f"rnng_{name}") for name in Preset._fields}
        chosen = preset._replace(**{name: value for name, value in given.items() if value is not None})
        self.weights = chosen
        self.entropy_weight = cfg.rnng_entropy_weight
        self.action_xent = cfg.rnng_action_xent
        self.value_weight = cfg.rnng_value_weight
        self.rewards = TreeRewards(
            chosen.terminal_reward,
            chosen.nonterminal_reward,
            RewardMode(chosen.reward_mode),
            ForcedClosings(chosen.reward_forced),
        )
        self.discount = cfg.rnng_reward_discount
        self.gen_count = GenCount(chosen.gen_count)
        self.baseline = Baseline(cfg.rnng_baseline)
        self.tree_baseline = TreeBaseline(chosen.tree_baseline)
        self.copies = cfg.rnng_loo_samples if self.baseline == Baseline.loo else 1
        self.cross_reward = CrossReward(cfg.rnng_cross_reward)
        self.coverage_root = CoverageRoot(cfg.rnng_coverage_root)
        self.valid_trees = ValidTrees(cfg.rnng_valid_trees)
        self.seed = cfg.seed
        self._health = TreeHealth()

    def forward(self, model, sample, reduce=True):
        """(loss, number of sentences, what to log); see the class.

        Raises ValueError: the model has no latent trees, or no value head where one is needed; FloatingPointError: a
        loss is not a number.
        """
        if not hasattr(model, "baselines"):
            raise ValueError("--criterion reinforce_tree: learns latent trees; use --arch latent_tree_rnng")
        training = model.training
        inputs = _inputs(sample, self.copies if training else 1)
        reference = None
        if training:
            if self.baseline == Baseline.greedy:
                with torch.no_grad():
                    reference = model(**inputs, trees="greedy")
            pair = model(**inputs, trees="sample")
        else:
            pair = model(**inputs, trees=str(self.valid_trees), seeds=self._seeds(sample))
        losses = self.losses(pair, model.baselines, _given(inputs), reference, learning=training)
        if not torch.isfinite(losses.total).all():
            raise FloatingPointError(_complaint(losses, sample, model, self.copies if training else 1))
        stand_in = sample.get("stand_in", False)
        if training and self.baseline == Baseline.ema:
            self.update(model.baselines, losses, stand_in)
        total = losses.total / (self.copies if training else 1)
        log = {
            "ntokens": sample["ntokens"],
            "nsentences": sample["nsentences"],
            "sample_size": sample["nsentences"],
            "att": losses.coverage.detach().double().sum(),
        }
        for name, side, advantages in zip(SIDES, losses.sides, losses.advantages, strict=True):
            sums = sums_of(name, side.scores, side.tree_total(), advantages)
            if training and not side.given and not stand_in:
                self._health.count(name, sums)
            log |= sums
        return total.sum() if reduce else total, sample["nsentences"], log

    def losses(self, pair, baselines, given=(False, False), reference=None, learning: bool = True) -> Losses:
        """The losses of sentences with the trees they have.

        Args:
            baselines: MovingBaselines, which stay as they are.
            given: whether the trees of source and target were not drawn from the policies.
            reference: TreePair of the most likely trees, for the baseline `greedy`.
            learning: with what teaches the policies.
        """
        sides, coverage, ahead = self._rated(pair, given)
        total = self.weights.coverage_weight * coverage
        for side in sides:
            total = total + side.weight * side.scores.symbol_loss.sum(1)
        advantages: list[Tensor | None] = [None, None]
        if not learning:
            return Losses(total, coverage, sides, advantages, ahead)
        there = None if reference is None else self._rated(reference, given)
        less_baseline = getattr(self, f"_less_{self.baseline}")
        for index, side in enumerate(sides):
            scores = side.scores
            if self.entropy_weight:
                total = total - self.entropy_weight * scores.entropy.sum(1)
            if side.given:
                if self.action_xent:
                    total = total - self.action_xent * scores.log_policy.sum(1)
                continue
            advantage, loss = less_baseline(index, sides, ahead[index], baselines, there)
            total = total + loss
            total = total - self.weights.policy_weight * (advantage.to(scores.log_policy) * scores.log_policy).sum(1)
            advantages[index] = advantage
        return Losses(total, coverage, sides, advantages, ahead)

    # One function a baseline: rewards to go less the baseline (B, T), and what learning the baseline adds to the loss.

    def _less_none(self, index: int, sides, later: Tensor, baselines, there) -> tuple[Tensor, Tensor | float]:
        return self._to_go(sides[index], later), 0.0

    def _less_ema(self, index: int, sides, later: Tensor, baselines, there) -> tuple[Tensor, Tensor | float]:
        added, later = self._averages(sides, index, later, baselines)
        return self._to_go(sides[index], later, added), 0.0

    def _less_loo(self, index: int, sides, later: Tensor, baselines, there) -> tuple[Tensor, Tensor | float]:
        actions = sides[index].scores.actions
        to_go = self._to_go(sides[index], later)
        return to_go - at_actions(mean_of_others(by_symbols(to_go, actions), self.copies), actions), 0.0

    def _less_greedy(self, index: int, sides, later: Tensor, baselines, there) -> tuple[Tensor, Tensor | float]:
        theirs, _, ahead = there
        expected = by_symbols(self._to_go(theirs[index], ahead[index]), theirs[index].scores.actions)
        return self._to_go(sides[index], later) - at_actions(expected, sides[index].scores.actions), 0.0

    def _less_value(self, index: int, sides, later: Tensor, baselines, there) -> tuple[Tensor, Tensor | float]:
        scores = sides[index].scores
        if scores.values is None:
            raise ValueError("--rnng-baseline value: the model has no value head; give --rnng-value-head, too")
        to_go = self._to_go(sides[index], later)
        error = torch.where(scores.actions == Action.NOP, 0, scores.values - to_go.to(scores.values))
        return -error.detach().double(), self.value_weight * (error**2).sum(1)

    def _rated(self, pair, given: tuple[bool, bool]):
        """Sides, coverage losses (B,) and what comes later (B,) of either side, see `Losses`."""
        coverage = coverage_loss(pair.attention, pair.attending, pair.attended, self.coverage_root)
        sides = self._sides(pair, given)
        return sides, coverage, self._ahead(sides, coverage)

    def _sides(self, pair, given: tuple[bool, bool]) -> tuple[Side, Side]:
        sides = []
        weights = (self.weights.source_weight, self.weights.target_weight)
        for scores, weight, fixed in zip((pair.source, pair.target), weights, given, strict=True):
            rewards = tree_rewards(scores.constituents.actions, scores.constituents, self.rewards)
            tree, at_end = (torch.from_numpy(part).to(scores.actions.device) for part in rewards)
            sides.append(Side(scores, weight, tree, at_end, fixed))
        return tuple(sides)

    def _ahead(self, sides: tuple[Side, Side], coverage: Tensor) -> tuple[Tensor, Tensor]:
        """(B,) what source and target trees bring about on the other side, as rewards."""
        target = sides[1]
        attention = -self.weights.coverage_weight * coverage.detach().double()
        if self.cross_reward == CrossReward.none:
            return torch.zeros_like(attention), torch.zeros_like(attention)
        return attention - target.weight * target.symbol_losses().sum(1) + target.tree_total(), attention

    def _to_go(self, side: Side, ahead: Tensor, added: Tensor | float = 0.0) -> Tensor:
        """(B, T) reward to go of each action (eq. 4); 0 for NOP."""
        actions = side.scores.actions
        rewards = side.tree - side.weight * side.symbol_losses() + added
        rewards = torch.cat((rewards, side.at_end[:, None]), 1)
        to_go = reward_to_go(rewards, generated(actions, self.gen_count), self.discount)[:, :-1]
        return torch.where(actions == Action.NOP, 0, to_go + ahead[:, None])

    def _tree_places(self, side: Side) -> tuple[Tensor, Tensor]:
        """(B, T) bool, where average tree rewards are subtracted, and (B,) the sum of the rewards they average."""
        if self.tree_baseline == TreeBaseline.reduce:
            places = side.at(Action.REDUCE)
            return places, torch.where(places, side.tree, 0).sum(1)
        if self.tree_baseline == TreeBaseline.action:
            return ~side.at(Action.NOP), side.tree_total()
        return side.at(Action.GEN), side.tree_total()

    def _ahead_units(self, sides: tuple[Side, Side], index: int) -> Tensor:
        """(B,) of how many things `ahead` is the sum: of target symbols, or of one sentence."""
        units = sides[1].at(Action.GEN).sum(1)
        return units if index == 0 else torch.ones_like(units)

    def _averages(self, sides, index: int, ahead: Tensor, baselines) -> tuple[Tensor, Tensor]:
        """What is added to the rewards of actions, (B, T), and what comes later less its average, (B,)."""
        side = sides[index]
        of_symbols = baselines.of_symbols(index, side.scores.symbols, side.symbol_losses())
        added = torch.where(side.at(Action.GEN), side.weight * of_symbols, 0)
        if self.tree_baseline != TreeBaseline.none:
            places, total = self._tree_places(side)
            average = baselines.of("tree", index, total / places.sum(1).clamp(min=1))
            added = added - torch.where(places, average[:, None], 0)
        if self.cross_reward != CrossReward.none:
            units = self._ahead_units(sides, index)
            ahead = ahead - units * baselines.of("cross", index, ahead / units)
        return added, ahead

    def report_trees(self) -> None:
        """Warn if nearly all trees that were drawn in training since the last call are flat or capped."""
        self._health.report()

    def update(self, baselines, losses: Losses, stand_in: bool = False) -> None:
        """Take a batch into the moving averages that are in use; one that stands in takes part, but is of nothing."""
        totals = {}
        for name, side in zip(("source", "target"), losses.sides, strict=True):
            size = len(getattr(baselines, name))
            totals[name] = by_symbol_kind(side.scores.symbols, side.scores.symbol_loss, side.at(Action.GEN), size)
        if self.tree_baseline != TreeBaseline.none:
            places, sums = zip(*map(self._tree_places, losses.sides), strict=True)
            totals["tree"] = (torch.stack([part.sum() for part in sums]), torch.stack([part.sum() for part in places]))
        if self.cross_reward != CrossReward.none:
            units = [self._ahead_units(losses.sides, index).sum() for index in range(2)]
            totals["cross"] = (torch.stack([part.sum() for part in losses.ahead]), torch.stack(units))
        if stand_in:
            totals = {name: tuple(map(torch.zeros_like, parts)) for name, parts in totals.items()}
        baselines.update(**totals)

    def _seeds(self, sample) -> list[tuple[int, int]]:
        """Of each sentence: validation neither depends on how sentences are batched nor disturbs training."""
        ids = sample["id"].tolist() if "id" in sample else range(len(sample["target"]))
        return [(self.seed % 2**32, i) for i in ids]

    @classmethod
    def reduce_metrics(cls, logging_outputs) -> None:
        """Log what the class says."""
        log_sums(logging_outputs)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """True: fairseq's other way of gathering logs needs a GPU."""
        return True


def _inputs(sample: dict, copies: int) -> dict[str, Tensor]:
    """What the model takes, each sentence as often as asked for."""
    names = ("src_tokens", "src_lengths", "src_actions", "tgt_actions")
    inputs = {name: sample["net_input"][name] for name in names if sample["net_input"].get(name) is not None}
    inputs["target"] = sample["target"]
    return {name: value.repeat_interleave(copies, 0) for name, value in inputs.items()}


def _given(inputs: dict[str, Tensor]) -> tuple[bool, bool]:
    return "src_actions" in inputs, "tgt_actions" in inputs


def _complaint(losses: Losses, sample: dict, model: nn.Module, copies: int) -> str:
    """Where a loss stops to be a number, and how large the parameters are."""
    ids = sample["id"].tolist() if "id" in sample else list(range(sample["nsentences"]))
    what = "coverage loss"
    wrong = (~torch.isfinite(losses.coverage)).nonzero()
    for name, side in zip(("source", "target"), losses.sides, strict=True):
        for part in ("log_policy", "entropy", "symbol_loss", "values"):
            values = getattr(side.scores, part)
            if not len(wrong) and values is not None and not torch.isfinite(values).all():
                what = f"{name} side, {part.replace('_', ' ')}"
                wrong = (~torch.isfinite(values)).nonzero()
    if not len(wrong):
        what, wrong = "loss", (~torch.isfinite(losses.total)).nonzero()
    row, *step = wrong[0].tolist()
    norms: dict[str, float] = {}
    for name, parameter in model.named_parameters():
        part = ".".join(name.split(".")[:2])
        norms[part] = math.hypot(norms.get(part, 0.0), float(parameter.detach().double().norm()))
    place = f"sentence {ids[row // copies]}" + (f", action {step[0]}" if step else "")
    return (
        f"{what}: not a finite number ({place}); norms of the parameters: "
        f"{', '.join(f'{name} {norm:.4g}' for name, norm in norms.items())}; lower --lr or give --clip-norm"
    )

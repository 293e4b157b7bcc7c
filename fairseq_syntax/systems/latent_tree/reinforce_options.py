"""Options of `reinforce_tree`."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Optional

from fairseq.dataclass import FairseqDataclass
from omegaconf import II

from ...options import option
from .losses import CoverageRoot, GenCount
from .rewards import ForcedClosings, RewardMode

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

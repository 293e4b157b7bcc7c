"""Options of `reinforce_tree`."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Optional

from fairseq.dataclass import FairseqDataclass
from omegaconf import II

from .losses import CoverageRoot, GenCount
from .rewards import ForcedClosings, RewardMode


class TreePreset(StrEnum):
    """Sets of weights and rewards."""

    default = "default"
    paper = "paper"
    pf = "pf"
    shallow = "shallow"
    literal = "literal"


class Baseline(StrEnum):
    """What is subtracted from rewards."""

    ema = "ema"
    none = "none"
    loo = "loo"
    greedy = "greedy"
    value = "value"


class TreeBaseline(StrEnum):
    """Where the average tree reward is subtracted."""

    gen = "gen"
    reduce = "reduce"
    action = "action"
    none = "none"


class CrossReward(StrEnum):
    """Whether a side's policy answers for what its trees cost the other side."""

    none = "none"
    scg = "scg"


class ValidTrees(StrEnum):
    """Which trees the losses of validation are of."""

    sample = "sample"
    greedy = "greedy"


class Preset(NamedTuple):
    """What a `TreePreset` stands for."""

    source_weight: float = 1.0
    target_weight: float = 1.0
    coverage_weight: float = 1.0
    policy_weight: float = 0.02
    terminal_reward: float = 4.0
    nonterminal_reward: float = 9.0
    reward_forced: ForcedClosings = ForcedClosings.all
    tree_reward_mode: RewardMode = RewardMode.exclusive
    gen_count: GenCount = GenCount.exclusive
    tree_baseline: TreeBaseline = TreeBaseline.gen


PRESETS = {
    TreePreset.default: Preset(),
    TreePreset.paper: Preset(source_weight=10.0, coverage_weight=100.0),
    TreePreset.pf: Preset(10.0, 10.0, 10.0, nonterminal_reward=10.0, reward_forced=ForcedClosings.penalty),
    TreePreset.shallow: Preset(coverage_weight=0.1, terminal_reward=1.0, nonterminal_reward=0.0),
    TreePreset.literal: Preset(
        tree_reward_mode=RewardMode.additive, gen_count=GenCount.inclusive, tree_baseline=TreeBaseline.reduce
    ),
}


@dataclass
class ReinforceTreeConfig(FairseqDataclass):
    """Options of `reinforce_tree`; what has no default takes that of the preset."""

    tree_preset: TreePreset = field(
        default=TreePreset.default,
        metadata={
            "help": "values of --source-weight, --target-weight, --coverage-weight, --policy-weight, "
            "--terminal-reward, --nonterminal-reward and --reward-forced that are not given themselves: "
            "1 1 1 0.02 4 9 all (default), 10 1 100 0.02 4 9 all (paper), 10 10 10 0.02 4 10 penalty (pf), "
            "1 1 0.1 0.02 1 0 all (shallow: nesting earns nothing); all with --tree-reward-mode exclusive, --gen-count "
            "exclusive and --tree-baseline gen. literal is default with additive, inclusive and reduce: the wording of "
            "the paper, whose weights and amounts could not be read; gradients are biased"
        },
    )
    source_weight: Optional[float] = field(
        default=None, metadata={"help": "weight of the loss of source symbols, also in rewards; 0 or greater"}
    )
    target_weight: Optional[float] = field(
        default=None, metadata={"help": "weight of the loss of target symbols, also in rewards; 0 or greater"}
    )
    coverage_weight: Optional[float] = field(
        default=None, metadata={"help": "weight of the coverage loss of attention; 0 or greater"}
    )
    policy_weight: Optional[float] = field(
        default=None, metadata={"help": "weight of the policy gradient, that is, of all rewards; 0 or greater"}
    )
    entropy_weight: float = field(
        default=0.0, metadata={"help": "weight of the policy's entropy (nats), which is raised; 0 or greater"}
    )
    action_xent: float = field(
        default=0.0,
        metadata={
            "help": "weight of -log p(action) where trees are given, which have no policy gradient; 0 or greater"
        },
    )
    terminal_reward: Optional[float] = field(
        default=None, metadata={"help": "reward of a constituent of symbols alone, for each of them"}
    )
    nonterminal_reward: Optional[float] = field(
        default=None,
        metadata={"help": "reward of a constituent with constituents in it, times the root of how many they are"},
    )
    tree_reward_mode: Optional[RewardMode] = field(
        default=None,
        metadata={"help": "constituents with faults cost 1 and earn nothing (exclusive), or earn as others, too"},
    )
    reward_forced: Optional[ForcedClosings] = field(
        default=None,
        metadata={"help": "constituents that the end of the sentence closes earn as others (all), or can only cost"},
    )
    reward_discount: float = field(
        default=0.95, metadata={"help": "discount of rewards for each symbol they lie ahead, from 0 to 1"}
    )
    gen_count: Optional[GenCount] = field(
        default=None,
        metadata={"help": "discount from the symbols before an action, or (inclusive, as in the paper) with its own"},
    )
    baseline: Baseline = field(
        default=Baseline.ema,
        metadata={
            "help": "subtracted from rewards: moving averages, nothing, the mean of other samples of the sentence "
            "(loo), the reward of the most likely trees (greedy), or what a value head predicts"
        },
    )
    tree_baseline: Optional[TreeBaseline] = field(
        default=None,
        metadata={
            "help": "with --baseline ema, where the average tree reward is subtracted; at reduce or action, gradients "
            "are biased"
        },
    )
    loo_samples: int = field(default=8, metadata={"help": "samples of each sentence with --baseline loo, at least 2"})
    value_weight: float = field(
        default=0.01, metadata={"help": "weight of the squared error of the value head with --baseline value"}
    )
    cross_reward: CrossReward = field(
        default=CrossReward.none,
        metadata={"help": "reward policies for the costs that their trees bring about later, too (scg)"},
    )
    coverage_root: CoverageRoot = field(
        default=CoverageRoot.zero, metadata={"help": "how much attention the source's root should get in all"}
    )
    valid_trees: ValidTrees = field(
        default=ValidTrees.sample,
        metadata={"help": "trees of validation: drawn, always the same way; or the most likely, flat in the beginning"},
    )
    seed: int = II("common.seed")

"""REINFORCE: training of translators whose trees are drawn from a policy (Bradbury & Socher 2017, Sec. 2.3).

A function `_less_…` is a baseline; `moving_baselines` has the averages, `losses` the formulas.
"""

import math
from typing import NamedTuple

import torch
from fairseq.criterions import FairseqCriterion, register_criterion
from torch import Tensor, nn

from ...options import check_values
from .losses import (
    CoverageRoot,
    GenCount,
    at_actions,
    by_symbol_kind,
    by_symbols,
    coverage_loss,
    generated,
    mean_of_others,
    reward_to_go,
)
from .metrics import SIDES, TreeHealth, log_sums, sums_of
from .reinforce_options import (
    PRESETS,
    Baseline,
    CrossReward,
    Preset,
    ReinforceTreeConfig,
    TreeBaseline,
    TreePreset,
    ValidTrees,
)
from .rewards import ForcedClosings, RewardMode, TreeRewards, tree_rewards
from .transitions import Action


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

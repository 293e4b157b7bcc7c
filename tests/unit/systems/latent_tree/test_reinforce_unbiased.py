"""The gradient that is expected of sampled trees is the gradient of the expected cost.

Nothing is sampled: the criterion's loss is averaged over all pairs of trees of two sentences, with their probabilities.
The paper's rewards leave out what source trees cost the target, so each policy is to lower the cost of its own side.
"""

import pytest
import torch
from oracles.rnng_trees import rewards as tree_rewards
from oracles.toy_grammar import END, SYMBOLS, all_actions, translator

from fairseq_syntax.systems.latent_tree.reinforce import (
    MovingBaselines,
    ReinforceTreeConfig,
    ReinforceTreeCriterion,
    coverage_loss,
)
from fairseq_syntax.systems.latent_tree.transitions import Action

WEIGHTS = {"rnng_source_weight": 0.7, "rnng_target_weight": 1.3, "rnng_coverage_weight": 2.1}
LEVEL = {"rnng_reward_discount": 1.0}  # R is then the whole of what an action brings about on its side


def criterion(readings=None, **options):
    """The criterion, with some `readings` of the paper (fields of `Preset`)."""
    result = ReinforceTreeCriterion(None, ReinforceTreeConfig(seed=1, rnng_policy_weight=1.0, **WEIGHTS, **options))
    result.weights = result.weights._replace(**readings or {})
    return result


def seen_baselines(seed=3, largest=4):
    """Averages of anything; with 0 for the largest, there is no baseline."""
    baselines = MovingBaselines(SYMBOLS, SYMBOLS)
    torch.manual_seed(seed)
    for name in baselines.NAMES:
        getattr(baselines, name).uniform_(-largest, largest)
        getattr(baselines, f"{name}_seen").fill_(True)
    return baselines


TEXTS = ((4, 5), (6, 4))


def everything(model):
    """TreePair of all pairs of trees of a sentence pair, one in a row."""
    sides = [all_actions(len(symbols)) for symbols in TEXTS]
    source = sides[0].repeat_interleave(len(sides[1]), 0)
    target = sides[1].repeat(len(sides[0]), 1)
    texts = [torch.tensor([[*text, END]]).expand(len(source), -1) for text in TEXTS]
    return model(texts[0], None, texts[1], src_actions=source, tgt_actions=target)


def costs(pair):
    """(B,) what either side of each pair of trees costs."""
    for scores, weight in ((pair.source, 0.7), (pair.target, 1.3)):
        rows = [tuple(action for action in row if action != Action.NOP) for row in scores.actions.tolist()]
        known = {row: tree_rewards(list(row), 4.0, 9.0, False) for row in set(rows)}
        earned = [sum(known[row][0]) + known[row][1] for row in rows]
        yield weight * scores.symbol_loss.sum(1) - torch.tensor(earned, dtype=torch.float64)


def gradient(loss, model):
    """As one vector."""
    parameters = list(model.parameters())
    parts = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
    assert sum(part is not None for part in parts) >= len(parts) - 2
    return torch.cat(
        [torch.zeros_like(p).flatten() if g is None else g.flatten() for p, g in zip(parameters, parts, strict=True)]
    )


def difference(found, expected):
    return float((found - expected).norm() / expected.norm())


@pytest.fixture(scope="module")
def world():
    """(model, all pairs of trees, their probabilities, the gradient of what is to be expected)."""
    model = translator()
    pair = everything(model)
    source, target = pair.source.log_policy.sum(1).exp(), pair.target.log_policy.sum(1).exp()
    probability, coverage = source * target, coverage_loss(pair.attention, pair.attending, pair.attended)
    of_source, of_target = costs(pair)
    cost = probability.detach() * (2.1 * coverage + of_source + of_target)
    cost = cost + source * target.detach() * of_source.detach() + source.detach() * target * of_target.detach()
    return model, pair, probability, gradient(cost.sum(), model)


def expected_gradient(world, baselines=None, readings=None, **options):
    """What the criterion's gradient is on average."""
    model, pair, probability, _ = world
    losses = criterion(readings, **options).losses(pair, baselines or seen_baselines())
    return gradient((probability.detach() * losses.total).sum(), model)


def test_all_trees_are_there(world):
    probability = world[2]
    assert [len(all_actions(n)) for n in range(3)] == [3, 13, 64] and len(probability) == 64**2
    assert float(probability.detach().sum()) == pytest.approx(1, abs=1e-12)
    assert float(probability.min()) > 0


@pytest.mark.parametrize("readings", [{}, {"gen_count": "inclusive"}], ids=str)
@pytest.mark.parametrize("baselines", [(3, 4), (4, 4), (0, 0)], ids=["some", "others", "none"])
def test_with_moving_averages(world, baselines, readings):
    """Whatever the averages are; without discount it does not matter how symbols are counted."""
    assert difference(expected_gradient(world, seen_baselines(*baselines), readings, **LEVEL), world[3]) < 1e-10


@pytest.mark.parametrize(
    ("readings", "biased"),
    [({}, False), ({"tree_baseline": "reduce"}, True), ({"gen_count": "inclusive"}, True)],
    ids=str,
)
def test_baselines_under_discount(world, readings, biased):
    """Averages change nothing in the mean, unless the policy decides how often, or how much of them, is subtracted."""
    some, none = (expected_gradient(world, seen_baselines(3, largest), readings) for largest in (4, 0))
    assert difference(some, none) > 1e-3 if biased else difference(some, none) < 1e-10

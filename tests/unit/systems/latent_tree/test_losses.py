"""Formulas of training with latent trees: against loops, by hand, at their edges."""

import math
import random

import pytest
import torch
from oracles import reinforce
from oracles.rnng_trees import padded, random_actions

from fairseq_syntax.systems.latent_tree.reinforce import (
    CoverageRoot,
    GenCount,
    by_symbol_kind,
    coverage_loss,
    generated,
    reward_to_go,
)

ROOTS = {CoverageRoot.zero: 0.0, CoverageRoot.one: 1.0}


def mask(sizes, width):
    return torch.arange(width) < torch.tensor(sizes)[:, None]


def trees(rows: int, seed: int, longest: int = 7) -> torch.Tensor:
    """(rows, T) random trees of random lengths."""
    draw = random.Random(seed)
    found = []
    for _ in range(rows):
        symbols = draw.randint(0, longest)
        found.append(random_actions(draw, symbols, 5, 3, 3 * symbols + 10, (1.0, 1.0, 1.0)))
    return torch.from_numpy(padded(found))


@pytest.mark.parametrize("root", ROOTS)
def test_coverage_equals_loops(root):
    torch.manual_seed(1)
    targets, sources = [0, 3, 1, 4, 2, 0, 4], [1, 5, 1, 2, 5, 3, 4]
    attending, attended = mask(targets, 4), mask(sources, 5)
    scores = torch.randn(7, 4, 5, dtype=torch.float64).masked_fill(~attended[:, None], -math.inf)
    attention = scores.softmax(2)
    found = coverage_loss(attention, attending, attended, root)
    expected = [
        reinforce.coverage(attention[row, :j, :i].tolist(), i, ROOTS[root])
        for row, (j, i) in enumerate(zip(targets, sources, strict=True))
    ]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)
    # what stands in padding is nobody's business
    outside = ~(attending[:, :, None] & attended[:, None])
    for rubbish in (7.0, math.nan):
        polluted = attention.masked_fill(outside, rubbish).requires_grad_()
        again = coverage_loss(polluted, attending, attended, root)
        assert torch.equal(again, found)
        again.sum().backward()
        assert torch.isfinite(polluted.grad).all() and not polluted.grad[outside].any()


def coverage_of(rows, root=CoverageRoot.zero):
    attention = torch.tensor([rows], dtype=torch.float64)
    exists = torch.ones(attention.shape, dtype=torch.bool)
    return float(coverage_loss(attention, exists[:, :, 0], exists[:, 0], root))


def test_coverage_by_hand():
    # each of two target constituents attends to one of two in the source: nothing is left to be desired
    assert coverage_of([[0, 1, 0], [0, 0, 1]]) == 0
    assert coverage_of([[0, 1, 0], [0, 0, 1]], CoverageRoot.one) == pytest.approx(1 / 3)
    # sums .5 (root), 1.3, .2; maxima of columns .8, .1, of rows .5, .8
    expected = (0.25 + 0.09 + 0.64) / 3 + (0.04 + 0.81) / 2 + (0.25 + 0.04) / 2
    assert coverage_of([[0.4, 0.5, 0.1], [0.1, 0.8, 0.1]]) == pytest.approx(expected)


def test_the_first_of_equal_maxima_gets_the_gradient():
    attention = torch.full((1, 2, 3), 0.25, dtype=torch.float64, requires_grad=True)
    exists = torch.ones(1, 2, 3, dtype=torch.bool)
    coverage_loss(attention, exists[:, :, 0], exists[:, 0]).sum().backward()
    gradient = attention.grad[0]
    assert gradient[0, 1] < gradient[1, 1] < gradient[1, 2]  # in a column and a row; in its row; in no maximum
    assert gradient[0, 2] == pytest.approx(float(gradient[1, 1]))
    assert gradient[0, 0] == gradient[1, 0] > 0


def test_coverage_gradient():
    torch.manual_seed(2)
    attending, attended = mask([2, 0, 3], 3), mask([3, 2, 1], 3)
    scores = torch.randn(3, 3, 3, dtype=torch.float64, requires_grad=True)

    def loss(scores):
        attention = scores.masked_fill(~attended[:, None], -1e9).softmax(2)
        return coverage_loss(attention, attending, attended)

    assert torch.autograd.gradcheck(loss, scores)


@pytest.mark.parametrize("count", GenCount)
def test_symbols_before_actions(count):
    actions = trees(20, 3)
    found = generated(actions, count)
    for row, numbers in zip(actions.tolist(), found.tolist(), strict=True):
        assert numbers == reinforce.counts(row, count == GenCount.inclusive)


@pytest.mark.parametrize("count", GenCount)
@pytest.mark.parametrize("discount", [0.0, 0.3, 0.95, 1.0])
def test_rewards_to_go_equal_loops(discount, count):
    actions = trees(12, 4)
    torch.manual_seed(4)
    rewards = torch.randn(*actions.shape, dtype=torch.float64).masked_fill(actions == 3, 0)
    counts = generated(actions, count)[:, :-1]
    found = reward_to_go(rewards, counts, discount)
    expected = [reinforce.to_go(rewards[row].tolist(), counts[row].tolist(), discount) for row in range(len(actions))]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


@pytest.mark.parametrize("discount", [0.0, 0.01, 0.5, 0.95, 1.0])
def test_long_sentences(discount):
    """1,001 symbols: γ to their number is below what a float64 can be, and its inverse above."""
    actions = [1 if step % 2 else random.Random(step).choice((0, 2)) for step in range(2002)]
    draw = random.Random(5)
    rewards = [draw.uniform(-50, 50) for _ in actions]
    counts = generated(torch.tensor([actions]))[:, :-1]
    found = reward_to_go(torch.tensor([rewards], dtype=torch.float64), counts, discount)[0].tolist()
    later, expected = 0.0, []
    for action, reward in zip(reversed(actions), reversed(rewards), strict=True):
        later = reward + (discount * later if action == 1 else later)
        expected.insert(0, later)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_rewards_in_single_precision_are_summed_in_double():
    found = reward_to_go(torch.tensor([[1e8, 1.0, -1e8]]), torch.zeros(1, 3, dtype=torch.long), 1.0)
    assert found.dtype == torch.float64 and found.tolist() == [[1.0, 1.0 - 1e8, -1e8]]


def test_losses_of_each_symbol():
    symbols = torch.tensor([[1, 3, 1], [3, 0, 0]])
    losses = torch.tensor([[1.0, 2.0, 4.0], [8.0, 16.0, 99.0]], requires_grad=True)
    where = torch.tensor([[True, True, True], [True, True, False]])
    sums, counts = by_symbol_kind(symbols, losses, where, 5)
    assert sums.tolist() == [16.0, 5.0, 0.0, 10.0, 0.0] and counts.tolist() == [1.0, 2.0, 0.0, 2.0, 0.0]
    assert sums.dtype == torch.float64 and not sums.requires_grad

"""Rewards of trees by hand, against a loop over the actions of all trees of short texts, and the best of all trees."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import rnng_trees as oracle

from fairseq_syntax.systems.latent_tree.reinforce import RewardMode, tree_rewards
from fairseq_syntax.systems.latent_tree.transitions import constituents
from fairseq_syntax.systems.latent_tree.tree_files import from_brackets

OPTIONS = [(4.0, 9.0, RewardMode.exclusive), (4.0, 9.0, RewardMode.additive), (0.3, 10.0, RewardMode.additive)]


def rewards(actions, mode=RewardMode.exclusive):
    return tree_rewards(constituents(actions), mode=mode)


def total(actions, mode=RewardMode.exclusive):
    each, last = rewards(actions, mode)
    return each.sum(1) + last


def of_shape(shape):
    """Actions of `[ab]c`: brackets are constituents, letters symbols."""
    actions, _ = from_brackets(f"(X {' '.join(shape.replace('[', '⟨').replace(']', ')')).replace('⟨', '(X')} )")
    return actions


@pytest.mark.parametrize(
    ("shape", "exclusive", "additive"),
    [
        ("", 0, 0),
        ("abc", 0, 0),  # the root is free
        ("[ab]c", 8, 8),
        ("[a]b", -1, 4 - 1),
        ("[[ab]c]d", -1 + 8 + 9, -1 + 8 + 9),
        ("[a[bc]]d", 8 - 1, 8 + 9 - 1),
        ("[[ab]]c", -1 + 8 - 1, -1 + 8 + 9 - 2),  # one child, and a closing after a closing
        ("[[ab][cd]e]", -1 + 8 + 8 + 9 * 2**0.5, -1 + 8 + 8 + 9 * 2**0.5),
        ("[ab][cd]", 16, 16),
        ("a[[bc]de]", -1 + 8 + 9, -1 + 8 + 9),
        ("[abcdefghij]", 40, 40),
        ("[[[[ab]c]d]e]", 32, 32),
        # six NTs after NTs; [ab] and [cd] are faultless, three of the other seven have two faults
        ("[[[[ab]][[cd]]][[[e]]]]", -6 + 8 + 8 - 7, -6 + 8 + 8 + 4 + 9 * (4 + 2 * 2**0.5) - 7 - 4),
    ],
)
def test_by_hand(shape, exclusive, additive):
    actions = oracle.padded([of_shape(shape)])
    assert total(actions).tolist() == pytest.approx([exclusive])
    assert total(actions, RewardMode.additive).tolist() == pytest.approx([additive])


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(("length", "max_open"), [(0, 4), (1, 5), (2, 4), (3, 3)])
def test_all_sequences_of_short_texts(length, max_open, options):
    """Every way to build every tree with at most three NTs in a row."""
    compare(oracle.all_action_rows(length, max_open, 3, 100), options)


@given(st.integers(0, 10**6), st.sampled_from(OPTIONS), st.sampled_from([(1, 1, 1), (5, 1, 1), (1, 1, 5), (1, 5, 0)]))
def test_random_trees(seed, options, weights):
    draw = random.Random(seed)
    compare([oracle.random_actions(draw, n, 8, 4, 3 * n + 16, weights) for n in draw.choices(range(20), k=8)], options)


def compare(rows, options):
    actions = oracle.padded(rows)
    each, last = tree_rewards(constituents(actions), *options)
    for row, taken in enumerate(rows):
        expected, expected_last = oracle.rewards(taken, *options[:2], options[2] == RewardMode.additive)
        assert each[row, : len(taken)].tolist() == pytest.approx(expected, abs=1e-12)
        assert not each[row, len(taken) :].any()
        assert last[row] == pytest.approx(expected_last, abs=1e-12)


@pytest.mark.parametrize(
    ("mode", "maximum", "best"),
    [
        (RewardMode.exclusive, -1 + 8 + 9, "[[ab]c]"),
        # of each symbol: 4 and three times 9, three NTs after NTs, four only children, three closings after closings
        (RewardMode.additive, 3 * (4 + 27 - 10), "[[[[a]]]][[[[b]]]][[[[c]]]]"),
    ],
)
def test_best_of_all_trees_of_three_symbols(mode, maximum, best):
    """What a constituent with a fault earns decides whether chains of unary constituents are best, or trees."""
    trees = sorted({oracle.tree_of(row) for row in oracle.all_action_rows(3, 5, 4, 100)}, key=str)
    each, last = tree_rewards(constituents(oracle.padded(list(map(oracle.actions_of, trees)))), mode=mode)
    found = each.sum(1)
    assert not last.any()  # all is closed before the end
    assert found.max() == pytest.approx(maximum)
    assert [trees[i] for i in np.isclose(found, found.max()).nonzero()[0]] == [oracle.tree_of(of_shape(best))]

"""Constituents against a stack that a loop fills: all short texts, random long ones, trees by hand."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import rnng_trees as oracle

from fairseq_syntax.systems.latent_tree.transitions import NONE, Action, constituents

NT, GEN, REDUCE, NOP = (int(action) for action in Action)


def compare(rows, more=0):
    """Everything that is in `Constituents`, with the loop's account of each row."""
    actions = oracle.padded(rows, more)
    built = constituents(actions)
    base = 0
    for row, taken in enumerate(actions.tolist()):
        expected = oracle.build(taken)
        nodes = expected["constituents"]
        here = slice(base, base + len(nodes))

        def numbers(values, base=base):
            return [NONE if value is None else base + value for value in values]

        assert built.row[here].tolist() == [row] * len(nodes)
        assert built.parent[here].tolist() == numbers(node["parent"] for node in nodes)
        for name in ("opened", "closed"):
            steps = [NONE if node[name] is None else node[name] for node in nodes]
            assert getattr(built, name)[here].tolist() == steps, name
        for name in ("start", "end", "depth", "height"):
            assert getattr(built, name)[here].tolist() == [node[name] for node in nodes], name
        terminals = [node["children"].count("t") for node in nodes]
        assert built.terminals[here].tolist() == terminals
        assert (built.terminals + built.nonterminals)[here].tolist() == [len(node["children"]) for node in nodes]
        assert ((built.closed == NONE)[here]).tolist() == [node["automatic"] for node in nodes]
        for name in ("innermost", "closes", "opens"):
            assert getattr(built, name)[row].tolist() == numbers(expected[name]), name
        assert built.empty[row] == expected["empty"] and built.lengths[row] == expected["symbols"]
        base += len(nodes)
    assert len(built) == base


@pytest.mark.parametrize(("length", "max_open", "max_consecutive"), [(0, 5, 4), (1, 5, 4), (2, 4, 3), (3, 3, 2)])
def test_all_sequences_of_short_texts(length, max_open, max_consecutive):
    """Every way to build every tree, among them those that the end closes, and those that open what stays empty."""
    compare(oracle.all_action_rows(length, max_open, max_consecutive, 100))


WEIGHTS = [(1, 1, 1), (5, 1, 1), (1, 1, 5), (0.01, 1, 1), (1, 10, 0), (3, 0.5, 2)]


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(0, 3))
def test_random_trees(seed, rows, more):
    """Texts of all lengths beside each other, deep trees and flat ones; more padding than needed."""
    draw = random.Random(seed)
    lengths = [draw.randrange(25) for _ in range(rows)]
    compare(
        [oracle.random_actions(draw, n, draw.randrange(1, 17), 4, 3 * n + 32, draw.choice(WEIGHTS)) for n in lengths],
        more,
    )


def test_by_hand():
    """`a [ [ b c ] d ] [ e` and the end, after it has opened another one."""
    actions = [GEN, NT, NT, GEN, GEN, REDUCE, GEN, REDUCE, NT, GEN, NT, GEN, NOP]
    built = constituents(np.array([actions]))
    assert built.lengths.tolist() == [5] and built.empty.tolist() == [1]
    assert built.parent.tolist() == [NONE, 0, 1, 0]
    assert built.opened.tolist() == [NONE, 1, 2, 8]
    assert built.closed.tolist() == [NONE, 7, 5, NONE]
    assert list(zip(built.start.tolist(), built.end.tolist(), strict=True)) == [(0, 5), (1, 4), (1, 3), (4, 5)]
    assert built.terminals.tolist() == [1, 1, 2, 1] and built.nonterminals.tolist() == [2, 1, 0, 0]
    assert built.depth.tolist() == [0, 1, 2, 1] and built.height.tolist() == [3, 2, 1, 1]
    assert built.innermost.tolist() == [[0, 0, 1, 2, 2, 2, 1, 1, 0, 3, 3, NONE, NONE]]
    assert {step: number for step, number in enumerate(built.closes[0].tolist()) if number != NONE} == {5: 2, 7: 1}
    assert {step: number for step, number in enumerate(built.opens[0].tolist()) if number != NONE} == {1: 1, 2: 2, 8: 3}


def test_nothing_but_the_end():
    built = constituents(np.array([[GEN, NOP, NOP], [NT, NT, GEN], [GEN, GEN, NOP]]))
    assert built.row.tolist() == [0, 1, 2]
    assert built.empty.tolist() == [0, 2, 0] and built.lengths.tolist() == [0, 0, 1]
    assert built.terminals.tolist() == [0, 0, 1] and built.height.tolist() == [1, 1, 1]


def test_the_way_actions_are_stored_does_not_matter():
    rows = oracle.padded([oracle.random_actions(random.Random(n), n, 6, 4, 100, (1, 1, 1)) for n in range(8)])
    wide, narrow = constituents(rows), constituents(np.asfortranarray(rows.astype(np.int8)))
    for name, value in vars(wide).items():
        assert np.array_equal(value, getattr(narrow, name)), name


def test_no_action():
    with pytest.raises(ValueError, match="at least one action"):
        constituents(np.zeros((2, 0), dtype=int))

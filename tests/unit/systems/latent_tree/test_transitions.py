"""Legal actions against a loop over one sentence's past, all trees of short texts, random policies; and constituents
against a stack that a loop fills."""

import random

import numpy as np
import pytest
from oracles import rnng_trees as oracle
from oracles.transitions import legal_actions

from fairseq_syntax.systems.latent_tree.transitions import NONE, NUM_ACTIONS, Action, Limits, constituents, legality

NT, GEN, REDUCE, NOP = Action
POLICIES = {
    "uniform": (1.0, 1.0, 1.0),
    "opens": (4.0, 1.0, 1.0),
    "closes": (1.0, 1.0, 4.0),
    "opens nearly always": (0.99, 0.005, 0.005),
}
LIMITS = [Limits(), Limits(3, 2, 2), Limits(1, 1, 2), Limits(6, 6, 5), Limits(4, 1, 3)]


@pytest.mark.parametrize("policy", POLICIES)
def test_random_policies(policy):
    """Trees of every policy and limits: what is legal by another account leaves them in limits."""
    draw = random.Random(0)
    for limits in LIMITS:
        lengths, given = [draw.randrange(14) for _ in range(60)], (limits.max_open, limits.max_consecutive)
        rows = [oracle.random_actions(draw, n, *given, limits.max_actions(n), POLICIES[policy]) for n in lengths]
        actions = oracle.padded(rows)
        allowed = legal_actions(actions, np.array(lengths), limits)
        assert np.array_equal(legality(actions, np.array(lengths), limits)[0], allowed)
        for found, taken, length in zip(allowed.tolist(), rows, lengths, strict=True):
            sets = oracle.legal_sets(taken, length, *given, limits.max_actions(length))[:-1]
            sets += [{GEN}] * (len(found) - len(taken))  # after the end
            assert found == [[action in legal for action in range(NUM_ACTIONS)] for legal in sets]
            built = oracle.build(taken)
            assert built["symbols"] == length and len(taken) <= limits.max_actions(length)
            assert all(node["children"] for node in built["constituents"][1:])
            assert max(node["depth"] for node in built["constituents"]) < limits.max_open
            assert "0" * (limits.max_consecutive + 1) not in "".join(map(str, taken))


@pytest.mark.parametrize(
    ("actions", "lengths", "message"),
    [
        ([[GEN, GEN, NOP], [GEN, REDUCE, GEN]], [1, 1], "row 1, step 1: REDUCE is not legal"),
        ([[NT, NT, NT, GEN]], [0], "row 0, step 2: NT is not legal"),
        ([[GEN, GEN, NT]], [1], r"row 0, step 2: NT is not legal.*2 of 2 symbols generated"),
        ([[GEN, NOP, GEN]], [1], "row 0, step 2: GEN is not legal"),
        ([[GEN, GEN], [GEN, GEN]], [1, 2], "row 1: the actions generate 2 of 3 symbols"),
    ],
)
def test_illegal_actions_are_named(actions, lengths, message):
    with pytest.raises(ValueError, match=message):
        legality(np.array(actions, dtype=int), np.array(lengths), Limits(4, 2, 8))


# --- constituents ---


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
        for name in ("start", "end", "height"):
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

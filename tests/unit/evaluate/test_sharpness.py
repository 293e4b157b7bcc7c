"""Entropies and greedy trees, against loops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.forests import climbs_out
from strategies import forests

from fairseq_syntax.evaluate.treebank import sharpness
from fairseq_syntax.trees.conllu import ROOT


def random_graph(size, generator, scale=1.0):
    """(J, J + 1) rows that add up to 1, with zeros for a word as its own head and here and there."""
    scores = np.exp(scale * generator.standard_normal((size, size + 1)))
    scores[np.arange(size), np.arange(1, size + 1)] = 0.0
    if size > 2:
        scores[0, 3] = 0.0
    return scores / scores.sum(axis=1, keepdims=True)


def of_tree(heads):
    graph = np.zeros((len(heads), len(heads) + 1))
    for word, head in enumerate(heads):
        graph[word, head + 1] = 1.0
    return graph


def best_heads(graph):
    heads = []
    for row in graph.tolist():
        best = 0
        for column, value in enumerate(row):
            if value > row[best]:
                best = column
        heads.append(best - 1)
    return heads


def is_tree(heads):
    return heads.count(ROOT) == 1 and all(climbs_out(heads, word) for word in range(len(heads)))


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_sharpness_against_loops(scale):
    generator = np.random.default_rng(3)
    graphs = [random_graph(size, generator, scale) for size in [1, 2, 3, 3, 7, 20, 1, 2, 2] * 3]
    entropies, shares, tops, trees = [], [], [], []
    for graph in graphs:
        for row in graph.tolist():
            entropy = -sum(p * math.log(p) for p in row if p > 0)
            entropies.append(entropy)
            if len(graph) > 1:
                shares.append(entropy / math.log(len(graph)))
            tops.append(max(row))
        trees.append(is_tree(best_heads(graph)))
    found = sharpness(graphs)
    assert 0 < sum(trees) < len(trees)
    assert found.entropy == pytest.approx(sum(entropies) / len(entropies), rel=1e-12)
    assert found.share == pytest.approx(100 * sum(shares) / len(shares), rel=1e-12)
    assert found.top == pytest.approx(sum(tops) / len(tops), rel=1e-12)
    assert found.trees == pytest.approx(100 * sum(trees) / len(trees), rel=1e-12)


def test_the_ends_of_the_scale():
    even = np.full((5, 6), 0.2)
    even[np.arange(5), np.arange(1, 6)] = 0.0
    found = sharpness([even])
    assert (found.entropy, found.share, found.top) == pytest.approx((math.log(5), 100.0, 0.2))
    sure = sharpness([of_tree([1, ROOT, 1]), of_tree([1, 0]), of_tree([ROOT, ROOT]), of_tree([ROOT])])
    assert (sure.entropy, sure.share, sure.top, sure.trees) == (0.0, 0.0, 1.0, 50.0)
    alone = sharpness([of_tree([ROOT])])
    assert alone.entropy == 0.0 and math.isnan(alone.share)


@given(st.lists(st.tuples(forests().filter(len), st.booleans()), min_size=1, max_size=6))
def test_greedy_trees(cases):
    cases = [(heads, cycle and len(heads) > 1) for heads, cycle in cases]
    # a word hangs on its own dependent
    trees = [[1, 0, *heads[2:]] if cycle else heads for heads, cycle in cases]
    right = [is_tree(heads) for heads in trees]
    graphs = [of_tree(heads) for heads in trees]
    assert [sharpness([graph]).trees for graph in graphs] == [100.0 * tree for tree in right]

"""Entropies, greedy trees and tables of relations, against loops."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.forests import climbs_out
from strategies import forests

from fairseq_syntax.tools.latent_graphs import Scores, edges, greedy_trees, sharpness
from fairseq_syntax.tools.treebank import Treebank
from fairseq_syntax.trees.conllu import ROOT, Sentence


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
    assert greedy_trees(graphs).tolist() == trees


def test_the_ends_of_the_scale():
    even = np.full((5, 6), 0.2)
    even[np.arange(5), np.arange(1, 6)] = 0.0
    found = sharpness([even])
    assert (found.entropy, found.share, found.top) == pytest.approx((math.log(5), 100.0, 0.2))
    sure = sharpness([of_tree([1, ROOT, 1]), of_tree([1, 0]), of_tree([ROOT, ROOT]), of_tree([ROOT])])
    assert (sure.entropy, sure.share, sure.top, sure.trees) == (0.0, 0.0, 1.0, 50.0)
    alone = sharpness([of_tree([ROOT])])
    assert alone.entropy == 0.0 and math.isnan(alone.share)


@given(st.lists(st.tuples(forests(), st.booleans()), min_size=1, max_size=6))
def test_greedy_trees(cases):
    cases = [(heads, cycle and len(heads) > 1) for heads, cycle in cases]
    # a word hangs on its own dependent
    trees = [[1, 0, *heads[2:]] if cycle else heads for heads, cycle in cases]
    assert greedy_trees([of_tree(heads) for heads in trees]).tolist() == [is_tree(heads) for heads in trees]


def test_edges_are_those_above_the_threshold():
    graph = random_graph(9, np.random.default_rng(1), 2.0)
    for threshold in (0.0, 0.05, 0.3, float(graph[4, 2]), 1.0):
        expected = []
        for word in range(9):
            heads = [head for head in range(10) if graph[word, head] > threshold]
            expected += [[word, head] for head in sorted(heads, key=lambda head: -graph[word, head])]
        assert edges(graph, threshold).tolist() == expected
    assert edges(graph, 0.0).shape == (9 * 9 - 1, 2)
    assert edges(np.zeros((0, 1)), 0.1).shape == (0, 2)


RELATIONS = ["nsubj", "nsubj:pass", "obj", "punct", "root", "nmod:poss"]


def corpus(seed, sentences=40):
    rng = random.Random(seed)
    gold, trees = [], []
    for _ in range(sentences):
        size = rng.randint(1, 8)
        heads = [rng.choice([ROOT, *(i for i in range(size) if i != word)]) for word in range(size)]
        found = [head if rng.random() < 0.5 else rng.choice([ROOT, *range(size)]) for head in heads]
        tags = [rng.choice(["NOUN", "PUNCT", "VERB"]) for _ in range(size)]
        gold.append(Sentence(["w"] * size, heads, [rng.choice(RELATIONS) for _ in range(size)], tags))
        trees.append(found)
    return gold, trees


@pytest.mark.parametrize("seed", range(4))
def test_scores_against_loops(seed):
    gold, trees = corpus(seed)
    total, right, counted, right_counted = 0, 0, 0, 0
    words, hits = {}, {}
    for sentence, heads in zip(gold, trees, strict=True):
        for word, head in enumerate(heads):
            hit = head == sentence.heads[word]
            total, right = total + 1, right + hit
            if sentence.upos[word] == "PUNCT":
                continue
            counted, right_counted = counted + 1, right_counted + hit
            label = sentence.deprels[word].split(":")[0]
            words[label] = words.get(label, 0) + 1
            hits[label] = hits.get(label, 0) + hit
    scores = Scores(gold, trees)
    assert scores.uas == pytest.approx(100 * right / total)
    assert scores.uas_without_punctuation == pytest.approx(100 * right_counted / counted)
    relations = scores.relations()
    assert {r.name: (r.words, r.right) for r in relations} == {name: (words[name], hits[name]) for name in words}
    assert "nmod" in words and "nmod:poss" not in words
    assert [r.right for r in relations] == sorted(hits.values(), reverse=True)
    for relation in relations:
        assert relation.share == pytest.approx(100 * hits[relation.name] / right_counted)
        assert relation.recall == pytest.approx(100 * hits[relation.name] / words[relation.name])
    assert sum(relation.share for relation in relations) == pytest.approx(100)


def test_uas_is_that_of_the_other_scores():
    gold, trees = corpus(9)
    treebank = Treebank(gold)
    pairs = [pair for pair, keep in zip(zip(gold, trees, strict=True), treebank.kept, strict=True) if keep]
    assert len(pairs) < len(gold)
    assert Scores(*zip(*pairs, strict=True)).uas == treebank.accuracy(trees).uas


def test_nothing_right_and_nothing_counted():
    sentence = Sentence(["a", "b"], [ROOT, 0], ["root", "obj"], ["X", "X"])
    (first, second) = Scores([sentence], [[1, ROOT]]).relations()
    assert {first.name, second.name} == {"root", "obj"}
    assert (first.right, first.share, first.recall) == (0, 0.0, 0.0)
    only = Scores([Sentence(["."], [ROOT], ["root"], ["PUNCT"])], [[ROOT]])
    assert only.uas == 100.0 and math.isnan(only.uas_without_punctuation) and only.relations() == []
    with pytest.raises(ValueError, match="not over the words"):
        Scores([sentence], [[ROOT]])

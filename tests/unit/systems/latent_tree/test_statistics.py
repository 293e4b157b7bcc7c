"""Numbers of constituent trees: those of trees as nested tuples, counted one by one; and by hand."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import constituency as oracle
from scipy import stats

from fairseq_syntax.systems.latent_tree.statistics import (
    Counts,
    Text,
    attention_summary,
    left_branching,
    mean_shape,
    pad,
    random_trees,
    right_branching,
    segmentation,
    shape,
    span_counts,
)
from fairseq_syntax.systems.latent_tree.transitions import NONE, constituents
from fairseq_syntax.systems.latent_tree.tree_files import from_brackets, to_brackets

SYMBOLS = st.sampled_from("ab\u2581\u2581")
TREES = st.lists(
    st.recursive(SYMBOLS, lambda child: st.lists(child, min_size=1, max_size=4).map(tuple), max_leaves=9), max_size=5
).map(tuple)
CORPORA = st.lists(TREES, min_size=1, max_size=4)


def built(trees):
    return constituents(pad([from_brackets(oracle.brackets(tree))[0] for tree in trees]))


def text_of(trees, words=None):
    return Text([oracle.leaves(tree) for tree in trees], words)


def lines(actions, texts):
    return to_brackets(actions, [list(text) for text in texts])


def same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, nan_ok=True), name


def triple(counts):
    return counts.hits, counts.predicted, counts.gold


@given(CORPORA)
def test_shape(trees):
    same(vars(shape(built(trees))), {**oracle.shape(trees), "capped": math.nan})


def test_shape_by_hand():
    #      height 3, (a b) is first of a constituent of two, which is the last child of the root
    found = shape(built([("a", (("a", "b"), "c")), ("a",), (("a",), "b")]), [True, False, False])
    expected = dict(height=2, highest=3, per_symbol=3 / 7, children=5 / 3, unary=100 / 3, flat=100 / 3)
    same(vars(found), {**expected, "right": 100 / 3, "left": 200 / 3, "capped": 100 / 3})
    other = shape(built([("a", "b"), ("a",), ("b", "b")]))
    mean = mean_shape([found, other])
    assert (mean.height, mean.highest, mean.flat) == (1.5, 3, pytest.approx(200 / 3))
    assert math.isnan(mean.right), "there is no constituent in one of the two"


@given(CORPORA, st.randoms(use_true_random=False))
def test_spans(trees, random):
    shuffled = []
    for tree in trees:
        text = oracle.leaves(tree)
        other = oracle.right_branching(text) if random.random() < 0.5 else oracle.left_branching(text)
        shuffled.append(other)
    counts = span_counts(built(trees), built(shuffled))
    assert triple(counts) == oracle.common_spans(trees, shuffled)
    assert triple(span_counts(built(trees), built(trees)))[0] == counts.predicted


def test_counts():
    counts = Counts(2, 4, 5) + Counts(1, 1, 1)
    assert triple(counts) == (3, 5, 6)
    assert (counts.precision, counts.recall, counts.f1) == pytest.approx((60, 50, 600 / 11))
    assert math.isnan(Counts().f1) and math.isnan(Counts(0, 0, 3).precision)
    assert Counts(0, 0, 3).f1 == 0


def test_branching_trees():
    texts = ["abcdefgh"[:size] for size in (3, 0, 1, 8, 2, 4)]
    lengths = np.array([len(text) for text in texts])
    for make, slow in ((right_branching, oracle.right_branching), (left_branching, oracle.left_branching)):
        assert lines(make(lengths), texts) == [oracle.brackets(slow(text)) for text in texts]
        for text, length in zip(texts, lengths, strict=True):
            assert lines(make(np.array([length])), [text]) == [oracle.brackets(slow(text))]
    assert lines(right_branching(np.array([4])), ["abcd"]) == ["(X a (X b (X c d ) ) )"]
    assert lines(left_branching(np.array([4])), ["abcd"]) == ["(X (X (X a b ) c ) d )"]


@given(st.lists(st.integers(0, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n and 12)))), st.integers(0))
def test_random_trees_have_their_sizes(sizes, seed):
    lengths, counts = np.array(sizes, dtype=int).reshape(-1, 2).T
    actions = random_trees(lengths, counts, np.random.default_rng(seed))
    found = constituents(actions)
    assert found.lengths.tolist() == lengths.tolist()
    assert np.bincount(found.row[found.parent != NONE], minlength=len(sizes)).tolist() == counts.tolist()
    # every constituent is closed, and by an action
    texts = [["a"] * length for length in lengths.tolist()]
    assert pad([from_brackets(line)[0] for line in to_brackets(actions, texts)]).tolist() == actions.tolist()
    assert not found.empty.any()


@pytest.mark.parametrize(("text", "count"), [("ab", 3), ("abcd", 2)])
def test_random_trees_are_uniform(text, count):
    trees = oracle.all_trees(text, count)
    # Narayana numbers: of plane trees with this many edges and leaves
    edges = len(text) + count
    expected = math.comb(edges, len(text)) * math.comb(edges, len(text) - 1) // edges
    assert len(set(trees)) == len(trees) == expected
    draws = 120 * len(trees)
    actions = random_trees(np.full(draws, len(text)), np.full(draws, count), np.random.default_rng(7))
    counts = Counter(lines(actions, [text] * draws))
    assert counts.keys() == {oracle.brackets(tree) for tree in trees}
    assert stats.chisquare(list(counts.values())).pvalue > 0.001


@given(CORPORA, st.data())
def test_segmentation(trees, data):
    words = None
    if data.draw(st.booleans()):
        words = []
        for tree in trees:
            size = sum(symbol != oracle.SPACE for symbol in oracle.leaves(tree))
            ends = data.draw(st.sets(st.integers(1, max(size, 1))))
            places = sorted({0, size, *(end for end in ends if end < size)})
            words.append(np.diff(places).tolist())
    found = segmentation(built(trees), text_of(trees, words))
    assert [triple(found.words), triple(found.inside)] == oracle.segmentation(trees, words)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 5)), max_size=5), st.integers(0, 99))
def test_attention(sizes, seed):
    random = np.random.default_rng(seed)
    weights = [random.dirichlet(np.full(width, 0.3), size=rows) for rows, width in sizes]
    expected = oracle.attention([(table.tolist(), width) for table, (_, width) in zip(weights, sizes, strict=True)])
    same(vars(attention_summary(weights)), expected)

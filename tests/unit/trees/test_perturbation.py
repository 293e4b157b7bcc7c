"""Trees made worse: legal, exact in how much of them changes, and as likely as enumeration says."""

import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.dependency_trees import all_trees
from oracles.forests import is_forest
from scipy.stats import chisquare
from strategies import trees

from fairseq_syntax.trees.conllu import ROOT, Sentence, TreeFormatError
from fairseq_syntax.trees.perturbation import KINDS, Perturbation, Quota, reattached, reattached_heads


def is_tree(heads):
    return heads.count(ROOT) == 1 and is_forest(list(heads))


def changed(before, after):
    return {word for word, (a, b) in enumerate(zip(before, after, strict=True)) if a != b}


def sentence(heads, deprels=None):
    deprels = deprels or ["root" if head == ROOT else f"label{i}" for i, head in enumerate(heads)]
    return Sentence([f"w{i}" for i in range(len(heads))], heads, deprels, [f"T{i}" for i in range(len(heads))])


@given(trees(min_words=1, max_words=30), st.integers(), st.data())
def test_exactly_so_many_words_have_another_head_and_the_rest_is_a_tree(heads, seed, data):
    count = data.draw(st.integers(0, len(heads)))
    before = list(heads)
    after = reattached_heads(heads, count, random.Random(seed))
    assert is_tree(after) and heads == before
    possible = count if len(heads) > 2 else {(1, 1): 0, (2, 1): 0}.get((len(heads), count), count)
    assert len(changed(before, after)) == possible
    assert reattached_heads(heads, count, random.Random(seed)) == after


@pytest.mark.parametrize("heads, roots", [([-1, 0, -1, 2], 2), ([1, 0, 1, 2], 0)])
def test_a_tree_without_one_root_is_refused(heads, roots):
    """A walk to its root might never end."""
    message = f"the tree has {roots} roots, and perturbed trees have one"
    with pytest.raises(TreeFormatError, match=message):
        reattached_heads(heads, 2, random.Random(1))
    for kind in (None, "random"):
        with pytest.raises(TreeFormatError, match=f"sentence 7: {message}"):
            Perturbation(0.5, 1)(7, sentence(heads), kind)


def probabilities(heads, count):
    """Tree -> probability, by enumeration: sets alike, then new roots, then trees."""
    found = {}
    for tree in all_trees(len(heads)):
        if len(chosen := frozenset(changed(heads, tree))) == count:
            found.setdefault(chosen, {}).setdefault(tree.index(ROOT), []).append(tree)
    return {
        tree: 1 / (len(found) * len(by_root) * len(alike))
        for by_root in found.values()
        for alike in by_root.values()
        for tree in alike
    }


@pytest.mark.parametrize(
    "heads, count",
    [
        *(([-1, 0, 1, 2], count) for count in (1, 2, 4)),  # a chain
        *(([1, -1, 1, 1], count) for count in (1, 3)),  # a star
        ([2, 2, -1, 4, 2], 1),
        ([1, -1], 2),
    ],
)
def test_every_legal_tree_is_as_likely_as_enumeration_says(heads, count):
    expected = probabilities(heads, count)
    draws = 400 * len(expected)
    drawn = Counter(tuple(reattached_heads(heads, count, random.Random(f"{seed} x"))) for seed in range(draws))
    assert set(drawn) == set(expected)
    if len(expected) > 1:
        assert chisquare([drawn[t] for t in expected], [draws * p for p in expected.values()]).pvalue > 1e-3


@given(trees(min_words=1), st.integers(), st.data())
def test_labels_stay_with_their_words_but_for_the_root(heads, seed, data):
    before = sentence(heads)
    after = reattached(before, data.draw(st.integers(0, len(heads))), random.Random(seed))
    assert (after.forms, after.upos) == (before.forms, before.upos)
    assert after.deprels[after.heads.index(ROOT)] == "root" and sorted(after.deprels) == sorted(before.deprels)
    roots = {before.heads.index(ROOT), after.heads.index(ROOT)}
    assert changed(before.deprels, after.deprels) == (roots if len(roots) > 1 else set())


def test_chains():
    assert [KINDS["left"](3, None), KINDS["right"](3, None)] == [[1, 2, ROOT], [ROOT, 0, 1]]
    assert [KINDS[kind](n, None) for kind in ("left", "right") for n in (0, 1)] == [[], [ROOT], [], [ROOT]]


@given(st.floats(0, 1), st.lists(st.integers(0, 40), max_size=60))
def test_a_quota_is_exact_to_one(share, sizes):
    quota = Quota(share)
    for size in sizes:
        due = quota.due(size)
        assert 0 <= due <= size
        quota.taken += due
        assert quota.taken in (math.floor(share * quota.seen + 0.5), math.floor(share * quota.seen + 0.5) - 1)
    assert abs(quota.taken - share * sum(sizes)) <= 1


def test_what_a_portion_cannot_give_the_next_ones_do():
    quota = Quota(0.5)
    assert quota.due(4) == 2  # and nothing is taken
    assert quota.due(4) == 4

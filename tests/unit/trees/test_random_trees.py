"""Random trees: legal and uniform."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.dependency_trees import all_trees
from oracles.forests import is_forest
from scipy.stats import chisquare

from fairseq_syntax.trees.conllu import ROOT
from fairseq_syntax.trees.random_trees import random_heads


@given(st.integers(0, 60), st.integers())
def test_heads_are_a_tree_with_one_root(words, seed):
    heads = random_heads(words, random.Random(seed))
    assert len(heads) == words and heads.count(ROOT) == min(words, 1)
    assert is_forest(heads)


@pytest.mark.parametrize("words", [1, 2, 3, 4])
def test_every_tree_is_as_likely_as_any_other(words):
    generator, trees = random.Random(words), all_trees(words)
    drawn = Counter(tuple(random_heads(words, generator)) for _ in range(300 * len(trees)))
    assert set(drawn) == set(trees)
    if words > 1:
        assert chisquare([drawn[tree] for tree in trees]).pvalue > 1e-3

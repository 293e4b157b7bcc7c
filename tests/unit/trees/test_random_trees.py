"""Random trees: legal and uniform."""

import random
from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
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
    candidates = product(range(-1, words), repeat=words)
    all_trees = [heads for heads in candidates if heads.count(ROOT) == 1 and is_forest(list(heads))]
    assert len(all_trees) == words ** (words - 1)
    generator = random.Random(words)
    drawn = Counter(tuple(random_heads(words, generator)) for _ in range(300 * len(all_trees)))
    assert set(drawn) == set(all_trees)
    if words > 1:
        assert chisquare([drawn[tree] for tree in all_trees]).pvalue > 1e-3

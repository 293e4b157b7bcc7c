"""Removing words from trees, against walking up word by word."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import forests

from fairseq_syntax.evaluate.treebank import flatten, left_branching, lengths_without, remove, right_branching


def climb(heads, removed):
    """The same as `remove` for one sentence, one word and one step at a time."""
    stay = [word for word in range(len(heads)) if not removed[word]]
    result = []
    for word in stay:
        seen = set()
        above = heads[word]
        while above != -1 and removed[above]:
            if above in seen:
                above = -1
                break
            seen.add(above)
            above = heads[above]
        result.append(stay.index(above) if above != -1 else -1)
    return result


@st.composite
def corpora(draw, cycles=False):
    """Heads of several sentences, empty ones too, and which words are removed."""
    if cycles:  # any heads at all
        sizes = draw(st.lists(st.integers(0, 7), max_size=4))
        trees = [[draw(st.integers(-1, size - 1)) for _ in range(size)] for size in sizes]
    else:
        trees = draw(st.lists(forests(min_words=0), max_size=4))
    removed = [draw(st.lists(st.booleans(), min_size=len(tree), max_size=len(tree))) for tree in trees]
    return trees, removed


@given(corpora() | corpora(cycles=True))
def test_removal_is_that_of_each_sentence_by_itself(corpus):
    trees, removed = corpus
    heads, lengths = flatten(trees)
    flat_removed = np.array([flag for flags in removed for flag in flags], dtype=bool)
    expected, expected_lengths = flatten([climb(*pair) for pair in zip(trees, removed, strict=True)])
    assert remove(heads, flat_removed).tolist() == expected.tolist()
    assert lengths_without(lengths, flat_removed).tolist() == expected_lengths.tolist()


def test_long_chains_of_removed_words():
    heads = np.array([*range(1, 100), -1, 0])
    removed = np.array([True] * 99 + [False, False])
    assert remove(heads, removed).tolist() == [-1, 0]


def test_a_removed_root_leaves_several():
    # "," is the root of "a , b c"; c hangs on b
    assert remove(np.array([1, -1, 1, 2]), np.array([False, True, False, False])).tolist() == [-1, -1, 1]


def test_branching():
    lengths = np.array([3, 0, 1, 2])
    assert left_branching(lengths).tolist() == [1, 2, -1, -1, 5, -1]
    assert right_branching(lengths).tolist() == [-1, 0, 1, -1, -1, 4]


@pytest.mark.parametrize("branching", [left_branching, right_branching])
def test_branching_of_nothing(branching):
    assert branching(np.array([], dtype=int)).tolist() == []
    assert branching(np.array([0, 0])).tolist() == []

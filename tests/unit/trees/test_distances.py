"""Distances in trees: Figure 2 of the paper, and search."""

import random
import tracemalloc

import numpy as np
import pytest
from corpora import random_heads
from hypothesis import given
from hypothesis import strategies as st
from oracles import forests as oracle
from strategies import forests, split_forests

from fairseq_syntax.trees.conllu import ROOT, UNPARSED, TreeFormatError
from fairseq_syntax.trees.distances import (
    MAX_DISTANCE,
    PAD_DISTANCE,
    expand_distances,
    pack_distances,
    tree_distances,
    unpack_distances,
)

# zhexie weixian fenzi yanzhong yingxiang zhengchang de yimin zhengce
FIGURE_2_HEADS = [2, 2, 4, 4, ROOT, 8, 5, 8, 4]


# ------------------------------------------------------------------------------------ Figure 2


def test_figure_2():
    assert tree_distances(FIGURE_2_HEADS).tolist() == [
        [0, 2, 1, 3, 2, 4, 5, 4, 3, 3],
        [2, 0, 1, 3, 2, 4, 5, 4, 3, 3],
        [1, 1, 0, 2, 1, 3, 4, 3, 2, 2],
        [3, 3, 2, 0, 1, 3, 4, 3, 2, 2],
        [2, 2, 1, 1, 0, 2, 3, 2, 1, 1],
        [4, 4, 3, 3, 2, 0, 1, 2, 1, 3],
        [5, 5, 4, 4, 3, 1, 0, 3, 2, 4],
        [4, 4, 3, 3, 2, 2, 3, 0, 1, 3],
        [3, 3, 2, 2, 1, 1, 2, 1, 0, 2],
        [3, 3, 2, 2, 1, 3, 4, 3, 2, 0],
    ]


# ------------------------------------------------------------------------------------- oracles


@pytest.mark.parametrize("words", range(6))
def test_equals_search_on_all_forests_up_to_five_words(words):
    every = oracle.all_forests(words)
    assert len(every) == (words + 1) ** (words - 1)  # Cayley
    for heads in every:
        assert tree_distances(heads).tolist() == oracle.distances(heads)


# ---------------------------------------------------------------------------------- edge cases


def test_without_a_parse_all_is_zero():
    distances = tree_distances([UNPARSED] * 7)
    assert distances.dtype == np.uint8
    assert (distances == np.zeros((8, 8))).all()


def test_cycle_of_all_small_graphs():
    for code in range(5**4):
        heads = [code // 5**word % 5 - 1 for word in range(4)]
        if oracle.is_forest(heads):
            tree_distances(heads)
        else:
            with pytest.raises(TreeFormatError):
                tree_distances(heads)
    with pytest.raises(TreeFormatError, match=r"\[1, 0, -1\] form a cycle"):
        tree_distances([[ROOT, 0, 1], [1, 0, ROOT]])
    with pytest.raises(TreeFormatError, match=r"^.{,199}$"):
        tree_distances([*range(1, 5000), 0])


# -------------------------------------------------------------------------------- the triangle


@given(forests(min_words=0, max_words=12))
def test_pack_and_unpack(heads):
    distances = tree_distances(heads)
    packed = pack_distances(distances)
    unpacked = unpack_distances(packed, len(distances))
    assert packed.dtype == unpacked.dtype == np.uint8
    assert packed.tolist() == distances[np.triu_indices(len(distances), 1)].tolist()
    assert (unpacked == distances).all()


# -------------------------------------------------------------------------------------- tokens


@given(split_forests(unparsed=True), st.sampled_from([np.int64, np.uint8, np.uint16]))
def test_expand_entry_by_entry(example, dtype):
    """Of word maps as they are on disk, too: as indices, small unsigned types neither wrap nor are taken for a mask."""
    heads, words = example
    distances = tree_distances(heads)
    expanded = expand_distances(distances, np.array(words, dtype))
    assert expanded.dtype == np.uint8
    assert expanded.tolist() == [[int(distances[a, b]) for b in words] for a in words]
    if UNPARSED not in heads:
        assert ((expanded == 0) == np.equal.outer(words, words)).all()


@given(st.integers(1, 9), st.integers(1, 6), st.randoms(use_true_random=False))
def test_a_batch_equals_its_sentences(words, sentences, generator):
    forests_of_it = [random_heads(generator, words) for _ in range(sentences)]
    batch = [[UNPARSED] * words if generator.random() < 0.2 else heads for heads in forests_of_it]
    together = tree_distances(np.array(batch))
    packed = pack_distances(together)
    for heads, distances, triangle in zip(batch, together, packed, strict=True):
        assert (distances == tree_distances(heads)).all()
        assert (triangle == pack_distances(distances)).all()


def test_a_batch_without_words():
    assert tree_distances(np.zeros((3, 0), dtype=np.int64)).tolist() == [[[0]]] * 3


def test_large_batches_are_computed_in_parts_with_the_same_result():
    sentences = [random_heads(random.Random(seed), 60) for seed in range(100)]
    assert (tree_distances(sentences) == [tree_distances(heads) for heads in sentences]).all()


# ---------------------------------------------------------------------------------- long sentences


def shapes(words):
    """The deepest tree, the flattest, and a random one."""
    return [list(range(-1, words - 1)), [ROOT] + [0] * (words - 1), random_heads(random.Random(words), words)]


def test_long_sentences_equal_search():
    """Distances saturate below the one that marks padding."""
    words = 400
    assert MAX_DISTANCE == 254 < PAD_DISTANCE == 255
    for heads in shapes(words):
        distances = tree_distances(heads)
        assert (distances == np.minimum(np.array(oracle.distances(heads)), MAX_DISTANCE)).all()


def test_a_long_sentence_takes_little_beside_the_result():
    """Memory beside it grows with the words."""
    words = 3000
    for heads in shapes(words):
        tracemalloc.start()
        distances = tree_distances(heads)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak - distances.nbytes < 1000 * words

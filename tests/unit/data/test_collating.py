"""Batches of trees against loops over tokens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import forests, projection
from strategies import split_forests

from fairseq_syntax.data.collating import EOS, INPUTS, PAD, TokenSyntax, collate_syntax
from fairseq_syntax.trees.distances import tree_distances
from fairseq_syntax.trees.piece_parents import parent_positions

SENTENCES = st.lists(split_forests(unparsed=True), min_size=1, max_size=4)


def syntax_of(heads, words, stored=False):
    """A sentence whose tags are numbered by word; `stored` as if its arrays came from disk."""
    heads, words = np.array(heads, np.int16), np.array(words, np.uint16)
    tags = np.arange(10, 10 + len(heads), dtype=np.uint16)
    arrays = {"distances": tree_distances(heads), "parents": parent_positions(heads, words)} if stored else {}
    return TokenSyntax(words, heads, tags, tags + 50, **arrays)


def expected_value(name, heads, words, t, j, start):
    """One number of a batch: token t (and j) of a sentence that starts in column `start`."""
    word = words[t]
    if name == "parents":
        middle = projection.parent_middles(heads, words)[t]
        return -1 if middle is None else int(2 * (middle + start))
    if name == "parent_pieces":
        piece = projection.parent_first_pieces(heads, words)[t]
        return -1 if piece is None else piece + start
    if name == "piece_heads":
        head = projection.piece_heads(heads, words)[t]
        return head if head < 0 else head + start
    if name == "word_starts":
        return int(t == 0 or words[t - 1] != word)
    if name == "distances":
        return 0 if heads[:1] == [-2] else min(254, forests.distances(heads)[word][words[j]])
    return EOS if word == len(heads) else {"deprels": 10, "upos": 60}[name] + word


PADDING = {
    **{"parents": -1, "parent_pieces": -1, "piece_heads": -1, "word_starts": 0},
    **{"distances": 255, "deprels": PAD, "upos": PAD},
}


@pytest.mark.parametrize(("stored", "left_pad"), [(False, False), (True, True)])
@pytest.mark.parametrize("name", sorted(INPUTS))
@given(SENTENCES, st.integers(0, 3))
def test_batches_equal_loops(name, left_pad, stored, sentences, extra):
    columns = max(len(words) for _, words in sentences) + extra
    batch = collate_syntax([syntax_of(h, w, stored) for h, w in sentences], [name], columns, left_pad)[name]
    square = name == "distances"
    expected = np.full((len(sentences),) + (columns,) * (1 + square), PADDING[name])
    for b, (heads, words) in enumerate(sentences):
        start = columns - len(words) if left_pad else 0
        for t in range(len(words)):
            for j in range(len(words) if square else 1):
                place = (b, start + t, start + j) if square else (b, start + t)
                expected[place] = expected_value(name, heads, words, t, j, start)
    assert batch.tolist() == expected.tolist()
    assert not batch.dtype.is_floating_point  # half precision would lose positions


def test_tokens_and_parents_are_padded_on_the_same_side():
    """Regression (defect 4 of the published code): tokens were padded on the left and parents on the right.

    Its parents were also words of a dictionary, in which a position not seen in training became EOS. Here a chain of
    400 words, whose positions no short sentence has, keeps all of them.
    """
    short = syntax_of([1, -1, 1], [0, 1, 2, 3])
    long = syntax_of([*range(1, 400), -1], range(401))
    for left_pad in (False, True):
        start = 397 if left_pad else 0
        parents = collate_syntax([short, long], ["parents"], 401, left_pad)["parents"]
        assert parents[0, start : start + 4].tolist() == [2 * (start + k) for k in (1, 1, 1, 3)]
        assert (parents[0] >= 0).nonzero().flatten().tolist() == list(range(start, start + 4))
        assert parents[1].tolist() == [2 * k for k in (*range(1, 400), 399, 400)]
        assert parents[1].unique().numel() == 400

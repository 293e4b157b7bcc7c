"""Word-level trees to token arrays: the examples of the paper, then a loop as oracle."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from oracles import projection as oracle
from strategies import split_forests, word_maps

from fairseq_syntax.trees.conllu import ROOT, UNPARSED
from fairseq_syntax.trees.piece_parents import (
    NO_PARENT,
    parent_first_pieces,
    parent_positions,
    parent_words,
    piece_heads,
    word_spans,
)


def middles(heads, word_of_token):
    """Parent positions as they are meant: halved, None without a parse."""
    doubled = parent_positions(heads, word_of_token)
    return [None if p == NO_PARENT else p / 2 for p in doubled.tolist()]


def test_arrays_as_they_are_read_from_disk():
    heads, words = np.array([1, ROOT], dtype=np.int16), np.array([0, 1, 2], dtype=np.uint16)
    assert parent_positions(heads, words).dtype == np.uint16
    assert parent_positions(heads, words).tolist() == [2, 2, 4]
    assert parent_first_pieces(heads, words).tolist() == [1, 1, 2]
    positions = parent_positions(np.full(32_767, 32_766), np.arange(32_768))
    assert positions.max() == 65_534 < NO_PARENT and positions[0] == 65_532


@given(split_forests(unparsed=True))
def test_equals_the_oracle(example):
    heads, word_of_token = example
    assert middles(heads, word_of_token) == oracle.parent_middles(heads, word_of_token)
    pieces = parent_first_pieces(heads, word_of_token).tolist()
    expected = oracle.parent_first_pieces(heads, word_of_token)
    assert [None if piece == -1 else piece for piece in pieces] == expected
    words = parent_words(heads).tolist()
    expected = [oracle.parent_word(heads, word) for word in range(len(heads) + 1)]
    assert [None if word == UNPARSED else word for word in words] == expected


@given(st.integers(0, 8).flatmap(word_maps))
def test_word_spans_equal_the_oracle(word_of_token):
    first, last = word_spans(word_of_token)
    pieces = [oracle.tokens_of(word, word_of_token) for word in range(word_of_token[-1] + 1)]
    assert first.tolist() == [min(p) for p in pieces]
    assert last.tolist() == [max(p) for p in pieces]


@given(split_forests(unparsed=True))
def test_heads_of_pieces_equal_loops_and_keep_trees(sentence):
    heads, words = sentence
    found = piece_heads(heads, words).tolist()
    assert found == oracle.piece_heads(heads, words)
    if heads.count(ROOT) == 1:  # a tree: all pieces lead to EOS, and one hangs on it
        end = len(words) - 1
        assert [head for head in found[:-1] if head == end] == [end]
        for token in range(end):
            for _ in words:
                token = found[token]
            assert token == end

"""Lines of brackets there and back; what the translator writes about trees is read again."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import rnng_trees as oracle
from oracles.transitions import legal_actions

from fairseq_syntax.systems.latent_tree.transitions import Limits
from fairseq_syntax.systems.latent_tree.tree_files import escape_bracket, from_brackets, to_brackets, unescape_bracket

SYMBOLS = ["a", "▁", "(", ")", "X", "(X", "</s>", "<unk>", "漢", "'", "-", "a)b("]


@given(st.integers(0, 10**6), st.integers(1, 8), st.sampled_from([(1, 1, 1), (5, 1, 1), (1, 1, 5), (1, 5, 0)]))
def test_random_trees_there_and_back(seed, rows, weights):
    draw = random.Random(seed)
    lengths = [draw.randrange(12) for _ in range(rows)]
    actions = [oracle.random_actions(draw, n, 6, 4, 3 * n + 12, weights) for n in lengths]
    symbols = [draw.choices(SYMBOLS, k=n) for n in lengths]
    lines = to_brackets(oracle.padded(actions), symbols)
    assert lines == [oracle.brackets(*pair) for pair in zip(actions, symbols, strict=True)]
    back, text = zip(*map(from_brackets, lines), strict=True)
    assert list(text) == symbols
    # the same trees, of which all is closed before the end
    assert list(back) == [oracle.actions_of(oracle.tree_of(taken)) for taken in actions]
    assert to_brackets(oracle.padded(back), text) == lines
    legal_actions(oracle.padded(back), np.array(lengths), Limits(6, 4, 30))


@given(st.text(st.sampled_from("()-LRBX a"), max_size=12).filter(lambda text: " " not in text))
def test_escapes(symbol):
    """A token stands for one symbol only; and a symbol without such names comes back."""
    token = escape_bracket(symbol)
    assert "(" not in token and ")" not in token
    assert escape_bracket(unescape_bracket(token)) == token
    if "LRB" not in symbol and "RRB" not in symbol:
        assert unescape_bracket(token) == symbol


@pytest.mark.parametrize("line", [" \n", "a b", "(X a ) (X b )", "(X a", "(X a ) )", ") (X"])
def test_lines_that_are_no_trees(line):
    with pytest.raises(ValueError, match="is not a tree"):
        from_brackets(line)

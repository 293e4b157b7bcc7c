"""Lines of brackets there and back, by hand and at random; what the translator writes about trees is read again."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import rnng_trees as oracle
from oracles.transitions import legal_actions

from fairseq_syntax.systems.latent_tree.transitions import Action, Limits
from fairseq_syntax.systems.latent_tree.tree_files import (
    escape,
    from_brackets,
    to_brackets,
    unescape,
)

NT, GEN, REDUCE, NOP = (int(action) for action in Action)
SYMBOLS = ["a", "▁", "(", ")", "X", "(X", "</s>", "<unk>", "漢", "'", "-", "a)b("]


@pytest.mark.parametrize(
    ("actions", "symbols", "line"),
    [
        ([GEN], "", "(X )"),
        ([GEN, GEN, GEN], "ab", "(X a b )"),
        ([GEN, NT, GEN, GEN, REDUCE, GEN], "▁Ma", "(X ▁ (X M a ) )"),
        ([NT, NT, GEN, REDUCE, REDUCE, GEN, GEN], "ab", "(X (X (X a ) ) b )"),
        ([NT, GEN, NT, GEN, REDUCE, NT, GEN, GEN], "abc", "(X (X a (X b ) (X c ) ) )"),  # the end closes two
        ([NT, GEN, NT, NT, GEN], "a", "(X (X a ) )"),  # and two have nothing in them
        ([NT, GEN], "", "(X )"),
        ([GEN, NT, GEN, GEN, GEN], "()x", "(X -LRB- (X -RRB- x ) )"),
    ],
)
def test_by_hand(actions, symbols, line):
    assert to_brackets(np.array([[*actions, NOP]]), [list(symbols)]) == [line]
    assert oracle.brackets(actions, list(symbols)) == line
    assert from_brackets(line)[1] == list(symbols)


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
    token = escape(symbol)
    assert "(" not in token and ")" not in token
    assert escape(unescape(token)) == token
    if "LRB" not in symbol and "RRB" not in symbol:
        assert unescape(token) == symbol


@pytest.mark.parametrize("line", [" \n", "a b", "(X a ) (X b )", "(X a", "(X a ) )", ") (X"])
def test_lines_that_are_no_trees(line):
    with pytest.raises(ValueError, match="is not a tree"):
        from_brackets(line)

"""Scores of pieces summed to scores of words: loops over pieces."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairseq_syntax.trees.word_scores import collapse_to_words


def by_loops(arcs, roots, word_of_token):
    """Eq. 24 in the paper's layout: head first, roots on the diagonal."""
    tokens, words = len(roots), max(word_of_token, default=-1) + 1
    phi = [[roots[j] if i == j else arcs[j][i] for j in range(tokens)] for i in range(tokens)]
    collapsed = [[0.0] * words for _ in range(words)]
    for i in range(tokens):
        for j in range(tokens):
            collapsed[word_of_token[i]][word_of_token[j]] += phi[i][j]
    arcs = [[0.0 if d == h else collapsed[h][d] for h in range(words)] for d in range(words)]
    return arcs, [collapsed[word][word] for word in range(words)]


@given(st.lists(st.integers(1, 4), max_size=5), st.integers(0, 10**6))
def test_sums_over_blocks(pieces, seed):
    word_of_token = [word for word, count in enumerate(pieces) for _ in range(count)]
    random = np.random.default_rng(seed)
    tokens = len(word_of_token)
    arcs, roots = random.normal(size=(tokens, tokens)), random.normal(size=tokens)
    before = arcs.copy()
    word_arcs, word_roots = collapse_to_words(arcs, roots, np.array(word_of_token))
    expected_arcs, expected_roots = by_loops(arcs.tolist(), roots.tolist(), word_of_token)
    np.testing.assert_allclose(word_arcs, np.reshape(expected_arcs, (len(pieces), len(pieces))), atol=1e-12)
    np.testing.assert_allclose(word_roots, expected_roots, atol=1e-12)
    assert np.array_equal(arcs, before)


def test_forbidden_arcs_stay_forbidden():
    """And forbid nothing else: 0 * -inf is nowhere."""
    arcs = np.zeros((3, 3))
    arcs[2, 0] = -np.inf
    word_arcs, word_roots = collapse_to_words(arcs, np.zeros(3), np.array([0, 0, 1]))
    assert word_arcs.tolist() == [[0.0, 0.0], [-np.inf, 0.0]] and word_roots.tolist() == [0.0, 0.0]

"""Scores between pieces of words, as scores between words (Tran & Bisk 2018, eq. 24)."""

import numpy as np


def collapse_to_words(
    arc_scores: np.ndarray, root_scores: np.ndarray, word_of_token: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sum over the pieces of both words.

    The paper has the root scores on the diagonal. So what a word's block on the diagonal holds is its root score: those
    of its pieces, and the arcs inside the word. The same sum is taken of marginals: a word's row then adds up to its
    number of pieces, not to 1.

    Args:
        arc_scores, root_scores: (T, T), [dependent, head], and (T,), scores or marginals; the diagonal is ignored.
        word_of_token: (T,) 0-based word of each token, not decreasing, every word from 0 to J - 1 with a token. Tokens
            of no word, such as EOS, are left out of all three.

    Returns (J, J) [dependent, head], zero diagonal, and (J,); float64. Raises ValueError: shapes disagree, or a word
    has no token.
    """
    arcs, roots = np.array(arc_scores, dtype=np.float64), np.asarray(root_scores, dtype=np.float64)
    words = np.asarray(word_of_token, dtype=np.int64)
    if arcs.shape != (len(words), len(words)) or roots.shape != words.shape:
        raise ValueError(
            f"{len(words)} tokens with words, but arc scores {arcs.shape} and root scores {roots.shape}; expected "
            "(T, T) and (T,), without EOS"
        )
    steps = np.diff(words, prepend=-1)
    if not np.isin(steps, (0, 1)).all() or (len(words) and words[0]):
        raise ValueError(f"the words of the tokens are {words.tolist()}; expected 0, 1, 2, ..., each at least once")
    np.fill_diagonal(arcs, roots)
    # Sums of runs rather than a product with the 0/1 matrix of membership: 0 * -inf would be no number.
    starts = np.flatnonzero(steps)
    if len(starts):
        arcs = np.add.reduceat(np.add.reduceat(arcs, starts, axis=0), starts, axis=1)
    collapsed_roots = arcs.diagonal().copy()
    np.fill_diagonal(arcs, 0.0)
    return arcs, collapsed_roots

"""From scores between subwords to scores between words (Tran & Bisk 2018, eq. 24)."""

import numpy as np


def collapse_to_words(
    arc_scores: np.ndarray, root_scores: np.ndarray, words: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the scores over the pieces of both words.

    The paper puts root scores on the diagonal, so a word's root score is the sum over its block on the diagonal: the
    root scores of its pieces and the arcs between them. A word's row of collapsed marginals adds up to its number of
    pieces, not to 1.

    Args:
        arc_scores, root_scores: (T, T), [dependent, head], and (T,), scores or marginals; the diagonal is ignored.
        words: (T,) 0-based word of each token, in order and without gaps. Leave EOS out of all three.

    Returns arc scores (J, J), [dependent, head], with a zero diagonal, and root scores (J,), float64.
    """
    arcs, roots = np.array(arc_scores, dtype=np.float64), np.asarray(root_scores, dtype=np.float64)
    np.fill_diagonal(arcs, roots)
    # sums of runs, not a product with a 0/1 matrix, in which 0 * -inf would be NaN
    starts = np.flatnonzero(np.diff(np.asarray(words, dtype=np.int64), prepend=-1))
    if len(starts):
        arcs = np.add.reduceat(np.add.reduceat(arcs, starts, axis=0), starts, axis=1)
    collapsed_roots = arcs.diagonal().copy()
    np.fill_diagonal(arcs, 0.0)
    return arcs, collapsed_roots

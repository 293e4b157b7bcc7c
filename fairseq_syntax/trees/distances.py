"""All-pairs distances in dependency trees (Chen et al. 2018, syntax-distance constraint)."""

import numpy as np

from .conllu import UNPARSED, TreeFormatError

MAX_DISTANCE = 254
"""Larger distances saturate here."""
PAD_DISTANCE = 255
"""Marks padding; never a distance."""


def ancestor_matrix(heads: np.ndarray) -> np.ndarray:
    """Which word is an ancestor of which, oneself included, by pointer jumping.

    Args:
        heads: (J,) heads, 0-based; negative = none.

    Returns:
        (J, J) float32; [i, k] = 1 iff k is i or an ancestor of i.

    Raises:
        TreeFormatError: the heads form a cycle.

    Cost: one vector operation per level of the tree.
    """
    current = np.array(heads, dtype=np.int64)
    words = np.arange(len(current))
    matrix = np.eye(len(current), dtype=np.float32)
    for _ in range(len(current)):
        # An index of -1 would silently mean "last word": keep only the words that still have an ancestor.
        alive = current >= 0
        if not alive.any():
            return matrix
        words, current = words[alive], current[alive]
        matrix[words, current] = 1
        current = np.asarray(heads)[current]
    if (current >= 0).any():
        raise TreeFormatError(f"the heads {list(map(int, heads))} form a cycle")
    return matrix


def tree_distances(heads: np.ndarray) -> np.ndarray:
    """Number of arcs between any two words, through the virtual root where need be.

    With A the ancestor matrix and d = A·1 the depths, D = d 1ᵀ + 1 dᵀ - 2AAᵀ, since two words share as many
    ancestors as their lowest common one is deep. EOS stands for the virtual root: an all-zero row of A, so its
    distance to a word is the word's depth, and words of different trees of a forest meet there.

    Args:
        heads: (J,) heads, 0-based; `ROOT` for roots. A sentence without a parse (`UNPARSED`) is all zeros, which
            leaves every attention as it is.

    Returns:
        (J+1, J+1) uint8, EOS last; symmetric, zero diagonal, saturating at `MAX_DISTANCE`.

    Raises:
        TreeFormatError: the heads form a cycle.
    """
    heads = np.asarray(heads)
    size = len(heads) + 1
    if len(heads) and heads[0] == UNPARSED:
        return np.zeros((size, size), dtype=np.uint8)
    ancestors = np.zeros((size, size), dtype=np.float32)  # uint8 products would wrap
    ancestors[:-1, :-1] = ancestor_matrix(heads)
    depth = ancestors.sum(1)
    distances = depth[:, None] + depth[None, :] - 2 * (ancestors @ ancestors.T)
    return np.minimum(distances, MAX_DISTANCE).astype(np.uint8)


def pack_distances(distances: np.ndarray) -> np.ndarray:
    """The strict upper triangle of a distance matrix, row by row: all that a file needs to hold.

    Args:
        distances: (n, n), symmetric with zero diagonal.

    Returns:
        (n(n-1)/2,), same dtype.
    """
    return distances[np.triu_indices(len(distances), 1)]


def unpack_distances(packed: np.ndarray, size: int) -> np.ndarray:
    """The matrix that `pack_distances` packed.

    Args:
        packed: (size(size-1)/2,).

    Raises:
        ValueError: the number of entries does not belong to this size.
    """
    if len(packed) != size * (size - 1) // 2:
        raise ValueError(f"{len(packed)} entries are no triangle of a {size} x {size} matrix")
    distances = np.zeros((size, size), dtype=packed.dtype)
    distances[np.triu_indices(size, 1)] = packed
    return distances + distances.T


def expand_distances(distances: np.ndarray, word_of_token: np.ndarray) -> np.ndarray:
    """Distances between subword tokens: those of their words, 0 inside a word.

    Args:
        distances: (J+1, J+1) between words, EOS last.
        word_of_token: (T,) word of each token, EOS (word J) last.

    Returns:
        (T, T), same dtype.
    """
    words = np.asarray(word_of_token, dtype=np.int64)
    return distances[words[:, None], words[None, :]]

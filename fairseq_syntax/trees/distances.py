"""All-pairs distances in dependency trees (Chen et al. 2018, syntax-distance constraint)."""

import numpy as np

from .conllu import UNPARSED, TreeFormatError

MAX_DISTANCE = 254
"""Larger distances saturate here."""
PAD_DISTANCE = 255
"""Marks padding; never a distance."""

_AT_ONCE = 2**17  # entries of the matrices that are computed together: they stay in the cache


def ancestor_matrix(heads: np.ndarray) -> np.ndarray:
    """Which word is an ancestor of which, oneself included, by pointer jumping.

    Args:
        heads: (J,) heads, 0-based; negative = none. Or (B, J): several sentences of one length at once.

    Returns:
        (J, J) or (B, J, J) float32; [i, k] = 1 iff k is i or an ancestor of i.

    Raises:
        TreeFormatError: the heads form a cycle.

    Cost: some vector operations per level of the deepest tree.
    """
    heads = np.asarray(heads, dtype=np.int64)
    length = heads.shape[-1]
    # Column J is a virtual root above everything, its own parent: no word has to be left out on the way, and no head of
    # -1 can silently mean "last word".
    matrix = np.zeros((*heads.shape, length + 1), dtype=np.float32)
    parents = np.full((*heads.shape[:-1], length + 1), length)
    np.copyto(parents[..., :-1], heads, where=heads >= 0)
    flat, flat_parents = matrix.reshape(-1), parents.reshape(-1)
    # where the row of each word begins in `flat`, and where its sentence begins in `flat_parents`
    row = np.arange(heads.size) * (length + 1)
    sentence = np.arange(heads.size) // max(length, 1) * (length + 1)
    current = np.arange(heads.size) % max(length, 1)
    for _ in range(length):
        flat[row + current] = 1
        current = flat_parents[sentence + current]
        if current.min() == length:
            break
    else:
        if length:
            first = int(np.argmax(current < length)) // length
            raise TreeFormatError(f"the heads {heads.reshape(-1, length)[first].tolist()} form a cycle")
    matrix[..., -1] = 0
    return matrix[..., :-1]


def tree_distances(heads: np.ndarray) -> np.ndarray:
    """Number of arcs between any two words, through the virtual root where need be.

    With A the ancestor matrix and d = A·1 the depths, D = d 1ᵀ + 1 dᵀ - 2AAᵀ, since two words share as many
    ancestors as their lowest common one is deep. EOS stands for the virtual root: an all-zero row of A, so its
    distance to a word is the word's depth, and words of different trees of a forest meet there.

    Args:
        heads: (J,) heads, 0-based; `ROOT` for roots. A sentence without a parse (`UNPARSED`) is all zeros, which
            leaves every attention as it is. Or (B, J): several sentences of one length at once, many times faster.

    Returns:
        (J+1, J+1) or (B, J+1, J+1) uint8, EOS last; symmetric, zero diagonal, saturating at `MAX_DISTANCE`.

    Raises:
        TreeFormatError: the heads form a cycle.
    """
    heads = np.asarray(heads)
    size = heads.shape[-1] + 1
    if heads.ndim == 2 and heads.shape[0] > (at_once := max(1, _AT_ONCE // size**2)):
        parts = (heads[start : start + at_once] for start in range(0, heads.shape[0], at_once))
        return np.concatenate([tree_distances(part) for part in parts])
    ancestors = ancestor_matrix(heads)
    depth = ancestors.sum(-1)
    # float32, as products of uint8 would wrap; exact, as counts are small
    distances = ancestors @ ancestors.swapaxes(-1, -2)
    distances *= -2
    distances += depth[..., :, None]
    distances += depth[..., None, :]
    result = np.zeros((*heads.shape[:-1], size, size), dtype=np.uint8)
    result[..., :-1, :-1] = np.minimum(distances, MAX_DISTANCE, out=distances)
    result[..., -1, :-1] = result[..., :-1, -1] = np.minimum(depth, MAX_DISTANCE)
    if size > 1:
        result[heads[..., 0] == UNPARSED] = 0
    return result


def pack_distances(distances: np.ndarray) -> np.ndarray:
    """The strict upper triangle of distance matrices, row by row: all that a file needs to hold.

    Args:
        distances: (..., n, n), symmetric with zero diagonal.

    Returns:
        (..., n(n-1)/2), same dtype.
    """
    rows, columns = np.triu_indices(distances.shape[-1], 1)
    return distances[..., rows, columns]


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

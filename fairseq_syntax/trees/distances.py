"""All-pairs distances in dependency trees (Chen et al. 2018, syntax-distance constraint)."""

import numpy as np

from .conllu import ROOT, UNPARSED, TreeFormatError, find_cycle, quoted

MAX_DISTANCE = 254
"""Larger distances saturate here."""
PAD_DISTANCE = 255
"""Marks padding; never a distance."""

_AT_ONCE = 2**16  # entries that are computed together: they stay in the cache


def tree_distances(heads: np.ndarray) -> np.ndarray:
    """Number of arcs between any two words, through the virtual root where need be.

    From the root downwards: a word is one arc farther than its head from every word that is not a descendant of it, and
    descendants come later. EOS stands for the virtual root, so its distance to a word is the word's depth, and words of
    different trees of a forest meet there.

    Args:
        heads: (J,) heads, 0-based; `ROOT` for roots. A sentence without a parse (`UNPARSED`) is all zeros, which
            leaves every attention as it is. Or (B, J): several sentences of one length at once, many times faster.

    Returns (J+1, J+1) or (B, J+1, J+1) uint8, EOS last; symmetric, zero diagonal, saturating at `MAX_DISTANCE`. Raises
    TreeFormatError: the heads form a cycle.

    Cost: O(J²) time, and O(J) memory beside the result.
    """
    heads = np.asarray(heads)
    if heads.ndim == 1:
        return tree_distances(heads[None])[0]
    size = heads.shape[1] + 1
    result = np.zeros((len(heads), size, size), dtype=np.uint8)
    at_once = max(1, _AT_ONCE // size**2)
    for start in range(0, len(heads), at_once):
        _fill(result[start : start + at_once], heads[start : start + at_once])
    return result


def _fill(result: np.ndarray, heads: np.ndarray) -> None:
    """Write the distances of some sentences over zeros, one level of their trees after the other."""
    sentences, length = heads.shape
    heads = heads.ravel()
    # -1 is the virtual root in `result`, whose last row is that of EOS
    which, words = np.divmod(np.arange(heads.size), max(length, 1))
    parents = np.where(heads < 0, heads.size, heads + which * length)
    in_level = np.zeros(heads.size + 1, dtype=bool)
    level = np.flatnonzero(heads == ROOT)
    left = np.count_nonzero(heads != UNPARSED)
    most = max(1, _AT_ONCE // (length + 1))
    while len(level):
        for start in range(0, len(level), most):
            part = level[start : start + most]
            tree, word, parent = which[part], words[part], heads[part]
            result[tree, :, word] = np.minimum(result[tree, parent], MAX_DISTANCE - 1) + 1
            # the parents' rows have the words of this level now, too
            result[tree, word] = np.minimum(result[tree, parent], MAX_DISTANCE - 1) + 1
            result[tree, word, word] = 0
        left -= len(level)
        in_level[level] = True
        below = np.flatnonzero(in_level[parents])
        in_level[level] = False
        level = below
    if left:
        for row in heads.reshape(sentences, length).tolist():
            if find_cycle(row):
                raise TreeFormatError(f"the heads {quoted(str(row))[1:-1]} form a cycle")


def pack_distances(distances: np.ndarray) -> np.ndarray:
    """(..., n, n) -> (..., n(n-1)/2), the strict upper triangle of distance matrices, row by row."""
    size = distances.shape[-1]
    packed = np.empty((*distances.shape[:-2], size * (size - 1) // 2), dtype=distances.dtype)
    start = 0
    for row in range(size - 1):
        end = start + size - 1 - row
        packed[..., start:end] = distances[..., row, row + 1 :]
        start = end
    return packed


def unpack_distances(packed: np.ndarray, size: int) -> np.ndarray:
    """The matrix that `pack_distances` packed; ValueError if the number of entries does not belong to this size."""
    if len(packed) != size * (size - 1) // 2:
        raise ValueError(f"{len(packed)} entries are not a triangle of a {size} x {size} matrix")
    distances = np.zeros((size, size), dtype=packed.dtype)
    columns, start = np.arange(size), 0
    at_once = max(1, _AT_ONCE // size)
    for first in range(0, size, at_once):
        rows = distances[first : first + at_once]
        above = columns > columns[first : first + at_once, None]
        end = start + int(np.count_nonzero(above))
        rows[above] = packed[start:end]
        distances[first:, first : first + at_once] += rows[:, first:].T
        start = end
    return distances


def expand_distances(distances: np.ndarray, word_of_token: np.ndarray) -> np.ndarray:
    """(T, T) distances between subword tokens: those of their words (J+1, J+1), 0 inside a word; EOS, word J, last."""
    words = np.asarray(word_of_token, dtype=np.int64)
    return distances[words[:, None], words[None, :]]

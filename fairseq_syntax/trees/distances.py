"""All-pairs distances in dependency trees (Chen et al. 2018, syntax-distance constraint)."""

import numpy as np

from .conllu import ROOT, UNPARSED, TreeFormatError, find_cycle, quoted

MAX_DISTANCE = 254
"""Limit of stored distances."""
PAD_DISTANCE = 255
"""Marks padding; never a distance."""

_AT_ONCE = 2**16  # entries computed together, few enough to stay in the cache


def tree_distances(heads: np.ndarray) -> np.ndarray:
    """Number of arcs between every two words, in O(J²).

    EOS is the virtual root: its distance to a word is the word's depth, and paths between two trees of a forest lead
    through it. Distances are filled in from the root downwards, since a word is one arc farther than its head from
    every word that is not its descendant.

    Args:
        heads: (J,) heads, 0-based, `ROOT` for roots; or (B, J), many times faster, for sentences of equal length.

    Returns (J+1, J+1) or (B, J+1, J+1) uint8, EOS last, limited to `MAX_DISTANCE`. A sentence without a parse has only
    zeros, which leave attention unchanged. Raises TreeFormatError: the heads form a cycle.
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
    """Fill in the distances of some sentences, level by level of their trees."""
    sentences, length = heads.shape
    heads = heads.ravel()
    # -1 is the virtual root in `result`, whose last row is that of EOS
    which, words = np.divmod(np.arange(heads.size), max(length, 1))
    parents = np.where(heads < 0, heads.size, heads + which * length)
    in_level = np.zeros(heads.size + 1, dtype=bool)
    level = np.flatnonzero(heads == ROOT)
    remaining = np.count_nonzero(heads != UNPARSED)
    most = max(1, _AT_ONCE // (length + 1))
    while len(level):
        for start in range(0, len(level), most):
            chunk = level[start : start + most]
            tree, word, parent = which[chunk], words[chunk], heads[chunk]
            result[tree, :, word] = np.minimum(result[tree, parent], MAX_DISTANCE - 1) + 1
            # the parents' rows now include the words of this level
            result[tree, word] = np.minimum(result[tree, parent], MAX_DISTANCE - 1) + 1
            result[tree, word, word] = 0
        remaining -= len(level)
        in_level[level] = True
        below = np.flatnonzero(in_level[parents])
        in_level[level] = False
        level = below
    if remaining:
        for row in heads.reshape(sentences, length).tolist():
            if find_cycle(row):
                raise TreeFormatError(f"the heads {quoted(str(row))[1:-1]} form a cycle")


def pack_distances(distances: np.ndarray) -> np.ndarray:
    """The strict upper triangles of distance matrices, row by row: (..., n, n) -> (..., n(n-1)/2)."""
    size = distances.shape[-1]
    packed = np.empty((*distances.shape[:-2], size * (size - 1) // 2), dtype=distances.dtype)
    start = 0
    for row in range(size - 1):
        end = start + size - 1 - row
        packed[..., start:end] = distances[..., row, row + 1 :]
        start = end
    return packed


def unpack_distances(packed: np.ndarray, size: int) -> np.ndarray:
    """The (size, size) matrix that `pack_distances` packed."""
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


def expand_distances(distances: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Distances (T, T) between tokens from those (J+1, J+1) between their words; 0 within a word."""
    words = np.asarray(words, dtype=np.int64)
    return distances[words[:, None], words[None, :]]

"""The trees of a corpus in flat arrays, and what removing punctuation makes of them.

A corpus of N words is one array of heads: `heads[i]` is the position in the corpus of word i's head, `ROOT` (-1) for
roots. Sentences stand one after the other; `lengths` says how many words each has.
"""

from collections.abc import Sequence

import numpy as np

from ..trees.conllu import ROOT


def flatten(trees: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Heads of many sentences, `ROOT` for roots, as one array (N,) counted from the first word of all; and lengths."""
    lengths = np.array([len(heads) for heads in trees], dtype=np.int64)
    heads = np.concatenate([np.asarray(heads, dtype=np.int64) for heads in trees]) if len(trees) else np.empty(0, int)
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.where(heads == ROOT, ROOT, heads + starts), lengths


def remove(heads: np.ndarray, removed: np.ndarray) -> np.ndarray:
    """(K,) heads of the words that stay, counted among these, each attached to its nearest ancestor that stays.

    A word without such an ancestor becomes a root. So if a removed word is the root of a sentence, all its dependents
    that stay become roots, and a sentence may have several. A word that only leads into a cycle of removed words
    (heads need not form a tree: a greedy prediction may have cycles) becomes a root as well. O(N log N).
    """
    removed = np.asarray(removed, dtype=bool)
    # the entry after the last is the root, which -1 also finds
    ancestor = np.append(np.where(removed, heads, np.arange(len(heads))), ROOT)
    for _ in range(len(heads).bit_length()):  # every round doubles the steps that are skipped
        ancestor = ancestor[ancestor]
    head = ancestor[heads[~removed]]
    number = np.append(np.where(removed, ROOT, np.cumsum(~removed) - 1), ROOT)
    return number[head]


def lengths_without(lengths: np.ndarray, removed: np.ndarray) -> np.ndarray:
    """Words of each sentence that stay; shapes as in `flatten` and `remove`."""
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    return np.bincount(sentence[~np.asarray(removed, dtype=bool)], minlength=len(lengths))


def left_branching(lengths: np.ndarray) -> np.ndarray:
    """Heads (N,) of the baseline L: the head of every word is the next one, the last word is the root."""
    heads = np.arange(1, lengths.sum() + 1)
    heads[np.cumsum(lengths)[lengths > 0] - 1] = ROOT
    return heads


def right_branching(lengths: np.ndarray) -> np.ndarray:
    """Heads (N,) of the baseline R: the head of every word is the one before, the first word is the root."""
    heads = np.arange(-1, lengths.sum() - 1)
    heads[(np.cumsum(lengths) - lengths)[lengths > 0]] = ROOT
    return heads

"""Trees that learned ones are compared with, as actions: branching to one side, and random."""

from collections.abc import Sequence

import numpy as np

from .transitions import Action


def pad(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """(B, T) actions of B sentences, filled up with NOP."""
    counts = np.array([len(row) for row in rows], dtype=int)
    flat = np.concatenate([np.asarray(row, dtype=int) for row in rows]) if len(rows) else np.empty(0, int)
    return _rows(flat, counts)


def _rows(flat: np.ndarray, counts: np.ndarray) -> np.ndarray:
    actions = np.full((len(counts), counts.max(initial=1)), int(Action.NOP))
    actions[np.arange(actions.shape[1]) < counts[:, None]] = flat
    return actions


def right_branching(lengths: np.ndarray) -> np.ndarray:
    """(B, T) actions of the trees (a (b (c d))) over (B,) lengths: the root and n - 2 constituents over n symbols."""
    return _actions([np.append(np.tile((2, 0), n - 1), 0) if n > 1 else _flat(n) for n in lengths])


def left_branching(lengths: np.ndarray) -> np.ndarray:
    """(B, T) actions of the trees (((a b) c) d)."""
    return _actions([np.repeat((2, 0), (n - 1, n)) if n > 1 else _flat(n) for n in lengths])


def random_trees(lengths: np.ndarray, counts: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """(B, T) actions of random trees: all with (B,) `lengths` symbols and `counts` constituents are equally probable.

    A tree is the word of its numbers of children, in the order of opening, 0 for symbols. Among the rotations of a word
    of n zeros and k + 1 positive numbers with the sum n + k, one is a tree (the cycle lemma of Dvoretzky & Motzkin
    1947), so a tree is uniform if the word is. Chains of constituents of one child can be drawn, as by a policy; limits
    of depth are not kept. `counts` are without the root, and 0 of a sentence without symbols.
    """
    return _actions([_random_children(int(n), int(k), random) for n, k in zip(lengths, counts, strict=True)])


def _random_children(n: int, k: int, random: np.random.Generator) -> np.ndarray:
    if not n:
        return _flat(n)
    cuts = 1 + np.sort(random.choice(n + k - 1, k, replace=False))
    word = np.zeros(n + k + 1, dtype=int)
    word[random.choice(n + k + 1, k + 1, replace=False)] = np.diff(cuts, prepend=0, append=n + k)
    return np.roll(word, -1 - (word - 1).cumsum().argmin())


def _flat(n: int) -> np.ndarray:
    """Children of a root and its n symbols."""
    return np.append(n, np.zeros(n, dtype=int))


def _actions(words: Sequence[np.ndarray]) -> np.ndarray:
    """(B, T) actions of trees, each given by the numbers of children of its nodes in the order of opening."""
    sizes = np.array([len(word) for word in words], dtype=int)
    children = np.concatenate(words) if len(words) else np.empty(0, int)
    nodes = len(children)
    root = np.zeros(nodes, dtype=bool)
    root[sizes.cumsum() - sizes] = True
    # Nodes still to come, before each node and after the last. The node's last descendant is the one after which there
    # is one fewer than before the node, for the first time; it is found among the positions in the order of (to come,
    # position).
    to_come = np.append(0, (children - 1).cumsum()) + len(words)
    places = np.sort(to_come * (nodes + 1) + np.arange(nodes + 1))
    ends = places[np.searchsorted(places, (to_come[:-1] - 1) * (nodes + 1) + np.arange(nodes) + 1)] % (nodes + 1)
    closing = np.flatnonzero(root | (children > 0))[::-1]  # the innermost first
    opening = np.where(root, int(Action.NOP), np.where(children > 0, int(Action.NT), int(Action.GEN)))
    # what closes the root is the end of the sentence
    flat = np.insert(opening, ends[closing], np.where(root[closing], int(Action.GEN), int(Action.REDUCE)))
    inner = np.add.reduceat(children > 0, sizes.cumsum() - sizes) if nodes else sizes
    symbols = sizes - np.maximum(inner, 1)
    return _rows(flat[flat != Action.NOP], 2 * sizes - symbols - 1)

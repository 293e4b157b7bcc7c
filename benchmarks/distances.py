"""Distances in trees, against networkx."""

import networkx
import numpy as np
from timing import report, side_by_side

from fairseq_syntax.trees.distances import tree_distances

WORDS = (10, 25, 50, 80)


def random_heads(random: np.random.Generator, words: int) -> np.ndarray:
    """A random tree: every word hangs on one that came before it in a random order."""
    order = random.permutation(words)
    heads = np.full(words, -1)
    for i in range(1, words):
        heads[order[i]] = order[random.integers(0, i)]
    return heads


def networkx_distances(heads: np.ndarray) -> np.ndarray:
    """All-pairs distances by graph search, EOS as the virtual root."""
    graph = networkx.Graph()
    graph.add_nodes_from(range(len(heads) + 1))
    graph.add_edges_from((word, head if head >= 0 else len(heads)) for word, head in enumerate(heads))
    result = np.zeros((len(heads) + 1,) * 2, dtype=np.uint8)
    for word, row in networkx.all_pairs_shortest_path_length(graph):
        result[word, list(row)] = list(row.values())
    return result


def computing(rounds: int) -> None:
    """All-pairs distances of sentences of several lengths."""
    random = np.random.default_rng(1)
    for words in WORDS:
        trees = [random_heads(random, words) for _ in range(100)]
        assert all((tree_distances(t) == networkx_distances(t)).all() for t in trees[:5])
        seconds = side_by_side(
            {
                "networkx": lambda trees=trees: [networkx_distances(t) for t in trees],
                "one sentence a call": lambda trees=trees: [tree_distances(t) for t in trees],
                "as preprocessing does it": lambda trees=trees: tree_distances(
                    np.concatenate(trees).reshape(len(trees), -1)
                ),
            },
            rounds,
        )
        report(f"distances of 100 trees of {words} words", seconds, "networkx")

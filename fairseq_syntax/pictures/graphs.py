"""Weighted graphs over words as pictures (Hashimoto & Tsuruoka 2017, Figures 1 and 3)."""

from collections.abc import Sequence

import numpy as np

from .arcs import Arc, draw_arcs
from .figures import check_finite, shown

WIDEST = 2.0
"""Line width in points of an arc of probability 1; that of others is in proportion."""


def draw_graph(
    words: Sequence[str],
    graph: np.ndarray,
    *,
    threshold: float = 0.1,
    tags: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    gold: Sequence[int] | None = None,
    gold_labels: Sequence[str] | None = None,
    title: str = "",
):
    """All arcs above a probability, drawn from head to dependent above the words; ROOT stands before the first.

    Args:
        graph: (J, J + 1) probabilities, [dependent, head]; column 0 is ROOT, column h is word h - 1.
        threshold: arcs that are not above it are left out.
        tags: in small print under the words.
        labels: of the words' arcs, whichever they are, under these.
        gold: J heads of a tree, 0-based, `ROOT` for roots, drawn below the words; arcs above that it has not are
            dashed.
        gold_labels: J relations, at the tops of these arcs; `_` means no label.

    Returns a matplotlib figure in which no text covers another. Arcs have the width `WIDEST` times their probability,
    and the probability at their top. Their gid is `arc-D-H`, those of gold arcs `gold-D-H`, where D and H are numbers
    of words from 1, and H is 0 for ROOT; that of the probability is `probability-D-H`, of the gold relation
    `label-gold-D-H`.
    """
    check_finite(graph, "the probabilities of the arcs")
    lines = [["ROOT", *words], *(["", *line] for line in (tags, labels) if line is not None)]
    # nodes are numbered as heads are: ROOT is 0
    known = None if gold is None else {(word + 1, head + 1) for word, head in enumerate(gold)}
    above = []
    for dependent, head in edges(graph, threshold).tolist():
        probability, number = float(graph[dependent, head]), f"{dependent + 1}-{head}"
        above.append(
            Arc(
                dependent + 1,
                head,
                f"{probability:.2f}".removeprefix("0"),
                f"arc-{number}",
                f"probability-{number}",
                WIDEST * probability,
                known is not None and (dependent + 1, head) not in known,
            )
        )
    below = None
    if gold is not None:
        relations = ["" if label == "_" else shown(label) for label in gold_labels or ["_"] * len(words)]
        below = []
        for word, head in enumerate(gold):
            gid = f"gold-{word + 1}-{head + 1}"
            below.append(Arc(word + 1, head + 1, relations[word], gid, f"label-{gid}"))
    return draw_arcs(lines, above, below, title)


def edges(graph: np.ndarray, threshold: float) -> np.ndarray:
    """(E, 2) dependents and heads, as indices of the graph, of arcs above the threshold; most probable heads first."""
    dependents, heads = np.nonzero(graph > threshold)
    order = np.lexsort((-graph[dependents, heads], dependents))
    return np.stack((dependents[order], heads[order]), axis=1)

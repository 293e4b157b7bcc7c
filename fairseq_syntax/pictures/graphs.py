"""Pictures of weighted graphs over words (Hashimoto & Tsuruoka 2017, Figures 1 and 3)."""

from collections.abc import Sequence

import numpy as np

from .arcs import Arc, draw_arcs
from .figures import check_finite, shown

WIDEST = 1.4
"""Line width in points of an arc with probability 1; others are in proportion."""


def draw_graph(
    words: Sequence[str],
    graph: np.ndarray,
    *,
    threshold: float = 0.1,
    tags: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    gold: Sequence[int] | None = None,
    gold_labels: Sequence[str] | None = None,
):
    """A matplotlib figure of the arcs above a probability, from head to dependent; ROOT is before the first word.

    Args:
        graph: (J, J + 1) probabilities, [dependent, head]; column 0 is ROOT, column h is word h - 1.
        threshold: probability above which arcs are drawn.
        tags: J tags, in small print below the words.
        labels: J relations, each at the most probable arc of its word.
        gold: J heads of a tree, 0-based, `ROOT` for roots, drawn below the words; arcs of the graph that it lacks are
            orange and dashed.
        gold_labels: J relations of the tree; `_` means no label.

    Texts never overlap. The line width of an arc is `WIDEST` times its probability, which is printed at its top unless
    it rounds to 1.00. Gids are `arc-D-H` and `gold-D-H` for arcs, `probability-D-H` for what is printed at arcs and
    `label-gold-D-H` for gold relations, where D and H are numbers of words from 1, and H is 0 for ROOT.
    """
    check_finite(graph, "the probabilities of the arcs")
    lines = [["ROOT", *words], *([["", *tags]] if tags is not None else ())]
    above, named = [], set()
    for dependent, head in edges(graph, threshold).tolist():
        probability, number = float(graph[dependent, head]), f"{dependent + 1}-{head}"
        text = f"{probability:.2f}".removeprefix("0")
        text = "" if text == "1.00" else text
        if labels is not None and dependent not in named:
            text = f"{shown(labels[dependent])} {text}".rstrip()
        named.add(dependent)  # the most probable head comes first
        # nodes are numbered like heads: ROOT is 0
        other = gold is not None and gold[dependent] + 1 != head
        width = WIDEST * probability
        above.append(Arc(dependent + 1, head, text, f"arc-{number}", f"probability-{number}", width, other))
    below = None
    if gold is not None:
        relations = ["" if label == "_" else shown(label) for label in gold_labels or ["_"] * len(words)]
        below = []
        for word, head in enumerate(gold):
            gid = f"gold-{word + 1}-{head + 1}"
            below.append(Arc(word + 1, head + 1, relations[word], gid, f"label-{gid}"))
    return draw_arcs(lines, above, below)


def edges(graph: np.ndarray, threshold: float) -> np.ndarray:
    """The arcs above the threshold, as (E, 2) indices of the graph, the most probable head of each dependent first."""
    dependents, heads = np.nonzero(graph > threshold)
    order = np.lexsort((-graph[dependents, heads], dependents))
    return np.stack((dependents[order], heads[order]), axis=1)

"""A sentence under several trees, side by side: each tree, and the decoder's attention below it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .arcs import ArcPicture, text_widths
from .attention_maps import CELL, NAME, draw_cells
from .dependency_trees import tree_arcs
from .figures import check_finite, plt, shown

_APART = 18.0  # points between panels, and between a tree and its heat map
_BAR = 60.0  # points for the bar of colours and its numbers


@dataclass(frozen=True)
class Panel:
    """A sentence of J words under one tree.

    Attributes:
        name: title above the tree.
        heads: J heads, 0-based, `ROOT` for roots; None without a tree.
        labels: J relations; `_` means no label.
        rows: I words of the translation.
        weights: (I, J) attention of these words to the words of the sentence.
    """

    name: str
    heads: Sequence[int] | None
    labels: Sequence[str] | None
    rows: list[str]
    weights: np.ndarray


def draw_variants(words: Sequence[str], panels: Sequence[Panel], title: str):
    """A matplotlib figure of one or more panels side by side, with a title.

    Arcs that are not in the first tree are dashed. Texts never overlap. In panel P, from 0, the arc of word I has the
    gid `arc-P-I`. All heat maps have the same range of colours.
    """
    for panel in panels:
        check_finite(panel.weights, "the attention weights")
    first = next((panel.heads for panel in panels if panel.heads is not None), None)
    trees = [_tree(words, panel, number, first) for number, panel in enumerate(panels)]
    margins = [max((*text_widths([shown(row) for row in panel.rows], NAME), 0.0)) + 8 for panel in panels]
    foot = max(text_widths([shown(word) for word in words], NAME)) + 30
    columns = 72 * CELL * len(words)
    widths = [max(tree.width, margin + columns) for tree, margin in zip(trees, margins, strict=True)]
    maps = [72 * CELL * max(len(panel.rows), 1) for panel in panels]
    above, head = max(tree.height for tree in trees), 24.0
    width, height = sum(widths) + _APART * len(panels) + _BAR, head + above + _APART + max(maps) + foot
    figure = plt.figure(figsize=(width / 72, height / 72))

    def axes(left: float, top: float, wide: float, high: float):
        return figure.add_axes((left / width, 1 - (top + high) / height, wide / width, high / height))

    largest = max(float(panel.weights.max(initial=0.0)) for panel in panels) or 1.0
    left, image = 0.0, None
    for panel, tree, margin, wide, high in zip(panels, trees, margins, widths, maps, strict=True):
        tree.draw(axes(left, head + above - tree.height, tree.width, tree.height))
        axis = axes(left + margin, head + above + _APART, columns, high)
        image = draw_cells(axis, panel.weights, panel.rows, words, largest)
        axis.set_xlabel("attends to")
        left += wide + _APART
    figure.colorbar(image, cax=axes(left, head + above + _APART, 8.0, max(maps)), label="weight")
    figure.text(10 / width, 1 - 12 / height, shown(title), va="center", parse_math=False)
    return figure


def _tree(words: Sequence[str], panel: Panel, number: int, first: Sequence[int] | None) -> ArcPicture:
    """The tree of a panel."""
    arcs = []
    if panel.heads is not None:
        dashed = [head != reference for head, reference in zip(panel.heads, first, strict=True)]
        arcs = tree_arcs(f"arc-{number}", panel.heads, panel.labels, dashed)
    return ArcPicture([list(words)], arcs, None, panel.name)

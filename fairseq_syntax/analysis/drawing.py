"""Dependency trees as pictures: arcs over words (Tran & Bisk 2018, Figure 5)."""

from collections.abc import Sequence

import numpy as np

from ..trees.conllu import ROOT
from .figures import plt  # before the rest of matplotlib

from matplotlib.patches import FancyArrowPatch  # isort: skip
from matplotlib.path import Path as Outline  # isort: skip

_FONT = 9  # points
_GAP = 9.0  # points between words
_STEP = 16.0  # points between arcs, one above the other
_LINE = 13.0  # points between lines of text


def arc_levels(heads: Sequence[int]) -> list[int]:
    """How high each word's arc is drawn, so that an arc over others is above them.

    Args:
        heads: J heads, `ROOT` for roots.

    Returns:
        J levels: 0 for roots, otherwise 1 + the highest level of the arcs strictly inside (shorter and not beyond
        either end).
    """
    levels = [0] * len(heads)
    arcs = sorted((abs(word - head), word) for word, head in enumerate(heads) if head != ROOT)
    spans: list[tuple[int, int, int]] = []
    for length, word in arcs:
        low, high = sorted((word, heads[word]))
        inside = [level for left, right, level in spans if low <= left and right <= high and right - left < length]
        levels[word] = 1 + max(inside, default=0)
        spans.append((low, high, levels[word]))
    return levels


def draw_tree(
    words: Sequence[str],
    heads: Sequence[int],
    *,
    tags: Sequence[str] | None = None,
    gold: Sequence[int] | None = None,
    title: str = "",
):
    """A tree drawn as arcs from head to dependent above the words; a root has an arrow from above.

    Args:
        words: J words.
        heads: J heads, 0-based, `ROOT` for roots. Any heads can be drawn, cycles too.
        tags: J tags, in small print under the words.
        gold: J heads of a second tree, drawn below the words; the arcs of `heads` that it has not are then dashed.
        title: above the picture.

    Returns:
        A matplotlib figure in which no word covers another. Its width grows with the text.
    """
    widths = text_widths(words, _FONT)
    if tags is not None:
        widths = np.maximum(widths, text_widths(tags, _FONT - 2))
    centres = np.cumsum(widths + _GAP) - widths / 2
    width = float((widths + _GAP).sum()) + _GAP
    above = arc_levels(heads)
    below = arc_levels(gold) if gold is not None else []
    text_height = _LINE * (1 if tags is None else 2)
    top = _STEP * (max(above, default=0) + 2)
    bottom = text_height + (_STEP * (max(below, default=0) + 2) if gold is not None else 0)
    heading = _LINE * 1.6 if title else 0.0
    figure = plt.figure(figsize=(max(width, 180) / 72, (top + bottom + heading) / 72))
    axis = figure.add_axes((0, 0, 1, 1))
    # one unit is one point
    axis.set(xlim=(0, max(width, 180)), ylim=(-bottom, top + heading))
    axis.axis("off")
    style = dict(ha="center", va="center", parse_math=False)
    for i, word in enumerate(words):
        axis.text(centres[i], -_LINE / 2, word, fontsize=_FONT, gid=f"word-{i}", **style)
        if tags is not None:
            axis.text(centres[i], -1.5 * _LINE, tags[i], fontsize=_FONT - 2, color="0.4", **style)
    _draw_arcs(axis, heads, above, centres, 0.0, 1, "tab:blue", gold)
    if gold is not None:
        _draw_arcs(axis, gold, below, centres, -text_height, -1, "0.35")
    if title:
        axis.text(_GAP, top + heading / 2, title, fontsize=_FONT, ha="left", va="center", parse_math=False)
    return figure


def _draw_arcs(axis, heads, levels, centres, base, side, colour, reference=None) -> None:
    """Arcs that start at height `base`, upwards (`side` 1) or downwards (-1)."""
    highest = max(levels, default=0) + 1
    for word, head in enumerate(heads):
        agrees = reference is None or reference[word] == head
        if head == ROOT:
            points = [(centres[word], base + side * _STEP * highest), (centres[word], base)]
            path = Outline(points, [Outline.MOVETO, Outline.LINETO])
        else:
            # arcs leave their head beside its middle, where arcs arrive
            start = centres[head] + (3.0 if word > head else -3.0)
            # the curve reaches three quarters of the height of its inner points
            height = base + side * _STEP * levels[word] * 4 / 3
            points = [(start, base), (start, height), (centres[word], height), (centres[word], base)]
            path = Outline(points, [Outline.MOVETO, *[Outline.CURVE4] * 3])
        arrow = FancyArrowPatch(
            path=path,
            arrowstyle="-|>",
            mutation_scale=7,
            linewidth=0.9,
            linestyle="-" if agrees else (0, (4, 2)),
            color=colour,
            shrinkA=0,
            shrinkB=0,
            gid=f"arc-{word}" if side > 0 else f"gold-{word}",
        )
        axis.add_patch(arrow)


def text_widths(texts: Sequence[str], size: float, weight: str = "normal") -> np.ndarray:
    """Widths in points of texts of `size` points, measured."""
    figure = plt.figure(dpi=72)
    renderer = figure.canvas.get_renderer()
    widths = []
    for text in texts:
        box = figure.text(0, 0, text, fontsize=size, weight=weight, parse_math=False).get_window_extent(renderer)
        widths.append(box.width)
    plt.close(figure)
    return np.array(widths, dtype=float)

"""Weighted graphs over words as pictures (Hashimoto & Tsuruoka 2017, Figures 1 and 3)."""

from collections.abc import Sequence

import numpy as np

from .drawing import text_widths
from .figures import plt  # before the rest of matplotlib
from .latent_graphs import edges

from matplotlib.patches import FancyArrowPatch  # isort: skip
from matplotlib.path import Path as Outline  # isort: skip

WIDEST = 2.0
"""Line width in points of an arc of probability 1; that of others is in proportion."""

_FONT = 9  # points
_SMALL = 6  # points, of numbers at arcs
_GAP = 12.0  # points between words
_STEP = 16.0  # points between arcs, one above the other
_LINE = 13.0  # points between lines of text
_GOLD = 0.9  # points, line width of given arcs


def levels(arcs: Sequence[tuple[int, int]]) -> list[int]:
    """How high each arc is drawn: above those inside it, and apart from those that it overlaps.

    Args:
        arcs: pairs of different nodes.

    Returns:
        1 or more for each. Arcs of the same level have no more than an end in common, so that there is room for a
        number at the top of each.
    """
    found = [0] * len(arcs)
    drawn: list[tuple[int, int, int]] = []
    for i in sorted(range(len(arcs)), key=lambda i: abs(arcs[i][0] - arcs[i][1])):
        low, high = sorted(arcs[i])
        level = 1 + max((other for left, right, other in drawn if low <= left and right <= high), default=0)
        taken = {other for left, right, other in drawn if left < high and low < right}
        while level in taken:
            level += 1
        found[i] = level
        drawn.append((low, high, level))
    return found


def draw_graph(
    words: Sequence[str],
    graph: np.ndarray,
    *,
    threshold: float = 0.1,
    tags: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    gold: Sequence[int] | None = None,
    title: str = "",
):
    """All arcs above a probability, drawn from head to dependent above the words; ROOT stands before the first.

    Args:
        words: J words.
        graph: (J, J + 1) probabilities, [dependent, head], as in `latent_graphs`.
        threshold: arcs that are not above it are left out.
        tags: J tags, in small print under the words.
        labels: J labels of the words' arcs, whichever they are, under these.
        gold: J heads of a tree, 0-based, `ROOT` for roots, drawn below the words; arcs above that it has not are
            dashed.
        title: above the picture.

    Returns:
        A matplotlib figure in which no word covers another. Arcs have the width `WIDEST` times their probability, and
        the probability at their top. Their gid is `arc-D-H`, those of gold arcs `gold-D-H`, where D and H are numbers
        of words from 1, and H is 0 for ROOT.
    """
    nodes = ["ROOT", *words]
    lines = [["", *line] for line in (tags, labels) if line is not None]
    widths = text_widths(nodes, _FONT)
    for line in lines:
        widths = np.maximum(widths, text_widths(line, _FONT - 2))
    centres = np.cumsum(widths + _GAP) - widths / 2
    width = max(float((widths + _GAP).sum()) + _GAP, 180.0)

    # nodes are numbered as heads are: ROOT is 0
    above = [(int(dependent) + 1, int(head)) for dependent, head in edges(graph, threshold)]
    below = [] if gold is None else [(word + 1, head + 1) for word, head in enumerate(gold)]
    above_levels, below_levels = levels(above), levels(below)
    text_height = _LINE * (1 + len(lines))
    top = _STEP * (max(above_levels, default=0) + 1)
    bottom = text_height + (_STEP * (max(below_levels, default=0) + 1) if gold is not None else 0)
    heading = _LINE * 1.6 if title else 0.0
    figure = plt.figure(figsize=(width / 72, (top + bottom + heading) / 72))
    axis = figure.add_axes((0, 0, 1, 1))
    # one unit is one point
    axis.set(xlim=(0, width), ylim=(-bottom, top + heading))
    axis.axis("off")

    style = dict(ha="center", va="center", parse_math=False)
    for i, node in enumerate(nodes):
        axis.text(centres[i], -_LINE / 2, node, fontsize=_FONT, gid=f"word-{i}", **style)
        for number, line in enumerate(lines):
            axis.text(centres[i], -(1.5 + number) * _LINE, line[i], fontsize=_FONT - 2, color="0.4", **style)
    known = set(below)
    for arc, level in zip(above, above_levels, strict=True):
        probability = float(graph[arc[0] - 1, arc[1]])
        dashed = gold is not None and arc not in known
        height = _draw_arc(axis, arc, level, centres, 0.0, 1, WIDEST * probability, "tab:blue", dashed)
        axis.text(
            (centres[arc[0]] + centres[arc[1]]) / 2,
            height,
            f"{probability:.2f}".removeprefix("0"),
            fontsize=_SMALL,
            gid=f"probability-{arc[0]}-{arc[1]}",
            bbox=dict(facecolor="white", edgecolor="none", pad=0.4),
            zorder=3,
            **style,
        )
    for arc, level in zip(below, below_levels, strict=True):
        _draw_arc(axis, arc, level, centres, -text_height, -1, _GOLD, "0.35", False)
    if title:
        axis.text(_GAP, top + heading / 2, title, fontsize=_FONT, ha="left", va="center", parse_math=False)
    return figure


def _draw_arc(axis, arc, level, centres, base, side, width, colour, dashed) -> float:
    """One arc, upwards (`side` 1) or downwards (-1) from the height `base`; the height of its top."""
    dependent, head = arc
    # arcs leave their head beside its middle, where arcs arrive
    start = centres[head] + (3.0 if dependent > head else -3.0)
    top = base + side * _STEP * level
    # the curve reaches three quarters of the height of its inner points
    inner = base + side * _STEP * level * 4 / 3
    points = [(start, base), (start, inner), (centres[dependent], inner), (centres[dependent], base)]
    axis.add_patch(
        FancyArrowPatch(
            path=Outline(points, [Outline.MOVETO, *[Outline.CURVE4] * 3]),
            arrowstyle="-|>",
            mutation_scale=7,
            linewidth=width,
            # matplotlib takes dashes times the width
            linestyle=(0, (4 / width, 2 / width)) if dashed else "-",
            color=colour,
            shrinkA=0,
            shrinkB=0,
            gid=f"{'arc' if side > 0 else 'gold'}-{dependent}-{head}",
        )
    )
    return top

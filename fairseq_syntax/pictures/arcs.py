"""Arcs above and below a line of words, for pictures of trees and graphs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .figures import plt, shown, without_glyph_warnings  # before the rest of matplotlib

from matplotlib.patches import FancyArrowPatch  # isort: skip
from matplotlib.path import Path as Outline  # isort: skip

_FONT = 9  # points
_SMALL = 7  # points, for text below words
_LABEL = 6  # points, for labels of arcs
_GAP = 10.0  # points between words
_STEP = 16.0  # points between levels of arcs
_LINE = 13.0  # points between lines of text
_APART = 3.0  # points between labels, and from the middle of a head to arcs that leave it


@dataclass(frozen=True)
class Arc:
    """An arc from a head to a dependent."""

    dependent: int  # number of the dependent, from 0
    head: int | None  # number of the head; None for an arc from outside the sentence
    label: str  # label at the top of the arc
    gid: str  # gid of the line
    label_gid: str  # gid of the label
    width: float = 0.9  # line width in points
    dashed: bool = False  # whether the line is dashed

    @property
    def span(self) -> tuple[int, int]:
        """The ends of the arc, the left one first; the dependent twice if it has no head."""
        head = self.dependent if self.head is None else self.head
        return min(self.dependent, head), max(self.dependent, head)


def levels(spans: Sequence[tuple[int, int]]) -> list[int]:
    """The level of each arc, from 1: above the arcs inside it, and different from those that it overlaps.

    Arcs on the same level share at most an end, so that there is room for a label at the top of each.
    """
    result = [0] * len(spans)
    drawn: list[tuple[int, int, int]] = []
    for i in sorted(range(len(spans)), key=lambda i: abs(spans[i][0] - spans[i][1])):
        low, high = sorted(spans[i])
        level = 1 + max((height for left, right, height in drawn if low <= left and right <= high), default=0)
        taken = {height for left, right, height in drawn if left < high and low < right}
        while level in taken:
            level += 1
        result[i] = level
        drawn.append((low, high, level))
    return result


class ArcPicture:
    """Words with arcs, measured in points, to be drawn on any axis. Texts never overlap; the width grows with them.

    The first of the `lines`, with J entries each, has the words; further ones are in small print. With `below` None,
    there is no room for arcs below the text.
    """

    def __init__(self, lines: Sequence[Sequence[str]], above: Sequence[Arc], below: Sequence[Arc] | None, title: str):
        self.lines = [[shown(text) for text in line] for line in lines]
        self.above, self.below, self.title = above, below or (), title
        self.centres, self.width = _places(self.lines, [*above, *self.below])
        self._top, bottom = (_height(arcs) for arcs in (above, self.below))
        self._bottom = _LINE * len(lines) + (bottom if below is not None else 0.0)
        self.height = self._top + self._bottom + (_LINE * 1.6 if title else 0.0)

    def draw(self, axis) -> None:
        """Draw on an axis of this size."""
        # one unit is one point
        axis.set(xlim=(0, self.width), ylim=(-self._bottom, self.height - self._bottom))
        axis.axis("off")
        style = dict(ha="center", va="center", parse_math=False)
        for number, line in enumerate(self.lines):
            small = dict(fontsize=_SMALL, color="0.4") if number else dict(fontsize=_FONT)
            for i, text in enumerate(line):
                gid = None if number else f"word-{i}"
                axis.text(self.centres[i], -(0.5 + number) * _LINE, text, gid=gid, **small, **style)
        _draw(axis, self.above, self.centres, 0.0, 1, "tab:blue")
        _draw(axis, self.below, self.centres, -_LINE * len(self.lines), -1, "0.35")
        if self.title:
            middle = (self._top + self.height - self._bottom) / 2
            axis.text(_GAP, middle, shown(self.title), fontsize=_FONT, ha="left", va="center", parse_math=False)


def draw_arcs(lines: Sequence[Sequence[str]], above: Sequence[Arc], below: Sequence[Arc] | None, title: str):
    """A matplotlib figure of an `ArcPicture` with these arguments."""
    picture = ArcPicture(lines, above, below, title)
    figure = plt.figure(figsize=(picture.width / 72, picture.height / 72))
    picture.draw(figure.add_axes((0, 0, 1, 1)))
    return figure


def _places(lines: Sequence[Sequence[str]], arcs: Sequence[Arc]) -> tuple[np.ndarray, float]:
    """The centres of the words, with room for texts and labels of arcs, and the width of the picture."""
    widths = np.max([text_widths(line, _FONT if i == 0 else _SMALL) for i, line in enumerate(lines)], axis=0)
    labels = text_widths([arc.label for arc in arcs], _LABEL) + _APART
    # (left, right, least distance)
    apart = [(*pair, (widths[pair[0]] + widths[pair[1]]) / 2 + _GAP) for pair in pairwise(range(len(widths)))]
    apart += [(*arc.span, label) for arc, label in zip(arcs, labels, strict=True) if arc.head is not None]
    roots = sorted((arc.dependent, label) for arc, label in zip(arcs, labels, strict=True) if arc.head is None)
    apart += [(low, high, (a + b) / 2) for (low, a), (high, b) in pairwise(roots) if low < high]
    centres = np.full(len(widths), _GAP) + widths / 2
    for low, high, distance in sorted(apart, key=lambda pair: pair[1]):
        if centres[low] + distance > centres[high]:
            centres[high] = centres[low] + distance
    return centres, max(180.0, float(centres[-1] + widths[-1] / 2 + _GAP) if len(widths) else 0.0)


def _height(arcs: Sequence[Arc]) -> float:
    """The height of all arcs and their labels."""
    highest = max(levels([arc.span for arc in arcs if arc.head is not None]), default=0)
    # arcs without a head begin above all others
    return _STEP * (highest + 1 + any(arc.head is None for arc in arcs))


def _draw(axis, arcs: Sequence[Arc], centres: np.ndarray, base: float, side: int, colour: str) -> None:
    """Draw arcs from height `base`, upwards (`side` 1) or downwards (-1)."""
    heights = iter(levels([arc.span for arc in arcs if arc.head is not None]))
    outermost = base + side * (_height(arcs) - _STEP)
    for arc in arcs:
        end = (centres[arc.dependent], base)
        if arc.head is None:
            middle, top = centres[arc.dependent], outermost
            outline = Outline([(middle, top), end], [Outline.MOVETO, Outline.LINETO])
        else:
            # arcs leave a head next to its middle, at which its own arc arrives
            start = centres[arc.head] + (_APART if arc.dependent > arc.head else -_APART)
            reach = side * _STEP * next(heights)
            middle, top = (centres[arc.head] + centres[arc.dependent]) / 2, base + reach
            # the curve reaches three quarters of the height of its inner points
            inner = base + reach * 4 / 3
            points = [(start, base), (start, inner), (centres[arc.dependent], inner), end]
            outline = Outline(points, [Outline.MOVETO, *[Outline.CURVE4] * 3])
        axis.add_patch(
            FancyArrowPatch(
                path=outline,
                arrowstyle="-|>",
                mutation_scale=7,
                linewidth=arc.width,
                # matplotlib scales dashes by the width
                linestyle=(0, (4 / arc.width, 2 / arc.width)) if arc.dashed else "-",
                color=colour,
                shrinkA=0,
                shrinkB=0,
                gid=arc.gid,
            )
        )
        if arc.label:
            axis.text(
                middle,
                # on the far side of the line
                top + side * _LABEL * 0.75,
                arc.label,
                fontsize=_LABEL,
                color="0.2",
                gid=arc.label_gid,
                ha="center",
                va="center",
                parse_math=False,
                bbox=dict(facecolor="white", edgecolor="none", pad=0.4),
                zorder=3,
            )


def text_widths(texts: Sequence[str], size: float, weight: str = "normal") -> np.ndarray:
    """The measured widths in points of texts in a font of `size` points."""
    figure = plt.figure(dpi=72)
    renderer = figure.canvas.get_renderer()
    widths = []
    with without_glyph_warnings():
        for text in texts:
            box = figure.text(0, 0, text, fontsize=size, weight=weight, parse_math=False).get_window_extent(renderer)
            widths.append(box.width)
    plt.close(figure)
    return np.array(widths, dtype=float)

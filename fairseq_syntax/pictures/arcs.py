"""Arcs above and below a line of words, for pictures of trees and graphs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .figures import plt, shown, without_glyph_warnings  # before the rest of matplotlib

from matplotlib.lines import Line2D  # isort: skip
from matplotlib.patches import FancyArrowPatch  # isort: skip
from matplotlib.path import Path as Outline  # isort: skip

_FONT = 10  # points
_SMALL = 7.5  # points, for text below words
_LABEL = 7  # points, for labels of arcs
_GAP = 9.0  # points between words
_STEP = 14.0  # points between levels of arcs
_LINE = 14.0  # points between lines of text
_APART = 3.0  # points between labels, and between arcs at a word
_ROUND = 6.0  # radius in points of the corners of an arc
COLOUR, OTHER = "#0072b2", "#d55e00"
"""Colours of arcs, and of arcs that another tree lacks; they differ for colour-blind readers, too."""
_GREY = "0.35"


@dataclass(frozen=True)
class Arc:
    """An arc from a head to a dependent."""

    dependent: int  # number of the dependent, from 0
    head: int | None  # number of the head; None for an arc from outside the sentence
    label: str  # label at the top of the arc
    gid: str  # gid of the line
    label_gid: str  # gid of the label
    width: float = 0.9  # line width in points
    other: bool = False  # whether the tree with which this one is compared lacks the arc

    @property
    def span(self) -> tuple[int, int]:
        """Ends of the arc, the left one first; the dependent twice if there is no head."""
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
    """Words with arcs, laid out in points, for any axis. Texts never overlap; the width grows with them.

    The first of the `lines`, of J entries each, holds the words; further ones are in small print. With `below` None,
    there is no room for arcs below the text.
    """

    def __init__(self, lines: Sequence[Sequence[str]], above: Sequence[Arc], below: Sequence[Arc] | None = None):
        self.lines = [[shown(text) for text in line] for line in lines]
        self._above, self._below = _placed(above), _placed(below or ())
        self.centres, self.width = _places(self.lines, [*self._above, *self._below])
        self._bottom = _LINE * len(lines) + _height(self._below) + 2.0
        self.height = _height(self._above) + self._bottom

    def draw(self, axis) -> None:
        """Draw on an axis of this size."""
        # one unit is one point
        axis.set(xlim=(0, self.width), ylim=(-self._bottom, self.height - self._bottom))
        axis.axis("off")
        for number, line in enumerate(self.lines):
            small = dict(fontsize=_SMALL, color="0.35") if number else dict(fontsize=_FONT)
            for i, text in enumerate(line):
                gid = None if number else f"word-{i}"
                axis.text(self.centres[i], -(0.5 + number) * _LINE, text, gid=gid, **small, **_CENTRED)
        _draw(axis, self._above, self.centres, 0.0, 1, COLOUR)
        _draw(axis, self._below, self.centres, -_LINE * len(self.lines), -1, _GREY)


def draw_arcs(lines: Sequence[Sequence[str]], above: Sequence[Arc], below: Sequence[Arc] | None):
    """A matplotlib figure of an `ArcPicture` with these arguments; with `below`, a legend names the trees."""
    picture = ArcPicture(lines, above, below)
    figure = plt.figure(figsize=(picture.width / 72, picture.height / 72))
    picture.draw(figure.add_axes((0, 0, 1, 1)))
    if below is not None:
        signs = {
            "model, in the given tree": dict(color=COLOUR),
            "model, not in the given tree": dict(color=OTHER, linestyle="--"),
        }
        present = [any(arc.other is other for arc in above) for other in (False, True)]
        drawn = {name: style for (name, style), is_drawn in zip(signs.items(), present, strict=True) if is_drawn}
        drawn["given tree"] = dict(color=_GREY)
        lines = [Line2D([], [], linewidth=0.9, **style) for style in drawn.values()]
        style = dict(fontsize=_LABEL, frameon=False, ncols=len(drawn), handlelength=1.6, columnspacing=1.2)
        figure.legend(lines, drawn, loc="lower left", bbox_to_anchor=(0, 1), **style)
    return figure


_CENTRED = dict(ha="center", va="center", parse_math=False)


@dataclass(frozen=True)
class _Placed:
    """An arc with its level, and the offsets of its ends from the middles of their words, in points to the right."""

    arc: Arc
    level: int
    at_head: float
    at_dependent: float


def _placed(arcs: Sequence[Arc]) -> list[_Placed]:
    """Arcs with their levels and offsets: at a word, higher arcs end nearer to its middle, so that no arcs of a
    projective tree cross.

    The only arc to a word ends at its middle, unless it is below an arc that leaves the word on the same side. An arc
    without a head is above all arcs that meet or cover its dependent.
    """
    level = dict(
        zip(
            (i for i, arc in enumerate(arcs) if arc.head is not None),
            levels([a.span for a in arcs if a.head is not None]),
            strict=True,
        )
    )
    for i, arc in enumerate(arcs):
        if arc.head is None:
            covering = (
                level[k]
                for k, other in enumerate(arcs)
                if other.head is not None and other.span[0] <= arc.dependent <= other.span[1]
            )
            level[i] = 1 + max(covering, default=0)
    arriving = Counter(arc.dependent for arc in arcs)
    sides: dict[tuple[int, bool], list[tuple[int, int, bool]]] = {}  # word, right of it -> (level, arc, at its head)
    for i, arc in enumerate(arcs):
        if arc.head is not None:
            sides.setdefault((arc.head, arc.dependent > arc.head), []).append((level[i], i, True))
    highest = {side: max(ends)[0] for side, ends in sides.items()}
    for i, arc in enumerate(arcs):
        if arc.head is not None:
            side = arc.dependent, arc.head > arc.dependent
            if arriving[arc.dependent] > 1 or highest.get(side, 0) > level[i]:
                sides.setdefault(side, []).append((level[i], i, False))
    offsets: dict[tuple[int, bool], float] = {}
    for (_, right), ends in sides.items():
        for place, (_, i, at_head) in enumerate(sorted(ends, reverse=True), 1):
            offsets[i, at_head] = _APART * place * (1 if right else -1)
    return [
        _Placed(arc, level[i], offsets.get((i, True), 0.0), offsets.get((i, False), 0.0)) for i, arc in enumerate(arcs)
    ]


def _places(lines: Sequence[Sequence[str]], arcs: Sequence[_Placed]) -> tuple[np.ndarray, float]:
    """Centres of the words, with room for texts and labels of arcs, and width of the picture."""
    widths = np.max([text_widths(line, _FONT if i == 0 else _SMALL) for i, line in enumerate(lines)], axis=0)
    for placed in arcs:
        for word, offset in ((placed.arc.head, placed.at_head), (placed.arc.dependent, placed.at_dependent)):
            if word is not None:
                widths[word] = max(widths[word], 2 * abs(offset))
    labels = text_widths([placed.arc.label for placed in arcs], _LABEL) + _APART
    # (left, right, least distance)
    apart = [(*pair, (widths[pair[0]] + widths[pair[1]]) / 2 + _GAP) for pair in pairwise(range(len(widths)))]
    roots = []
    for placed, label in zip(arcs, labels, strict=True):
        if placed.arc.head is None:
            roots.append((placed.arc.dependent, label))
        else:
            apart.append((*placed.arc.span, label + abs(placed.at_head) + abs(placed.at_dependent)))
    apart += [(low, high, (a + b) / 2) for (low, a), (high, b) in pairwise(sorted(roots)) if low < high]
    centres = np.full(len(widths), _GAP) + widths / 2
    for low, high, distance in sorted(apart, key=lambda pair: pair[1]):
        if centres[low] + distance > centres[high]:
            # the words after it follow, because `apart` has the least distances of neighbours
            centres[high] = centres[low] + distance
    return centres, float(centres[-1] + widths[-1] / 2 + _GAP) if len(widths) else 0.0


def _height(arcs: Sequence[_Placed]) -> float:
    """The height of all arcs and their labels."""
    return _STEP * (max((placed.level for placed in arcs), default=0) + 0.9 * bool(arcs))


def _draw(axis, arcs: Sequence[_Placed], centres: np.ndarray, base: float, side: int, colour: str) -> None:
    """Draw arcs from height `base`, upwards (`side` 1) or downwards (-1)."""
    for placed in arcs:
        arc, top = placed.arc, base + side * _STEP * placed.level
        end = centres[arc.dependent] + placed.at_dependent
        start = end if arc.head is None else centres[arc.head] + placed.at_head
        arc_colour = OTHER if arc.other else colour
        axis.add_patch(
            FancyArrowPatch(
                path=_outline(start, end, base, top, side)
                if arc.head is not None
                else Outline([(end, top), (end, base)]),
                arrowstyle="-|>",
                mutation_scale=7,
                linewidth=arc.width,
                # matplotlib scales dashes by the width
                linestyle=(0, (4 / arc.width, 2 / arc.width)) if arc.other else "-",
                color=arc_colour,
                shrinkA=0,
                shrinkB=0,
                gid=arc.gid,
            )
        )
        if arc.label:
            style = dict(fontsize=_LABEL, color=OTHER if arc.other else "0.2", gid=arc.label_gid, zorder=3)
            style["bbox"] = dict(facecolor="white", edgecolor="none", pad=0.3)
            # on the far side of the line
            axis.text((start + end) / 2, top + side * _LABEL * 0.72, arc.label, **style, **_CENTRED)


def _outline(start: float, end: float, base: float, top: float, side: int) -> Outline:
    """Path up from the start, along the top, and down to the end, with round corners."""
    towards = 1 if end > start else -1
    radius = min(_ROUND, abs(end - start) / 2)
    corner = top - side * radius
    points = [(start, base), (start, corner), (start, top), (start + towards * radius, top)]
    points += [(end - towards * radius, top), (end, top), (end, corner), (end, base)]
    rounded = [Outline.LINETO, *[Outline.CURVE3] * 2]
    return Outline(points, [Outline.MOVETO, *rounded, *rounded, Outline.LINETO])


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


def wrapped(
    texts: Sequence[str], size: float, width: float, gap: float, pad: float = 0.0, weight: str = "normal"
) -> Iterator[tuple[float, int]]:
    """Break texts into lines of at most `width` points; yields the middle of each text in points, and its line, from 0.

    Texts have `pad` points on either side, and stand `gap` points apart.
    """
    left, line = 0.0, 0
    for extent in text_widths([shown(text) for text in texts], size, weight) + 2 * pad:
        if left and left + extent > width:
            left, line = 0.0, line + 1
        yield left + extent / 2, line
        left += extent + gap

"""Constituent trees over characters as pictures, and the attention between them (Bradbury & Socher 2017, Figure 2)."""

from collections.abc import Sequence

import numpy as np

from ...pictures.arcs import COLOUR, text_widths
from ...pictures.attention_maps import draw_heat_map
from ...pictures.figures import plt, shown  # before the rest of matplotlib
from ...trees.characters import SPACE
from .transitions import NONE, Action, Constituents
from .tree_files import Tree, TreeRecord

from matplotlib.collections import LineCollection  # isort: skip

LONGEST = 24
"""Symbols of a label; the middle of longer ones is left out."""

_FONT = 10  # points
_SMALL = 7.5  # points, for the names of sides
_GAP = 3.0  # points between symbols
_SLOT = 8.0  # points between the middles of symbols, at least
_SHORT = 2.5  # points to either side of its middle, of the bar of a constituent of one child
_STEP = 11.0  # points between constituents, one above the other
_LINE = 13.0  # points of a line of text
_SPACES = str.maketrans(SPACE, "\N{OPEN BOX}")  # easier to read than a bar


def draw_trees(pair: TreeRecord):
    """A figure of the trees of a sentence and of its translation, one above the other.

    Symbols are leaves, and spaces are shown as ␣; a bar is a constituent, from its first to its last child, and a line
    leads up from its middle to the bar around it. The bar of the root is thicker. Lines never cross.

    Both axes are in points. The bars of a tree have the gid `source-bars` or `target-bars`, in the order of opening,
    and the other lines `source-lines` or `target-lines`.
    """
    sides = {"source": pair.source, "target": pair.target}
    centres = [_centres(tree.symbols) for tree in sides.values()]
    trees = [tree.constituents() for tree in sides.values()]
    width = max([180.0, *(float(places[-1]) + 2 * _LINE for places in centres if len(places))])
    heights = [_LINE * 2.6 + _STEP * (built.height[0] + 1) for built in trees]
    total = sum(heights)
    figure = plt.figure(figsize=(width / 72, total / 72))
    bottom = total
    for (side, tree), places, built, height in zip(sides.items(), centres, trees, heights, strict=True):
        bottom -= height
        axis = figure.add_axes((0, bottom / total, 1, height / total))
        # one unit is one point
        axis.set(xlim=(0, width), ylim=(-_LINE * 1.6, height - _LINE * 1.6))
        axis.axis("off")
        _draw(axis, side, tree, places, built)
        axis.text(_LINE / 2, height - _LINE * 2.1, side, fontsize=_SMALL, color="0.35", va="center")
    return figure


def _centres(symbols: Sequence[str]) -> np.ndarray:
    different, number = np.unique(np.array(symbols, dtype=str), return_inverse=True)
    # bars of neighbours, which end above the middles of symbols or `_SHORT` beside them, must not touch
    widths = np.maximum(text_widths([shown(text) for text in different.tolist()], _FONT) + _GAP, _SLOT)[number]
    return _LINE + widths.cumsum() - widths / 2


def _draw(axis, side: str, tree: Tree, centres: np.ndarray, built: Constituents) -> None:
    for number, symbol in enumerate(tree.symbols):
        axis.text(
            centres[number],
            -_LINE / 2,
            shown(symbol).translate(_SPACES),
            fontsize=_FONT,
            gid=f"{side}-{number}",
            ha="center",
            va="center",
            parse_math=False,
        )
    if not tree.symbols:
        return
    left, right = _bars(built, centres)
    above = built.height * _STEP
    # the bar of an only child would have no length
    short = np.where(right - left < 2 * _SHORT, _SHORT, 0.0)
    bars = np.stack((left - short, above, right + short, above), axis=1)
    width = np.where(built.parent == NONE, 2.0, 1.2)
    add = axis.add_collection
    add(LineCollection(bars.reshape(-1, 2, 2), linewidths=width, color=COLOUR, capstyle="butt", gid=f"{side}-bars"))
    inner = built.parent != NONE
    middle = (left + right) / 2
    generated = np.flatnonzero(np.array(tree.actions) == Action.GEN)[:-1]
    around = built.innermost[0, generated]  # each symbol
    constituents = np.stack((middle, above, middle, above[built.parent]), axis=1)[inner]
    leaves = np.stack((centres, np.zeros(len(centres)), centres, above[around]), axis=1)
    lines = np.concatenate((leaves, constituents)).reshape(-1, 2, 2)
    add(LineCollection(lines, linewidths=0.6, color="0.45", gid=f"{side}-lines", zorder=1))


def _bars(built: Constituents, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the bar of each constituent: above its first and its last child."""
    left, right = centres[built.start], centres[built.end - 1]
    # children before those they are in
    for number in np.argsort(built.height, kind="stable").tolist():
        around = built.parent[number]
        if around != NONE:
            middle = (left[number] + right[number]) / 2
            if built.start[number] == built.start[around]:
                left[around] = middle
            if built.end[number] == built.end[around]:
                right[around] = middle
    return left, right


def draw_node_attention(pair: TreeRecord):
    """Heat map of the attention of the target's constituents over those of the source, in the order of opening.

    Raises ValueError: the target has no constituent besides the root.
    """
    if not len(pair.attention):
        raise ValueError(f"sentence {pair.sentence}: the target has no constituent besides the root, so no attention")
    return draw_heat_map(
        pair.attention,
        labels(pair.target)[1:],
        labels(pair.source),
        row_name="constituents of the target",
        column_name="constituents of the source",
    )


def labels(tree: Tree) -> list[str]:
    """Shortened text of each constituent of a tree; ROOT first."""
    built = tree.constituents()
    spans = zip(built.start[1:].tolist(), built.end[1:].tolist(), strict=True)
    return ["ROOT", *(_shorten(tree.symbols[start:end]) for start, end in spans)]


def _shorten(symbols: Sequence[str]) -> str:
    if len(symbols) <= LONGEST:
        return "".join(symbols)
    half = (LONGEST - 1) // 2
    return "".join([*symbols[: LONGEST - 1 - half], "\u2026", *symbols[len(symbols) - half :]])

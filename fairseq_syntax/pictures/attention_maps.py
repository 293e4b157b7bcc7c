"""Heat maps of attention over a sentence, with its tree or with predicted positions."""

from collections.abc import Sequence
from math import ceil, isqrt

import numpy as np

from .figures import check_finite, plt, shown

NAME = 8
"""Points, of the names of cells."""
CELL = 0.28
"""Inches a cell: more than a line of text of the labels' size, so that they stay readable however many there are."""
_WIDEST = 10.0
"""Inches, of a heat map whose columns have no names."""


def draw_heat_map(
    weights: np.ndarray, rows: list[str], columns: list[str], *, row_name: str, column_name: str, title: str
):
    """One heat map of weights (R, C) whose rows are distributions; colours go from 0 to the largest weight."""
    figure, _ = _heat_maps(weights[None], rows, columns, row_name, [column_name], title)
    return figure


def draw_attention(weights: np.ndarray, tokens: list[str], parents: np.ndarray | None, title: str):
    """Heat maps of attention heads (h, T, T), [head, attending, attended], in a grid, the parent of every token framed.

    Positions (T,) of parents may be fractional, NaN for none; None leaves the frames out. Colours of all heads go from
    0 to the largest weight of any.
    """
    names = [f"head {h + 1} attends to" for h in range(len(weights))]
    title = title if parents is None else f"{title} (red: syntactic parent)"
    figure, axes = _heat_maps(weights, tokens, tokens, None, names, title)
    for axis in axes if parents is not None else ():
        for t, p in enumerate(parents):
            if np.isfinite(p):
                axis.add_patch(plt.Rectangle((p - 0.5, t - 0.5), 1, 1, fill=False, edgecolor="tab:red"))
    return figure


def draw_positions(weights: np.ndarray, positions: np.ndarray, rows: list[str], columns: list[str], title: str):
    """Heat maps of attention (h, R, C) with the positions (h, R) that it was centred on, for each head of it.

    Positions are from 0 to C: token j owns [j, j + 1). Their line has the gid `position-H`, H from 0.
    """
    check_finite(positions, "the predicted positions")
    names = ["attends to"] if len(weights) == 1 else [f"directed head {h + 1} attends to" for h in range(len(weights))]
    figure, axes = _heat_maps(weights, rows, columns, "predicted", names, f"{title} (red: predicted position)")
    for h, axis in enumerate(axes):
        # cells are centred on whole numbers
        style = dict(color="tab:red", marker="o", ms=3, lw=0.8, clip_on=False, zorder=3)
        axis.plot(positions[h] - 0.5, range(len(rows)), **style, gid=f"position-{h}")
    return figure


def draw_annotations(annotations: np.ndarray, tokens: list[str], title: str):
    """The annotations (T, C) of tokens as they are, positive red and negative blue."""
    check_finite(annotations, "the annotations")
    size = (min(_WIDEST, max(3.0, CELL * annotations.shape[1])) + 2, max(1.0, CELL * len(tokens)) + 1)
    figure, axis = plt.subplots(figsize=size, layout="constrained")
    largest = float(np.abs(annotations).max()) or 1.0
    image = axis.imshow(annotations, cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto", interpolation="none")
    _name_rows(axis, tokens)
    axis.set_xlabel("component")
    figure.colorbar(image, ax=axis, label="value")
    figure.suptitle(shown(title), parse_math=False)
    return figure


def _heat_maps(
    weights: np.ndarray, rows: list[str], columns: list[str], row_name: str | None, names: Sequence[str], title: str
):
    """Heat maps (h, R, C) with one scale, in a grid that is about as high as wide, and their axes."""
    check_finite(weights, "the attention weights")
    count = len(weights)
    across = isqrt(count - 1) + 1
    down = ceil(count / across)
    one = (max(3.0, CELL * len(columns)), max(3.0, CELL * len(rows)))
    figure, grid = plt.subplots(
        down, across, figsize=(one[0] * across + 2, (one[1] + 1) * down + 1), squeeze=False, layout="constrained"
    )
    axes = grid.ravel()
    largest = float(weights.max(initial=0.0)) or 1.0
    for h, axis in enumerate(axes[:count]):
        image = draw_cells(axis, weights[h], rows if h % across == 0 else None, columns, largest)
        axis.set_xlabel(names[h])
        if row_name is not None and h % across == 0:
            axis.set_ylabel(row_name)
    for axis in axes[count:]:
        axis.remove()
    figure.colorbar(image, ax=axes[:count].tolist(), shrink=0.7, label="weight")
    figure.suptitle(shown(title), parse_math=False)
    return figure, axes[:count]


def draw_cells(axis, weights: np.ndarray, rows: list[str] | None, columns: Sequence[str], largest: float):
    """A heat map (R, C) on an axis, with colours from 0 to `largest`; rows of None have no names. Returns the image."""
    image = axis.imshow(weights, cmap="Blues", vmin=0, vmax=largest, aspect="auto", interpolation="none")
    # a token with dollar signs is not a formula
    names = [shown(text) for text in columns]
    axis.set_xticks(range(len(columns)), names, rotation=90, fontsize=NAME, parse_math=False)
    _name_rows(axis, rows)
    return image


def _name_rows(axis, rows: list[str] | None) -> None:
    """Name the rows of a heat map; None leaves them without names."""
    if rows is None:
        axis.set_yticks([])
    else:
        axis.set_yticks(range(len(rows)), [shown(text) for text in rows], fontsize=NAME, parse_math=False)

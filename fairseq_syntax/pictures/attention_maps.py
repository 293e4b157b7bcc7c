"""Heat maps of attention over a sentence, with its tree or with predicted positions."""

from collections.abc import Sequence
from math import ceil, isqrt

import numpy as np

from .figures import check_finite, plt, shown

NAME = 8
"""Font size of labels, in points."""
CELL = 0.28
"""Size of a cell in inches, more than a line of a label, so that labels are always readable."""
_WIDEST = 10.0
"""Largest width in inches of a heat map whose columns have no labels."""


def draw_heat_map(
    weights: np.ndarray, rows: list[str], columns: list[str], *, row_name: str, column_name: str, title: str
):
    """A figure with a heat map of weights (R, C); colours range from 0 to the largest weight."""
    figure, _ = _heat_maps(weights[None], rows, columns, row_name, [column_name], title)
    return figure


def draw_attention(weights: np.ndarray, tokens: list[str], parents: np.ndarray | None, title: str):
    """A figure with a grid of heat maps for attention heads (h, T, T), [head, attending, attended].

    The parent of every token is framed, at positions (T,) that may be fractional, or NaN for no parent. With `parents`
    None, there are no frames. All heads have the same range of colours.
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
    """A figure with heat maps of attention (h, R, C) and the positions (h, R) at its centre, one per head.

    Positions range from 0 to C: token j covers [j, j + 1). The gid of their line is `position-H`, H from 0.
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
    """A figure of annotations (T, C) of tokens, red if positive and blue if negative."""
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
    """A figure with heat maps (h, R, C) on one scale, in a roughly square grid, and their axes."""
    check_finite(weights, "the attention weights")
    count = len(weights)
    across = isqrt(count - 1) + 1
    down = ceil(count / across)
    size = (max(3.0, CELL * len(columns)), max(3.0, CELL * len(rows)))
    figure, grid = plt.subplots(
        down, across, figsize=(size[0] * across + 2, (size[1] + 1) * down + 1), squeeze=False, layout="constrained"
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
    """Draw a heat map (R, C) with colours from 0 to `largest`, and return its image; `rows` None for no labels."""
    image = axis.imshow(weights, cmap="Blues", vmin=0, vmax=largest, aspect="auto", interpolation="none")
    # a token with dollar signs is not a formula
    names = [shown(text) for text in columns]
    axis.set_xticks(range(len(columns)), names, rotation=90, fontsize=NAME, parse_math=False)
    _name_rows(axis, rows)
    return image


def _name_rows(axis, rows: list[str] | None) -> None:
    """Label the rows of a heat map, unless `rows` is None."""
    if rows is None:
        axis.set_yticks([])
    else:
        axis.set_yticks(range(len(rows)), [shown(text) for text in rows], fontsize=NAME, parse_math=False)

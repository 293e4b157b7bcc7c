"""Heat maps of attention over a sentence, with its tree or with predicted positions."""

from collections.abc import Sequence
from math import ceil, isqrt

import numpy as np

from .arcs import OTHER
from .figures import check_finite, plt, shown

NAME = 8
"""Font size of labels, in points."""
CELL = 0.2
"""Size of a cell in inches, more than a line of a label, so that labels are always readable."""
LARGEST = 100
"""Largest number of rows or columns of a heat map."""
_WIDEST = 10.0
"""Largest width in inches of a heat map whose columns have no labels."""


class TooLarge(ValueError):
    """A heat map has too many rows or columns to be readable."""


def draw_heat_map(
    weights: np.ndarray,
    rows: list[str],
    columns: list[str],
    *,
    row_name: str,
    column_name: str,
    parents: np.ndarray | None = None,
    value: str = "weight",
):
    """A figure with a heat map of weights (R, C); colours range from 0 to the largest weight, rounded up to a tenth.

    The column of every row's parent is framed, see `draw_attention`; `value` names the colours. Raises TooLarge.
    """
    figure, axes = _heat_maps(weights[None], rows, columns, row_name, [column_name], value)
    _frame(figure, axes, parents, "head in the given tree")
    return figure


def draw_attention(weights: np.ndarray, tokens: list[str], parents: np.ndarray | None, layer: int = 1):
    """A figure with a grid of heat maps for attention heads (h, T, T), [head, attending, attended].

    The parent of every token is framed, at positions (T,) that may be fractional, or NaN for no parent. With `parents`
    None, there are no frames. All heads have the same range of colours. Raises TooLarge.
    """
    figure, axes = _heat_maps(weights, tokens, tokens, "word", ["attends to"] * len(weights))
    for h, axis in enumerate(axes):
        axis.set_title(f"layer {layer}, head {h + 1}")
    _frame(figure, axes, parents, "syntactic parent; the root and </s> are their own")
    return figure


def _frame(figure, axes, parents: np.ndarray | None, name: str) -> None:
    """Frame the parent of every row, and explain the frames in a legend."""
    if parents is None:
        return
    style = dict(fill=False, edgecolor=OTHER, linewidth=1.2)
    for axis in axes:
        for t, p in enumerate(parents):
            if np.isfinite(p):
                axis.add_patch(plt.Rectangle((p - 0.5, t - 0.5), 1, 1, **style))
    _explain(figure, plt.Rectangle((0, 0), 1, 1, **style), name)


def _explain(figure, sign, text: str) -> None:
    """Add a legend above the heat maps."""
    figure.legend(
        [sign], [text], loc="outside upper left", fontsize=NAME, frameon=False, handlelength=1, handleheight=1
    )


def draw_positions(weights: np.ndarray, positions: np.ndarray, rows: list[str], columns: list[str]):
    """A figure with heat maps of attention (h, R, C) and the positions (h, R) at its centre, one per head.

    Positions range from 0 to C: token j covers [j, j + 1). The gid of their line is `position-H`, H from 0.
    """
    check_finite(positions, "the predicted positions")
    names = ["attends to"] if len(weights) == 1 else [f"directed head {h + 1} attends to" for h in range(len(weights))]
    figure, axes = _heat_maps(weights, rows, columns, "predicted", names)
    for h, axis in enumerate(axes):
        # cell j is centred on j
        style = dict(color=OTHER, marker="o", ms=3, lw=0.8, clip_on=False, zorder=3)
        [line] = axis.plot(positions[h] - 0.5, range(len(rows)), **style, gid=f"position-{h}")
    _explain(figure, line, "predicted position")
    return figure


def draw_annotations(annotations: np.ndarray, tokens: list[str]):
    """A figure of annotations (T, C) of tokens, red if positive and blue if negative."""
    check_finite(annotations, "the annotations")
    size = (min(_WIDEST, max(3.0, CELL * annotations.shape[1])) + 2, max(1.0, CELL * len(tokens)) + 1)
    figure, axis = plt.subplots(figsize=size, layout="constrained")
    largest = float(np.abs(annotations).max()) or 1.0
    image = axis.imshow(annotations, cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto", interpolation="none")
    _name_rows(axis, tokens)
    axis.set_xlabel("component")
    figure.colorbar(image, ax=axis, label="value")
    return figure


def _heat_maps(
    weights: np.ndarray, rows: list[str], columns: list[str], row_name: str, names: Sequence[str], value: str = "weight"
):
    """A figure with heat maps (h, R, C) on one scale, in a roughly square grid, and their axes."""
    check_finite(weights, "the attention weights")
    if max(len(rows), len(columns)) > LARGEST:
        raise TooLarge(
            f"a heat map of {len(rows)} rows and {len(columns)} columns cannot be read; the most are "
            f"{LARGEST}; draw a shorter sentence"
        )
    count = len(weights)
    across = isqrt(count - 1) + 1
    down = ceil(count / across)
    size = (max(2.0, CELL * len(columns)), max(2.0, CELL * len(rows)))
    figure, grid = plt.subplots(
        down, across, figsize=(size[0] * across + 2, (size[1] + 1) * down + 1), squeeze=False, layout="constrained"
    )
    axes = grid.ravel()
    largest = ceil(10 * float(weights.max(initial=0.0)) - 1e-4) / 10 or 1.0
    for h, axis in enumerate(axes[:count]):
        image = draw_cells(axis, weights[h], rows if h % across == 0 else None, columns, largest)
        axis.set_xlabel(names[h])
        if h % across == 0:
            axis.set_ylabel(row_name)
    for axis in axes[count:]:
        axis.remove()
    figure.colorbar(image, ax=axes[:count].tolist(), shrink=0.7, label=value)
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

"""Pictures of attention over a sentence, with its tree."""

import numpy as np

from .figures import plt

_CELL = 0.28
"""Inches a cell: more than a line of text of the labels' size, so that they stay readable however many there are."""


def _label(axis, rows: list[str] | None, columns: list[str]) -> None:
    """Name the cells of a heat map; None leaves the rows without names."""
    # a token with dollar signs is no formula
    axis.set_xticks(range(len(columns)), columns, rotation=90, fontsize=8, parse_math=False)
    if rows is None:
        axis.set_yticks([])
    else:
        axis.set_yticks(range(len(rows)), rows, fontsize=8, parse_math=False)


def draw_heat_map(
    weights: np.ndarray, rows: list[str], columns: list[str], *, row_name: str, column_name: str, title: str
):
    """One heat map with named cells.

    Args:
        weights: (R, C), every row a distribution over the columns.
        rows, columns: R and C labels.
        row_name, column_name: names of the axes.
        title: above the picture.

    Returns:
        A matplotlib figure; its size grows with R and C.
    """
    size = (max(3.0, _CELL * len(columns)) + 2, max(3.0, _CELL * len(rows)) + 2)
    figure, axis = plt.subplots(figsize=size, layout="constrained")
    image = axis.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    _label(axis, rows, columns)
    axis.set_xlabel(column_name)
    axis.set_ylabel(row_name)
    figure.colorbar(image, ax=axis, shrink=0.7, label="weight")
    figure.suptitle(title, parse_math=False)
    return figure


def draw_attention(weights: np.ndarray, tokens: list[str], parents: np.ndarray | None, title: str):
    """Heat maps of attention heads, the parent of every token framed.

    Args:
        weights: (h, T, T), [head, attending token, attended token], rows sum to one.
        tokens: T labels.
        parents: (T,) positions of the parents, may be fractional; NaN for none. None leaves the frames out.
        title: above the picture.

    Returns:
        A matplotlib figure.
    """
    heads, length, _ = weights.shape
    side = max(3.0, _CELL * length)
    figure, axes = plt.subplots(1, heads, figsize=(side * heads + 1, side + 1), squeeze=False, layout="constrained")
    for h, axis in enumerate(axes[0]):
        image = axis.imshow(weights[h], cmap="Blues", vmin=0, vmax=1)
        _label(axis, tokens if h == 0 else None, tokens)
        axis.set_xlabel(f"head {h + 1} attends to")
        if parents is not None:
            for t, p in enumerate(parents):
                if np.isfinite(p):
                    axis.add_patch(plt.Rectangle((p - 0.5, t - 0.5), 1, 1, fill=False, edgecolor="tab:red"))
    figure.colorbar(image, ax=axes[0].tolist(), shrink=0.7, label="attention weight")
    figure.suptitle(title if parents is None else f"{title} (red: syntactic parent)", parse_math=False)
    return figure

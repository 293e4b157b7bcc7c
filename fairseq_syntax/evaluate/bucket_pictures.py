"""Plots of scores by bucket (Chen et al. 2018, Figures 5-8)."""

import math
from collections.abc import Sequence

import numpy as np

from ..pictures.figures import plt, shown

_MARKS = "osD^vPX*"
_COLUMNS = 3


def draw_buckets(tables: Sequence[dict], names: Sequence[str], metric: str):
    """A matplotlib figure with one panel per table, one line per system, and the size of each bucket.

    Buckets that are too small even after merging have hollow marks.

    Args:
        tables: results of `buckets.bucket_scores`.
        names: systems.
        metric: name of the metric.
    """
    columns = min(len(tables), _COLUMNS)
    rows = math.ceil(len(tables) / columns)
    width = max(4.5, 0.9 * max(len(table["groups"]) for table in tables) + 1.5)
    size = (width * columns, 3.6 * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, sharey=True, layout="constrained")
    for axis in axes.flat[len(tables) :]:
        axis.remove()
    for axis, table in zip(axes.flat, tables, strict=False):
        _draw(axis, table, names, metric)
    for axis in axes[:, 0]:
        axis.set_ylabel(f"{metric}, 95 % intervals (bootstrap)")
    first = axes[0, 0]
    # names are passed explicitly, because matplotlib leaves those that begin with `_` out of the legend
    for text in first.legend(first.containers, [shown(name) for name in names], fontsize="small").get_texts():
        text.set_parse_math(False)
    return figure


def _draw(axis, table: dict, names: Sequence[str], metric: str) -> None:
    groups = table["groups"]
    for i, name in enumerate(names):
        scores = [group["scores"][metric][name] for group in groups]
        values = np.array([score["mean"] for score in scores])
        low, high = np.array([score["interval"] for score in scores]).T
        # the bars of all systems take up a third of a bucket's width
        places = np.arange(len(groups)) + (i - (len(names) - 1) / 2) / (3 * len(names))
        # the score of a corpus may lie outside the interval of its resamples
        away = np.maximum([values - low, high - values], 0)
        few = groups[0]["size"] < table["minimum"]
        style = dict(marker=_MARKS[i % len(_MARKS)], markersize=5, elinewidth=0.8, fillstyle="none" if few else "full")
        axis.errorbar(places, values, away, **style)
    labels = [f"{shown(group['label'])}\nn = {group['size']}" for group in groups]
    axis.set_xticks(range(len(groups)), labels, parse_math=False)
    axis.set_xlim(-0.5, len(groups) - 0.5)
    axis.set_xlabel(f"{shown(table['title'])}, n sentences").set_parse_math(False)
    axis.grid(axis="y", alpha=0.3)

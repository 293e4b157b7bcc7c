"""Plots of scores by bucket (Chen et al. 2018, Figures 5-8)."""

import math
from collections.abc import Sequence

import numpy as np

from ..pictures.figures import plt, shown
from .plots import MARKS, styled

_COLUMNS = 3


@styled()
def draw_buckets(tables: Sequence[dict], names: Sequence[str], metric: str):
    """A matplotlib figure with one panel per table, one line per system, and the size of each bucket.

    Buckets that are too small even after merging have hollow marks.

    Args:
        tables: results of `buckets.breakdown`.
        names: systems.
        metric: name of the metric.
    """
    labels = [shown(name) for name in names]
    columns = min(len(tables), _COLUMNS)
    rows = math.ceil(len(tables) / columns)
    # in inches; names stand above, or at the right if there are too many
    width = max(3.2, max(0.5, 0.2 + 0.08 * len(names)) * max(len(table["groups"]) for table in tables) + 0.7) * columns
    wide = sum(0.5 + 0.065 * len(label) for label in labels) > width
    size = width + wide * (0.5 + 0.065 * max(map(len, labels))), 2.6 * rows + 0.3
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, sharey=True, layout="constrained")
    for axis in axes.flat[len(tables) :]:
        axis.remove()
    for axis, table in zip(axes.flat, tables, strict=False):
        _draw(axis, table, names, metric)
    for axis in axes[:, 0]:
        axis.set_ylabel(f"{metric}\n(95 % intervals)")
    # names are passed explicitly, because matplotlib leaves those that begin with `_` out of the legend
    place = dict(loc="outside right upper") if wide else dict(loc="outside upper center", ncols=len(names))
    legend = figure.legend(axes[0, 0].containers, labels, **place)
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


def _draw(axis, table: dict, names: Sequence[str], metric: str) -> None:
    groups = table["groups"]
    for i, name in enumerate(names):
        scores = [group["scores"][metric][name] for group in groups]
        values = np.array([score["mean"] for score in scores])
        low, high = np.array([score["interval"] for score in scores]).T
        # the bars of all systems take up half of a bucket's width
        places = np.arange(len(groups)) + (i - (len(names) - 1) / 2) / (2 * len(names))
        # the score of a corpus may lie outside the interval of its resamples
        away = np.maximum([values - low, high - values], 0)
        few = groups[0]["size"] < table["minimum"]
        style = dict(marker=MARKS[i % len(MARKS)], markersize=4, linewidth=1, elinewidth=1)
        axis.errorbar(places, values, away, fillstyle="none" if few else "full", **style)
    labels = [f"{shown(group['label'])}\n{group['size']:,}" for group in groups]
    axis.set_xticks(range(len(groups)), labels, parse_math=False)
    axis.set_xlim(-0.5, len(groups) - 0.5)
    axis.set_xlabel(f"{shown(table['title'])}; below, number of sentences").set_parse_math(False)
    axis.grid(axis="y")

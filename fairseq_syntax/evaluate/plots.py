"""The style of plots, and names at the ends of lines."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from ..pictures.figures import plt, shown

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C8C8C")
"""Okabe and Ito's, which readers with colour blindness can tell apart; grey for their yellow, pale on white."""
MARKS = "os^vDPX*p"
_STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "grid.color": "0.9",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.prop_cycle": plt.cycler(color=COLORS),
}


@contextmanager
def styled() -> Iterator[None]:
    """All plots are made in this context, which is a decorator, too."""
    with plt.rc_context(_STYLE):
        yield


def signed_ticks(axis) -> None:
    """Write + before positive numbers of a matplotlib axis."""
    axis.set_major_formatter(lambda value, _: f"{value:+g}".replace("-", "−") if value else "0")


def label_ends(axis, ends: Mapping[str, tuple[float, float, str]], aligned: bool = False) -> None:
    """Write names to the right of the ends of their lines, and apart from each other.

    Args:
        axis: a panel whose lines, limits and scales are final.
        ends: name -> x and y of the last point, and the line's colour.
        aligned: whether all names begin to the right of all ends.
    """
    axis.figure.draw_without_rendering()
    size = plt.rcParams["legend.fontsize"]
    gap = 1.3 * size / (axis.get_window_extent().height * 72 / axis.figure.dpi)
    places = {
        name: axis.transAxes.inverted().transform(axis.transData.transform((x, y)))[1]
        for name, (x, y, _) in sorted(ends.items(), key=lambda end: end[1][1])
    }
    names = list(places)
    for _ in range(100 * len(names)):
        for below, above in pairwise(names):
            overlap = max(gap - (places[above] - places[below]), 0)
            places[below] -= overlap / 2
            places[above] += overlap / 2
        places[names[0]] = max(places[names[0]], 0)
    lefts = {
        name: axis.transAxes.inverted().transform(axis.transData.transform((x, y)))[0] + 0.06
        for name, (x, y, _) in ends.items()
    }
    for name, (x, y, color) in ends.items():
        line = dict(arrowstyle="-", linestyle=":", linewidth=0.8, color=color, shrinkA=0, shrinkB=2, relpos=(0, 0.5))
        left = max(lefts.values()) if aligned else lefts[name]
        where = dict(xytext=(left, places[name]), textcoords="axes fraction", va="center", annotation_clip=False)
        axis.annotate(shown(name), (x, y), color=color, size=size, arrowprops=line, **where).set_parse_math(False)

"""The style of plots."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..pictures.figures import plt

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

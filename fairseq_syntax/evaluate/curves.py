"""Plots of training curves, and of scores over the quality of parses."""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, cycle
from pathlib import PurePath
from typing import NamedTuple

from matplotlib.ticker import LogLocator, MaxNLocator

from ..pictures.figures import plt, shown
from .plots import COLORS, MARKS, label_ends, styled

MEASURES: dict[str, Callable[[dict], float]] = {
    "BLEU": lambda point: point["BLEU"]["score"],
    "chrF": lambda point: point["chrF"]["score"],
    "agreement, %": lambda point: 100 * point["agreement"]["overall"]["accuracy"],
}
"""Title of a plot over the quality of parses -> score of a point."""

Records = Mapping[str, Mapping[str, dict]]
"""Name of a system -> seed -> record, see `results.read_results`."""


@styled()
def draw_training(records: Records, unit: str = "token"):
    """A matplotlib figure of validation BLEU, or of the loss if BLEU is unknown, over updates; None without curves.

    There is one panel per family, one line per run, and one colour per system. The loss is in bits per `unit`.
    """
    families: dict[str, dict[str, list[list[dict]]]] = {}
    for name, runs in records.items():
        for record in runs.values():
            if record.get("curve"):
                families.setdefault(record.get("family", ""), {}).setdefault(name, []).append(record["curve"])
    if not families:
        return None
    size = 4.6 * len(families), 2.6
    figure, axes = plt.subplots(1, len(families), figsize=size, squeeze=False, layout="constrained")
    for axis, (family, systems) in zip(axes[0], families.items(), strict=True):
        entries = list(chain.from_iterable(chain.from_iterable(systems.values())))
        is_bleu = all("bleu" in entry for entry in entries)
        score, title = ("bleu", "BLEU") if is_bleu else ("loss", f"loss, bits per {unit}")
        ends = {}
        for (name, curves), color in zip(systems.items(), cycle(COLORS), strict=False):
            for curve in curves:
                updates, scores = [entry["updates"] for entry in curve], [entry[score] for entry in curve]
                axis.plot(updates, scores, color=color, linewidth=1)
            last = [curve[-1] for curve in curves]
            ends[name] = (max(e["updates"] for e in last), statistics.mean(e[score] for e in last), color)
        axis.set(xlabel="updates", ylabel=f"validation {title}", xlim=(0, None))
        if is_bleu:
            axis.set_ylim(0, None)
        elif min(entry["loss"] for entry in entries) > 0:
            axis.set_yscale("log")
            lowest = min(entry["loss"] for entry in entries)
            decade = 10 ** math.floor(math.log10(lowest))
            axis.set_ylim(max(step * decade for step in (1, 2, 5) if step * decade <= lowest), None)
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.yaxis.set_major_formatter("{x:g}")
            axis.yaxis.set_minor_formatter("")
        axis.xaxis.set_major_locator(MaxNLocator(5))
        axis.xaxis.set_major_formatter("{x:,.0f}")
        if len(families) > 1:
            axis.set_title(shown(family)).set_parse_math(False)
        axis.grid(axis="y")
        label_ends(axis, ends)
    return figure


class Parses(NamedTuple):
    """A set of parses with which systems translated.

    Attributes:
        alone: name of their folder if it has no others, which means another kind of errors; empty for a series of
            increasingly bad parses, and for the best parses.
        uas: in percent.
    """

    alone: str
    uas: float

    def __str__(self) -> str:
        return f"UAS {self.uas:.0f}" + (f", {self.alone}" if self.alone else "")


def parse_points(records: Records) -> dict[str, dict[Parses, list[dict]]]:
    """System -> parses, in the order of `in_order` -> points of its runs."""
    points = {
        name: [point for record in runs.values() for point in record.get("curve_of_parses", ())]
        for name, runs in records.items()
    }
    files = {point["parses"]: point["UAS"] for of_system in points.values() for point in of_system}
    folders = {file: next(iter(PurePath(file).parent.parts), "") for file in files}
    together, best = Counter(folders.values()), max(files.values(), default=0)
    parses = {
        file: Parses(folders[file] if together[folders[file]] == 1 and uas < best else "", uas)
        for file, uas in files.items()
    }
    curves: dict[str, dict[Parses, list[dict]]] = {}
    for level in in_order(parses.values()):
        for name, of_system in points.items():
            of_parses = [point for point in of_system if parses[point["parses"]] == level]
            if of_parses:
                curves.setdefault(name, {})[level] = of_parses
    return {name: curves[name] for name in records if name in curves}


def in_order(parses: Iterable[Parses]) -> list[Parses]:
    """Distinct parses, the best first and those alone last."""
    return sorted(set(parses), key=lambda level: (level.alone != "", -level.uas))


@styled()
def draw_parse_quality(curves: dict[str, dict[Parses, list[dict]]]):
    """A matplotlib figure of BLEU over the UAS of parses, from the result of `parse_points`; None without parses.

    Lines are means over runs, in a band from the lowest to the highest. Parses that are alone are in a panel of their
    own.
    """
    if not curves:
        return None
    alone = [parses for parses in in_order(chain.from_iterable(curves.values())) if parses.alone]
    figure, axes = plt.subplots(
        1,
        1 + bool(alone),
        figsize=(5.4 + 0.9 * len(alone), 3.6),
        squeeze=False,
        sharey=True,
        width_ratios=[4, *[0.8 * len(alone)] * bool(alone)],
        layout="constrained",
    )
    axes = axes[0]
    ends: list[dict[str, tuple[float, float, str]]] = [{} for _ in axes]
    for i, (name, points) in enumerate(curves.items()):
        color, dashes = COLORS[i % len(COLORS)], "-" if i < len(COLORS) else "--"
        style = dict(color=color, linestyle=dashes, marker=MARKS[i % len(MARKS)], markersize=4, clip_on=False)
        places: list[dict[float, list[dict]]] = [{p.uas: points[p] for p in points if not p.alone}]
        # beside each other
        places.append({alone.index(p) + 0.6 * ((i + 0.5) / len(curves) - 0.5): points[p] for p in points if p.alone})
        for axis, of_places, end in zip(axes, places, ends, strict=False):
            if not of_places:
                continue
            scores = [[MEASURES["BLEU"](point) for point in of_runs] for of_runs in of_places.values()]
            means, low, high = ([of(of_runs) for of_runs in scores] for of in (statistics.mean, min, max))
            end[name] = *list(zip(of_places, means, strict=True))[-1], color
            if axis is axes[0]:
                axis.plot(list(of_places), means, linewidth=1, **style)
                axis.fill_between(list(of_places), low, high, color=color, alpha=0.12, linewidth=0)
            else:
                axis.plot(list(of_places), means, **style | dict(linewidth=0))
                axis.vlines(list(of_places), low, high, color=color, linewidth=0.8)
    axes[0].set(xlabel="UAS of the trees that are read, %", ylabel="BLEU")
    axes[0].margins(x=0)
    axes[0].invert_xaxis()
    for axis in axes[1:]:
        names = [f"{shown(parses.alone)}\n(UAS {parses.uas:.0f})" for parses in alone]
        axis.set_xticks(range(len(alone)), names, parse_math=False)
        axis.set_xlim(-0.5, len(alone) - 0.5)
    for axis, end in zip(axes, ends, strict=True):
        axis.grid(axis="y")
        label_ends(axis, end, aligned=True)
    return figure

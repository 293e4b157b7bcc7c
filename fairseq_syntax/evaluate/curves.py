"""Plots of training curves, and of scores over the quality of parses."""

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


_DRAWN = {"BLEU": "BLEU", "agreement, %": "verbs that agree, %"}
"""Title of a measure that is drawn -> of its axis."""


@styled()
def draw_parse_quality(curves: dict[str, dict[Parses, list[dict]]]):
    """A matplotlib figure of the result of `parse_points`: a panel for BLEU and agreement, and one line per system.

    It is None without curves. Lines are means over runs, in a band from the lowest to the highest. Parses that are
    alone stand at the right, with hollow marks.
    """
    if not curves:
        return None
    figure, axes = plt.subplots(1, len(_DRAWN), figsize=(7.2, 3.3), layout="constrained")
    levels = in_order(chain.from_iterable(curves.values()))
    series = [parses.uas for parses in levels if not parses.alone]
    step = 0.45 * (max(series) - min(series)) or 1
    places = {parses: parses.uas for parses in levels}
    places |= {parses: min(series) - step * (i + 1) for i, parses in enumerate(filter(lambda p: p.alone, levels))}
    # numbers too close to the one before are left out
    ticks = [
        "" if i % 2 and not parses.alone and places[levels[i - 1]] - places[parses] < step / 2 else _tick(parses)
        for i, parses in enumerate(levels)
    ]
    for axis, title in zip(axes, _DRAWN, strict=True):
        ends = {}
        for i, (name, points) in enumerate(curves.items()):
            scores = {parses: [MEASURES[title](point) for point in points[parses]] for parses in points}
            color, dashes = COLORS[i % len(COLORS)], "-" if i < len(COLORS) else "--"
            style = dict(color=color, linestyle=dashes, marker=MARKS[i % len(MARKS)], markersize=4, clip_on=False)
            for alone in (False, True):
                found = {places[parses]: of_runs for parses, of_runs in scores.items() if bool(parses.alone) == alone}
                means = [statistics.mean(of_runs) for of_runs in found.values()]
                low, high = (list(map(end, found.values())) for end in (min, max))
                axis.plot(
                    list(found), means, linewidth=0 if alone else 1, fillstyle="none" if alone else "full", **style
                )
                if alone:
                    axis.vlines(list(found), low, high, color=color, linewidth=0.8)
                else:
                    axis.fill_between(list(found), low, high, color=color, alpha=0.12, linewidth=0)
            last = min(scores, key=places.__getitem__)
            ends[name] = places[last], statistics.mean(scores[last]), color
        axis.set_xticks(list(places.values()), ticks, parse_math=False)
        axis.set(xlabel="UAS of the trees that are read, %", ylabel=_DRAWN[title])
        axis.margins(x=0)
        axis.invert_xaxis()
        if len(places) > len(series):
            axis.axvline(min(series) - step / 2, color="0.6", linewidth=0.6)
        axis.grid(axis="y")
        label_ends(axis, ends)
    return figure


def _tick(parses: Parses) -> str:
    return f"{parses.uas:.0f}" + (f"\n{shown(parses.alone)}" if parses.alone else "")

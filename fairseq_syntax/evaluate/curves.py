"""Plots of training curves, and of scores over the quality of parses."""

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, cycle
from pathlib import PurePath
from typing import NamedTuple

from ..pictures.figures import plt, shown

_MARKS = "os^vDPX*"

MEASURES: dict[str, Callable[[dict], float]] = {
    "BLEU": lambda point: point["BLEU"]["score"],
    "chrF": lambda point: point["chrF"]["score"],
    "agreement, %": lambda point: 100 * point["agreement"]["overall"]["accuracy"],
}
"""Title of a plot over the quality of parses -> score of a point."""

Records = Mapping[str, Mapping[str, dict]]
"""Name of a system -> seed -> record, see `results.read_results`."""


def draw_training(records: Records):
    """A matplotlib figure of validation BLEU, or of the loss if BLEU is unknown, over updates; None without curves.

    There is one panel per family, one line per run, and one colour per system.
    """
    families: dict[str, dict[str, list[list[dict]]]] = {}
    for name, runs in records.items():
        for record in runs.values():
            if record.get("curve"):
                families.setdefault(record.get("family", ""), {}).setdefault(name, []).append(record["curve"])
    if not families:
        return None
    figure, axes = plt.subplots(
        1, len(families), figsize=(5.2 * len(families), 3.6), squeeze=False, layout="constrained"
    )
    for axis, (family, systems) in zip(axes[0], families.items(), strict=True):
        entries = chain.from_iterable(chain.from_iterable(systems.values()))
        score, title = ("bleu", "BLEU") if all("bleu" in entry for entry in entries) else ("loss", "loss")
        for i, (name, curves) in enumerate(systems.items()):
            for k, curve in enumerate(curves):
                updates = [entry["updates"] for entry in curve]
                label = shown(name) if k == 0 else None
                axis.plot(updates, [entry[score] for entry in curve], color=f"C{i % 10}", linewidth=0.9, label=label)
        axis.set_title(shown(family)).set_parse_math(False)
        axis.set(xlabel="updates", ylabel=f"validation {title}")
        _legend(axis)
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


def draw_parse_quality(curves: dict[str, dict[Parses, list[dict]]]):
    """A matplotlib figure of the result of `parse_points`: one panel per score, and one line per system.

    Lines are means over runs, in a band from the lowest to the highest. Parses that are alone have hollow marks.
    """
    figure, axes = plt.subplots(1, len(MEASURES), figsize=(11, 3.6), layout="constrained")
    for axis, (title, score) in zip(axes, MEASURES.items(), strict=True):
        for (name, points), mark in zip(curves.items(), cycle(_MARKS), strict=False):
            runs = {parses: [score(point) for point in of_parses] for parses, of_parses in points.items()}
            series = {parses.uas: scores for parses, scores in runs.items() if not parses.alone}
            means = [statistics.mean(scores) for scores in series.values()]
            [line] = axis.plot(list(series), means, marker=mark, markersize=4, linewidth=1, label=shown(name))
            low, high = (list(map(end, series.values())) for end in (min, max))
            axis.fill_between(list(series), low, high, color=line.get_color(), alpha=0.15, linewidth=0)
            for parses, scores in runs.items():
                if parses.alone:
                    mean, style = statistics.mean(scores), dict(marker=mark, markersize=5, fillstyle="none")
                    ends = [[mean - min(scores)], [max(scores) - mean]]
                    axis.errorbar(parses.uas, mean, ends, color=line.get_color(), elinewidth=0.8, **style)
        axis.set(title=title, xlabel="UAS of the parses, %")
        axis.invert_xaxis()
        for parses in filter(lambda parses: parses.alone, in_order(chain.from_iterable(curves.values()))):
            axis.axvline(parses.uas, color="0.7", linewidth=0.6, linestyle=":", zorder=0)
            place = axis.get_xaxis_transform()
            axis.text(parses.uas, 1, shown(parses.alone), transform=place, fontsize="x-small", ha="center", va="bottom")
    _legend(axes[0])
    return figure


def _legend(axis) -> None:
    for label in axis.legend(fontsize="x-small").get_texts():
        label.set_parse_math(False)
    axis.grid(axis="y", alpha=0.3)

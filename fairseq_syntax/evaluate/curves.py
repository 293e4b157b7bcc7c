"""What records say of the course of training, and of parses of another quality, as pictures."""

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
"""What a point of a curve over the quality of parses says: title -> score."""

Records = Mapping[str, Mapping[str, dict]]
"""Name of a system -> seed -> record, as `evaluate.results.read_results` has them."""


def draw_training(records: Records):
    """Validation BLEU, or loss where it is not known, over updates: a panel a family, a line a run, a colour a system.

    Returns:
        A matplotlib figure; None if no record has a curve.
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
    """Parses that systems have translated with.

    Attributes:
        alone: their folder if no others are in it: they are wrong in a way of their own. Empty for a series of ever
            worse parses, and for the best.
        uas: in percent.
    """

    alone: str
    uas: float

    def __str__(self) -> str:
        return f"UAS {self.uas:.0f}" + (f", {self.alone}" if self.alone else "")


def parse_points(records: Records) -> dict[str, dict[Parses, list[dict]]]:
    """System -> parses that it translated with, the best first and those alone last -> the points of its runs."""
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
    found: dict[str, dict[Parses, list[dict]]] = {}
    for each in in_order(parses.values()):
        for name, of_system in points.items():
            some = [point for point in of_system if parses[point["parses"]] == each]
            if some:
                found.setdefault(name, {})[each] = some
    return {name: found[name] for name in records if name in found}


def in_order(parses: Iterable[Parses]) -> list[Parses]:
    """Each once: the best first, those alone last."""
    return sorted(set(parses), key=lambda each: (each.alone != "", -each.uas))


def draw_parse_quality(found: dict[str, dict[Parses, list[dict]]]):
    """A panel a score, a line a system: the mean over its runs, from the lowest to the highest of them.

    Parses that are alone stand beside the line, with hollow marks.

    Args:
        found: see `parse_points`.

    Returns:
        A matplotlib figure.
    """
    figure, axes = plt.subplots(1, len(MEASURES), figsize=(11, 3.6), layout="constrained")
    for axis, (title, score) in zip(axes, MEASURES.items(), strict=True):
        for (name, points), mark in zip(found.items(), cycle(_MARKS), strict=False):
            runs = {parses: [score(point) for point in some] for parses, some in points.items()}
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
        for parses in filter(lambda each: each.alone, in_order(chain.from_iterable(found.values()))):
            axis.axvline(parses.uas, color="0.7", linewidth=0.6, linestyle=":", zorder=0)
            place = axis.get_xaxis_transform()
            axis.text(parses.uas, 1, shown(parses.alone), transform=place, fontsize="x-small", ha="center", va="bottom")
    _legend(axes[0])
    return figure


def _legend(axis) -> None:
    for label in axis.legend(fontsize="x-small").get_texts():
        label.set_parse_math(False)
    axis.grid(axis="y", alpha=0.3)

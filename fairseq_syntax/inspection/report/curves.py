"""What records say of the course of training, and of parses of another quality, as pictures."""

import statistics
from collections.abc import Callable, Mapping
from itertools import cycle

from ...pictures.figures import plt, shown

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
    """Validation loss over updates: a panel a family of systems, a line a run, a colour a system.

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
        for i, (name, curves) in enumerate(systems.items()):
            for k, curve in enumerate(curves):
                updates = [entry["updates"] for entry in curve]
                label = shown(name) if k == 0 else None
                axis.plot(updates, [entry["loss"] for entry in curve], color=f"C{i % 10}", linewidth=0.9, label=label)
        axis.set_title(shown(family)).set_parse_math(False)
        axis.set(xlabel="updates", ylabel="validation loss")
        _legend(axis)
    return figure


def parse_points(records: Records) -> dict[str, dict[float, list[dict]]]:
    """System -> UAS of the parses that it translated with, the best first -> the points of its runs."""
    found = {}
    for name, runs in records.items():
        points = [point for record in runs.values() for point in record.get("curve_of_parses", ())]
        if points:
            levels = sorted({point["UAS"] for point in points}, reverse=True)
            found[name] = {uas: [point for point in points if point["UAS"] == uas] for uas in levels}
    return found


def draw_parse_quality(found: dict[str, dict[float, list[dict]]]):
    """A panel a score, a line a system: the mean over its runs, from the lowest to the highest of them.

    Args:
        found: see `parse_points`.

    Returns:
        A matplotlib figure.
    """
    figure, axes = plt.subplots(1, len(MEASURES), figsize=(11, 3.6), layout="constrained")
    for axis, (title, score) in zip(axes, MEASURES.items(), strict=True):
        for (name, points), mark in zip(found.items(), cycle(_MARKS), strict=False):
            runs = [[score(point) for point in of_uas] for of_uas in points.values()]
            means = [statistics.mean(scores) for scores in runs]
            [line] = axis.plot(list(points), means, marker=mark, markersize=4, linewidth=1, label=shown(name))
            low, high = [min(scores) for scores in runs], [max(scores) for scores in runs]
            axis.fill_between(list(points), low, high, color=line.get_color(), alpha=0.15, linewidth=0)
        axis.set(title=title, xlabel="UAS of the parses, %")
        axis.invert_xaxis()
    _legend(axes[0])
    return figure


def _legend(axis) -> None:
    for label in axis.legend(fontsize="x-small").get_texts():
        label.set_parse_math(False)
    axis.grid(axis="y", alpha=0.3)

"""Pictures of comparisons of systems."""

from collections.abc import Mapping, Sequence

from fairseq_syntax.evaluate.buckets import LABEL
from fairseq_syntax.pictures.figures import plt, shown

_MARKS = "os^v"


def draw_differences(found: Mapping[str, Sequence[dict]]):
    """A panel for each split, with a row for each system and a mark for each seed: its BLEU less its baseline's mean.

    The baseline has a row, too. If labels group the sentences, each kind has its own mark.

    Args:
        found: split -> its comparisons, one for each baseline, the baseline first among the systems of each.

    Returns:
        A matplotlib figure.
    """
    rows = list(dict.fromkeys(system["name"] for one in next(iter(found.values())) for system in one["systems"]))
    size = 3 + 4 * len(found), 0.8 + 0.19 * len(rows)
    figure, axes = plt.subplots(1, len(found), figsize=size, squeeze=False, sharey=True, layout="constrained")
    for axis, (split, comparisons) in zip(axes[0], found.items(), strict=True):
        handles = {}
        for comparison in comparisons:
            kinds = _kinds(comparison)
            baseline = comparison["systems"][0]["name"]
            for system in comparison["systems"]:
                for i, (kind, scores) in enumerate(kinds.items()):
                    away = [score - scores[baseline]["mean"] for score in scores[system["name"]]["runs"]]
                    place = [rows.index(system["name"]) + 0.3 * (i - (len(kinds) - 1) / 2)] * len(away)
                    style = dict(color=f"C{i}", marker=_MARKS[i % len(_MARKS)], markersize=3.5, linestyle="none")
                    [handles[kind]] = axis.plot(away, place, alpha=0.8, **style)
            axis.axhspan(rows.index(baseline) - 0.5, rows.index(baseline) + 0.5, color="0.92", zorder=0)
        axis.axvline(0, color="0.4", linewidth=0.8, zorder=1)
        low, high = axis.dataLim.intervalx
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:+g}" if value else "0")
        axis.set_xlim(min(low * 1.15, -1), max(high * 1.15, 1))
        axis.tick_params(labelsize="x-small")
        axis.grid(axis="x", alpha=0.3)
        axis.set_title(shown(split), fontsize="small").set_parse_math(False)
    axes[0, 0].set_yticks(range(len(rows)), map(shown, rows))
    axes[0, 0].set_ylim(len(rows) - 0.5, -0.5)
    for label in axes[0, 0].get_yticklabels():
        label.set_parse_math(False)
    if len(handles) > 1:
        figure.legend(handles.values(), map(shown, handles), fontsize="x-small", ncols=2, loc="outside upper left")
    figure.supxlabel("BLEU less the mean of the baseline (grey)", fontsize="small")
    return figure


def _kinds(comparison: dict) -> dict[str, dict[str, dict]]:
    """Kind of sentence -> system -> scores of its runs."""
    for buckets in comparison["buckets"]:
        if buckets["by"].startswith(LABEL):
            title = buckets["title"]
            return {f"{title}: {group['label']}": group["scores"]["BLEU"] for group in buckets["groups"]}
    return {"": {system["name"]: system["scores"]["BLEU"] for system in comparison["systems"]}}


def draw_intervals(rows: Sequence[tuple[str, str, str, float, Sequence[float], int]]):
    """Differences with their intervals, one below the other; a hollow mark is of one seed.

    Args:
        rows: group, name, kind (a colour), difference, ends of its interval, seeds; a group's rows together.
    """
    figure, axis = plt.subplots(figsize=(6.5, 0.8 + 0.2 * len(rows)), layout="constrained")
    kinds = list(dict.fromkeys(kind for _, _, kind, *_ in rows))
    for place, (_, _, kind, delta, ends, seeds) in enumerate(rows):
        color = f"C{kinds.index(kind)}"
        axis.plot(ends, [place, place], color=color, linewidth=1)
        face = color if seeds > 1 else "white"
        axis.plot(delta, place, color=color, marker="o", markersize=4.5, markerfacecolor=face)
    handles = [
        axis.plot([], [], color=f"C{i}", marker="o", markersize=4.5, label=kind)[0] for i, kind in enumerate(kinds)
    ]
    groups = [group for group, *_ in rows]
    for number, group in enumerate(dict.fromkeys(groups)):
        first = groups.index(group)
        if number % 2:
            axis.axhspan(first - 0.5, first + groups.count(group) - 0.5, color="0.95", zorder=0)
    axis.axvline(0, color="0.4", linewidth=0.8, zorder=1)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:+g}" if value else "0")
    names = [shown(f"{group}: {name}") for group, name, *_ in rows]
    axis.set_yticks(range(len(rows)), names, fontsize="x-small")
    for label in axis.get_yticklabels():
        label.set_parse_math(False)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.tick_params(axis="x", labelsize="x-small")
    axis.grid(axis="x", alpha=0.3)
    figure.supxlabel("BLEU less that of the baseline, with 95 % intervals; hollow: one seed", fontsize="small")
    figure.legend(handles=handles, fontsize="x-small", ncols=len(kinds), loc="outside upper right")
    return figure

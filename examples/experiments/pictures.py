"""Pictures of comparisons of systems."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import blended_transform_factory

from fairseq_syntax.evaluate.buckets import LABEL
from fairseq_syntax.evaluate.plots import COLORS, signed_ticks, styled
from fairseq_syntax.pictures.figures import plt

_NAMES = {
    "transformer": "Transformer",
    "pascal": "PASCAL",
    "lisa": "LISA",
    "planted": "Planted heads",
    "tag": "Tags",
    "multitask": "Multi-task corpus",
    "dasa": "DASA",
    "dasa_transformer": "DASA",
    "sdatt_transformer": "SDAtt Transformer",
    "nmt_lstm": "LSTM",
    "fa_nmt": "FA-NMT",
    "fa_nmt_shared": "FA-NMT, shared",
    "sa_nmt": "SA-NMT",
    "sa_nmt_shared": "SA-NMT, shared",
    "sa_nmt_hard": "SA-NMT, hard",
    "sa_nmt_1set": "SA-NMT, one set",
    "global_att": "Global attention",
    "local_att": "Local attention",
    "flexible_att": "Flexible attention",
    "sdatt": "SDAtt",
    "chen17": "Parents and children",
    "global_plus_local": "Global + local",
    "global_plus_flexible": "Global + flexible",
    "global_plus_sdatt": "Global + SDAtt",
    "global_plus_chen17": "Global + parents, children",
    "seq": "LGP-NMT, no graph",
    "lgp": "LGP-NMT",
    "uni": "LGP-NMT, uniform graph",
    "dep": "LGP-NMT, given graph",
    "seq_plus": "LGP-NMT+, no graph",
    "lgp_plus": "LGP-NMT+",
    "char_lstm": "LSTM of characters",
    "shallow": "RNNG, shallow",
    "latent": "RNNG",
}
_VARIANTS = {
    "linear": "chains",
    "parser": "parser's trees",
    "random": "random trees",
    "ud": "UD trees",
    "withheld": "parse dropout",
    "letter": "paper's equations",
    "undropped": "no dropout",
    "sentence": "full softmax",
    "tables": "embeddings",
    "1000": "1,000 pairs",
    "10000": "10,000 pairs",
}
_SETS = {
    "test": "test set",
    "challenge": "challenge set",
    "test_2016_flickr": "test 2016",
    "test_2017_flickr": "test 2017",
    "pud": "PUD",
    "pud-gold": "PUD, gold trees",
    "readings: one": "one reading",
    "readings: several": "several readings",
}
_TREES = {
    "parser": ("a parser's trees", COLORS[0]),
    "linear": ("chains (head: the word before)", COLORS[1]),
    "gold": ("gold trees", COLORS[2]),
    "random": ("random trees", COLORS[3]),
    "ud": ("UD trees", COLORS[5]),
    "": ("no trees", "0.25"),
}
_MARKS = "os"
_LINE = 0.155
"""Height of a row in inches."""


def named(system: str) -> str:
    """The name of a system in pictures and tables for readers."""
    base, _, variant = system.partition("-")
    return _NAMES.get(base, base) + (f", {_VARIANTS.get(variant, variant)}" if variant else "")


def set_named(split: str) -> str:
    """The name of a test set there."""
    return _SETS.get(split, split)


class Row(NamedTuple):
    """A system: its name, kind of trees, number of seeds and of its baseline's, and for each panel its marks.

    A mark is a difference, the ends of its interval, and the differences of the seeds.
    """

    name: str
    trees: str
    seeds: int
    baseline_seeds: int
    panels: Sequence[Sequence[tuple[float, Sequence[float], Sequence[float]]]]


@styled()
def draw_forest(
    groups: Mapping[str, Sequence[Row]], titles: Sequence[str], levels: Mapping[str, Sequence], xlabel: str
):
    """Differences with their intervals, one below the other, in groups with headings.

    A hollow mark is of one seed, a dotted interval of one seed on either side.

    Args:
        groups: heading -> rows.
        titles: of the panels, which share their axis.
        levels: heading -> for each panel, what is written in the heading, and marks of the baseline's seeds.
        xlabel: of the axis.
    """
    rows = [row for group in groups.values() for row in group]
    left = max(
        [0.35 + 0.062 * len(row.name) for row in rows] + [0.12 + 0.068 * len(h) for h, of in levels.items() if of[0][1]]
    )
    each = min(4, (6.6 - left) / len(titles))
    depth = sum(1.35 + sum(_height(row) for row in group) for group in groups.values())
    top, bottom = 0.2 + 0.16 * max(title.count("\n") + bool(title) for title in titles), 0.45
    width, height = left + each * len(titles) + 0.5, top + depth * _LINE + bottom
    figure, axes = plt.subplots(1, len(titles), figsize=(width, height), squeeze=False, sharex=True, sharey=True)
    figure.subplots_adjust(left / width, bottom / height, 1 - 0.5 / width, 1 - top / height, 0.32 / each)
    for axis, title in zip(axes[0], titles, strict=True):
        axis.set_title(title)
        axis.set_facecolor("none")
        axis.grid(axis="x")
        axis.tick_params(left=False, labelleft=False)
        axis.spines["left"].set_visible(False)
    axes[0, 0].set_ylim(depth, 0)
    place, places, headings = 0.0, [], []
    for heading, group in groups.items():
        _heading(figure, axes[0], place, heading, levels.get(heading, ()))
        headings.append(place)
        start = place = place + 1.2
        for row in group:
            places.append(place + _height(row) / 2)
            _row(figure, axes[0], places[-1], row)
            place += _height(row)
        for axis in axes[0]:
            axis.plot([0, 0], [start, place], color="0.4", linewidth=0.8, zorder=1)
        place += 0.15
    across = blended_transform_factory(figure.transFigure, axes[0, 0].transData)
    low, high = (end(axis.dataLim.intervalx[i] for axis in axes[0]) for i, end in enumerate((min, max)))
    axes[0, 0].set_xlim(low - 0.04 * (high - low), high + 0.04 * (high - low))
    axes[0, 0].xaxis.set_major_locator(MaxNLocator(max(3, 1.7 * each), steps=[1, 2, 5, 10], min_n_ticks=3))
    signed_ticks(axes[0, 0].xaxis)
    if {row.seeds for row in rows} == {seeds := rows[0].seeds}:
        xlabel += f"; {seeds} seed{'s' * (seeds > 1)} each"
    else:
        figure.text(1 - 0.22 / width, 1 - (top - 0.04) / height, "seeds", ha="center", va="bottom", size=7.5)
        style = dict(transform=across, va="center_baseline", ha="center", size=7.5)
        for row, place in zip(rows, places, strict=True):
            figure.text(1 - 0.22 / width, place, row.seeds, **style)
        for group, place in zip(groups.values(), headings, strict=True):
            figure.text(1 - 0.22 / width, place + 0.6, group[0].baseline_seeds, color="0.25", **style)
    figure.text((left / width + 1 - 0.5 / width) / 2, 0.03 / height, xlabel, ha="center", va="bottom")
    _legend(figure, rows)
    return figure


def _height(row: Row) -> float:
    return 0.55 + 0.5 * len(row.panels[0])


def _heading(figure, axes, place: float, text: str, levels: Iterable[tuple[str, Sequence[float]]]) -> None:
    """A grey band with the name of a group."""
    across = blended_transform_factory(figure.transFigure, axes[0].transData)
    figure.add_artist(Rectangle((0, place), 1, 1.1, transform=across, color="0.93", zorder=-1))
    figure.text(0.06 / figure.get_figwidth(), place + 0.6, text, transform=across, va="center", weight="bold", size=7.5)
    for axis, (level, seeds) in zip(axes, levels, strict=False):
        style = dict(transform=axis.get_yaxis_transform(), ha="right", va="center", size=7, color="0.25")
        axis.text(1, place + 0.6, level, **style)
        axis.plot(seeds, [place + 0.55] * len(seeds), "|", color="0.25", markersize=5)


def _row(figure, axes, middle: float, row: Row) -> None:
    """The marks of a system, and its name at the left."""
    color = _TREES[row.trees][1]
    for axis, marks in zip(axes, row.panels, strict=True):
        for i, (delta, ends, runs) in enumerate(marks):
            place = middle + 0.5 * (i - (len(marks) - 1) / 2)
            axis.plot(ends, [place, place], _line(row), color=color, linewidth=1.2, solid_capstyle="butt")
            axis.plot(ends, [place, place], "|", color=color, markersize=3, markeredgewidth=1)
            if row.seeds > 1:
                axis.plot(runs, [place] * len(runs), "|", color=color, markersize=7, markeredgewidth=0.7)
            face = color if row.seeds > 1 else "white"
            axis.plot(delta, place, _MARKS[i], color=color, markersize=4, markerfacecolor=face)
    across = blended_transform_factory(figure.transFigure, axes[0].transData)
    style = dict(transform=across, va="center_baseline", size=7.5)
    figure.text(0.16 / figure.get_figwidth(), middle, row.name, **style)


def _line(row: Row) -> str:
    """The style of its intervals: that of one run on either side is of sentences alone."""
    return ":" if row.seeds == row.baseline_seeds == 1 else "-"


def _legend(figure, rows: Sequence[Row]) -> None:
    kinds = {kind: style for kind, style in _TREES.items() if any(row.trees == kind for row in rows)}
    # one kind says nothing
    lines = {label: dict(color=color, linewidth=1.2) for label, color in kinds.values()} if len(kinds) > 1 else {}
    if lines:
        first = next(iter(lines))
        lines = {f"trained with {first}": lines.pop(first), **lines}
    if len({row.seeds == 1 for row in rows}) == 2:
        lines["one seed"] = dict(color="0.25", marker="o", linewidth=0, markerfacecolor="white")
    if any(_line(row) == ":" for row in rows):
        lines["interval over sentences only"] = dict(color="0.25", linestyle=":", linewidth=1.2)
        if any(_line(row) == "-" for row in rows):
            lines["interval over sentences and seeds"] = dict(color="0.25", linewidth=1.2)
    if any(runs for row in rows for panel in row.panels for _, _, runs in panel if row.seeds > 1):
        lines["each seed"] = dict(color="0.25", marker="|", linewidth=0)
    handles = [plt.Line2D([], [], markersize=4, label=label, **style) for label, style in lines.items()]
    columns = len(handles) if len(handles) < 5 else 3
    figure.legend(
        handles=handles, ncols=columns, loc="lower left", borderpad=0.1, columnspacing=1.2, bbox_to_anchor=(0, 1)
    )


def draw_differences(found: Mapping[str, Sequence[dict]], trees: Mapping[str, str]):
    """A panel for each split, with a row for each system: BLEU less its baseline's mean, the interval, and the seeds.

    If labels group the sentences, there is a panel for each kind of sentence of the last split instead.

    Args:
        found: split -> its comparisons, one for each baseline, the baseline first among the systems of each.
        trees: system -> the kind of trees that it reads.

    Returns:
        A matplotlib figure.
    """
    panels = _panels(found)
    groups, levels = {}, {}
    for i, comparison in enumerate(next(iter(found.values()))):
        baseline, *others = (system["name"] for system in comparison["systems"])
        heading = f"{baseline} (baseline)"
        of_family = [(scores, deltas) for scores, deltas in (panel[i] for panel in panels.values())]
        levels[heading] = [
            (f"{scores[baseline]['mean']:.1f} BLEU", _away(scores, baseline, baseline)) for scores, _ in of_family
        ]
        groups[heading] = [
            Row(
                "\N{EM SPACE}" * (name != _origin(name, others)) + name,
                trees[name],
                *(len(of_family[0][0][system]["runs"]) for system in (name, baseline)),
                [[(*deltas[name], _away(scores, name, baseline))] for scores, deltas in of_family],
            )
            for name in sorted(others, key=lambda name: others.index(_origin(name, others)))
        ]
    titles = list(map(set_named, panels))
    alone = all(row.seeds == row.baseline_seeds == 1 for group in groups.values() for row in group)
    less = "the baseline's" if alone else "the mean of the baseline's seeds"
    return draw_forest(groups, titles, levels, f"BLEU minus {less}, with 95 % intervals")


def _origin(system: str, systems: Sequence[str]) -> str:
    """The system that another is a variant of, or itself: `pascal` for `pascal-random`."""
    base, dash, _ = system.partition("-")
    return next((name for name in systems if dash and name in (base, f"{base}_transformer")), system)


def _away(scores: dict, system: str, baseline: str) -> list[float]:
    return [score - scores[baseline]["mean"] for score in scores[system]["runs"]]


def _panels(found: Mapping[str, Sequence[dict]]) -> dict[str, list[tuple[dict, dict]]]:
    """Panel -> for each comparison, the scores of systems, and their differences with intervals."""
    split, comparisons = next(reversed(found.items()))
    last = [next((kind for kind in one["buckets"] if kind["by"].startswith(LABEL)), None) for one in comparisons]
    if all(last):
        return {
            f"{set_named(split)}\n{_kind(last[0], groups[0])}": [
                (
                    group["scores"]["BLEU"],
                    {name: (delta["mean"], delta["interval"]) for name, delta in group["deltas"]["BLEU"].items()},
                )
                for group in groups
            ]
            for groups in zip(*(kind["groups"] for kind in last), strict=True)
        }
    return {
        split: [
            (
                {system["name"]: system["scores"]["BLEU"] for system in one["systems"]},
                {test["system"]: (test["delta"], test["interval"]) for test in one["tests"]},
            )
            for one in comparisons
        ]
        for split, comparisons in found.items()
    }


def _kind(kinds: dict, group: dict) -> str:
    return f"{set_named(kinds['title'] + ': ' + group['label'])}, {group['size']} sentences"

"""The page: its sections, in order."""

import json
from argparse import Namespace
from collections.abc import Iterator, Sequence
from importlib.resources import files
from itertools import chain
from pathlib import Path

from ...evaluate.bucket_pictures import draw_buckets
from ...evaluate.comparison_tables import bucket_table, notes, tables
from ...evaluate.contrast import Record, check_records, mcnemar, read_record, wilson
from ...evaluate.probes import Answers, read_probes
from ...evaluate.probes import tables as tables_of_probe
from ...evaluate.tables import TableFormat
from ...version import __version__
from ..comparing import compared, known_source, systems_of
from . import markup
from .curves import MEASURES, draw_parse_quality, draw_training, in_order, parse_points
from .looks import looks
from .sentences import sentences

# of records, what other sections show
_SHOWN = ("curve", "curve_of_parses", "scores", "correct", "incorrect", "details", "references", "translations")
_NOTHING_ELSE = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def report(args: Namespace) -> str:
    """The page about a folder of results.

    Args:
        args: options of `cli.report`.

    Raises:
        ValueError: files that do not go together; see `comparing.compared`.
        OSError: a file is missing.
    """
    # what can be refused at once is not refused after minutes
    minimal_pairs = _read_minimal_pairs(args.contrast)
    seen = list(looks(args.look, args.sentence))
    evaluation, found = compared(args)
    _, recorded = systems_of(args)
    records = {system["name"]: recorded.get(system["name"], {}) for system in found["systems"]}
    probes = _probes(args.results, records)
    parses = known_source(args, evaluation.corpus).parses

    def answers(verb: str) -> Iterator[str]:
        return _answers(probes, verb, records, found["baselines"][0])

    sections = {
        "systems": ("Systems", [_systems(found, records)]),
        "scores": ("Scores and tests", _scores(found)),
        "buckets": ("Where systems differ", _buckets(found)),
        "contrast": ("Minimal pairs", chain(_contrast(minimal_pairs), answers("contrast"))),
        "whatif": ("Two trees of a sentence", answers("whatif")),
        "trees": ("Trees that models find", answers("attachment")),
        "parses": ("Worse parses", chain(_parse_quality(records), answers("unparsed"))),
        "training": ("Training", _training(records)),
        "looks": ("What systems look at", seen),
        "sentences": ("Sentences", sentences(evaluation, args.metrics[0], args.most, parses)),
        "settings": ("Settings", _settings(found, records, probes)),
    }
    made = {name: markup.section(name, title, parts) for name, (title, parts) in sections.items()}
    links = "".join(f'<li><a href="#{name}">{sections[name][0]}</a></li>' for name, body in made.items() if body)
    corpora = {record["corpus"] for runs in records.values() for record in runs.values() if "corpus" in record}
    title = args.title or f"{', '.join(sorted(corpora)) or Path(args.results).name}: {args.split}"
    return _frame(title, links, "\n".join(body for body in made.values() if body))


def _frame(title: str, links: str, body: str) -> str:
    style, script = ((files(__package__) / name).read_text(encoding="utf8") for name in ("page.css", "page.js"))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{_NOTHING_ELSE}">
<title>{markup.text(title)}</title>
<style>
{style}</style>
</head>
<body>
<a class="skip" href="#systems">Skip to the results</a>
<header><h1>{markup.isolated(title)}</h1>
<nav aria-label="Contents"><ul>{links}</ul></nav></header>
<main>
{body}
</main>
<footer>Made by fairseq-syntax {__version__}, <code>fairseq-syntax report</code>.</footer>
<script>
{script}</script>
</body>
</html>
"""


def _systems(found: dict, records: dict) -> str:
    """A row a system: what it is, how long it was trained, its scores."""
    metrics = found["metrics"]
    header = ["system", "trees", "seeds", "updates", "unfinished", "minutes", *(metric["name"] for metric in metrics)]
    rows = []
    for system in found["systems"]:
        runs = list(records[system["name"]].values())
        trained = [run for run in runs if "updates" in run]
        updates = f"{sum(run['updates'] for run in trained) / len(trained):.0f}" if trained else "-"
        minutes = [sum(run["minutes"].values()) for run in runs if "minutes" in run]
        row = [system["name"], ", ".join(sorted({run.get("trees", "-") for run in runs})) or "-", len(system["runs"])]
        row += [updates, sum(run.get("stopped") == "cap" for run in runs)]
        row += [f"{sum(minutes) / len(minutes):.0f}" if minutes else "-"]
        rows.append(row + [_score(system["scores"][metric["name"]], metric["digits"]) for metric in metrics])
    directions = "; ".join(f"{m['name']}: {'higher' if m['higher_is_better'] else 'lower'} is better" for m in metrics)
    return markup.table(header, rows, "All systems, mean ± standard deviation over seeds") + markup.paragraph(
        directions
    )


def _score(summary: dict, digits: int) -> str:
    mean, sd = summary["mean"], summary["sd"]
    return f"{mean:.{digits}f}" if sd is None else f"{mean:.{digits}f} ± {sd:.{digits}f}"


def _scores(found: dict) -> Iterator[str]:
    *parts, _ = tables({**found, "buckets": []}, TableFormat.html)
    names = [metric["name"] for metric in found["metrics"] for _ in found["baselines"]]
    for part, name in zip(parts, names, strict=True):
        yield markup.framed(part, f"{name}: intervals, and differences from the baseline")


def _buckets(found: dict) -> Iterator[str]:
    names, metric = [system["name"] for system in found["systems"]], found["metrics"][0]["name"]
    for buckets in found["buckets"]:
        yield markup.figure(draw_buckets([buckets], names, metric), f"{metric} by {buckets['title']}")
        content = bucket_table(found, buckets, TableFormat.html)
        yield markup.framed(content, f"{metric} by {buckets['title']}, 95 % intervals")
        yield from map(markup.paragraph, notes(buckets))


def _read_minimal_pairs(paths: Sequence[str]) -> list[list[Record]]:
    """What `contrast --output` has written; records of the same pairs together."""
    sets: dict[str, list[Record]] = {}
    for path in paths:
        record = read_record(path)
        sets.setdefault(record.digest, []).append(record)
    for records in sets.values():
        check_records(records)
    return list(sets.values())


def _contrast(sets: Sequence[Sequence[Record]]) -> Iterator[str]:
    """Accuracy, and the test of McNemar beside the first system."""
    for number, records in enumerate(sets, start=1):
        rows = []
        for record in records:
            right, size = int(record.right.sum()), len(record.correct)
            low, high = wilson(right, size)
            row = [record.name, size, 100 * right / size, f"[{100 * low:.1f}, {100 * high:.1f}]"]
            if record is records[0]:
                row += ["-", "-", "-"]
            else:
                test = mcnemar(records[0].right, record.right)
                row += [str(test.second), str(test.first), f"{test.p:.2g}"]
            rows.append(row)
        header = ["system", "pairs", "right, %", "95 % interval", "it alone", f"{records[0].name} alone", "p McNemar"]
        yield markup.table(header, rows, f"Set {number}: pairs of which the right translation has the higher score")


def _probes(results: str, records: dict) -> dict[str, Answers]:
    """Probe -> its records, of the systems of the page."""
    every = read_probes(results).items()
    return {
        probe: {name: answers[name] for name in records if records[name] and name in answers}
        for probe, answers in every
    }


def _answers(probes: dict[str, Answers], verb: str, records: dict, baseline: str) -> Iterator[str]:
    """The tables of all probes of a kind."""
    for probe, answers in probes.items():
        if any(record["verb"] == verb for runs in answers.values() for record in runs.values()):
            for table in tables_of_probe(answers, records, baseline):
                yield markup.table(table.header, table.rows, f"{probe}: {table.title}")


def _parse_quality(records: dict) -> Iterator[str]:
    found = parse_points(records)
    if not found:
        return
    yield markup.figure(draw_parse_quality(found), "Scores over the UAS of the parses that systems translate with")
    for title, score in MEASURES.items():
        levels = in_order(chain.from_iterable(found.values()))
        rows = [
            [name, *(_mean([score(point) for point in points.get(parses, ())]) for parses in levels)]
            for name, points in found.items()
        ]
        yield markup.table(["system", *map(str, levels)], rows, f"{title} by UAS, mean over seeds")


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


def _training(records: dict) -> Iterator[str]:
    drawing = draw_training(records)
    if drawing is not None:
        yield markup.figure(drawing, "Validation scores over updates, a line a run")


def _settings(found: dict, records: dict, probes: dict[str, Answers]) -> Iterator[str]:
    rows = [[metric["name"], metric["signature"]] for metric in found["metrics"]]
    chance = found["chance"]
    rows.append(["randomization", f"trials:{chance['trials']}|seed:{chance['seed']}"])
    rows.append(["bootstrap", f"resamples:{chance['resamples']}|seed:{chance['seed']}"])
    yield markup.table(["score or test", "signature"], rows, "How scores and tests were computed")
    for name, runs in records.items():
        for seed, record in runs.items():
            asked = {probe: answers[name][seed] for probe, answers in probes.items() if seed in answers.get(name, {})}
            parts = {"run": record, **asked}
            kept = {part: {key: x for key, x in of.items() if key not in _SHOWN} for part, of in parts.items()}
            written = json.dumps(kept, indent=1, ensure_ascii=False)
            yield markup.folded(f"{markup.isolated(name)}, seed {markup.text(seed)}", f"<pre>{_lines(written)}</pre>")


def _lines(content: str) -> str:
    return "\n".join(markup.text(line) for line in content.split("\n"))

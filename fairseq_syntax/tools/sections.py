"""The sections of the HTML page about a folder of results."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from ..evaluate.bucket_pictures import draw_buckets
from ..evaluate.comparison import Evaluation, bucket_table, notes, score_tables, test_notes
from ..evaluate.contrast import Record, check_records, mcnemar, read_record, wilson
from ..evaluate.curves import MEASURES, draw_parse_quality, draw_training, in_order, parse_points
from ..evaluate.probes import Answers, read_probes
from ..evaluate.probes import tables as tables_of_probe
from ..evaluate.tables import TableFormat
from ..evaluate.verdicts import verdicts
from ..pictures.dependency_trees import draw_tree
from ..pictures.figures import visible
from . import markup
from .look import look

# keys of records that other sections show
_SHOWN = ("curve", "curve_of_parses", "scores", "correct", "incorrect", "details", "references", "translations")
_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}


def sections(
    compared,
    records: Mapping[str, Mapping[str, dict]],
    probes: Mapping[str, Answers],
    minimal_pairs: Sequence[Sequence[Record]],
    looks: Sequence[str],
    most: int,
) -> dict[str, tuple[str, str]]:
    """Name -> (title, HTML) of each section that is not empty.

    Args:
        compared: a `compare.Comparison`.
        records: records of its systems, see `evaluate.results.read_results`.
        probes: their probes, see `probes_of`.
        minimal_pairs: see `read_minimal_pairs`.
        looks: HTML of pictures, see `looks`.
        most: largest number of sentences.
    """
    comparison = compared.content

    def answers(verb: str) -> Iterator[str]:
        return _answers(probes, verb, records, comparison["baselines"][0])

    parts = {
        "verdict": ("What it says", map(markup.paragraph, verdicts(comparison))),
        "systems": ("Systems", [_systems(comparison, records)]),
        "scores": ("Scores and tests", _scores(comparison)),
        "buckets": ("Where systems differ", _buckets(comparison)),
        "contrast": ("Minimal pairs", chain(_contrast(minimal_pairs), answers("contrast"))),
        "whatif": ("Two trees of a sentence", answers("whatif")),
        "trees": ("Trees that models find", answers("attachment")),
        "parses": ("Worse parses", chain(_parse_quality(records), answers("unparsed"))),
        "training": ("Training", _training(records)),
        "looks": ("What systems look at", looks),
        "sentences": (
            "Sentences",
            sentences(compared.evaluation, comparison["metrics"][0]["name"], most, compared.parses),
        ),
        "settings": ("Settings", _settings(comparison, records, probes)),
    }
    rendered = {name: (title, markup.section(name, title, blocks)) for name, (title, blocks) in parts.items()}
    return {name: (title, body) for name, (title, body) in rendered.items() if body}


def _systems(comparison: dict, records: dict) -> str:
    """The table of systems, with trees, training times and scores."""
    metrics = comparison["metrics"]
    header = ["system", "trees", "seeds", "updates", "unfinished", "minutes", *(metric["name"] for metric in metrics)]
    rows = []
    for system in comparison["systems"]:
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


def _scores(comparison: dict) -> Iterator[str]:
    for caption, table in score_tables(comparison, TableFormat.html):
        yield markup.framed(table, caption)
    yield from map(markup.paragraph, test_notes(comparison))


def _buckets(comparison: dict) -> Iterator[str]:
    names, metric = [system["name"] for system in comparison["systems"]], comparison["metrics"][0]["name"]
    for buckets in comparison["buckets"]:
        yield markup.figure(draw_buckets([buckets], names, metric), f"{metric} by {buckets['title']}")
        table = bucket_table(comparison, buckets, TableFormat.html)
        yield markup.framed(table, f"{metric} by {buckets['title']}, 95 % intervals")
        yield from map(markup.paragraph, notes(buckets))


def read_minimal_pairs(paths: Sequence[str]) -> list[list[Record]]:
    """Read records written by `contrast --output`, grouped by their pairs."""
    sets: dict[str, list[Record]] = {}
    for path in paths:
        record = read_record(path)
        sets.setdefault(record.digest, []).append(record)
    for records in sets.values():
        check_records(records)
    return list(sets.values())


def _contrast(sets: Sequence[Sequence[Record]]) -> Iterator[str]:
    """Tables of accuracies, and of McNemar's test against the first system."""
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
        header = ["system", "pairs", "right, %", "95 % interval", "system alone"]
        header += [f"{records[0].name} alone", "p McNemar"]
        yield markup.table(header, rows, f"Set {number}: pairs whose correct translation has the higher score")


def probes_of(results: str, records: dict) -> dict[str, Answers]:
    """Probe -> its records of the systems on the page."""
    every = read_probes(results).items()
    return {
        probe: {name: answers[name] for name in records if records[name] and name in answers}
        for probe, answers in every
    }


def _answers(probes: dict[str, Answers], verb: str, records: dict, baseline: str) -> Iterator[str]:
    """The tables of all probes with a verb."""
    for probe, answers in probes.items():
        if any(record["verb"] == verb for runs in answers.values() for record in runs.values()):
            for table in tables_of_probe(answers, records, baseline):
                yield markup.table(table.header, table.rows, f"{probe}: {table.title}")


def _parse_quality(records: dict) -> Iterator[str]:
    curves = parse_points(records)
    if not curves:
        return
    yield markup.figure(draw_parse_quality(curves), "Scores over the UAS of the parses that systems translate with")
    for title, score in MEASURES.items():
        levels = in_order(chain.from_iterable(curves.values()))
        rows = [
            [name, *(_mean([score(point) for point in points.get(parses, ())]) for parses in levels)]
            for name, points in curves.items()
        ]
        yield markup.table(["system", *map(str, levels)], rows, f"{title} by UAS, mean over seeds")


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


def _training(records: dict) -> Iterator[str]:
    drawing = draw_training(records)
    if drawing is not None:
        yield markup.figure(drawing, "Validation scores over updates, one line per run")


def _settings(comparison: dict, records: dict, probes: dict[str, Answers]) -> Iterator[str]:
    rows = [[metric["name"], metric["signature"]] for metric in comparison["metrics"]]
    chance = comparison["chance"]
    rows.append(["randomization", f"trials:{chance['trials']}|seed:{chance['seed']}"])
    rows.append(["bootstrap", f"resamples:{chance['resamples']}|seed:{chance['seed']}"])
    yield markup.table(["score or test", "signature"], rows, "How scores and tests were computed")
    for name, runs in records.items():
        for seed, record in runs.items():
            of_run = {probe: answers[name][seed] for probe, answers in probes.items() if seed in answers.get(name, {})}
            parts = {"run": record, **of_run}
            kept = {name: {key: x for key, x in of.items() if key not in _SHOWN} for name, of in parts.items()}
            written = json.dumps(kept, indent=1, ensure_ascii=False)
            lines = "\n".join(map(markup.text, written.split("\n")))  # `text` would make line ends visible
            yield markup.folded(f"{markup.isolated(name)}, seed {markup.text(seed)}", f"<pre>{lines}</pre>")


# --- pictures of models -------------------------------------------------------------------------------------------


def looks(requests: Sequence[Sequence[str]], places: Sequence[int]) -> Iterator[str]:
    """HTML of pictures: a group for each sentence, and one of existing pictures.

    Args:
        requests: (name, picture), or (name, checkpoint, data directory, subset) for all pictures of a model.
        places: numbers of sentences in the subset, from 0.

    Raises ValueError: a subset has no such sentence, or a model supports no picture; OSError: a file is missing.
    """
    ready = [(name, Path(rest[0])) for name, *rest in requests if len(rest) == 1]
    models = [(name, *rest) for name, *rest in requests if len(rest) == 3]
    if models:
        from .latent_trees import Cutter, nth, read_split
        from .models import load
        from .preparation import Preparation
        from .views import show_split

        loaded = {name: load(path, data) for name, path, data, _ in models}
    for place in places if models else ():
        pictures = []
        for name, _, _, subset in models:
            model = loaded[name]
            shown = show_split(
                model, subset, place, *nth(read_split(model, subset, Cutter(model, Preparation())), place)
            )
            figures = look(model, shown)
            pictures += [markup.figure(drawing, f"{visible(name)}: {kind}") for kind, drawing in figures.items()]
        yield f'<h3>Sentence {place}</h3><div class="beside">{"".join(pictures)}</div>'
    if ready:
        pictures = [markup.image(path.read_bytes(), _TYPES[path.suffix.lower()], name) for name, path in ready]
        yield f'<div class="beside">{"".join(pictures)}</div>'


# --- the sentences on which systems differ most -------------------------------------------------------------------


@dataclass
class Translation:
    """A translation of a sentence by some runs of a system.

    Attributes:
        system: name of the system.
        runs: labels of the runs with this translation.
        text: the translation.
        score: its sentence score.
    """

    system: str
    runs: list[str]
    text: str
    score: float


@dataclass
class Difference:
    """A sentence on which systems differ.

    Attributes:
        index: its index in the corpus, from 0.
        number: its line in the text, from 0.
        spread: difference between the best and the worst system's mean score over runs.
        translations: the different translations by each system, in the order of systems.
    """

    index: int
    number: int
    spread: float
    translations: list[Translation]


def most_different(evaluation: Evaluation, metric: str, most: int) -> list[Difference]:
    """At most `most` sentences with the largest spread of sentence scores in a metric, in descending order."""
    corpus = evaluation.corpus
    scores = {system.name: evaluation.sentence_scores(metric, system.name) for system in corpus.systems}
    means = np.stack([runs.mean(axis=0) for runs in scores.values()])
    spread = means.max(axis=0) - means.min(axis=0)
    order = np.argsort(-spread, kind="stable")[:most]
    differences = []
    for index in order[spread[order] > 0].tolist():
        translations = []
        for system in corpus.systems:
            runs_of: dict[str, list[int]] = {}
            for run in range(len(system.runs)):
                runs_of.setdefault(system.hypotheses[run][index], []).append(run)
            translations += [
                Translation(
                    system.name, [system.runs[k] for k in runs], text, float(scores[system.name][runs[0], index])
                )
                for text, runs in runs_of.items()
            ]
        differences.append(Difference(index, corpus.numbers[index], float(spread[index]), translations))
    return differences


def sentences(evaluation: Evaluation, metric: str, most: int, parses: Sequence | None) -> Iterator[str]:
    """HTML of the sentences from `most_different`, with the N parses of the source, or None."""
    differences = most_different(evaluation, metric, most)
    if not differences:
        return
    systems = [system.name for system in evaluation.corpus.systems]
    boxes = "".join(
        f'<label><input type="checkbox" checked value="{i}"> {markup.isolated(name)}</label>'
        for i, name in enumerate(systems)
    )
    yield markup.paragraph(
        f"The {len(differences)} sentences whose {metric} differs most between systems (each the mean of its seeds), "
        "with the difference between the best and the worst. Words that differ from the reference are marked."
    )
    yield (
        '<form class="filters" role="search"><label>Search <input type="search" id="search" autocomplete="off"></label>'
        f"<fieldset><legend>Systems</legend>{boxes}</fieldset>"
        '<output id="found" aria-live="polite"></output></form>'
    )
    for difference in differences:
        yield _sentence(evaluation, difference, metric, systems, parses[difference.index] if parses else None)


def _sentence(evaluation: Evaluation, difference: Difference, metric: str, systems: list[str], parse) -> str:
    """A folded block with the translations and the tree of a sentence."""
    corpus, index, digits = evaluation.corpus, difference.index, evaluation.metrics[metric].digits
    references = corpus.references[index]
    source = corpus.sources[index] if corpus.sources is not None else None
    rows = [] if source is None else [_row("source", "", markup.isolated(source))]
    rows += [_row("reference", "", markup.isolated(reference)) for reference in references]
    for hyp in difference.translations:
        name = f"{markup.isolated(hyp.system)} <small>{markup.text(', '.join(hyp.runs))}</small>"
        attribute = f' data-system="{systems.index(hyp.system)}"'
        rows.append(_row(name, f"{hyp.score:.{digits}f}", markup.marked(hyp.text, references[0]), attribute))
    head = "".join(f'<th scope="col">{name}</th>' for name in ("system, seeds", markup.text(metric), "text"))
    table = f'<table class="plain"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    body = f'<div class="frame" tabindex="0" role="region" aria-label="Translations">{table}</div>'
    if parse is not None and parse.is_parsed:
        body += markup.figure(draw_tree(parse.forms, parse.heads, labels=parse.deprels), "The parse of the source")
    heading = markup.isolated(references[0] if source is None else source)
    title = f"{difference.number}: {heading} <small>{markup.text(metric)} {difference.spread:.{digits}f}</small>"
    return f'<div class="sentence">{markup.folded(title, body)}</div>'


def _row(name: str, score: str, content: str, more: str = "") -> str:
    return f'<tr{more}><th scope="row">{name}</th><td class="number">{score}</td><td>{content}</td></tr>'

"""Comparison of systems with baselines: scores over seeds, significance tests, and their tables."""

import html
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal

import numpy as np

from ..data.text.languages import scoring_of
from .buckets import breakdown, read_source
from .comet import Comet
from .corpus import Corpus, read_corpus
from .metrics import METRICS, Bleu, Metric
from .significance import (
    Effect,
    approximate_randomization,
    effect,
    holm,
    interval,
    paired_bootstrap,
    resampled,
    sign_test,
)
from .tables import TableFormat, format_table, probability, rounded
from .verdicts import translating, verdicts

FORMAT = 3
"""Of what `compare --format json` prints."""
DEFAULT_METRICS = ("BLEU", "chrF", "TER", "RIBES")
TESTS = ("runs", "randomization", "bootstrap")
_BESIDE = 2  # most systems whose scores and differences fit side by side
_HEADERS = {"runs": "p", "randomization": "p AR", "bootstrap": "p bootstrap", "sign": "p sign"}


@dataclass
class Chance:
    """Numbers of trials and resamples, and the random seed of tests and intervals."""

    trials: int = 10000
    resamples: int = 10000
    seed: int = 12345


class Evaluation:
    """Scores and tests of all systems of a corpus, which has at least one sentence.

    Args:
        corpus: translations and references.
        metrics: metrics, in the order of the tables.
        chance: settings of tests and intervals.
        sign_test: whether to add the sign test (Collins et al. 2005) to `TESTS`.
    """

    def __init__(self, corpus: Corpus, metrics: Sequence[Metric], chance: Chance, sign_test: bool = False):
        self.corpus, self.chance = corpus, chance
        self.tests = (*TESTS, *(["sign"] if sign_test else []))
        self.metrics = {metric.name: metric for metric in metrics}
        self._statistics = {metric.name: self._count(metric) for metric in metrics}
        self._scored: dict[tuple, tuple[np.ndarray, np.ndarray]] = {}

    def _count(self, metric: Metric) -> dict[str, np.ndarray]:
        """System -> statistics (K, N, C). Translations on which systems agree are scored once."""
        corpus = self.corpus
        keys = [(i, text) for system in corpus.systems for run in system.hypotheses for i, text in enumerate(run)]
        places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        sources = corpus.sources and [corpus.sources[i] for i, _ in places]
        statistics = metric.statistics([text for _, text in places], [corpus.references[i] for i, _ in places], sources)
        return {
            system.name: statistics[[[places[i, text] for i, text in enumerate(run)] for run in system.hypotheses]]
            for system in corpus.systems
        }

    def statistics(self, metric: str, system: str) -> np.ndarray:
        """The statistics of a system: (K, N, C), see `Metric.statistics`."""
        return self._statistics[metric][system]

    def sentence_scores(self, metric: str, system: str) -> np.ndarray:
        """The scores (K, N) of single sentences."""
        return self.metrics[metric].sentence_scores(self.statistics(metric, system))

    def _scores(self, metric: str, system: str, sentences: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The scores (K,) of the runs, on all sentences or some, and those on resamples, (K, R)."""
        key = metric, system, None if sentences is None else sentences.tobytes()
        if key not in self._scored:
            statistics = self.statistics(metric, system)
            statistics = statistics if sentences is None else statistics[:, sentences]
            scores = self.metrics[metric].scores
            draws = resampled(statistics, scores, self.chance.resamples, self.chance.seed)
            self._scored[key] = scores(statistics.sum(axis=1)), draws
        return self._scored[key]

    def summary(self, metric: str, system: str, sentences: np.ndarray | None = None) -> dict:
        """The score of a system over K runs, on all sentences or some, as in docs/api/evaluate.md."""
        runs, draws = self._scores(metric, system, sentences)
        more: tuple[float | None, float | None] = (None, None)
        if isinstance(bleu := self.metrics[metric], Bleu):
            statistics = self.statistics(metric, system)
            sums = (statistics if sentences is None else statistics[:, sentences]).sum(axis=1)
            words, references = sums[:, :2].sum(axis=0)
            more = float(bleu.precision(sums).mean()), float(words / max(references, 1))
        return {
            "runs": runs.tolist(),
            "mean": float(runs.mean()),
            "sd": float(runs.std(ddof=1)) if len(runs) > 1 else None,
            "minimum": float(runs.min()),
            "maximum": float(runs.max()),
            "interval": interval(draws.mean(axis=0)),
            "without_brevity_penalty": more[0],
            "length_ratio": more[1],
        }

    def effect(self, metric: str, baseline: str, system: str, sentences: np.ndarray | None = None) -> Effect:
        """The difference of the means over runs, on all sentences or on those with the given indices."""
        (first, draws), (second, others) = (self._scores(metric, name, sentences) for name in (baseline, system))
        return effect((first, second), (draws, others))

    def difference(self, metric: str, baseline: str, system: str) -> dict:
        """All tests of a system against a baseline, without correction, as in docs/api/evaluate.md."""
        found = self.effect(metric, baseline, system)
        first, second = (self.statistics(metric, name) for name in (baseline, system))
        (observed, draws), (others, other_draws) = (self._scores(metric, name, None) for name in (baseline, system))
        scores, higher = self.metrics[metric].scores, self.metrics[metric].higher
        sign = sign_test(first, second, scores) if "sign" in self.tests else None
        better, worse, ties, of_sign = sign or (None, None, None, None)
        p = {
            "runs": found.p,
            "randomization": approximate_randomization(first, second, scores, self.chance.trials, self.chance.seed),
            "bootstrap": paired_bootstrap((observed, others), (draws, other_draws)),
            **({"sign": of_sign} if "sign" in self.tests else {}),
        }
        if not higher:
            better, worse = worse, better
        return {
            **{"metric": metric, "baseline": baseline, "system": system},
            **{"delta": found.delta, "interval": found.interval, "detectable": found.detectable},
            **{"better": better, "worse": worse, "ties": ties, "p": p, "holm": {}},
        }

    def differences(self, metric: str, baseline: str, names: Sequence[str]) -> list[dict]:
        """The differences of other systems from a baseline, with Holm's correction for their number."""
        results = [self.difference(metric, baseline, name) for name in names]
        for test in self.tests:
            corrected = iter(holm([p for result in results if (p := result["p"][test]) is not None]).tolist())
            for result in results:
                result["holm"][test] = None if result["p"][test] is None else next(corrected)
        return results

    def repeated(self, system: str) -> float:
        """The share of translations in which a 4-gram occurs three times, though in no reference."""
        words: Callable[[str], list[str]] = str.split
        if isinstance(bleu := self.metrics.get("BLEU"), Bleu):
            words = bleu.words
        pairs = [
            (text, self.corpus.references[i])
            for run in self.corpus.system(system).hypotheses
            for i, text in enumerate(run)
        ]
        return sum(_repeats(words(text)) and not any(_repeats(words(r)) for r in of) for text, of in pairs) / len(pairs)


def _repeats(words: list[str]) -> bool:
    return max(Counter(zip(*(words[i:] for i in range(4)), strict=False)).values(), default=0) >= 3


@dataclass
class Comparison:
    """The result of `compare`.

    Attributes:
        evaluation: has all statistics.
        content: the object that --format json prints, described in docs/api/evaluate.md.
        parses: trees of the source, or None if unknown.
    """

    evaluation: Evaluation
    content: dict
    parses: list | None

    def tables(self, form: str = "text") -> list[str]:
        """Tables of scores, tests and buckets for every metric."""
        return tables(self.content, form)

    def figure(self):
        """The scores of the first metric by bucket, as a matplotlib figure. Raises ValueError: there are no buckets."""
        if not self.content["buckets"]:
            raise ValueError("--draw: the length of the source is not known; give --source")
        names = [system["name"] for system in self.content["systems"]]
        from .bucket_pictures import draw_buckets  # of matplotlib, which takes long to import

        return draw_buckets(self.content["buckets"], names, self.content["metrics"][0]["name"])


def compare(
    systems: Mapping[str, Mapping[str, str]],
    reference: Sequence[str] | None = None,
    source: str | None = None,
    baselines: Sequence[str] | Mapping[str, Sequence[str]] = (),
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    comet: str | None = None,
    lowercase: bool = False,
    tokenize: str | None = None,
    remove_bpe: str | None = None,
    by: Sequence[str] | None = None,
    parse: str | None = None,
    width: int = 10,
    longest: int = 50,
    minimum: int = 50,
    trials: int = 10000,
    resamples: int = 10000,
    seed: int = 12345,
    sign_test: bool = False,
) -> Comparison:
    """Score systems and compare them.

    Args:
        systems: name -> label of a run -> file of translations, see `corpus.read_corpus`.
        reference, source: files; None for the T- and S- lines of the translations.
        baselines: systems with which all others are compared, or each of them -> the systems that are compared with it;
            the first system if empty.
        metrics: names from `METRICS`; buckets use the first.
        comet: a COMET model as an additional metric.
        lowercase, remove_bpe: treatment of the text.
        tokenize: sacrebleu's tokenizer; None for that of the script of the references, see `scoring_of`.
        by: kinds of buckets, see `buckets`; None for the length of the source, if it is known.
        parse: trees of the source (CoNLL-U).
        width, longest: for buckets by length, see `buckets.measure`.
        minimum: smallest bucket, in sentences.
        trials, resamples, seed, sign_test: settings of tests and intervals.

    Raises ValueError: files do not match, or there are no references; OSError: a file is missing.
    """
    corpus = read_corpus(systems, reference, source, remove_bpe)
    baselines = baselines or [corpus.systems[0].name]
    if not isinstance(baselines, Mapping):
        names = [system.name for system in corpus.systems]
        baselines = {corpus.system(name).name: [other for other in names if other != name] for name in baselines}
    tokenize = tokenize or scoring_of([text for texts in corpus.references for text in texts])
    if tokenize == "char":  # words are not known
        metrics = sorted(metrics, key=lambda name: name != "chrF")
    used = [METRICS[name](lowercase, tokenize) for name in dict.fromkeys(metrics)] + ([Comet(comet)] if comet else [])
    evaluation = Evaluation(corpus, used, Chance(trials, resamples, seed), sign_test)
    content, source_data = _content(evaluation, baselines), read_source(corpus, parse)
    content["buckets"] = breakdown(evaluation, next(iter(baselines)), by, source_data, width, longest, minimum)
    return Comparison(evaluation, content, source_data.parses)


def _content(evaluation: Evaluation, baselines: Mapping[str, Sequence[str]]) -> dict:
    """Scores and tests as a JSON object, described in docs/api/evaluate.md, without buckets."""
    corpus = evaluation.corpus
    return {
        "format": FORMAT,
        "sentences": len(corpus),
        "references": len(corpus.references[0]),
        "chance": asdict(evaluation.chance),
        "metrics": [
            {
                "name": name,
                "signature": metric.signature(len(corpus.references[0])),
                "higher_is_better": metric.higher,
                "digits": metric.digits,
            }
            for name, metric in evaluation.metrics.items()
        ],
        "systems": [
            {
                "name": system.name,
                "runs": system.runs,
                "files": system.files,
                "repeated": evaluation.repeated(system.name),
                "scores": {name: evaluation.summary(name, system.name) for name in evaluation.metrics},
            }
            for system in corpus.systems
        ],
        "baselines": list(baselines),
        "tests": [
            difference
            for baseline, names in baselines.items()
            for name in evaluation.metrics
            for difference in evaluation.differences(name, baseline, names)
        ],
        "buckets": [],
    }


# --- tables ----------------------------------------------------------------------------------------------------------


def tables(comparison: dict, form: str) -> list[str]:
    """The verdicts, all tables of a result of `compare`, and notes on its tests and buckets, in a `TableFormat`."""
    parts = [_note(line, form) for line in verdicts(comparison)]
    comparison = translating(comparison)
    parts += [table for _, table in score_tables(comparison, form)]
    parts += [_note(note, form) for note in test_notes(comparison)]
    for buckets in comparison["buckets"]:
        parts.append(bucket_table(comparison, buckets, form))
        parts += [_note(note, form) for note in notes(buckets)]
    return [*parts, settings(comparison, form)]


def score_tables(comparison: dict, form: str) -> Iterator[tuple[str, str]]:
    """Captions and tables of each metric: the scores, and the differences from each baseline."""
    for metric in comparison["metrics"]:
        yield f"{metric['name']}: scores", _scores(comparison, metric, form)
        for baseline in dict.fromkeys(test["baseline"] for test in comparison["tests"]):
            yield f"{metric['name']}: differences from {baseline}", _tests(comparison, metric, baseline, form)


def _note(text: str, form: str) -> str:
    """A line below a table."""
    if form == TableFormat.html:
        return f"<p>{html.escape(text)}</p>"
    return f"% {text}" if form == TableFormat.latex else text


def test_notes(comparison: dict) -> list[str]:
    """Notes for the reader: what the tests are about, and what they cannot say."""
    runs = {system["name"]: len(system["runs"]) for system in comparison["systems"]}
    higher = {metric["name"]: metric["higher_is_better"] for metric in comparison["metrics"]}
    tests, several, trials = comparison["tests"], len(runs) - 1, comparison["chance"]["trials"]
    tested = {(test["system"], test["baseline"]) for test in tests}
    alone = {pair for pair in tested if runs[pair[0]] == runs[pair[1]] == 1}
    seeds = len(alone) < len(tested)
    names = f" of {', '.join(sorted(' and '.join(pair) for pair in alone))}" if seeds else ""
    opposite = [
        test
        for test in tests
        if test["better"] is not None
        and (test["holm"]["sign"] or 1) <= 0.05
        and (test["better"] - test["worse"]) * test["delta"] * (1 if higher[test["metric"]] else -1) < 0
    ]
    said = [
        (seeds, "delta: its interval, p and detectable are about other sentences and other seeds (docs/evaluation.md)"),
        (alone, f"delta{names}: one seed each, so nothing is known about other seeds, and intervals are too narrow"),
        (
            any(runs[system] != runs[baseline] for system, baseline in tested),
            "p AR is not exact where systems differ in the number of seeds",
        ),
        (several > 1, "Holm: corrected for the systems that have this p, against one baseline and in one metric"),
        (
            several > 0.05 * (trials + 1),
            f"Holm of p AR cannot be below 0.05: give --trials {20 * several} or more",
        ),
        *(
            (
                True,
                f"p sign of {test['system']} contradicts delta in {test['metric']}: many sentences change a little one "
                "way, few change much the other way",
            )
            for test in opposite
        ),
    ]
    return [note for holds, note in said if holds] if tests else []


def notes(buckets: dict) -> list[str]:
    """Notes for the reader: which buckets are merged or small, and how many sentences are left out."""
    title, minimum, lines = buckets["title"], buckets["minimum"], []
    for group in buckets["groups"]:
        if group["merged"]:
            parts = ", ".join(f"{bucket['label']} ({bucket['size']})" for bucket in group["merged"])
            lines.append(f"{title} {group['label']}: {parts}, merged because some have fewer than {minimum} sentences")
    if buckets["groups"][0]["size"] < minimum:
        lines.append(f"{title}: fewer than {minimum} sentences in all, too few to conclude much")
    if buckets["left_out"]:
        lines.append(f"{title}: unknown for {buckets['left_out']} sentences, which are left out")
    return lines


def _interval(ends: Iterable[float], digits: int) -> str:
    low, high = (rounded(end, digits) for end in ends)
    return f"[{low}, {high}]"


def _tests_of(comparison: dict) -> list[tuple[str, str, str]]:
    """Columns of p: header, `p` or `holm`, and the name of the test."""
    names = list(comparison["tests"][0]["p"]) if comparison["tests"] else []
    columns = []
    for name in names if _has_seeds(comparison) else names[1:]:
        columns.append((_HEADERS[name], "p", name))
        columns += [("Holm", "holm", name)] * (len(comparison["systems"]) > 2 and name != "bootstrap")
    return columns


def _has_seeds(comparison: dict) -> bool:
    return any(len(system["runs"]) > 1 for system in comparison["systems"])


def _scores(comparison: dict, metric: dict, form: str) -> str:
    """The score of every system."""
    keys, names = ["mean"], ["score"]
    if _has_seeds(comparison):
        keys, names = ["mean", "sd", "minimum", "maximum"], ["seeds", "mean", "SD", "min", "max"]
    header = [metric["name"] + ", lower is better" * (not metric["higher_is_better"]), *names, "95 % interval"]
    rows = []
    for system in comparison["systems"]:
        summary, digits = system["scores"][metric["name"]], metric["digits"]
        row = [system["name"], *([len(system["runs"])] if len(keys) > 1 else [])]
        row += [*(rounded(summary[key], digits) for key in keys), _interval(summary["interval"], digits)]
        rows.append([*row, *_brevity(summary, metric)])
    return format_table([*header, *_BREVITY[: len(rows[0]) - len(header)]], rows, form)


_BREVITY = ("no BP", "length")


def _brevity(summary: dict, metric: dict, less: dict | None = None) -> list[Decimal | float]:
    """Cells of `_BREVITY`: of BLEU, that without brevity penalty (less a baseline's), and the ratio of lengths."""
    if summary.get("length_ratio") is None:
        return []
    bare = summary["without_brevity_penalty"] - (less["without_brevity_penalty"] if less else 0)
    return [rounded(bare, metric["digits"]), rounded(summary["length_ratio"], 3)]


def _tests(comparison: dict, metric: dict, baseline: str, form: str) -> str:
    """The differences of all systems from a baseline."""
    columns, digits = _tests_of(comparison), metric["digits"]
    counts = ["better", "worse"] if any(name == "sign" for *_, name in columns) else []
    scores = {system["name"]: system["scores"][metric["name"]] for system in comparison["systems"]}
    brevity = [f"delta {_BREVITY[0]}", _BREVITY[1]] if _brevity(scores[baseline], metric) else []
    header = [f"{metric['name']}, less {baseline}", "delta", "95 % interval", "detectable", *counts]
    rows = [
        [
            test["system"],
            rounded(test["delta"], digits),
            _interval(test["interval"], digits),
            rounded(test["detectable"], digits),
            *(math.nan if test[key] is None else test[key] for key in counts),
            *(probability(test[kind][name]) for _, kind, name in columns),
            *_brevity(scores[test["system"]], metric, scores[baseline]),
        ]
        for test in comparison["tests"]
        if (test["metric"], test["baseline"]) == (metric["name"], baseline)
    ]
    return format_table([*header, *(name for name, *_ in columns), *brevity], rows, form)


def bucket_table(comparison: dict, buckets: dict, form: str) -> str:
    """The first metric by bucket, with intervals, and differences from the first baseline.

    Each bucket is a row, or a column if there are too many systems to fit on a page.
    """
    metric, baseline = comparison["metrics"][0], comparison["baselines"][0]
    names = [system["name"] for system in comparison["systems"]]
    others = [
        name for name in names if {(name, baseline)} & {(t["system"], t["baseline"]) for t in comparison["tests"]}
    ]
    header, rows = [buckets["title"], "sentences", *names, *(f"delta {name}" for name in others)], []
    for group in buckets["groups"]:
        scores = [group["scores"][metric["name"]][name] for name in names]
        cells = [*scores, *(group["deltas"][metric["name"]][name] for name in others)]
        row = [f"{rounded(cell['mean'], d := metric['digits'])} {_interval(cell['interval'], d)}" for cell in cells]
        rows.append([group["label"], group["size"], *row, *(v for score in scores for v in _brevity(score, metric))])
    brevity = [f"{what} {name}" for name in names for what in _BREVITY]
    header += brevity[: len(rows[0]) - len(header)]
    if len(names) > _BESIDE:
        first, *others = zip(header, *rows, strict=True)
        return format_table(first, others, form)
    return format_table(header, rows, form)


def settings(comparison: dict, form: str) -> str:
    """The settings needed to reproduce the numbers."""
    chance = comparison["chance"]
    rows = [
        ["sentences", str(comparison["sentences"])],
        *([metric["name"], metric["signature"]] for metric in comparison["metrics"]),
        ["AR", f"trials:{chance['trials']}|seed:{chance['seed']}"],
        ["bootstrap, intervals", f"resamples:{chance['resamples']}|seed:{chance['seed']}"],
    ]
    return format_table(["setting", "value"], rows, form)

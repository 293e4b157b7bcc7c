"""Comparison of systems with baselines: scores over seeds, significance tests, and their tables."""

import html
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from ..data.text.languages import scoring_of
from .buckets import Source, make_buckets, measure, read_source, title
from .corpus import Corpus, read_corpus
from .metrics import METRICS, Bleu, Metric
from .significance import Effect, approximate_randomization, effect, holm, interval, resampled
from .tables import TableFormat, format_table, probability, rounded
from .verdicts import translating, verdicts

FORMAT = 5
"""Version of the JSON that `compare --format json` prints."""
DEFAULT_METRICS = ("BLEU", "chrF", "TER", "RIBES")
TESTS = {"runs": "p", "randomization": "p AR"}
"""Name of a test -> header of its column."""


class Evaluation:
    """Scores and tests of all systems of a corpus, which has at least one sentence.

    Args:
        corpus: translations and references.
        metrics: metrics, in the order of the tables.
        trials: number of trials of approximate randomization.
        resamples: number of bootstrap resamples for intervals.
        seed: random seed of both.

    Attributes:
        statistics: metric -> system -> (K, N, C), see `Metric.statistics`.
    """

    def __init__(
        self, corpus: Corpus, metrics: Sequence[Metric], trials: int = 10000, resamples: int = 10000, seed: int = 12345
    ):
        self.corpus, self.trials, self.resamples, self.seed = corpus, trials, resamples, seed
        self.metrics = {metric.name: metric for metric in metrics}
        self.statistics = {metric.name: self._count(metric) for metric in metrics}
        self._scored: dict[tuple, tuple[np.ndarray, np.ndarray]] = {}

    def _count(self, metric: Metric) -> dict[str, np.ndarray]:
        """System -> statistics (K, N, C). Translations on which systems agree are scored once."""
        corpus = self.corpus
        keys = [(i, text) for system in corpus.systems for run in system.hypotheses for i, text in enumerate(run)]
        places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        statistics = metric.statistics([text for _, text in places], [corpus.references[i] for i, _ in places])
        return {
            system.name: statistics[[[places[i, text] for i, text in enumerate(run)] for run in system.hypotheses]]
            for system in corpus.systems
        }

    def sentence_scores(self, metric: str, system: str) -> np.ndarray:
        """The scores (K, N) of single sentences."""
        return self.metrics[metric].sentence_scores(self.statistics[metric][system])

    def _scores(self, metric: str, system: str, sentences: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The scores (K,) of the runs, on all sentences or some, and those on resamples, (K, R)."""
        key = metric, system, None if sentences is None else sentences.tobytes()
        if key not in self._scored:
            statistics = self.statistics[metric][system]
            statistics = statistics if sentences is None else statistics[:, sentences]
            scores = self.metrics[metric].scores
            draws = resampled(statistics, scores, self.resamples, self.seed)
            self._scored[key] = scores(statistics.sum(axis=1)), draws
        return self._scored[key]

    def summary(self, metric: str, system: str, sentences: np.ndarray | None = None) -> dict:
        """The score of a system over K runs, on all sentences or some, as in docs/api/evaluate.md."""
        runs, draws = self._scores(metric, system, sentences)
        more: tuple[float | None, float | None] = (None, None)
        if isinstance(bleu := self.metrics[metric], Bleu):
            statistics = self.statistics[metric][system]
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

    def differences(self, metric: str, baseline: str, names: Sequence[str]) -> list[dict]:
        """The tests of systems against a baseline, with Holm's correction for their number (docs/api/evaluate.md)."""
        results: list[dict] = []
        for name in names:
            difference = self.effect(metric, baseline, name)
            first, second = self.statistics[metric][baseline], self.statistics[metric][name]
            p = approximate_randomization(first, second, self.metrics[metric].scores, self.trials, self.seed)
            result: dict = {"metric": metric, "baseline": baseline, "system": name, "delta": difference.delta}
            result |= {"interval": difference.interval, "detectable": difference.detectable}
            results.append({**result, "p": {"runs": difference.p, "randomization": p}, "holm": {}})
        for test in TESTS:
            corrected = iter(holm([p for result in results if (p := result["p"][test]) is not None]).tolist())
            for result in results:
                result["holm"][test] = None if result["p"][test] is None else next(corrected)
        return results


class Comparison(NamedTuple):
    """The result of `compare`: all statistics, and the object that --format json prints (docs/api/evaluate.md)."""

    evaluation: Evaluation
    content: dict


def compare(
    systems: Mapping[str, Mapping[str, str]],
    reference: Sequence[str] | None = None,
    source: str | None = None,
    baselines: Sequence[str] | Mapping[str, Sequence[str]] = (),
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    lowercase: bool = False,
    tokenize: str | None = None,
    remove_bpe: str | None = None,
    by: Sequence[str] | None = None,
    parse: str | None = None,
    longest: int = 50,
    minimum: int = 50,
    trials: int = 10000,
    resamples: int = 10000,
    seed: int = 12345,
) -> Comparison:
    """Score systems, and test their differences from baselines.

    Args:
        systems: name -> label of a run -> file of translations, see `corpus.read_corpus`.
        reference, source: files; None for the T- and S- lines of the translations.
        baselines: names of systems with which all others are compared, or baseline -> systems compared with it; the
            first system if empty.
        metrics: names from `METRICS`; buckets use the first.
        lowercase, remove_bpe: treatment of the text.
        tokenize: sacrebleu's tokenizer; None for that of the script of the references, see `scoring_of`.
        by: kinds of buckets, see `buckets`; None for the length of the source, if it is known.
        parse: trees of the source (CoNLL-U).
        longest: for buckets by length, see `buckets.measure`.
        minimum: smallest bucket, in sentences.
        trials, resamples, seed: settings of tests and intervals.

    Raises ValueError: files do not match, or there are no references; OSError: a file is missing.
    """
    corpus = read_corpus(systems, reference, source, remove_bpe)
    baselines = baselines or [corpus.systems[0].name]
    if not isinstance(baselines, Mapping):
        names = [system.name for system in corpus.systems]
        if unknown := [name for name in baselines if name not in names]:
            raise ValueError(f"--baseline {unknown[0]}: no system has this name; give one of {', '.join(names)}")
        baselines = {name: [other for other in names if other != name] for name in baselines}
    tokenize = tokenize or scoring_of([text for texts in corpus.references for text in texts])
    if tokenize == "char":  # the text has no words
        metrics = sorted(metrics, key=lambda name: name != "chrF")
    if tokenize in ("char", "ja-mecab", "zh"):  # TER would take a line as a word
        metrics = [name for name in metrics if name != "TER"] or metrics
    used = [METRICS[name](lowercase, tokenize) for name in dict.fromkeys(metrics)]
    evaluation = Evaluation(corpus, used, trials, resamples, seed)
    # first, because it refuses wrong kinds
    buckets = _breakdown(evaluation, next(iter(baselines)), by, read_source(corpus, parse), longest, minimum)
    return Comparison(evaluation, {**_content(evaluation, baselines), "buckets": buckets})


def _breakdown(
    evaluation: Evaluation, baseline: str, by: Sequence[str] | None, source: Source, longest: int, minimum: int
) -> list[dict]:
    """Scores of all systems by bucket, for each kind in `by` (None: the length), as in docs/api/evaluate.md."""
    numbers, names = evaluation.corpus.numbers, [system.name for system in evaluation.corpus.systems]
    results = []

    def delta(metric: str, name: str, sentences: np.ndarray) -> dict:
        difference = evaluation.effect(metric, baseline, name, sentences)
        return {"mean": difference.delta, "interval": difference.interval}

    kinds = dict.fromkeys(by or (["length"] if source.words is not None else []))
    for kind, (values, scale) in {kind: measure(kind, source, numbers, longest) for kind in kinds}.items():
        groups = [
            {
                "label": bucket.label,
                "size": len(bucket.sentences),
                "sentences": [numbers[i] for i in bucket.sentences],
                "scores": {
                    metric: {name: evaluation.summary(metric, name, bucket.sentences) for name in names}
                    for metric in evaluation.metrics
                },
                "deltas": {
                    metric: {name: delta(metric, name, bucket.sentences) for name in names if name != baseline}
                    for metric in evaluation.metrics
                },
            }
            for bucket in make_buckets(values, scale, minimum)
        ]
        left_out = int(np.isnan(values).sum())
        results.append({"by": kind, "title": title(kind), "minimum": minimum, "left_out": left_out, "groups": groups})
    return results


def _content(evaluation: Evaluation, baselines: Mapping[str, Sequence[str]]) -> dict:
    """Scores and tests as a JSON object, described in docs/api/evaluate.md, without buckets."""
    corpus = evaluation.corpus
    return {
        "format": FORMAT,
        "sentences": len(corpus),
        "references": len(corpus.references[0]),
        "chance": {name: getattr(evaluation, name) for name in ("trials", "resamples", "seed")},
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
    }


# --- tables ----------------------------------------------------------------------------------------------------------


def tables(comparison: dict, form: str = TableFormat.text) -> list[str]:
    """The verdicts, all tables of a result of `compare`, and notes on its tests and buckets, in a `TableFormat`."""
    parts = [_note(line, form) for line in verdicts(comparison)]
    comparison = translating(comparison)
    parts += [table for _, table in score_tables(comparison, form)]
    for buckets in comparison["buckets"]:
        parts.append(bucket_table(comparison, buckets, form))
        parts += [_note(note, form) for note in notes(buckets)]
    return [*parts, settings_table(comparison, form)]


def score_tables(comparison: dict, form: str) -> Iterator[tuple[str, str]]:
    """Captions and tables of each metric: the scores, and the differences from each baseline."""
    for metric in comparison["metrics"]:
        yield f"{metric['name']}: scores", _score_table(comparison, metric, form)
        for baseline in dict.fromkeys(test["baseline"] for test in comparison["tests"]):
            yield f"{metric['name']}: differences from {baseline}", _test_table(comparison, metric, baseline, form)


def _note(text: str, form: str) -> str:
    """A line below a table."""
    if form == TableFormat.html:
        return f"<p>{html.escape(text)}</p>"
    return f"% {text}" if form == TableFormat.latex else text


def notes(buckets: dict) -> list[str]:
    """A note on the sentences that the buckets leave out, if there are any."""
    left_out = f"{buckets['title']}: unknown for {buckets['left_out']} sentences, which are left out"
    return [left_out] if buckets["left_out"] else []


def _interval(ends: Iterable[float], digits: int) -> str:
    low, high = (rounded(end, digits) for end in ends)
    return f"[{low}, {high}]"


def _has_seeds(comparison: dict) -> bool:
    return any(len(system["runs"]) > 1 for system in comparison["systems"])


def _score_table(comparison: dict, metric: dict, form: str) -> str:
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
    """Cells of `_BREVITY`, for BLEU only: score without brevity penalty, minus that of `less`; ratio of lengths."""
    if summary.get("length_ratio") is None:
        return []
    bare = summary["without_brevity_penalty"] - (less["without_brevity_penalty"] if less else 0)
    return [rounded(bare, metric["digits"]), rounded(summary["length_ratio"], 3)]


def _test_table(comparison: dict, metric: dict, baseline: str, form: str) -> str:
    """The differences of all systems from a baseline."""
    digits, kinds = metric["digits"], {"p": ""} | ({"holm": "Holm"} if len(comparison["systems"]) > 2 else {})
    names = list(TESTS) if _has_seeds(comparison) else ["randomization"]
    scores = {system["name"]: system["scores"][metric["name"]] for system in comparison["systems"]}
    header = [f"{metric['name']}, less {baseline}", "delta", "95 % interval", "detectable"]
    header += [kinds[kind] or TESTS[name] for name in names for kind in kinds]
    header += [f"delta {_BREVITY[0]}", _BREVITY[1]] if _brevity(scores[baseline], metric) else []
    rows = [
        [
            test["system"],
            rounded(test["delta"], digits),
            _interval(test["interval"], digits),
            rounded(test["detectable"], digits),
            *(probability(test[kind][name]) for name in names for kind in kinds),
            *_brevity(scores[test["system"]], metric, scores[baseline]),
        ]
        for test in comparison["tests"]
        if (test["metric"], test["baseline"]) == (metric["name"], baseline)
    ]
    return format_table(header, rows, form)


def bucket_table(comparison: dict, buckets: dict, form: str) -> str:
    """The first metric by bucket and system, with differences from the first baseline, and intervals."""
    metric, baseline = comparison["metrics"][0], comparison["baselines"][0]
    name, digits = metric["name"], metric["digits"]
    tested = {test["system"] for test in comparison["tests"] if test["baseline"] == baseline}
    header, rows = [buckets["title"], "sentences", "system", name, "95 % interval"], []
    header += [f"less {baseline}", "95 % interval"] if tested else []
    for group in buckets["groups"]:
        for system, score in group["scores"][name].items():
            cells: list = [math.nan, "-"] if tested else []
            if system in tested:
                delta = group["deltas"][name][system]
                cells = [rounded(delta["mean"], digits), _interval(delta["interval"], digits)]
            cells = [rounded(score["mean"], digits), _interval(score["interval"], digits), *cells]
            rows.append([group["label"], group["size"], system, *cells, *_brevity(score, metric)])
    return format_table([*header, *_BREVITY[: len(rows[0]) - len(header)]], rows, form)


def settings_table(comparison: dict, form: str) -> str:
    """The settings needed to reproduce the numbers."""
    chance = comparison["chance"]
    rows = [
        ["sentences", str(comparison["sentences"])],
        *([metric["name"], metric["signature"]] for metric in comparison["metrics"]),
        ["AR", f"trials:{chance['trials']}|seed:{chance['seed']}"],
        ["bootstrap, intervals", f"resamples:{chance['resamples']}|seed:{chance['seed']}"],
    ]
    return format_table(["setting", "value"], rows, form)

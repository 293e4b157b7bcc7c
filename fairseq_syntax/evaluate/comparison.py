"""Comparison of systems with baselines: scores over seeds, significance tests, and their tables."""

import html
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal

import numpy as np

from .corpus import Corpus
from .metrics import Metric
from .schemas import FORMAT
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
from .tables import TableFormat, format_table, probability

TESTS = ("runs", "randomization", "bootstrap")
FEW = 50
"""Sentences below which a comparison says little."""
LEAST = 2
"""BLEU below which it is worthless."""
_BESIDE = 3  # most systems whose scores and differences fit side by side
_HEADERS = {"runs": "p", "randomization": "p AR", "bootstrap": "p bootstrap", "sign": "p sign"}


@dataclass
class Chance:
    """Numbers of trials and resamples, and the random seed of tests and intervals."""

    trials: int = 10000
    resamples: int = 10000
    seed: int = 12345


@dataclass
class Summary:
    """The score of a system over K runs.

    Attributes:
        runs: the K scores.
        sd: their sample standard deviation; None for one run.
        interval: bootstrap interval (95 %) of their mean.
    """

    runs: list[float]
    mean: float
    sd: float | None
    minimum: float
    maximum: float
    interval: tuple[float, float]


@dataclass
class Difference:
    """The difference between a system and a baseline in one metric.

    Attributes:
        metric, baseline, system: names.
        delta, interval, detectable: see `significance.Effect`.
        better, worse, ties: numbers of sentences in the sign test; None without this test, or if the numbers of runs
            differ.
        p: name of a test -> its p-value; "runs" is that of `significance.effect`.
        holm: `p`, corrected for the number of systems compared with this baseline in this metric.
    """

    metric: str
    baseline: str
    system: str
    delta: float
    interval: tuple[float, float]
    detectable: float | None
    better: int | None
    worse: int | None
    ties: int | None
    p: dict[str, float | None]
    holm: dict[str, float | None] = field(default_factory=dict)


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

    def summary(self, metric: str, system: str, sentences: np.ndarray | None = None) -> Summary:
        """The score of a system on all sentences, or on those with the given indices."""
        runs, draws = self._scores(metric, system, sentences)
        return Summary(
            runs.tolist(),
            float(runs.mean()),
            float(runs.std(ddof=1)) if len(runs) > 1 else None,
            float(runs.min()),
            float(runs.max()),
            interval(draws.mean(axis=0)),
        )

    def effect(self, metric: str, baseline: str, system: str, sentences: np.ndarray | None = None) -> Effect:
        """The difference of the means over runs, on all sentences or on those with the given indices."""
        (first, draws), (second, others) = (self._scores(metric, name, sentences) for name in (baseline, system))
        return effect((first, second), (draws, others))

    def difference(self, metric: str, baseline: str, system: str) -> Difference:
        """All tests of a system against a baseline, without correction."""
        found = self.effect(metric, baseline, system)
        first, second = (self.statistics(metric, name) for name in (baseline, system))
        (observed, draws), (others, other_draws) = (self._scores(metric, name, None) for name in (baseline, system))
        scores, higher = self.metrics[metric].scores, self.metrics[metric].higher
        sign = sign_test(first, second, scores) if "sign" in self.tests else None
        p = {
            "runs": found.p,
            "randomization": approximate_randomization(first, second, scores, self.chance.trials, self.chance.seed),
            "bootstrap": paired_bootstrap((observed, others), (draws, other_draws)),
            **({"sign": sign and sign.p} if "sign" in self.tests else {}),
        }
        better, worse, ties, _ = sign or (None, None, None, None)
        counts = (better, worse, ties) if higher else (worse, better, ties)
        return Difference(metric, baseline, system, found.delta, found.interval, found.detectable, *counts, p)

    def differences(self, metric: str, baseline: str) -> list[Difference]:
        """The differences of all other systems from a baseline, with Holm's correction."""
        names = [system.name for system in self.corpus.systems if system.name != baseline]
        results = [self.difference(metric, baseline, name) for name in names]
        for test in self.tests:
            values = {i: p for i, result in enumerate(results) if (p := result.p[test]) is not None}
            corrected = dict(zip(values, holm(list(values.values())).tolist(), strict=True))
            for i, result in enumerate(results):
                result.holm[test] = corrected.get(i)
        return results

    def length_ratio(self, system: str) -> float | None:
        """Ratio of hypothesis to reference length in words, over all runs; None without BLEU, which counts them."""
        if "BLEU" not in self.metrics:
            return None
        words, references = self.statistics("BLEU", system)[..., :2].sum(axis=(0, 1))
        return float(words / max(references, 1))


def compare(evaluation: Evaluation, baselines: Sequence[str]) -> dict:
    """Scores and tests as a JSON object, described in docs/api/evaluate.md; the caller adds buckets.

    Raises ValueError: a baseline is not the name of a system.
    """
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
                "length_ratio": evaluation.length_ratio(system.name),
                "scores": {name: asdict(evaluation.summary(name, system.name)) for name in evaluation.metrics},
            }
            for system in corpus.systems
        ],
        "baselines": list(baselines),
        "tests": [
            asdict(difference)
            for baseline in baselines
            for name in evaluation.metrics
            for difference in evaluation.differences(name, baseline)
        ],
        "buckets": [],
    }


# --- tables ----------------------------------------------------------------------------------------------------------


def tables(comparison: dict, form: str) -> list[str]:
    """All tables of a result of `compare`, and notes on its tests and buckets, in a `TableFormat`."""
    parts = [table for _, table in score_tables(comparison, form)]
    parts += [_note(note, form) for note in test_notes(comparison)]
    for buckets in comparison["buckets"]:
        parts.append(bucket_table(comparison, buckets, form))
        parts += [_note(note, form) for note in notes(buckets)]
    return [*parts, _settings(comparison, form)]


def score_tables(comparison: dict, form: str) -> Iterator[tuple[str, str]]:
    """Captions and tables of each metric: the scores, and the differences from each baseline."""
    for metric in comparison["metrics"]:
        yield f"{metric['name']}: scores", _scores(comparison, metric, form)
        for baseline in comparison["baselines"] if comparison["tests"] else ():
            yield f"{metric['name']}: differences from {baseline}", _tests(comparison, metric, baseline, form)


def _note(text: str, form: str) -> str:
    """A line below a table."""
    if form == TableFormat.html:
        return f"<p>{html.escape(text)}</p>"
    return f"% {text}" if form == TableFormat.latex else text


def in_words(comparison: dict) -> list[str]:
    """A sentence about each system and its baseline, by the interval of their difference in the first metric."""
    metric, pairs = comparison["metrics"][0], _of_one_seed(comparison)
    digits, sign = metric["digits"], 1 if metric["higher_is_better"] else -1
    lines = []
    for test in comparison["tests"]:
        if test["metric"] != metric["name"]:
            continue
        delta, low, high = (f"{_rounded(value, digits):+}" for value in (test["delta"], *test["interval"]))
        figures = f"({delta} {metric['name']}, {low} to {high})"
        system, baseline, detectable = test["system"], test["baseline"], test["detectable"]
        alone = (system, baseline) in pairs
        # sentences that do not vary, such as a single one, say nothing about others
        if test["interval"][0] <= 0 <= test["interval"][1] or detectable is None:
            seeds = ", with one seed each" if alone else ""
            seen = f"; a true difference of {_rounded(detectable, digits)} would be found four times in five"
            lines.append(f"{system} and {baseline} cannot be told apart {figures}{seeds}{seen * bool(detectable)}")
            continue
        better = "better" if test["delta"] * sign > 0 else "worse"
        holm = test["holm"]["randomization" if alone else "runs"]
        corrected = ", though not after Holm's correction" if (holm or 0) > 0.05 else ""
        seeds = "; with one seed each, so other seeds may say otherwise" if alone else ""
        lines.append(f"{system} is {better} than {baseline} {figures}{corrected}{seeds}")
    return lines


def _of_one_seed(comparison: dict) -> list[tuple[str, str]]:
    """Systems and their baselines where both have one run."""
    runs = {system["name"]: len(system["runs"]) for system in comparison["systems"]}
    tested = dict.fromkeys((test["system"], test["baseline"]) for test in comparison["tests"])
    return [pair for pair in tested if runs[pair[0]] == runs[pair[1]] == 1]


def warnings(comparison: dict) -> list[str]:
    """What makes a comparison worthless: too few sentences, or systems that do not translate."""
    lines = []
    if comparison["sentences"] < FEW:
        lines.append(f"Fewer than {FEW} sentences are too few to conclude much; intervals are too narrow")
    bleu = [system["scores"]["BLEU"]["mean"] for system in comparison["systems"] if "BLEU" in system["scores"]]
    if bleu and max(bleu) < LEAST:
        lines.append(
            f"No system reaches {LEAST} BLEU: they do not translate yet, so this says nothing about syntax; they need "
            "more text or more updates"
        )
    return lines


def test_notes(comparison: dict) -> list[str]:
    """Notes for the reader: what is found in words, what the tests are about, and what they cannot say."""
    if not comparison["tests"]:
        return []
    runs = {system["name"]: len(system["runs"]) for system in comparison["systems"]}
    tests, lines = comparison["tests"], in_words(comparison) + warnings(comparison)
    alone = _of_one_seed(comparison)
    tested = {(test["system"], test["baseline"]) for test in tests}
    about = "other sentences and other seeds" if len(alone) < len(tested) else ""
    if about:
        lines.append(f"delta: its interval, p and detectable are about {about} (docs/evaluation.md)")
    if alone:
        names = f" of {', '.join(' and '.join(pair) for pair in alone)}" if about else ""
        lines.append(
            f"delta{names}: one seed each, so nothing is known about other seeds, and intervals are too narrow"
        )
    if any(runs[test["system"]] != runs[test["baseline"]] for test in tests):
        lines.append("p AR is not exact where systems differ in the number of seeds")
    several, trials = len(runs) - 1, comparison["chance"]["trials"]
    if several > 1:
        lines.append("Holm: corrected for the systems that have this p, against one baseline and in one metric")
    if several > 0.05 * (trials + 1):
        lines.append(f"Holm of p AR cannot be below 0.05: give --trials {20 * several} or more")
    return lines + [
        f"p sign of {test['system']} contradicts delta in {test['metric']}: many sentences change a little one way, "
        "few change much the other way"
        for test in tests
        if test["better"] is not None and (test["holm"]["sign"] or 1) <= 0.05 and _contradicts(comparison, test)
    ]


def _contradicts(comparison: dict, test: dict) -> bool:
    """Whether most sentences get better though the score gets worse, or the other way round."""
    higher = next(m["higher_is_better"] for m in comparison["metrics"] if m["name"] == test["metric"])
    return (test["better"] - test["worse"]) * test["delta"] * (1 if higher else -1) < 0


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


def _rounded(value: float | None, digits: int) -> Decimal | float:
    """A number with so many decimals; None becomes NaN, which tables show as a dash."""
    # without + 0, -0.001 becomes -0.00
    return math.nan if value is None else Decimal(f"{value:.{digits}f}") + 0


def _interval(ends: Iterable[float], digits: int) -> str:
    low, high = (_rounded(end, digits) for end in ends)
    return f"[{low}, {high}]"


def _several(comparison: dict) -> tuple[bool, bool]:
    """Whether any system has several runs, and whether several systems are compared with a baseline."""
    return any(len(system["runs"]) > 1 for system in comparison["systems"]), len(comparison["systems"]) > 2


def _tests_of(comparison: dict) -> list[tuple[str, str, str]]:
    """Columns of p: header, `p` or `holm`, and the name of the test."""
    runs, several = _several(comparison)
    names = list(comparison["tests"][0]["p"]) if comparison["tests"] else []
    columns = []
    for name in names if runs else names[1:]:
        columns.append((_HEADERS[name], "p", name))
        columns += [("Holm", "holm", name)] * (several and name != "bootstrap")
    return columns


def _title(metric: dict) -> str:
    return metric["name"] + ("" if metric["higher_is_better"] else ", lower is better")


def _scores(comparison: dict, metric: dict, form: str) -> str:
    """The score of every system."""
    runs, name, digits = _several(comparison)[0], metric["name"], metric["digits"]
    header = [_title(metric), *(["seeds", "mean", "SD", "min", "max"] if runs else ["score"]), "95 % interval"]
    ratio = name == "BLEU"
    rows = []
    for system in comparison["systems"]:
        summary = system["scores"][name]
        row = [system["name"]] + ([len(system["runs"])] if runs else [])
        row += [_rounded(summary[key], digits) for key in ("mean", "sd", "minimum", "maximum")[: 4 if runs else 1]]
        row.append(_interval(summary["interval"], digits))
        rows.append(row + ([_rounded(system["length_ratio"], 3)] if ratio else []))
    return format_table([*header, *(["length"] if ratio else [])], rows, form)


def _tests(comparison: dict, metric: dict, baseline: str, form: str) -> str:
    """The differences of all systems from a baseline."""
    columns, digits = _tests_of(comparison), metric["digits"]
    counts = ["better", "worse"] if any(name == "sign" for *_, name in columns) else []
    header = [f"{metric['name']}, less {baseline}", "delta", "95 % interval", "detectable", *counts]
    rows = [
        [
            test["system"],
            _rounded(test["delta"], digits),
            _interval(test["interval"], digits),
            _rounded(test["detectable"], digits),
            *(math.nan if test[key] is None else test[key] for key in counts),
            *(probability(test[kind][name]) for _, kind, name in columns),
        ]
        for test in comparison["tests"]
        if (test["metric"], test["baseline"]) == (metric["name"], baseline)
    ]
    return format_table([*header, *(name for name, *_ in columns)], rows, form)


def bucket_table(comparison: dict, buckets: dict, form: str) -> str:
    """The first metric by bucket, with intervals, and differences from the first baseline.

    Each bucket is a row, or a column if there are too many systems to fit on a page.
    """
    metric, baseline = comparison["metrics"][0], comparison["baselines"][0]
    names = [system["name"] for system in comparison["systems"]]
    others = [name for name in names if name != baseline]
    header = [buckets["title"], "sentences", *names, *(f"delta {name}" for name in others)]
    rows = []
    for group in buckets["groups"]:
        scores = [group["scores"][metric["name"]][name] for name in names]
        deltas = [group["deltas"][metric["name"]][name] for name in others]
        cells = [(score["mean"], score["interval"]) for score in scores]
        cells += [(delta["mean"], delta["interval"]) for delta in deltas]
        digits = metric["digits"]
        rows.append(
            [
                *(group["label"], group["size"]),
                *(f"{_rounded(mean, digits)} {_interval(ends, digits)}" for mean, ends in cells),
            ]
        )
    if len(names) > _BESIDE:
        first, *others = zip(header, *rows, strict=True)
        return format_table(first, others, form)
    return format_table(header, rows, form)


def _settings(comparison: dict, form: str) -> str:
    """The settings needed to reproduce the numbers."""
    chance = comparison["chance"]
    rows = [
        ["sentences", str(comparison["sentences"])],
        *([metric["name"], metric["signature"]] for metric in comparison["metrics"]),
        ["AR", f"trials:{chance['trials']}|seed:{chance['seed']}"],
        ["bootstrap, intervals", f"resamples:{chance['resamples']}|seed:{chance['seed']}"],
    ]
    return format_table(["setting", "value"], rows, form)

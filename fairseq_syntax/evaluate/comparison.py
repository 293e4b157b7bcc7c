"""Comparison of systems with baselines: scores over seeds, significance tests, and their tables."""

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal

import numpy as np

from .corpus import Corpus, System
from .metrics import Metric
from .significance import approximate_randomization, holm, interval, paired_bootstrap, resampled, sign_test, welch
from .tables import TableFormat, format_table

FORMAT = 2
TESTS = ("randomization", "bootstrap")
_BESIDE = 3  # most systems whose scores and differences fit side by side
_HEADERS = {"randomization": "p AR", "bootstrap": "p bootstrap", "sign": "p sign"}


@dataclass
class Chance:
    """Numbers of trials and resamples, and the random seed of tests and intervals."""

    trials: int = 10000
    resamples: int = 1000
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
        delta: mean score over the system's runs minus that over the baseline's.
        interval: bootstrap interval (95 %) of `delta`.
        better, worse, ties: numbers of sentences in the sign test; None without this test, or if the numbers of runs
            differ.
        p: name of a test -> its p-value.
        p_seeds: p-value of Welch's t-test over the scores of the runs; None with too few runs.
        holm: `p`, corrected for the number of systems compared with this baseline in this metric.
    """

    metric: str
    baseline: str
    system: str
    delta: float
    interval: tuple[float, float]
    better: int | None
    worse: int | None
    ties: int | None
    p: dict[str, float | None]
    p_seeds: float | None
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

    def summary(self, metric: str, system: str, sentences: np.ndarray | None = None) -> Summary:
        """The score of a system on all sentences, or on those with the given indices."""
        statistics = self.statistics(metric, system)
        statistics = statistics if sentences is None else statistics[:, sentences]
        scores = self.metrics[metric].scores
        runs = scores(statistics.sum(axis=1))
        draws = self.chance.resamples, self.chance.seed
        return Summary(
            runs.tolist(),
            float(runs.mean()),
            float(runs.std(ddof=1)) if len(runs) > 1 else None,
            float(runs.min()),
            float(runs.max()),
            interval(resampled(statistics, scores, *draws)),
        )

    def delta(self, metric: str, baseline: System, system: System, sentences: np.ndarray | None = None) -> tuple:
        """The difference of the means over runs, and its interval, on all sentences or those with the given indices."""
        chosen = slice(None) if sentences is None else sentences
        first, second = (self.statistics(metric, name)[:, chosen] for name in (baseline.name, system.name))
        scores, draws = self.metrics[metric].scores, (self.chance.resamples, self.chance.seed)
        mean = float(scores(second.sum(axis=1)).mean() - scores(first.sum(axis=1)).mean())
        return mean, interval(resampled(second, scores, *draws) - resampled(first, scores, *draws))

    def difference(self, metric: str, baseline: System, system: System) -> Difference:
        """All tests of a system against a baseline, without correction."""
        delta, ends = self.delta(metric, baseline, system)
        first, second = (self.statistics(metric, name) for name in (baseline.name, system.name))
        scores, higher = self.metrics[metric].scores, self.metrics[metric].higher
        sign = sign_test(first, second, scores) if "sign" in self.tests else None
        p = {
            "randomization": approximate_randomization(first, second, scores, self.chance.trials, self.chance.seed),
            "bootstrap": paired_bootstrap(first, second, scores, self.chance.resamples, self.chance.seed),
            **({"sign": sign and sign.p} if "sign" in self.tests else {}),
        }
        better, worse, ties, _ = sign or (None, None, None, None)
        counts = (better, worse, ties) if higher else (worse, better, ties)
        p_seeds = welch(*(scores(runs.sum(axis=1)).tolist() for runs in (first, second)))
        return Difference(metric, baseline.name, system.name, delta, ends, *counts, p, p_seeds)

    def differences(self, metric: str, baseline: str) -> list[Difference]:
        """The differences of all other systems from a baseline, with Holm's correction."""
        base = self.corpus.system(baseline)
        results = [self.difference(metric, base, system) for system in self.corpus.systems if system is not base]
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
    """Scores and tests as a JSON object, described in docs/evaluation.md; the caller adds buckets.

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
    """All tables of a result of `compare`, and notes on its buckets, in a `TableFormat`."""
    parts = []
    for metric in comparison["metrics"]:
        parts.append(_scores(comparison, metric, form))
        parts += [_tests(comparison, metric, baseline, form) for baseline in comparison["baselines"][1:]]
    for buckets in comparison["buckets"]:
        parts.append(bucket_table(comparison, buckets, form))
        parts += [_note(note, form) for note in notes(buckets)]
    return [*parts, _settings(comparison, form)]


def _note(text: str, form: str) -> str:
    """A line below a table."""
    if form == TableFormat.html:
        return f"<p>{html.escape(text)}</p>"
    return f"% {text}" if form == TableFormat.latex else text


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


def _p(value: float | None) -> Decimal | float | str:
    if value is not None and value < 1e-4:
        return "< 0.0001"
    return math.nan if value is None else Decimal(f"{value:.2g}")


def _interval(ends: Iterable[float], digits: int) -> str:
    low, high = (_rounded(end, digits) for end in ends)
    return f"[{low}, {high}]"


def _several(comparison: dict) -> tuple[bool, bool]:
    """Whether any system has several runs, and whether several systems are compared with a baseline."""
    return any(len(system["runs"]) > 1 for system in comparison["systems"]), len(comparison["systems"]) > 2


def _test_header(comparison: dict) -> list[str]:
    runs, several = _several(comparison)
    tests = _tests_of(comparison)
    columns = [name for test in tests for name in (_HEADERS[test], "Holm")[: 1 + several]]
    counts = ["better", "worse"] if "sign" in tests else []
    return ["delta", "its interval", *counts, *columns, *(["p seeds"] if runs else [])]


def _tests_of(comparison: dict) -> list[str]:
    """Names of the tests in a comparison."""
    return list(comparison["tests"][0]["p"]) if comparison["tests"] else []


def _test_cells(comparison: dict, metric: dict, baseline: str, system: str) -> list:
    """The cells below `_test_header`; dashes for the baseline itself."""
    keys = {"metric": metric["name"], "baseline": baseline, "system": system}
    test = next((test for test in comparison["tests"] if keys.items() <= test.items()), None)
    if test is None:
        return [math.nan] * len(_test_header(comparison))
    runs, several = _several(comparison)
    columns = [_p(p) for name in _tests_of(comparison) for p in (test["p"][name], test["holm"][name])[: 1 + several]]
    delta = _rounded(test["delta"], metric["digits"])
    counted = ("better", "worse") if "sign" in test["p"] else ()
    counts = (math.nan if test[key] is None else test[key] for key in counted)
    seeds = [_p(test["p_seeds"])] if runs else []
    return [delta, _interval(test["interval"], metric["digits"]), *counts, *columns, *seeds]


def _scores(comparison: dict, metric: dict, form: str) -> str:
    """The score of every system, and its difference from the first baseline."""
    runs, name, digits = _several(comparison)[0], metric["name"], metric["digits"]
    header = [name, *(["seeds", "mean", "SD", "min", "max"] if runs else ["score"]), "95 % interval"]
    ratio = name == "BLEU"
    rows = []
    for system in comparison["systems"]:
        summary = system["scores"][name]
        row = [system["name"]] + ([len(system["runs"])] if runs else [])
        row += [_rounded(summary[key], digits) for key in ("mean", "sd", "minimum", "maximum")[: 4 if runs else 1]]
        row.append(_interval(summary["interval"], digits))
        row += [_rounded(system["length_ratio"], 3)] if ratio else []
        rows.append(row + _test_cells(comparison, metric, comparison["baselines"][0], system["name"]))
    return format_table([*header, *(["length"] if ratio else []), *_test_header(comparison)], rows, form)


def _tests(comparison: dict, metric: dict, baseline: str, form: str) -> str:
    rows = [
        [system["name"], *_test_cells(comparison, metric, baseline, system["name"])]
        for system in comparison["systems"]
        if system["name"] != baseline
    ]
    return format_table([f"{metric['name']} against {baseline}", *_test_header(comparison)], rows, form)


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

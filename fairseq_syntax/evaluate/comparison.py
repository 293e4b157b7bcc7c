"""Systems beside baselines: scores over seeds, and whether they differ. What `compare` prints, and --format json."""

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
_BESIDE = 3  # systems whose scores and differences fit side by side
_HEADERS = {"randomization": "p AR", "bootstrap": "p bootstrap", "sign": "p sign"}


@dataclass
class Chance:
    """How often, and with which seed, the tests and the intervals draw."""

    trials: int = 10000
    resamples: int = 1000
    seed: int = 12345


@dataclass
class Summary:
    """A score over K runs.

    Attributes:
        runs: K scores.
        mean, minimum, maximum: of them.
        sd: their standard deviation (of a sample: K - 1); None for one run.
        interval: 95 % of the means of resampled corpora.
    """

    runs: list[float]
    mean: float
    sd: float | None
    minimum: float
    maximum: float
    interval: tuple[float, float]


@dataclass
class Difference:
    """A system beside a baseline, in one metric.

    Attributes:
        metric, baseline, system: names.
        delta: mean score of the system's runs less that of the baseline's.
        interval: 95 % of the deltas of resampled corpora.
        better, worse, ties: sentences that raise, lower and do not change the quality of the baseline; None without a
            sign test, and of systems with different numbers of runs.
        p: name of a test -> its p.
        p_seeds: of Welch's t-test over the scores of the runs; None if these are too few to tell.
        holm: `p`, corrected for the number of systems that are compared with this baseline in this metric.
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
    """Statistics of all systems by all metrics.

    Attributes:
        corpus: what was scored.
        metrics: name -> metric.
        chance: of tests and intervals.
        tests: `TESTS`, and `sign` if it is asked for (Collins et al. 2005).

    Args:
        corpus: of at least one sentence.
        metrics: in the order of the tables.
        chance: as the attribute.
        sign_test: whether there is one.
    """

    def __init__(self, corpus: Corpus, metrics: Sequence[Metric], chance: Chance, sign_test: bool = False):
        self.corpus, self.chance = corpus, chance
        self.tests = (*TESTS, *(["sign"] if sign_test else []))
        self.metrics = {metric.name: metric for metric in metrics}
        self._statistics = {metric.name: self._count(metric) for metric in metrics}

    def _count(self, metric: Metric) -> dict[str, np.ndarray]:
        """System -> (K, N, C). Systems agree in many sentences, each of which is counted once."""
        corpus = self.corpus
        keys = [(i, text) for system in corpus.systems for run in system.hypotheses for i, text in enumerate(run)]
        places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        sources = corpus.sources and [corpus.sources[i] for i, _ in places]
        found = metric.statistics([text for _, text in places], [corpus.references[i] for i, _ in places], sources)
        return {
            system.name: found[[[places[i, text] for i, text in enumerate(run)] for run in system.hypotheses]]
            for system in corpus.systems
        }

    def statistics(self, metric: str, system: str) -> np.ndarray:
        """(K, N, C), see `Metric.statistics`."""
        return self._statistics[metric][system]

    def sentence_scores(self, metric: str, system: str) -> np.ndarray:
        """(K, N) scores of single sentences."""
        return self.metrics[metric].sentence_scores(self.statistics(metric, system))

    def summary(self, metric: str, system: str, sentences: np.ndarray | None = None) -> Summary:
        """The score of a system, of all sentences or of those with these indices."""
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
        """(difference of the means over runs, its interval), of all sentences or of those with these indices."""
        chosen = slice(None) if sentences is None else sentences
        one, other = (self.statistics(metric, each.name)[:, chosen] for each in (baseline, system))
        scores, draws = self.metrics[metric].scores, (self.chance.resamples, self.chance.seed)
        mean = float(scores(other.sum(axis=1)).mean() - scores(one.sum(axis=1)).mean())
        return mean, interval(resampled(other, scores, *draws) - resampled(one, scores, *draws))

    def difference(self, metric: str, baseline: System, system: System) -> Difference:
        """All tests of two systems, not corrected."""
        delta, ends = self.delta(metric, baseline, system)
        one, other = (self.statistics(metric, each.name) for each in (baseline, system))
        scores, higher = self.metrics[metric].scores, self.metrics[metric].higher
        sign = sign_test(one, other, scores) if "sign" in self.tests else None
        p = {
            "randomization": approximate_randomization(one, other, scores, self.chance.trials, self.chance.seed),
            "bootstrap": paired_bootstrap(one, other, scores, self.chance.resamples, self.chance.seed),
            **({"sign": sign and sign.p} if "sign" in self.tests else {}),
        }
        better, worse, ties, _ = sign or (None, None, None, None)
        counts = (better, worse, ties) if higher else (worse, better, ties)
        p_seeds = welch(*(scores(runs.sum(axis=1)).tolist() for runs in (one, other)))
        return Difference(metric, baseline.name, system.name, delta, ends, *counts, p, p_seeds)

    def differences(self, metric: str, baseline: str) -> list[Difference]:
        """All other systems beside a baseline, with Holm's correction."""
        one = self.corpus.system(baseline)
        found = [self.difference(metric, one, other) for other in self.corpus.systems if other is not one]
        for test in self.tests:
            known = {i: p for i, each in enumerate(found) if (p := each.p[test]) is not None}
            corrected = dict(zip(known, holm(list(known.values())).tolist(), strict=True))
            for i, each in enumerate(found):
                each.holm[test] = corrected.get(i)
        return found

    def length_ratio(self, system: str) -> float | None:
        """Words of the hypotheses to words of the references, over all runs; None without BLEU, which counts them."""
        if "BLEU" not in self.metrics:
            return None
        words, references = self.statistics("BLEU", system)[..., :2].sum(axis=(0, 1))
        return float(words / max(references, 1))


def compare(evaluation: Evaluation, baselines: Sequence[str]) -> dict:
    """Scores and tests as docs/evaluation.md describes them, ready for JSON; buckets are added by who has some.

    Raises:
        ValueError: no system is called as a baseline.
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


def tables(found: dict, form: str) -> list[str]:
    """All tables of a comparison, and what is to be said of its buckets.

    Args:
        found: see `comparison.compare`.
        form: a `TableFormat`.
    """
    parts = []
    for metric in found["metrics"]:
        parts.append(_scores(found, metric, form))
        parts += [_tests(found, metric, baseline, form) for baseline in found["baselines"][1:]]
    for buckets in found["buckets"]:
        parts.append(bucket_table(found, buckets, form))
        parts += [_note(note, form) for note in notes(buckets)]
    return [*parts, _settings(found, form)]


def _note(text: str, form: str) -> str:
    """A line below a table."""
    if form == TableFormat.html:
        return f"<p>{html.escape(text)}</p>"
    return f"% {text}" if form == TableFormat.latex else text


def notes(buckets: dict) -> list[str]:
    """What a reader of buckets has to know: which were put together, which sentences are in none."""
    title, minimum, said = buckets["title"], buckets["minimum"], []
    for group in buckets["groups"]:
        if group["merged"]:
            parts = ", ".join(f"{part['label']} ({part['size']})" for part in group["merged"])
            said.append(
                f"{title} {group['label']}: {parts}, put together since some have fewer than {minimum} sentences"
            )
    if buckets["groups"][0]["size"] < minimum:
        said.append(f"{title}: fewer than {minimum} sentences in all, which say little")
    if buckets["left_out"]:
        said.append(f"{title}: not known of {buckets['left_out']} sentences, which are left out")
    return said


def _rounded(value: float | None, digits: int) -> Decimal | float:
    """With so many digits after the point; None becomes NaN, a dash in tables."""
    # without + 0, -0.001 becomes -0.00
    return math.nan if value is None else Decimal(f"{value:.{digits}f}") + 0


def _p(value: float | None) -> Decimal | float:
    return math.nan if value is None else Decimal(f"{value:.2g}")


def _interval(ends: Iterable[float], digits: int) -> str:
    low, high = (_rounded(end, digits) for end in ends)
    return f"[{low}, {high}]"


def _several(found: dict) -> tuple[bool, bool]:
    """Whether a system has several runs, and whether several systems stand beside a baseline."""
    return any(len(system["runs"]) > 1 for system in found["systems"]), len(found["systems"]) > 2


def _test_header(found: dict) -> list[str]:
    runs, several = _several(found)
    tests = _tests_of(found)
    columns = [name for test in tests for name in (_HEADERS[test], "Holm")[: 1 + several]]
    counts = ["better", "worse"] if "sign" in tests else []
    return ["delta", "its interval", *counts, *columns, *(["p seeds"] if runs else [])]


def _tests_of(found: dict) -> list[str]:
    """Names of the tests that were made."""
    return list(found["tests"][0]["p"]) if found["tests"] else []


def _test_cells(found: dict, metric: dict, baseline: str, system: str) -> list:
    """Those of `_test_header`; dashes of the baseline itself."""
    keys = {"metric": metric["name"], "baseline": baseline, "system": system}
    test = next((test for test in found["tests"] if keys.items() <= test.items()), None)
    if test is None:
        return [math.nan] * len(_test_header(found))
    runs, several = _several(found)
    columns = [_p(p) for name in _tests_of(found) for p in (test["p"][name], test["holm"][name])[: 1 + several]]
    delta = _rounded(test["delta"], metric["digits"])
    counted = ("better", "worse") if "sign" in test["p"] else ()
    counts = (math.nan if test[key] is None else test[key] for key in counted)
    seeds = [_p(test["p_seeds"])] if runs else []
    return [delta, _interval(test["interval"], metric["digits"]), *counts, *columns, *seeds]


def _scores(found: dict, metric: dict, form: str) -> str:
    """Of every system the score, and how it differs from the first baseline."""
    runs, name, digits = _several(found)[0], metric["name"], metric["digits"]
    header = [name, *(["seeds", "mean", "SD", "min", "max"] if runs else ["score"]), "95 % interval"]
    ratio = name == "BLEU"
    rows = []
    for system in found["systems"]:
        summary = system["scores"][name]
        row = [system["name"]] + ([len(system["runs"])] if runs else [])
        row += [_rounded(summary[key], digits) for key in ("mean", "sd", "minimum", "maximum")[: 4 if runs else 1]]
        row.append(_interval(summary["interval"], digits))
        row += [_rounded(system["length_ratio"], 3)] if ratio else []
        rows.append(row + _test_cells(found, metric, found["baselines"][0], system["name"]))
    return format_table([*header, *(["length"] if ratio else []), *_test_header(found)], rows, form)


def _tests(found: dict, metric: dict, baseline: str, form: str) -> str:
    rows = [
        [system["name"], *_test_cells(found, metric, baseline, system["name"])]
        for system in found["systems"]
        if system["name"] != baseline
    ]
    return format_table([f"{metric['name']} against {baseline}", *_test_header(found)], rows, form)


def bucket_table(found: dict, buckets: dict, form: str) -> str:
    """The first metric by bucket, with intervals, and differences from the first baseline.

    A row a bucket; with more systems than fit on a page, a column a bucket.
    """
    metric, baseline = found["metrics"][0], found["baselines"][0]
    names = [system["name"] for system in found["systems"]]
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


def _settings(found: dict, form: str) -> str:
    """What is needed to compute the numbers again."""
    chance = found["chance"]
    rows = [
        ["sentences", str(found["sentences"])],
        *([metric["name"], metric["signature"]] for metric in found["metrics"]),
        ["AR", f"trials:{chance['trials']}|seed:{chance['seed']}"],
        ["bootstrap, intervals", f"resamples:{chance['resamples']}|seed:{chance['seed']}"],
    ]
    return format_table(["setting", "value"], rows, form)

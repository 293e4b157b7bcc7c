"""Tests of whether a system translates better than a baseline.

Everywhere, `baseline` and `system` are statistics (K, N, C): C numbers for each of N sentences translated by K runs
(seeds). `scores` is the score of corpora as a function of sums, (…, C) -> (…); see `metrics.Metric`. The score of a
system is the mean over its runs. Runs are not paired, and systems may have different numbers of runs.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binomtest, nct, norm, t, ttest_ind_from_stats

Scores = Callable[[np.ndarray], np.ndarray]

_SAME = 1e-9  # largest rounding error of a difference; scores range from 0 to 1 or 0 to 100
_ROUNDING = 1e-12  # smallest change of a score by one sentence, which is little in a large corpus
_ROWS = 1000  # corpora computed together


class SignTest(NamedTuple):
    """Result of `sign_test`.

    Attributes:
        better, worse, ties: number of sentences that raise, lower and do not change the baseline's score.
        p: two-sided p-value.
    """

    better: int
    worse: int
    ties: int
    p: float


def sign_test(baseline: np.ndarray, system: np.ndarray, scores: Scores) -> SignTest | None:
    """The sign test of Collins, Koehn & Kučerová (ACL 2005).

    One translation in the baseline's corpus is replaced by the system's; with several runs, their mean statistics are
    replaced. The sentence is better if the score rises, and worse if it falls. Ties are dropped.

    Returns None if the numbers of runs differ: a mean over more runs is more often on the better side of a skewed
    distribution, even between equal systems.
    """
    if len(baseline) != len(system):
        return None
    total = baseline.sum(axis=1, keepdims=True)
    changes = (scores(total + (system - baseline).mean(axis=0)) - scores(total)).mean(axis=0)
    better, worse = int((changes > _ROUNDING).sum()), int((changes < -_ROUNDING).sum())
    p = binomtest(better, better + worse).pvalue if better + worse else 1.0
    return SignTest(better, worse, len(changes) - better - worse, float(p))


def approximate_randomization(
    baseline: np.ndarray, system: np.ndarray, scores: Scores, trials: int = 10000, seed: int = 12345
) -> float:
    """The two-sided p-value of approximate randomization (Noreen 1989; Riezler & Maxwell 2005).

    In every trial, a coin for each sentence decides whether the systems exchange their translations of it in all runs.
    The difference is the mean over all pairs of runs, one from each system. p is the share of trials with at least the
    observed difference. Coins for single runs would give too small a p, because runs of a system tend to be right on
    the same sentences. So p is about other sentences, not about other seeds. With different numbers of runs, the test
    holds for large corpora only.

    For one run each, random numbers are the same as in `sacrebleu --paired-ar`. But trials that tie with the observed
    difference count, as in the exact test over all swaps, so that p = 1 for identical systems, where sacrebleu has
    1 / (trials + 1). For TER, which sums integers, ties are not rare.
    """
    coins = np.random.default_rng(seed).integers(2, size=(trials, baseline.shape[1]), dtype=bool)
    runs = np.concatenate([baseline, system])
    sums = _sums(coins, np.concatenate(runs - runs[0], axis=-1))  # 0 for sentences on which all runs agree
    exchanged, totals, first = sums.reshape(trials, len(runs), -1), runs.sum(axis=1), len(baseline)
    differences, of_runs = np.zeros(trials), scores(totals)
    for i, j in product(range(first), range(first, len(runs))):
        change = exchanged[:, i] - exchanged[:, j]
        differences += scores(totals[j] + change) - scores(totals[i] - change)
    observed = abs(float(of_runs[first:].mean() - of_runs[:first].mean()))
    extreme = int((np.abs(differences) / (first * len(system)) >= observed - _SAME).sum())
    return (extreme + 1) / (trials + 1)


def _sums(chosen: np.ndarray, statistics: np.ndarray) -> np.ndarray:
    """Sums (T, C) of statistics (N, C) over T corpora, in which `chosen` (T, N) counts each sentence."""
    nonzero = statistics.any(axis=1)
    statistics = statistics[nonzero]
    return np.concatenate(
        [chosen[i : i + _ROWS, nonzero].astype(np.float64) @ statistics for i in range(0, len(chosen), _ROWS)]
    )


def welch(baseline: Sequence[float], system: Sequence[float]) -> float | None:
    """The two-sided p-value of Welch's t-test (1947) over the scores of the runs of two systems.

    Returns None if a system has a single run, or if no runs of a system differ.
    """
    if min(len(baseline), len(system)) < 2 or max(np.ptp(baseline), np.ptp(system)) < _SAME:
        return None
    # from summary statistics, because scipy warns about scores that are nearly equal
    first, second = ((np.mean(scores), np.std(scores, ddof=1), len(scores)) for scores in (baseline, system))
    return float(ttest_ind_from_stats(*first, *second, equal_var=False).pvalue)


# --- power ----------------------------------------------------------------------------------------------------------


def detectable_over_sentences(interval: Sequence[float], power: float = 0.8) -> float:
    """The smallest difference between two systems that a test over this many sentences detects.

    If the true difference is this large, its 95 % interval excludes 0 with probability `power`, under a normal
    distribution whose standard error is taken from the width of the interval.

    Args:
        interval: ends of the 95 % interval of the observed difference, over sentences.
    """
    low, high = interval
    return float((high - low) * (norm.isf(0.025) + norm.isf(1 - power)) / (2 * norm.isf(0.025)))


def detectable_over_seeds(baseline: Sequence[float], system: Sequence[float], power: float = 0.8) -> float:
    """The smallest difference between the means of two systems that Student's t-test over their runs detects.

    If the true difference is this large, p ≤ 0.05 with probability `power`, by the noncentral t distribution with the
    pooled standard deviation.

    Args:
        baseline, system: scores of the runs, at least two each.
    """
    sizes = len(baseline), len(system)
    freedom = sum(sizes) - 2
    variance = (
        sum((size - 1) * np.var(runs, ddof=1) for size, runs in zip(sizes, (baseline, system), strict=True)) / freedom
    )
    limit = t.isf(0.025, freedom)

    def missing(shift: float) -> float:
        # without the tail of the wrong sign, below 1e-4 at a power of 80 %, for which scipy returns NaN
        return power - float(nct.sf(limit, freedom, shift))

    return brentq(missing, 0.0, 30.0) * float(np.sqrt(variance * sum(1 / size for size in sizes)))


# --- bootstrap ----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _resamples(sentences: int, resamples: int, seed: int) -> np.ndarray:
    """The count of each sentence in each resample, (resamples, sentences), drawn as in sacrebleu."""
    drawn = np.random.default_rng(seed).choice(sentences, size=(resamples, sentences), replace=True)
    numbers = (drawn + sentences * np.arange(resamples)[:, None]).ravel()
    return np.bincount(numbers, minlength=resamples * sentences).reshape(resamples, sentences).astype(np.uint16)


def resampled(statistics: np.ndarray, scores: Scores, resamples: int = 1000, seed: int = 12345) -> np.ndarray:
    """The mean score over runs (K, N, C) of each resample of the sentences: (resamples,).

    All runs have the same resamples. Equal seeds and numbers of sentences give equal resamples, so differences are
    paired.
    """
    often = _resamples(statistics.shape[1], resamples, seed)
    return np.mean([scores(_sums(often, run)) for run in statistics], axis=0)


def paired_bootstrap(
    baseline: np.ndarray, system: np.ndarray, scores: Scores, resamples: int = 1000, seed: int = 12345
) -> float:
    """The p-value of the paired bootstrap (Koehn 2004), as in `sacrebleu --paired-bs` and Moses.

    p is the share of resamples in which the difference exceeds its mean by at least the observed difference. Being a
    share of one tail, it is about half of a two-sided p-value: one in ten pairs of equal systems has p < 0.05. It
    allows comparison with sacrebleu; approximate randomization is stricter.

    For one run each, p equals sacrebleu's, except that systems that do not differ have p = 1, where sacrebleu has
    1 / (resamples + 1), and that seed 0 is a seed, where sacrebleu uses none.
    """
    observed = abs(float(scores(system.sum(axis=1)).mean() - scores(baseline.sum(axis=1)).mean()))
    differences = np.abs(resampled(system, scores, resamples, seed) - resampled(baseline, scores, resamples, seed))
    # not `>`, so that systems without a difference have p = 1
    extreme = int((differences - differences.mean() >= observed - _SAME).sum())
    return (extreme + 1) / (resamples + 1)


def interval(values: np.ndarray, share: float = 0.95) -> tuple[float, float]:
    """The percentile interval that contains a share of the values, with as many below it as above."""
    low, high = np.quantile(values, [(1 - share) / 2, (1 + share) / 2])
    return float(low), float(high)


# --- several tests ------------------------------------------------------------------------------------------------


def holm(probabilities: Sequence[float]) -> np.ndarray:
    """The adjusted p-values (M,) of M tests (Holm 1979), each at least the original value and at most 1.

    If all tests with an adjusted p below 0.05 are called significant, the probability of any false claim is at most
    0.05, however the tests depend on each other.
    """
    p = np.asarray(probabilities, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1, np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order]))
    return adjusted

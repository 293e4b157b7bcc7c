"""Tests of whether a system translates better than a baseline.

Everywhere, `baseline` and `system` are statistics (K, N, C): C numbers for each of N sentences translated by K runs
(seeds). `scores` is the score of corpora as a function of sums, (…, C) -> (…); see `metrics.Metric`. The score of a
system is the mean over its runs. Runs are not paired, and systems may have different numbers of runs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaincinv, ndtr, stdtrit  # scipy.stats takes long to import

Scores = Callable[[np.ndarray], np.ndarray]

_SAME = 1e-9  # largest rounding error of a difference; scores range from 0 to 1 or 0 to 100
_ROWS = 1000  # corpora computed together
_DRAWN = 10_000_000  # sentences drawn together


def approximate_randomization(
    baseline: np.ndarray, system: np.ndarray, scores: Scores, trials: int = 10000, seed: int = 12345
) -> float:
    """The two-sided p-value of approximate randomization (Noreen 1989; Riezler & Maxwell 2005).

    In every trial, a coin for each sentence decides whether the systems exchange their translations of it in all runs.
    The difference is the mean over all pairs of runs, one from each system. p is the share of trials with at least the
    observed difference. It is about other sentences, not about other seeds: see docs/significance.md.

    For one run each, random numbers are the same as in `sacrebleu --paired-ar`. But trials that tie with the observed
    difference count, as in the exact test over all swaps.
    """
    coins = np.random.default_rng(seed).integers(2, size=(trials, baseline.shape[1]), dtype=bool)
    runs = np.concatenate([baseline, system])
    sums = _sums(coins, np.concatenate(runs - runs[0], axis=-1))  # 0 for sentences on which all runs agree
    exchanged, totals, first = sums.reshape(trials, len(runs), -1), runs.sum(axis=1), len(baseline)
    differences, run_scores = np.zeros(trials), scores(totals)
    for i, j in product(range(first), range(first, len(runs))):
        change = exchanged[:, i] - exchanged[:, j]
        differences += scores(totals[j] + change) - scores(totals[i] - change)
    observed = abs(float(run_scores[first:].mean() - run_scores[:first].mean()))
    extreme = int((np.abs(differences) / (first * len(system)) >= observed - _SAME).sum())
    return (extreme + 1) / (trials + 1)


def _sums(chosen: np.ndarray, statistics: np.ndarray) -> np.ndarray:
    """Sums (T, C) of statistics (N, C) over T corpora, in which `chosen` (T, N) counts each sentence."""
    nonzero = statistics.any(axis=1)
    statistics = statistics[nonzero]
    return np.concatenate(
        [chosen[i : i + _ROWS, nonzero].astype(np.float64) @ statistics for i in range(0, len(chosen), _ROWS)]
    )


# --- other sentences and other runs -----------------------------------------------------------------------------------


@dataclass
class Effect:
    """The difference between two systems, and its generalization to other sentences and other runs.

    Attributes:
        delta: mean score over the system's runs minus that over the baseline's.
        interval: its 95 % interval.
        detectable: the smallest true difference that another experiment of this size finds (p ≤ 0.05) in four cases out
            of five; None if nothing varies.
        p: two-sided p-value; None if no system has several runs. Then the other numbers are about sentences alone.
    """

    delta: float
    interval: tuple[float, float]
    detectable: float | None
    p: float | None


@lru_cache
def _variances(freedom: int, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """True variances over that estimated with some degrees of freedom, and weights, which integrate over the former."""
    places, weights = np.polynomial.legendre.leggauss(nodes)
    place = (places + 1) / 2  # of smooth steps to a chance from 0 to 1, near which large variances make the tail of p
    chance = place**4 * (35 - 84 * place + 70 * place**2 - 20 * place**3)
    return freedom / 2 / gammaincinv(freedom / 2, chance), 70 * weights * (place * (1 - place)) ** 3


def effect(observed: tuple[np.ndarray, np.ndarray], resampled: tuple[np.ndarray, np.ndarray]) -> Effect:
    """The difference between a system and a baseline, with sentences and runs as random samples.

    The variance of the difference is that of its bootstrap over sentences, plus that between the true scores of runs:
    of the runs' scores on these sentences, less what the choice of sentences adds, which the bootstrap contains. That
    is known from few runs, pooled over both systems, so p is an average over the variances that they leave possible
    (estimate * freedom / chi-square), as in Fisher's solution of Behrens' problem (1935); see docs/significance.md.

    Args:
        observed: scores of the runs on all sentences, (K,) of the baseline and (L,) of the system.
        resampled: scores on the same R resamples of the sentences, (K, R) and (L, R).
    """
    first, second = observed
    delta = float(second.mean() - first.mean())
    freedom = max(len(first) + len(second) - 2, 1)
    inverse = 1 / len(first) + 1 / len(second)
    sentences = float(np.var(resampled[1].mean(axis=0) - resampled[0].mean(axis=0)))
    between = float(sum(((scores - scores.mean()) ** 2).sum() for scores in observed)) / freedom
    drawn = float(sum((draws - draws.mean(axis=0)).var(axis=1).sum() for draws in resampled)) / freedom
    ratios, weights = _variances(freedom, 64)

    def errors(between: np.ndarray) -> np.ndarray:
        """Standard errors of the difference, for true variances of the runs' scores."""
        # at least that of the runs alone, which sentences that are hard for both systems do not lower
        return np.sqrt(np.maximum(sentences + np.maximum(between - drawn, 0) * inverse, between * inverse))

    def limits(between: np.ndarray) -> np.ndarray:
        """The differences (N,) that have p = 0.05, for estimates (N,) of that variance."""
        possible = errors(between[:, None] * ratios)
        low, high = np.zeros(len(between)), 2 * errors(between) * stdtrit(freedom, 0.975)
        for _ in range(40):  # halvings
            middle = (low + high) / 2
            above = 2 * ndtr(-middle[:, None] / possible) @ weights > 0.05
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return high

    if errors(np.asarray(between)) < _SAME:  # nothing varies: a single sentence, or one translation by all runs
        return Effect(delta, (delta, delta), None, None)
    [limit] = limits(np.array([between])).tolist()
    p = float(2 * ndtr(-abs(delta) / errors(between * ratios)) @ weights)
    # average over the true variance, and over its estimate in another experiment
    chances, shares = _variances(freedom, 24)
    true = np.maximum(between * chances, drawn)[:, None]
    away, spread = limits((true / chances).ravel()).reshape(true.size, -1), errors(true)

    def missed(shift: float) -> float:
        return 0.8 - float(shares @ (ndtr((shift - away) / spread) + ndtr((-shift - away) / spread)) @ shares)

    detectable = float(brentq(missed, 0, 4 * (away.max() + spread.max())))
    return Effect(delta, (delta - limit, delta + limit), detectable, p if len(first) + len(second) > 2 else None)


# --- bootstrap ----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _resamples(sentences: int, resamples: int, seed: int) -> np.ndarray:
    """The count of each sentence in each resample, (resamples, sentences), drawn as in sacrebleu."""
    rng, rows = np.random.default_rng(seed), max(1, _DRAWN // sentences)
    often = np.empty((resamples, sentences), dtype=np.uint8 if sentences < 256 else np.uint16)
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        drawn = rng.choice(sentences, size=(size, sentences), replace=True)
        numbers = (drawn + sentences * np.arange(size)[:, None]).ravel()
        often[start : start + size] = np.bincount(numbers, minlength=size * sentences).reshape(size, sentences)
    return often


def resampled(statistics: np.ndarray, scores: Scores, resamples: int = 10000, seed: int = 12345) -> np.ndarray:
    """The score of each run on each resample of the sentences: (K, resamples).

    All runs have the same resamples. Equal seeds and numbers of sentences give equal resamples, so differences are
    paired.
    """
    often = _resamples(statistics.shape[1], resamples, seed)
    return np.stack([scores(_sums(often, run)) for run in statistics])


def interval(values: np.ndarray) -> tuple[float, float]:
    """The 95 % percentile interval: as many values are below it as above."""
    low, high = np.quantile(values, [(1 - 0.95) / 2, (1 + 0.95) / 2])
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

"""Whether a system translates better than a baseline, or is lucky: tests of a score that is computed from sums.

All take statistics, (K, N, C): C numbers of each of N sentences, as K runs (seeds) of a system translate them, and the
score of corpora as a function of sums (…, C) -> (…); see `metrics.Metric`. The score of a system is the mean over its
runs. Runs are not paired, and systems may have different numbers of them.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binomtest, nct, norm, t, ttest_ind_from_stats

Scores = Callable[[np.ndarray], np.ndarray]

_SAME = 1e-9  # differences that are rounding; scores have 0 to 1 or 0 to 100
_ROUNDING = 1e-12  # of a score; a sentence of a large corpus changes little
_ROWS = 1000  # corpora that are made at a time


class SignTest(NamedTuple):
    """Result of `sign_test`.

    Attributes:
        better: sentences with which the baseline's score rises.
        worse: sentences with which it falls.
        ties: sentences that do not change it.
        p: two-sided probability of a division of `better` and `worse` at least as uneven, if both are as likely.
    """

    better: int
    worse: int
    ties: int
    p: float


def sign_test(baseline: np.ndarray, system: np.ndarray, scores: Scores) -> SignTest | None:
    """The sign test of Collins, Koehn & Kučerová (ACL 2005).

    Inside the baseline's corpora, the translation of one sentence is replaced by the system's; of several runs, the
    mean statistics of the baseline's by those of the system's. The sentence is better if the score rises, and worse if
    it falls. Ties are dropped.

    Args:
        baseline, system: (K, N, C) statistics.
        scores: of corpora, from sums.

    Returns:
        None for systems with different numbers of runs: a mean over more runs is more often on the better side of a
        skewed distribution, even if the systems are the same.
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
    """Two-sided p of approximate randomization (Noreen 1989; Riezler & Maxwell 2005).

    In a trial, the toss of a coin for each sentence says whether the systems exchange their translations of it, those
    of all runs; the difference is the mean over all pairs of a run of each. p is the share of trials in which the
    systems differ at least as much as they really do. Since runs of a system tend to have the same sentences right,
    coins for single runs would give too small a p. The coins are about sentences: p is that of these runs, and says
    nothing of others. With different numbers of runs, the test holds for large corpora only.

    For one run each, coins fall as in `sacrebleu --paired-ar`. There, trials that differ exactly as much as the systems
    do not count, and identical systems have p = 1 / (trials + 1); here, as in the exact test over all swaps, they do,
    and p = 1. With whole numbers to add up (TER) such trials are not rare.

    Args:
        baseline, system: (K, N, C) statistics, K of each.
        scores: of corpora, from sums.
        trials: how many.
        seed: of the random numbers.
    """
    coins = np.random.default_rng(seed).integers(2, size=(trials, baseline.shape[1]), dtype=bool)
    runs = np.concatenate([baseline, system])
    sums = _sums(coins, np.concatenate(runs - runs[0], axis=-1))  # nothing where all runs agree
    exchanged, totals, first = sums.reshape(trials, len(runs), -1), runs.sum(axis=1), len(baseline)
    differences, of_runs = np.zeros(trials), scores(totals)
    for one, other in product(range(first), range(first, len(runs))):
        change = exchanged[:, one] - exchanged[:, other]
        differences += scores(totals[other] + change) - scores(totals[one] - change)
    observed = abs(float(of_runs[first:].mean() - of_runs[:first].mean()))
    extreme = int((np.abs(differences) / (first * len(system)) >= observed - _SAME).sum())
    return (extreme + 1) / (trials + 1)


def _sums(chosen: np.ndarray, statistics: np.ndarray) -> np.ndarray:
    """Sums of the statistics (N, C) of the sentences of each corpus: (T, N) how often -> (T, C)."""
    some = statistics.any(axis=1)
    statistics = statistics[some]
    parts = [chosen[i : i + _ROWS, some].astype(np.float64) @ statistics for i in range(0, len(chosen), _ROWS)]
    return np.concatenate(parts)


def welch(baseline: Sequence[float], system: Sequence[float]) -> float | None:
    """Two-sided p of Welch's t-test (1947): do the mean scores of two systems differ by more than by their seeds?

    Args:
        baseline, system: scores of runs, any number of each; which run has which seed does not matter.

    Returns:
        None if either has a single run, or if neither's runs differ.
    """
    if min(len(baseline), len(system)) < 2 or max(np.ptp(baseline), np.ptp(system)) < _SAME:
        return None
    # of the statistics, as scipy warns of scores that are nearly the same
    one, other = ((np.mean(scores), np.std(scores, ddof=1), len(scores)) for scores in (baseline, system))
    return float(ttest_ind_from_stats(*one, *other, equal_var=False).pvalue)


# --- what could have been found ------------------------------------------------------------------------------------


def detectable_over_sentences(interval: Sequence[float], power: float = 0.8) -> float:
    """The smallest difference between two systems that a test over the sentences of this size would have found.

    A difference of this size has an interval without 0, two-sided 95 %, with the probability `power` when other
    sentences are drawn. It is taken from the width of the interval: a normal distribution with its standard error.

    Args:
        interval: ends of the 95 % interval of the difference, over sentences.
        power: the probability.
    """
    low, high = interval
    return float((high - low) * (norm.isf(0.025) + norm.isf(1 - power)) / (2 * norm.isf(0.025)))


def detectable_over_seeds(baseline: Sequence[float], system: Sequence[float], power: float = 0.8) -> float:
    """The smallest difference between the means of two systems that Student's t-test over their runs would have found.

    A difference of this size has p ≤ 0.05 with the probability `power` when other seeds are drawn, if the scores of
    either system's runs spread as they do together: the noncentral t distribution with their pooled deviation.

    Args:
        baseline, system: scores of runs, two or more of each.
        power: the probability.
    """
    sizes = len(baseline), len(system)
    freedom = sum(sizes) - 2
    variance = (
        sum((size - 1) * np.var(runs, ddof=1) for size, runs in zip(sizes, (baseline, system), strict=True)) / freedom
    )
    limit = t.isf(0.025, freedom)

    def missing(shift: float) -> float:
        # the tail of the wrong sign, below 1e-4 where the power is 80 %, is left out: scipy has NaN there
        return power - float(nct.sf(limit, freedom, shift))

    return brentq(missing, 0.0, 30.0) * float(np.sqrt(variance * sum(1 / size for size in sizes)))


# --- bootstrap ----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _resamples(sentences: int, resamples: int, seed: int) -> np.ndarray:
    """How often each sentence is in each resample, drawn as sacrebleu draws: (resamples, sentences)."""
    drawn = np.random.default_rng(seed).choice(sentences, size=(resamples, sentences), replace=True)
    numbers = (drawn + sentences * np.arange(resamples)[:, None]).ravel()
    return np.bincount(numbers, minlength=resamples * sentences).reshape(resamples, sentences).astype(np.uint16)


def resampled(statistics: np.ndarray, scores: Scores, resamples: int = 1000, seed: int = 12345) -> np.ndarray:
    """Mean score over runs of corpora of the same size that are drawn from the sentences, the same ones for all runs.

    Whoever is given the same seed and number of sentences draws the same, so that differences are paired.

    Args:
        statistics: (K, N, C), of at least one sentence.
        scores: of corpora, from sums.
        resamples: how many corpora are drawn.
        seed: of the random numbers.

    Returns:
        (resamples,).
    """
    often = _resamples(statistics.shape[1], resamples, seed)
    return np.mean([scores(_sums(often, run)) for run in statistics], axis=0)


def paired_bootstrap(
    baseline: np.ndarray, system: np.ndarray, scores: Scores, resamples: int = 1000, seed: int = 12345
) -> float:
    """p of the paired bootstrap (Koehn 2004), as `sacrebleu --paired-bs` and Moses compute it.

    Corpora of the same size are drawn from the sentences. p is the share of them in which the systems' difference is
    at least as far above its mean as the difference in the true corpus is above 0.

    Being a share of one tail, p is about half of the two-sided probability: of pairs of equally good systems, one in
    ten gets p < 0.05. Take it as sacrebleu's number, and approximate randomization as the stricter one.

    For one run, sentences are drawn as sacrebleu draws them, and p is the same but for two things: systems that do not
    differ have p = 1, where sacrebleu says 1 / (resamples + 1), and seed 0 is a seed, where sacrebleu takes none.

    Args:
        baseline, system: (K, N, C) statistics, K of each.
        scores: of corpora, from sums.
        resamples: how many corpora are drawn.
        seed: of the random numbers.
    """
    observed = abs(float(scores(system.sum(axis=1)).mean() - scores(baseline.sum(axis=1)).mean()))
    differences = np.abs(resampled(system, scores, resamples, seed) - resampled(baseline, scores, resamples, seed))
    # not `>`: without a difference nothing is above it
    extreme = int((differences - differences.mean() >= observed - _SAME).sum())
    return (extreme + 1) / (resamples + 1)


def interval(values: np.ndarray, share: float = 0.95) -> tuple[float, float]:
    """Between which of the values (n,) the given share of them lies, as many below as above: percentile interval."""
    low, high = np.quantile(values, [(1 - share) / 2, (1 + share) / 2])
    return float(low), float(high)


# --- several tests ------------------------------------------------------------------------------------------------


def holm(probabilities: Sequence[float]) -> np.ndarray:
    """Adjusted p of several tests (Holm 1979): if all below 0.05 are called significant, the chance that any is so
    wrongly is at most 0.05, however the tests depend on one another.

    Args:
        probabilities: M of them.

    Returns:
        (M,), each at least what it was and at most 1.
    """
    found = np.asarray(probabilities, dtype=np.float64)
    order = np.argsort(found, kind="stable")
    adjusted = np.empty_like(found)
    adjusted[order] = np.minimum(1, np.maximum.accumulate((len(found) - np.arange(len(found))) * found[order]))
    return adjusted

"""Whether a system translates better than a baseline, or is lucky: tests of a score that is computed from sums.

All take statistics, an array (N, C) of counts of every sentence (`bleu.Bleu.statistics`), and the score of a corpus as
a function of their sum (C,).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest

Score = Callable[[np.ndarray], float]


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


def sign_test(baseline: np.ndarray, system: np.ndarray, score: Score) -> SignTest:
    """The sign test of Collins, Koehn & Kučerová (ACL 2005).

    Of each sentence, the baseline's translation is replaced by the system's inside the baseline's corpus: it is better
    if the score of the corpus rises, and worse if it falls. Ties are dropped.

    Args:
        baseline: (N, C) statistics.
        system: (N, C) statistics of the same sentences.
        score: of a corpus, from (C,) summed statistics.
    """
    total = baseline.sum(axis=0)
    before = score(total)
    # equal counts are a tie; most sentences of similar systems are
    changes = (system - baseline)[(system != baseline).any(axis=1)]
    after = np.array([score(total + change) for change in changes])
    better, worse = int((after > before).sum()), int((after < before).sum())
    p = binomtest(better, better + worse).pvalue if better + worse else 1.0
    return SignTest(better, worse, len(baseline) - better - worse, float(p))


def paired_bootstrap(
    baseline: np.ndarray, system: np.ndarray, score: Score, resamples: int = 1000, seed: int = 12345
) -> float:
    """p of the paired bootstrap (Koehn 2004), as `sacrebleu --paired-bs` and Moses compute it.

    Corpora of the same size are drawn from the sentences. p is the share of them in which the systems' difference is
    at least as far above its mean as the difference in the true corpus is above 0.

    Being a share of one tail, p is about half of the two-sided probability: of pairs of equally good systems, one in
    ten gets p < 0.05. Take it as sacrebleu's number, and the sign test as the stricter one.

    Sentences are drawn as sacrebleu draws them, and p is the same but for two things: systems that do not differ have
    p = 1, where sacrebleu says 1 / (resamples + 1), and seed 0 is a seed, where sacrebleu takes none.

    Args:
        baseline: (N, C) statistics.
        system: (N, C) statistics of the same sentences.
        score: of a corpus, from (C,) summed statistics.
        resamples: how many corpora are drawn.
        seed: of the random numbers.
    """
    difference = abs(score(system.sum(axis=0)) - score(baseline.sum(axis=0)))
    sentences = len(baseline)
    drawn = np.random.default_rng(seed).choice(sentences, size=(resamples, sentences), replace=True)
    differences = np.abs([score(system[sample].sum(axis=0)) - score(baseline[sample].sum(axis=0)) for sample in drawn])
    # `>=`, not `>`: without a difference nothing is above it
    extreme = int((differences - differences.mean() >= difference).sum())
    return (extreme + 1) / (resamples + 1)


def bootstrap_interval(
    statistics: np.ndarray, score: Score, resamples: int = 1000, seed: int = 12345, share: float = 0.95
) -> tuple[float, float]:
    """Between which scores the given share of corpora lie that are drawn from the sentences (Koehn 2004).

    Args:
        statistics: (N, C).
        score: of a corpus, from (C,) summed statistics.
        resamples: how many corpora are drawn.
        seed: of the random numbers.
        share: of the corpora; as many are below the interval as above it.

    Returns:
        (lower end, upper end); NaN of no sentences.
    """
    if not len(statistics):
        return float("nan"), float("nan")
    drawn = np.random.default_rng(seed).choice(len(statistics), size=(resamples, len(statistics)), replace=True)
    scores = [score(statistics[sample].sum(axis=0)) for sample in drawn]
    low, high = np.quantile(scores, [(1 - share) / 2, (1 + share) / 2])
    return float(low), float(high)

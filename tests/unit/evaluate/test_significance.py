"""The tests are sacrebleu's for one run, and those of an enumeration and of SciPy; they find differences that exist."""

import random
from itertools import chain, combinations, product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest
from scipy.stats import binom

from fairseq_syntax.evaluate import significance
from fairseq_syntax.evaluate.metrics import METRICS, Bleu
from fairseq_syntax.evaluate.significance import (
    approximate_randomization,
    detectable_over_seeds,
    detectable_over_sentences,
    holm,
    interval,
    paired_bootstrap,
    resampled,
    sign_test,
    welch,
)

LETTERS = "abcdefghijklmnopqrst"
SACREBLEU = {"BLEU": BLEU(tokenize="none", force=True), "chrF": CHRF(), "chrF++": CHRF(word_order=2), "TER": TER()}


def corpus(size, seed):
    """Sentences of 5 to 20 words."""
    rng = random.Random(seed)
    return [" ".join(rng.choices(LETTERS, k=rng.randint(5, 20))) for _ in range(size)]


def spoilt(sentences, share, seed):
    """The same with that share of the words replaced."""
    rng = random.Random(seed)
    return [" ".join("?" if rng.random() < share else word for word in text.split()) for text in sentences]


def statistics(references, *systems, metric=None):
    """Of each system, which is a list of texts, or of such lists: one of each run."""
    metric = metric or Bleu()
    runs = [[system] if isinstance(system[0], str) else system for system in systems]
    return [np.stack([metric.statistics(run, [[r] for r in references]) for run in system]) for system in runs]


score = Bleu().scores


# --- sign test ----------------------------------------------------------------------------------------------------


def replaced_one_by_one(references, baseline, system):
    """The test as it is described, for a run of each: corpora with one sentence replaced, scored from text."""

    def scored(run):
        return SACREBLEU["BLEU"].corpus_score(run, [references]).score

    before = scored(baseline)
    after = [scored([*baseline[:i], system[i], *baseline[i + 1 :]]) for i in range(len(references))]
    better, worse = sum(a > before + 1e-12 for a in after), sum(a < before - 1e-12 for a in after)
    n = better + worse
    # two-sided: all divisions that are no likelier than this one
    p = sum(q for k in range(n + 1) if (q := binom.pmf(k, n, 0.5)) <= binom.pmf(better, n, 0.5) * (1 + 1e-9))
    return better, worse, len(references) - n, p


def test_sign_test_replaces_sentences():
    references = corpus(30, 1)
    baseline, system = spoilt(references, 0.3, 10), spoilt(references, 0.2, 20)
    system[3], system[4], system[5] = baseline[3], "", references[5]
    found = sign_test(*statistics(references, baseline, system), score)
    expected = replaced_one_by_one(references, baseline, system)
    assert found[:3] == expected[:3]
    assert found.p == pytest.approx(expected[3])


def test_sign_test_takes_means_over_runs():
    """A score that is a mean over sentences rises if the mean over runs does."""
    rng = np.random.default_rng(2)
    one, other = rng.integers(3, size=(2, 3, 60, 1))
    found = sign_test(one, other, lambda total: total[..., 0] / 60)
    changes = [sum(other[:, i, 0]) - sum(one[:, i, 0]) for i in range(60)]
    assert found.better == sum(change > 0 for change in changes) > 5
    assert found.worse == sum(change < 0 for change in changes) > 5
    assert sign_test(one, other[:2], lambda total: total[..., 0] / 60) is None


# --- approximate randomization ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [12345, 7])
@pytest.mark.parametrize("kind", ["ar", "bs"])
def test_one_run_is_sacrebleu(seed, kind, monkeypatch):
    """TER has trials that tie with the systems' difference, which sacrebleu does not count."""
    monkeypatch.setenv("SACREBLEU_SEED", str(seed))
    references = corpus(60, seed)
    baseline, system = spoilt(references, 0.30, 2), spoilt(references, 0.25, 3)
    theirs = PairedTest([("a", baseline), ("b", system)], SACREBLEU, [references], kind, 500)()[1]
    test = approximate_randomization if kind == "ar" else paired_bootstrap
    for name, (_, result) in zip(SACREBLEU, list(theirs.values())[1:], strict=True):
        metric = METRICS[name](False, "none")
        pair = statistics(references, baseline, system, metric=metric)
        found = test(*pair, metric.scores, 500, seed)
        if name != "TER":
            assert found == pytest.approx(result.p_value, abs=1e-12), name
        with monkeypatch.context() as ties:
            ties.setattr(significance, "_SAME", -1e-9)
            assert found >= test(*pair, metric.scores, 500, seed) == pytest.approx(result.p_value), name


@pytest.mark.parametrize(
    ("name", "runs", "others", "sentences"),
    [("BLEU", 1, 1, 8), ("chrF", 3, 3, 7), ("BLEU", 2, 2, 8), ("BLEU", 3, 1, 8), ("TER", 1, 2, 7)],
)
def test_all_exchanges(name, runs, others, sentences):
    """Every one of the 2^n corpora, scored from text."""
    references = corpus(sentences, runs)
    baseline = [spoilt(references, 0.4, 10 + k) for k in range(runs)]
    system = [spoilt(references, 0.25, 20 + k) for k in range(others)]

    def difference(coins):
        found = []
        for one, other in product(baseline, system):
            pairs = [(b, a) if coin else (a, b) for a, b, coin in zip(one, other, coins, strict=True)]
            sides = [list(side) for side in zip(*pairs, strict=True)]
            found.append(np.diff([SACREBLEU[name].corpus_score(side, [references]).score for side in sides]))
        return abs(np.mean(found))

    every = [difference(coins) for coins in product([False, True], repeat=sentences)]
    exact = np.mean([value >= every[0] - 1e-9 for value in every])
    metric = METRICS[name](False, "none")
    found = approximate_randomization(*statistics(references, baseline, system, metric=metric), metric.scores, 20000)
    assert 0.004 < exact < 0.9
    assert found == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 20000) + 1e-4)


@pytest.mark.parametrize(("runs", "others"), [(3, 3), (3, 1)])
def test_runs_that_agree_are_not_many_witnesses(runs, others):
    """Systems that are equally good, each of which has the same sentences right with every seed."""
    rng = np.random.default_rng(runs + others)
    found = []
    for seed in range(200):
        pair = [np.repeat(rng.normal(size=(1, 80, 1)), size, axis=0) for size in (runs, others)]
        found.append(approximate_randomization(*pair, lambda total: total[..., 0], 200, seed))
    assert 2 <= (np.array(found) < 0.05).sum() <= 20


# --- bootstrap ----------------------------------------------------------------------------------------------------


def test_scipy_draws_the_same_intervals():
    references = corpus(60, 4)
    runs = [spoilt(references, share, 1) for share in (0.3, 0.35, 0.4)]
    (counts,) = statistics(references, runs)
    low, high = interval(resampled(counts, score, 4000))

    def mean(chosen):
        return np.mean([score(run[chosen.astype(int)].sum(axis=0)) for run in counts])

    theirs = scipy.stats.bootstrap(
        (np.arange(60),), mean, n_resamples=4000, vectorized=False, method="percentile", rng=np.random.default_rng(0)
    ).confidence_interval
    assert (low, high) == pytest.approx(tuple(theirs), abs=0.4) and high - low > 4


def test_interval_of_a_mean():
    values = np.random.default_rng(0).normal(5.0, 2.0, size=(1, 400, 1))
    low, high = interval(resampled(values, lambda total: total[..., 0] / 400, 2000))
    away = 1.96 * values.std() / 20
    assert (low, high) == pytest.approx((values.mean() - away, values.mean() + away), abs=0.03)
    assert interval(resampled(np.full((1, 1, 1), 3.0), lambda total: total[..., 0], 10)) == (3.0, 3.0)


# --- what they find -----------------------------------------------------------------------------------------------


def test_each_is_better_in_half_of_the_sentences():
    references = corpus(40, 5)
    wrong = spoilt(references, 0.4, 6)
    # sentences come in pairs that are the same, and each system has one of the two right
    pairs = list(zip(references, wrong, strict=True))
    first, second = [text for pair in pairs for text in pair], [text for pair in pairs for text in pair[::-1]]
    pair = statistics([text for text in references for _ in range(2)], first, second)
    test = sign_test(*pair, score)
    assert test.better == test.worse == 40 and test.p == 1.0
    assert paired_bootstrap(*pair, score, 200) > 0.3 and approximate_randomization(*pair, score, 200) == 1.0


def test_one_sentence():
    one, other = statistics(["a b c d e"], ["a b c x e"], ["a b c d e"])
    assert sign_test(one, other, score) == (1, 0, 0, 1.0)
    # every corpus is this one sentence; the difference never leaves its mean
    assert paired_bootstrap(one, other, score, 50) == pytest.approx(1 / 51)
    assert approximate_randomization(one, other, score, 50) == 1.0, "swapped or not, they differ as much"


def test_empty_translations():
    references = corpus(20, 7)
    empty, full = statistics(references, [""] * 20, spoilt(references, 0.1, 8))
    assert sign_test(empty, full, score).p < 0.01 and sign_test(empty, empty, score).p == 1.0
    assert paired_bootstrap(empty, full, score, 100) < 0.02 > approximate_randomization(empty, full, score, 100)


@pytest.mark.parametrize(("runs", "others"), [(1, 1), (3, 3), (3, 1)])
def test_equal_quality_is_rarely_significant(runs, others):
    found = []
    for seed in range(30):
        references = corpus(60, seed)
        sides = enumerate((runs, others))
        pair = statistics(
            references, *([spoilt(references, 0.3, 10 * seed + k + 5 * i) for k in range(size)] for i, size in sides)
        )
        options = score, 200, seed
        found.append(
            [
                sign_test(*pair, score).p if runs == others else 1.0,
                approximate_randomization(*pair, *options),
                paired_bootstrap(*pair, *options),
            ]
        )
    sign, randomization, bootstrap = np.array(found).T
    for two_sided in (sign, randomization) if runs == others else (randomization,):
        assert (two_sided < 0.05).sum() <= 4 and 0.3 < np.median(two_sided) < 0.8
    if runs == others == 1:  # it says about half of the two-sided probability
        assert (bootstrap < 0.025).sum() <= 5 and 0.1 < np.median(bootstrap) and bootstrap.max() < 0.6


@pytest.mark.parametrize("test", [approximate_randomization, paired_bootstrap])
def test_chance_depends_on_the_seed_alone(test):
    references = corpus(30, 9)
    pair = statistics(references, spoilt(references, 0.3, 10), spoilt(references, 0.28, 11))
    found = [test(*pair, score, 150, seed) for seed in (0, 0, 1, 2, 3)]
    assert found[0] == found[1] and len(set(found)) > 1


# --- seeds --------------------------------------------------------------------------------------------------------


def test_welch_is_the_formula():
    """t = difference / s with s² = Σ v/n, of s⁴ / Σ (v/n)²/(n-1) degrees of freedom (Welch 1947)."""
    one, other = [95.4, 96.0, 96.2], [97.1, 98.6, 96.8, 97.7]
    parts = [np.var(scores, ddof=1) / len(scores) for scores in (one, other)]
    t = (np.mean(other) - np.mean(one)) / sum(parts) ** 0.5
    freedom = sum(parts) ** 2 / sum(part**2 / (len(s) - 1) for part, s in zip(parts, (one, other), strict=True))
    assert welch(one, other) == pytest.approx(2 * scipy.stats.t.sf(t, freedom))
    assert welch(other, one) == pytest.approx(welch(one, other))


def test_welch_needs_seeds_that_differ():
    assert welch([95.0], [96.0, 97.0]) is None and welch([95.0, 95.0], [96.0, 96.0]) is None
    assert welch([95.0, 95.0], [95.0, 96.0]) == pytest.approx(0.5)


@pytest.mark.parametrize(("first", "second"), [([1.0, 2.0, 3.0], [5.0, 7.0, 9.0]), ([1.0, 2.0], [3.0, 3.5, 4.0, 4.5])])
def test_a_detectable_difference_is_found_four_times_in_five(first, second):
    """Student's t-test of drawn runs; their deviation is the pooled one of those given."""
    pooled = np.sqrt(
        sum(((np.array(runs) - np.mean(runs)) ** 2).sum() for runs in (first, second)) / (len(first + second) - 2)
    )
    shift = detectable_over_seeds(first, second)
    rng = np.random.default_rng(1)
    drawn = (rng.normal(mean, pooled, (20000, len(runs))) for mean, runs in ((0, first), (shift, second)))
    assert (scipy.stats.ttest_ind(*drawn, axis=1).pvalue <= 0.05).mean() == pytest.approx(0.8, abs=0.01)


def test_a_detectable_difference_over_sentences():
    """An interval ±1.96 wide has a standard error of 1; at 2.8, four draws in five are more than 1.96 from 0."""
    shift = detectable_over_sentences([0.3 - 1.96, 0.3 + 1.96])
    assert (np.random.default_rng(1).normal(shift, 1, 50000) > 1.96).mean() == pytest.approx(0.8, abs=0.01)
    assert detectable_over_sentences([-1, 1], power=0.5) == pytest.approx(1)


# --- several tests ------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_is_the_closure_of_bonferroni(probabilities):
    """Each hypothesis has the largest Bonferroni p of all sets of hypotheses that it is in."""
    places = range(len(probabilities))
    sets = list(chain.from_iterable(combinations(places, size + 1) for size in places))
    expected = [
        max(min(1, len(some) * min(probabilities[i] for i in some)) for some in sets if place in some)
        for place in places
    ]
    assert holm(probabilities) == pytest.approx(expected)

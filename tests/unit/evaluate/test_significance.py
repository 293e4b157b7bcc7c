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

from fairseq_syntax.evaluate import significance
from fairseq_syntax.evaluate.metrics import METRICS, Bleu
from fairseq_syntax.evaluate.significance import Effect, approximate_randomization, effect, holm, interval, resampled

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


def scored(pair, scores, resamples=10000, seed=12345):
    """Scores of the runs of both systems, as they are and of resamples."""
    observed = tuple(scores(each.sum(axis=1)) for each in pair)
    return observed, tuple(resampled(each, scores, resamples, seed) for each in pair)


# --- approximate randomization ------------------------------------------------------------------------------------


def test_one_run_is_sacrebleu(monkeypatch):
    """TER has trials that tie with the systems' difference, which sacrebleu does not count."""
    seed, test = 7, approximate_randomization
    monkeypatch.setenv("SACREBLEU_SEED", str(seed))
    references = corpus(60, seed)
    baseline, system = spoilt(references, 0.30, 2), spoilt(references, 0.25, 3)
    theirs = PairedTest([("a", baseline), ("b", system)], SACREBLEU, [references], "ar", 500)()[1]
    for name, (_, result) in zip(SACREBLEU, list(theirs.values())[1:], strict=True):
        metric = METRICS[name](False, "none")
        pair = statistics(references, baseline, system, metric=metric)
        found = test(*pair, metric.scores, 500, seed)
        if name != "TER":
            assert found == pytest.approx(result.p_value, abs=1e-12), name
        with monkeypatch.context() as ties:
            ties.setattr(significance, "_SAME", -1e-9)
            assert found >= test(*pair, metric.scores, 500, seed) == pytest.approx(result.p_value), name


@pytest.mark.parametrize(("name", "runs", "others", "sentences"), [("BLEU", 2, 2, 7), ("TER", 1, 2, 7)])
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


# --- bootstrap ----------------------------------------------------------------------------------------------------


def test_interval_of_a_mean():
    values = np.random.default_rng(0).normal(5.0, 2.0, size=(1, 400, 1))
    low, high = interval(resampled(values, lambda total: total[..., 0] / 400, 2000)[0])
    away = 1.96 * values.std() / 20
    assert (low, high) == pytest.approx((values.mean() - away, values.mean() + away), abs=0.03)
    assert interval(resampled(np.full((1, 1, 1), 3.0), lambda total: total[..., 0], 10)[0]) == (3.0, 3.0)


# --- what they find -----------------------------------------------------------------------------------------------


def test_resamples_are_drawn_in_parts(monkeypatch):
    """As sacrebleu draws them, all at once: sentence numbers, of which these are the counts."""
    drawn = np.random.default_rng(3).choice(300, size=(50, 300), replace=True)
    expected = np.stack([np.bincount(row, minlength=300) for row in drawn])
    monkeypatch.setattr(significance, "_DRAWN", 7 * 300)
    assert (significance._resamples.__wrapped__(300, 50, 3) == expected).all()
    assert significance._resamples.__wrapped__(200, 5, 3).dtype == np.uint8


# --- other sentences and other runs -------------------------------------------------------------------------------


def mean_score(total):
    """Of systems whose statistics are (value, 1)."""
    return total[..., 0] / total[..., 1]


def drawn(rng, runs, sentences, of_runs, of_sentences, rest, shift=0.0):
    """Values of the runs of a system, (runs, sentences, 2): of the run, of the system in a sentence, of both."""
    values = (
        shift
        + rng.normal(0, of_runs, (runs, 1))
        + rng.normal(0, of_sentences, (1, sentences))
        + rng.normal(0, rest, (runs, sentences))
    )
    return np.stack([values, np.ones_like(values)], axis=-1)


def test_an_effect_has_the_components_of_variance():
    """Of a mean over sentences, these are known from mean squares, without a bootstrap."""
    rng, sentences = np.random.default_rng(1), 150
    pair = [drawn(rng, runs, sentences, 0.4, 1.5, 2.0) for runs in (3, 4)]
    found = effect(*scored(pair, mean_score, 40000))
    values = [each[..., 0] for each in pair]
    delta = values[1].mean() - values[0].mean()
    inverse, freedom = 1 / 3 + 1 / 4, 5
    of_sentences = (values[1].mean(axis=0) - values[0].mean(axis=0)).var() / sentences
    between = sum(each.mean(axis=1).var(ddof=1) * (len(each) - 1) for each in values) / freedom
    rest = (
        sum((each - each.mean(axis=0)).var(axis=1).sum() / sentences for each in values) / freedom
    )  # what runs differ by because of the sentences that were drawn
    assert between > rest

    def beyond(away):
        """The probability of larger differences; the variance between runs is drawn from what these leave possible."""
        true = between * freedom / rng.chisquare(freedom, 10**6)
        error = (of_sentences + np.maximum(true - rest, 0) * inverse) ** 0.5
        return 2 * scipy.stats.norm.sf(away / error).mean()

    assert found.p == pytest.approx(beyond(abs(delta)), abs=0.005)
    assert (np.mean(found.interval), beyond(found.interval[1] - delta)) == pytest.approx((delta, 0.05), abs=0.002)


def test_without_sentences_that_differ_an_effect_is_students():
    """All that varies is between runs, so that nothing is known but their scores."""
    first, second = np.array([95.4, 96.0, 96.2]), np.array([97.1, 98.6, 96.8, 97.7])
    found = effect((first, second), tuple(np.repeat(each[:, None], 9, axis=1) for each in (first, second)))
    students = scipy.stats.ttest_ind(second, first)
    assert found.p == pytest.approx(students.pvalue)
    assert found.interval == pytest.approx(tuple(students.confidence_interval(0.95)))
    # a single run has the deviation of the others
    [alone] = first[:1, None]
    found = effect((alone, second), (np.repeat(alone[:, None], 9, axis=1), np.repeat(second[:, None], 9, axis=1)))
    t = (second.mean() - 95.4) / (second.std(ddof=1) * (1 + 1 / 4) ** 0.5)
    assert found.p == pytest.approx(2 * scipy.stats.t.sf(t, 3))


@pytest.mark.parametrize("sentences", [1, 40])
def test_systems_that_share_a_run_are_no_more_certain_than_students(sentences):
    """Their sentences are the same, so that the bootstrap finds next to nothing that varies."""
    rng = np.random.default_rng(3)
    values = np.stack([rng.normal(0, 1, (2, 40)), np.ones((2, 40))], axis=-1)
    values[1, :, 0] = values[0, :, 0]
    values[1, :sentences, 0] += 0.5
    shared, other = values[:1], values
    found = effect(*scored((shared, other), mean_score))
    runs = other[..., 0].mean(axis=1)
    error = runs.std(ddof=1) * (1 + 1 / 2) ** 0.5
    away = scipy.stats.t.isf(0.025, 1) * error
    assert found.interval == pytest.approx((found.delta - away, found.delta + away), rel=0.05)
    assert found.detectable > away


def test_with_one_run_each_an_effect_is_about_sentences():
    rng = np.random.default_rng(2)
    pair = [drawn(rng, 1, 200, 0.5, 1.0, 1.0) for _ in range(2)]
    found = effect(*scored(pair, mean_score))
    differences = pair[1][0, :, 0] - pair[0][0, :, 0]
    away = 1.96 * differences.std() / 200**0.5
    assert found.interval == pytest.approx((differences.mean() - away, differences.mean() + away), abs=0.02 * away)
    assert found.p is None and found.detectable == pytest.approx(away * 2.80 / 1.96, rel=0.02)
    same = effect(*scored((pair[0], pair[0]), mean_score))
    assert same == Effect(0.0, (0.0, 0.0), None, None)


def rates(runs, of_runs, sentences, trials, seed=4):
    """Shares of p ≤ 0.05: of equal systems, and of those that differ by what the experiment before could detect."""
    rng, detectable, found = np.random.default_rng(seed), 0.0, []
    for _ in range(trials):
        observed, draws = scored([drawn(rng, size, sentences, of_runs, 0.5, 1.0) for size in runs], mean_score, 200)
        equal = effect(observed, draws)
        other = effect((observed[0], observed[1] + detectable), (draws[0], draws[1] + detectable))
        found.append((equal.p <= 0.05, other.p <= 0.05))
        detectable = equal.detectable
    return np.mean(found[1:], axis=0)


@pytest.mark.parametrize(
    ("runs", "of_runs"), [((3, 3), 0.0), ((3, 3), 1.0), ((1, 3), 0.15), ((5, 2), 1.0), ((2, 1), 2.0), ((2, 2), 2.0)]
)
def test_equal_systems_differ_at_most_once_in_twenty(runs, of_runs):
    """With new sentences and new runs in each trial; a difference of `detectable` is found four times in five."""
    false, right = rates(runs, of_runs, 60, 400)
    least, most = (0.03, 0.86) if of_runs >= 1 else (0.005, 0.95)  # with runs that hardly differ, p is too large
    assert least <= false <= 0.085 and 0.75 <= right <= most


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

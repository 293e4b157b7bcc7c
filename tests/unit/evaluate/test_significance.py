"""BLEU from statistics is sacrebleu's, and the tests find differences that exist, and no others."""

import os
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest
from scipy.stats import binom

from fairseq_syntax.evaluate.bleu import Bleu
from fairseq_syntax.evaluate.significance import bootstrap_interval, paired_bootstrap, sign_test

TEXT = st.lists(st.sampled_from(["ein", "Hund", "läuft", "das", "Tier", "."]), max_size=9).map(" ".join)
LETTERS = "abcdefghijklmnopqrst"


def corpus(size, seed):
    """Sentences of 5 to 20 words."""
    rng = random.Random(seed)
    return [" ".join(rng.choices(LETTERS, k=rng.randint(5, 20))) for _ in range(size)]


def spoilt(sentences, share, seed):
    """The same with that share of the words replaced."""
    rng = random.Random(seed)
    return [" ".join("?" if rng.random() < share else word for word in text.split()) for text in sentences]


def statistics(references, *systems):
    bleu = Bleu()
    return [bleu.statistics(system, [[reference] for reference in references]) for system in systems]


def score(counts):
    return Bleu().score(counts).score


# --- BLEU ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lowercase", "tokenize"), [(False, "none"), (True, "13a"), (True, "none"), (False, "char")])
@given(st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=6))
def test_sums_are_the_corpus_score(lowercase, tokenize, rows):
    hypotheses, *references = map(list, zip(*rows, strict=True))
    bleu = Bleu(lowercase, tokenize)
    counts = bleu.statistics(hypotheses, list(zip(*references, strict=True)))
    expected = BLEU(lowercase=lowercase, tokenize=tokenize, force=True)
    whole = expected.corpus_score(hypotheses, references)
    found = bleu.score(counts.sum(axis=0))
    assert found.score == whole.score
    assert str(found) == str(whole)
    assert bleu.signature(2) == str(expected.get_signature())
    # a part is a corpus, too
    part = expected.corpus_score(hypotheses[1:] or hypotheses, [r[1:] or r for r in references])
    assert bleu.score(counts[1 if len(rows) > 1 else 0 :].sum(axis=0)).score == part.score


def test_case_and_words():
    hypotheses, references = ["EIN Hund läuft davon!"], [["ein Hund läuft davon !"]]
    assert Bleu(True, "13a").score(Bleu(True, "13a").statistics(hypotheses, references)[0]).score == pytest.approx(100)
    assert Bleu(False, "13a").score(Bleu(False, "13a").statistics(hypotheses, references)[0]).score < 99
    assert Bleu(False, "13a").words("Ein Hund!") == ["ein", "hund", "!"]
    assert Bleu(False, "none").words("Ein  Hund!\n") == ["ein", "hund!"]
    assert "case:lc|eff:no|tok:13a" in Bleu(True, "13a").signature()


def test_statistics_are_counts():
    (counts,) = Bleu().statistics(["a b c b a x"], [["a b c d", "a b c b y z w v"]])
    # the reference of 4 and the one of 8 are as close: the shorter counts
    assert counts.tolist() == [6, 4, 4, 3, 2, 1, 6, 5, 4, 3]
    assert Bleu().statistics([""], [["a"]]).tolist() == [[0, 1, *[0] * 8]]
    with pytest.raises(ValueError, match="shorter"):
        Bleu().statistics(["a", "b"], [["a"]])


# --- sign test ----------------------------------------------------------------------------------------------------


def swapped_one_by_one(references, baseline, system):
    """The test as it is described: corpora with one sentence replaced, scored from text."""
    bleu = BLEU(tokenize="none", force=True)
    before = bleu.corpus_score(baseline, [references]).score
    after = []
    for i, sentence in enumerate(system):
        corpus_i = [*baseline[:i], sentence, *baseline[i + 1 :]]
        after.append(bleu.corpus_score(corpus_i, [references]).score)
    better, worse = sum(a > before for a in after), sum(a < before for a in after)
    n = better + worse
    # two-sided: all divisions that are no likelier than this one
    p = sum(q for k in range(n + 1) if (q := binom.pmf(k, n, 0.5)) <= binom.pmf(better, n, 0.5) * (1 + 1e-9))
    return better, worse, len(system) - n, p


@pytest.mark.parametrize("seed", range(4))
def test_sign_test_swaps_sentences(seed):
    references = corpus(30, seed)
    baseline, system = spoilt(references, 0.3, seed + 10), spoilt(references, 0.2, seed + 20)
    system[3], system[4], system[5] = baseline[3], "", references[5]
    found = sign_test(*statistics(references, baseline, system), score)
    expected = swapped_one_by_one(references, baseline, system)
    assert found[:3] == expected[:3]
    assert found.p == pytest.approx(expected[3])


def test_identical_systems():
    references = corpus(40, 0)
    (same,) = statistics(references, spoilt(references, 0.3, 1))
    assert sign_test(same, same, score) == (0, 0, 40, 1.0)
    assert paired_bootstrap(same, same.copy(), score, 200) == 1.0


def test_a_better_system():
    references = corpus(150, 1)
    worse, better = statistics(references, spoilt(references, 0.35, 2), spoilt(references, 0.2, 3))
    forth, back = sign_test(worse, better, score), sign_test(better, worse, score)
    assert forth.p < 0.01 and forth.better > forth.worse
    assert back.p < 0.01 and back.better < back.worse
    assert paired_bootstrap(worse, better, score, 300) == pytest.approx(1 / 301)
    assert paired_bootstrap(better, worse, score, 300) == pytest.approx(1 / 301)


def test_equal_quality_is_rarely_significant():
    p_sign, p_bootstrap = [], []
    for seed in range(30):
        references = corpus(60, seed)
        pair = statistics(references, spoilt(references, 0.3, 2 * seed), spoilt(references, 0.3, 2 * seed + 1))
        p_sign.append(sign_test(*pair, score).p)
        p_bootstrap.append(paired_bootstrap(*pair, score, 100, seed))
    assert sum(p < 0.05 for p in p_sign) <= 3 and np.median(p_sign) > 0.3
    # it says about half of the two-sided probability
    assert sum(p < 0.025 for p in p_bootstrap) <= 5 and np.median(p_bootstrap) > 0.1
    assert max(p_bootstrap) < 0.6


def test_each_is_better_in_half_of_the_sentences():
    references = corpus(40, 5)
    wrong = spoilt(references, 0.4, 6)
    # sentences come in pairs that are the same, and each system has one of the two right
    references = [text for text in references for _ in range(2)]
    first = [text for right, bad in zip(references[::2], wrong, strict=True) for text in (right, bad)]
    second = [text for right, bad in zip(references[::2], wrong, strict=True) for text in (bad, right)]
    pair = statistics(references, first, second)
    test = sign_test(*pair, score)
    assert test.better == test.worse == 40 and test.p == 1.0
    assert paired_bootstrap(*pair, score, 200) > 0.3


def test_one_sentence():
    one, other = statistics(["a b c d e"], ["a b c x e"], ["a b c d e"])
    assert sign_test(one, other, score) == (1, 0, 0, 1.0)
    # every corpus is this one sentence; the difference never leaves its mean
    assert paired_bootstrap(one, other, score, 50) == pytest.approx(1 / 51)


def test_empty_translations():
    references = corpus(20, 7)
    empty, full = statistics(references, [""] * 20, spoilt(references, 0.1, 8))
    assert sign_test(empty, full, score).p < 0.01
    assert sign_test(empty, empty, score).p == 1.0
    assert paired_bootstrap(empty, full, score, 100) < 0.02


# --- bootstrap ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "seed"), [(0.30, 12345), (0.27, 1), (0.25, 2), (0.32, 3)])
def test_bootstrap_is_that_of_sacrebleu(share, seed, monkeypatch):
    references = corpus(80, seed)
    baseline, system = spoilt(references, 0.30, seed), spoilt(references, share, seed + 1)
    monkeypatch.setitem(os.environ, "SACREBLEU_SEED", str(seed))
    theirs = PairedTest(
        [("a", baseline), ("b", system)], {"BLEU": BLEU(tokenize="none", force=True)}, [references], "bs", 250
    )()[1]["BLEU"][1].p_value
    assert paired_bootstrap(*statistics(references, baseline, system), score, 250, seed) == pytest.approx(theirs)


def test_bootstrap_depends_on_the_seed_alone():
    references = corpus(30, 9)
    pair = statistics(references, spoilt(references, 0.3, 10), spoilt(references, 0.28, 11))
    found = [paired_bootstrap(*pair, score, 150, seed) for seed in (0, 0, 1, 2, 3)]
    assert found[0] == found[1]
    assert len(set(found)) > 1
    assert any(a != b for a, b in pairwise(found[1:]))


def test_interval_is_that_of_sacrebleu(monkeypatch):
    references = corpus(80, 1)
    system = spoilt(references, 0.30, 2)
    monkeypatch.setitem(os.environ, "SACREBLEU_SEED", "7")
    theirs = BLEU(tokenize="none", force=True).corpus_score(system, [references], n_bootstrap=400)
    (counts,) = statistics(references, system)
    low, high = bootstrap_interval(counts, score, 400, 7)
    assert (high - low) / 2 == pytest.approx(theirs._ci, abs=0.15)
    assert low < theirs._mean < high and high - low > 1


def test_interval_of_a_mean():
    values = np.random.default_rng(0).normal(5.0, 2.0, size=(400, 1))
    low, high = bootstrap_interval(values, lambda total: float(total[0]) / 400, 2000)
    away = 1.96 * values.std() / 20
    assert (low, high) == pytest.approx((values.mean() - away, values.mean() + away), abs=0.03)
    assert bootstrap_interval(np.full((1, 1), 3.0), lambda total: float(total[0]), 10) == (3.0, 3.0)
    assert np.isnan(bootstrap_interval(np.zeros((0, 1)), score)).all()

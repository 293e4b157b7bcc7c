"""Scores from statistics are sacrebleu's corpus scores, of the whole and of every part."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF, TER

from fairseq_syntax.evaluate.comparison import compare
from fairseq_syntax.evaluate.metrics import METRICS, Bleu, Ribes
from fairseq_syntax.evaluate.ribes import sentence_ribes

TEXT = st.lists(st.sampled_from(["ein", "Hund", "läuft", "(das", "Tier", ".", "日本"]), max_size=9).map(" ".join)
SACREBLEU = {
    "BLEU": lambda lower, tokenize, **more: BLEU(lowercase=lower, tokenize=tokenize, force=True, **more),
    "chrF": lambda lower, tokenize: CHRF(lowercase=lower),
    "chrF++": lambda lower, tokenize: CHRF(lowercase=lower, word_order=2),
    "TER": lambda lower, tokenize: TER(),
}


@pytest.mark.parametrize(("lowercase", "tokenize"), [(False, "none"), (True, "13a")])
@pytest.mark.parametrize("name", SACREBLEU)
@given(st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=6))
def test_sums_are_the_corpus_score(name, lowercase, tokenize, rows):
    hypotheses, *references = map(list, zip(*rows, strict=True))
    metric, theirs = METRICS[name](lowercase, tokenize), SACREBLEU[name](lowercase, tokenize)
    found = metric.statistics(hypotheses, list(zip(*references, strict=True)))
    assert found.shape == (len(rows), metric.columns)
    parts = [slice(None), slice(1, None), slice(0, 1), slice(2, 4)]
    sums = np.stack([found[part].sum(axis=0) for part in parts])
    scores = metric.scores(sums)
    assert metric.scores(sums[:, None]).shape == (4, 1)
    for part, score in zip(parts, scores, strict=True):
        if hypotheses[part]:
            whole = theirs.corpus_score(hypotheses[part], [column[part] for column in references])
            assert score == pytest.approx(whole.score, rel=1e-12, abs=1e-12)
    assert metric.score(found) == scores[0]
    assert metric.signature(2) == str(theirs.get_signature())


@pytest.mark.parametrize("name", SACREBLEU)
@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=4))
def test_short_sentences_score_as_sacrebleu_scores_a_sentence(name, rows):
    rows = [*rows, ("ein Hund läuft", "ein Hund läuft")]
    effective = {"effective_order": True} if name == "BLEU" else {}
    metric, theirs = METRICS[name](False, "none"), SACREBLEU[name](False, "none", **effective)
    statistics = metric.statistics([hypothesis for hypothesis, _ in rows], [[reference] for _, reference in rows])
    expected = [theirs.sentence_score(hypothesis, [reference]).score for hypothesis, reference in rows]
    np.testing.assert_allclose(metric.sentence_scores(statistics[None]), [expected], rtol=1e-12)


def test_statistics_of_nothing_and_of_too_few_references():
    assert Bleu().words("Ein  Hund!\n") == ["ein", "hund!"] and Bleu(tokenize="13a").words("Hund!") == ["hund", "!"]
    for make in METRICS.values():
        metric = make(False, "none")
        assert metric.statistics([], []).shape == (0, metric.columns)
        with pytest.raises(ValueError):
            metric.statistics(["a", "b"], [["a"]])


def test_ribes_is_a_mean_of_sentences():
    ribes = Ribes("13a")
    hypotheses, references = ["A b, c", "d"], [["a b , d", "a b"], ["e"]]
    found = ribes.statistics(hypotheses, references)
    words = ["a", "b", ",", "c"], [["a", "b", ",", "d"], ["a", "b"]]
    assert found.tolist() == [[sentence_ribes(*words), 1], [0, 1]]
    assert ribes.score(found) == sentence_ribes(*words) / 2 > 0
    assert np.isnan(ribes.scores(np.zeros(2)))
    assert ribes.signature(2) == "nrefs:2|alpha:0.25|beta:0.10|case:lc|tok:13a"


@pytest.mark.parametrize(
    ("characters", "tokenize"), [("的一是了我不人在他有这上们来到时大地为子", "zh"), ("กขคงจฉชซญดตถทธนบปผ", "char")]
)
def test_text_without_spaces_is_scored_by_its_script(tmp_path, characters, tokenize):
    """One wrong character a sentence is better than three; chrF is first where sacrebleu knows no words."""
    rng = random.Random(1)
    references = ["".join(rng.choices(characters, k=20)) for _ in range(40)]
    for name, wrong in (("reference", 0), ("one", 1), ("three", 3)):
        places = (rng.sample(range(20), wrong) for _ in references)
        pairs = zip(references, places, strict=True)
        lines = ("".join("x" if i in bad else c for i, c in enumerate(line)) for line, bad in pairs)
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = {name: {"1": str(tmp_path / name)} for name in ("one", "three")}
    content = compare(files, [str(tmp_path / "reference")], trials=9, resamples=9).content
    assert content["metrics"][0]["name"] == ("chrF" if tokenize == "char" else "BLEU")
    [signature] = [metric["signature"] for metric in content["metrics"] if metric["name"] == "BLEU"]
    assert f"tok:{tokenize}|" in signature
    one, three = (system["scores"]["BLEU"]["mean"] for system in content["systems"])
    assert one > three + 5

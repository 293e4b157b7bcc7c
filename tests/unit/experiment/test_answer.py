"""What is to be expected of a corpus before it is trained on."""

import json
from pathlib import Path

import pytest

from fairseq_syntax.experiment.answer import MEASURED, expectation
from fairseq_syntax.experiment.plan import Corpus, Plan


def expected(folder: Path, pairs: int, line: str) -> str:
    (folder / "train.en").write_text(f"{line}\n" * pairs, encoding="utf-8")
    corpus = Corpus("en", "sw", str(folder / "train"), "valid", {})
    return "".join(expectation(Plan("toy", folder, (1,), {}, {}, corpus=corpus)))


@pytest.mark.parametrize(
    ("pairs", "words", "said"),
    [
        (3_000, ["word"] * 20, "with 3,000 pairs of 20 words, expect 1 to 2 BLEU, which cannot answer your question;"),
        (300, ["word"] * 20, "expect 0 to 1 BLEU, which cannot answer your question; from about 30,800 pairs on, it"),
        (20_000, ["漢字" * 20], "with 20,000 pairs of 20 words, expect 2 to 10 BLEU, which"),
        (300, ["word"] * 8, "with 300 pairs of 8 words, expect 0 to 13 BLEU, which cannot answer your question;"),
        (1_000, ["word"] * 8, ""),
        (31_000, ["word"] * 20, ""),
    ],
    ids=range(6),
)
def test_little_text_is_told_before_the_training(tmp_path, pairs, words, said):
    found = expected(tmp_path, pairs, " ".join(words))
    assert said in found and bool(said) == bool(found)


def test_an_experiment_with_a_script_has_no_text_yet(tmp_path):
    assert expectation(Plan("toy", tmp_path, (1,), {}, {}, prepare="x.sh")) == []


def test_what_is_expected_was_measured(repository):
    runs = {
        (14, 1_000): ("multi30k-low-resource/transformer-1000", "test_2016_flickr"),
        (14, 10_000): ("multi30k-low-resource/transformer-10000", "test_2016_flickr"),
        (None, 3_000): ("sizes/transformer-3000-merges-4000", "valid"),
        (None, 10_000): ("sizes/transformer-10000-merges-4000", "valid"),
        (None, 30_800): ("swahili/transformer", "test"),
    }
    assert list(runs) == [(words, pairs) for words, measured in MEASURED.items() for pairs in measured]
    for (words, pairs), (run, split) in runs.items():
        records = [json.loads(path.read_text()) for path in (repository / "docs" / "results").glob(f"{run}-?.json")]
        scores = [record["scores"][split]["BLEU"]["score"] for record in records]
        assert MEASURED[words][pairs] == pytest.approx(sum(scores) / len(scores), abs=0.051)

"""What is to be expected of a corpus before it is trained on, and what the records say in the end."""

import gzip
import json
import random
from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU

from fairseq_syntax.experiment.answer import MEASURED, answer, expectation
from fairseq_syntax.experiment.plan import CorpusSettings, Plan, read_plan
from fairseq_syntax.experiment.run import Run


def expected(folder: Path, pairs: int, line: str) -> str:
    (folder / "train.en").write_text(f"{line}\n" * pairs, encoding="utf-8")
    corpus = CorpusSettings("en", "sw", str(folder / "train"), "valid", {})
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
        (30_782, ["word"] * 20, ""),  # which prints as 30,800
    ],
    ids=range(7),
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


TABLE = """name = "toy"
prepare = "x.sh"
seeds = [1, 2]
[splits]
valid = { subset = "valid", reference = "ref" }
test = { subset = "test", reference = "ref", source = "src" }
[families.f]
baseline = "base"
max_updates = 9
train = ""
generate = ""
[systems]
base = { family = "f", options = "" }
good = { family = "f", options = "", control = "chains" }
chains = { family = "f", options = "" }
"""


def test_reports_begin_with_what_the_records_say(tmp_path):
    """Of each system beside the baseline, and beside its control; Holm's correction is of these comparisons alone."""
    (tmp_path / "toy.toml").write_text(TABLE, encoding="utf-8")
    plan, rng = read_plan(tmp_path / "toy.toml"), random.Random(1)
    lines = [" ".join(rng.choices("abcdefghij", k=12)) for _ in range(80)]
    for name in ("ref", "src"):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")

    def record(plan, system, seed):
        share = 0.1 if system.name == "good" else 0.4
        spoilt = [" ".join("x" if rng.random() < share else word for word in line.split()) for line in lines]
        run, bleu = Run(plan, system, seed, tmp_path, tmp_path), BLEU(tokenize="none", force=True)
        score = {"score": bleu.corpus_score(spoilt, [lines]).score, "signature": str(bleu.get_signature())}
        record = {"system": system.name, "seed": seed, "family": "f", "trees": "none", "stopped": "cap", "updates": 9}
        record |= {"minutes": {}, "commit": "c", "sha256": {}, "commands": run.commands()}
        record |= {"checkpoint": {"chosen": "c"}, "scores": {"valid": {"BLEU": score}, "test": {"BLEU": score}}}
        run.record.write_text(json.dumps(record), encoding="utf-8")
        path = tmp_path / f"{run.name}.test.txt.gz"
        path.write_bytes(gzip.compress("".join(f"{line}\n" for line in spoilt).encode()))

    for run in plan.runs():
        record(plan, *run)
    said = answer(plan, tmp_path, tmp_path)
    assert [line.partition(" (")[0] for line in said] == [
        *("good is better than base", "chains and base cannot be told apart", "good is better than chains")
    ]
    report, page = (tmp_path / f"report.{kind}" for kind in ("txt", "html"))
    assert report.read_text(encoding="utf-8").split("\n\n")[:3] == said
    assert "chrF, less chains" in report.read_text(encoding="utf-8")
    assert all(f"<p>{line}.</p>" in page.read_text(encoding="utf-8").replace("&#39;", "'") for line in said)
    # the page of one family does not stay beside those of several
    family = '[families.g]\nlike = "f"\nbaseline = "good"\n[systems]'
    table = TABLE.replace("[systems]", family) + 'more = { family = "g", options = "" }\n'
    (tmp_path / "toy.toml").write_text(table, encoding="utf-8")
    plan = read_plan(tmp_path / "toy.toml")
    for seed in plan.seeds:
        record(plan, plan.systems["more"], seed)
    answer(plan, tmp_path, tmp_path)
    assert {path.name for path in tmp_path.glob("report*.html")} == {"report-base.html", "report-good.html"}

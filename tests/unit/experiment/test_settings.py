"""The first file of an experiment: settings by size, rivals and controls, a budget."""

import json
from pathlib import Path

import pytest
from contract.command_lines import parse

from fairseq_syntax.experiment.plan import Corpus, PlanError, Text, read_plan
from fairseq_syntax.experiment.run import Run
from fairseq_syntax.experiment.schedule import minutes_left, together
from fairseq_syntax.experiment.settings import SIZES, SYSTEMS, fit_budget, with_rivals, write_plan

PARSED = Text(parser="spacy", parser_model="en_core_web_sm")


def corpus_of(folder: Path, pairs: int, target: str = "de") -> Corpus:
    for name, number in (("train", pairs), ("valid", 2), ("test", 3)):
        for language in ("en", target):
            lines = (f"{name} {language} {i}\n" for i in range(number))
            (folder / f"{name}.{language}").write_text("".join(lines), encoding="utf-8")
    return Corpus("en", target, str(folder / "train"), str(folder / "valid"), {"test": str(folder / "test")})


def runs_of(path: Path, out: Path) -> list[Run]:
    plan = read_plan(path)
    return [Run(plan, system, seed, out, out / "results") for system, seed in plan.runs()]


@pytest.mark.parametrize(("pairs", "size"), [(2000, 0), (2001, 1)])
def test_settings_go_with_the_size_and_every_system_is_accepted(pairs, size, tmp_path):
    path = write_plan(tmp_path / "study", corpus_of(tmp_path, pairs), PARSED, list(SYSTEMS), controls=True)
    plan = read_plan(path)
    assert plan.text.subword_size == SIZES[size].merges
    assert {family.max_updates for family in plan.families.values()} == {SIZES[size].updates}
    assert plan.systems.keys() >= SYSTEMS.keys() and plan.systems["pascal"].control == "pascal-linear"
    for run in runs_of(path, tmp_path):
        if run.seed == 1:
            parse(run.train_command())
    assert plan.splits["test"].reference == "raw/test.de" and plan.tokenize == "13a"


def test_japanese_has_its_tokenizers(tmp_path):
    corpus = corpus_of(tmp_path, 9, "ja")
    (tmp_path / "train.ja").write_text("犬がいる\n" * 9, encoding="utf-8")
    path = write_plan(tmp_path / "study", corpus, PARSED, list(SYSTEMS))
    plan = read_plan(path)
    assert (plan.tokenize, plan.text.target_tokenizer, plan.text.joined) == ("ja-mecab", "", False)
    for run in runs_of(path, tmp_path):
        command = run.train_command()
        parse(command)
        assert "--share-all-embeddings" not in command


def test_rivals_come_along_and_controls_are_asked_for():
    assert with_rivals(["sa_nmt_shared", "pascal"], False, True) == [
        "nmt_lstm",
        "sa_nmt_shared",
        "transformer",
        "pascal",
    ]
    assert with_rivals(["pascal"], True, True) == ["transformer", "pascal", "pascal-linear", "pascal-random"]
    assert with_rivals(["sa_nmt_shared"], True, False) == ["nmt_lstm", "sa_nmt_shared"]


def test_a_pipeline_of_another_language_is_refused(tmp_path):
    with pytest.raises(PlanError, match="de_core_news_sm: parses de, but the source is en"):
        write_plan(
            tmp_path / "study", corpus_of(tmp_path, 9), Text(parser="spacy", parser_model="de_core_news_sm"), ["tag"]
        )


@pytest.mark.parametrize(("budget", "seeds", "updates"), [(1000, 3, 2000), (100, 2, 2000), (22, 1, 1100)])
def test_a_budget_lowers_seeds_and_then_updates(budget, seeds, updates, tmp_path):
    """Two systems at 0.6 seconds per update, 5 % of it for validation: 20 minutes a run, 40 a seed."""
    path = write_plan(tmp_path / "study", corpus_of(tmp_path, 9), PARSED, ["pascal"])
    (tmp_path / "seconds.json").write_text(json.dumps(dict.fromkeys(("transformer", "pascal"), (0.6 / 1.05, 0))))
    runs = runs_of(path, tmp_path)
    assert minutes_left(runs) == pytest.approx(120)
    assert minutes_left(runs, 4) == pytest.approx(40)  # six runs: two rounds
    fit_budget(read_plan(path), runs, budget, jobs=1)
    plan = read_plan(path)
    assert (len(plan.seeds), plan.families["transformer"].max_updates) == (seeds, updates)
    with pytest.raises(PlanError, match="one seed takes"):
        fit_budget(plan, runs, 1, jobs=1)
    assert together([5, 4, 3, 2], 2) == 7


def test_a_budget_pays_for_translations_and_needs_times(tmp_path):
    path = write_plan(tmp_path / "study", corpus_of(tmp_path, 9), PARSED, ["pascal"])
    runs, timed = runs_of(path, tmp_path), tmp_path / "seconds.json"
    timed.write_text(json.dumps({"pascal": (0.6, 0)}))
    with pytest.raises(PlanError, match="some system could not be timed"):
        fit_budget(read_plan(path), runs, 60, jobs=1)
    # 40 minutes of training, and two starts of five minutes for two runs
    timed.write_text(json.dumps(dict.fromkeys(("transformer", "pascal"), (0.6 / 1.05, 300 / 3))))
    assert minutes_left([run for run in runs if run.seed == 1]) == pytest.approx(50)
    fit_budget(read_plan(path), runs, 30, jobs=1)
    assert read_plan(path).families["transformer"].max_updates < 2000 * 0.6

"""The first file of an experiment: settings by size, rivals and controls, a budget."""

import json
from pathlib import Path

import pytest
from contract.command_lines import parse

from fairseq_syntax.experiment.budget import Budget, fit_budget, minutes_left, read_budget, write_budget
from fairseq_syntax.experiment.plan import NAME, CorpusSettings, PlanError, TextSettings, read_plan
from fairseq_syntax.experiment.run import Run
from fairseq_syntax.experiment.settings import SIZES, SYSTEMS, begin, with_rivals, write_plan

PARSED = TextSettings(parser="spacy", parser_model="en_core_web_sm")


def corpus_of(folder: Path, pairs: int, target: str = "de") -> CorpusSettings:
    for name, number in (("train", pairs), ("valid", 2), ("test", 3)):
        for language in ("en", target):
            lines = (f"{name} {language} {i}\n" for i in range(number))
            (folder / f"{name}.{language}").write_text("".join(lines), encoding="utf-8")
    return CorpusSettings("en", target, str(folder / "train"), str(folder / "valid"), {"test": str(folder / "test")})


def runs_of(path: Path, out: Path) -> list[Run]:
    plan = read_plan(path)
    return [Run(plan, system, seed, out, out / "results") for system, seed in plan.runs()]


@pytest.mark.parametrize(("pairs", "size"), [(2000, 0), (2001, 1)])
def test_settings_go_with_the_size_and_every_system_is_accepted(pairs, size, tmp_path):
    path = tmp_path / "study" / NAME
    write_plan(path, corpus_of(tmp_path, pairs), PARSED, list(SYSTEMS), True)
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
    path = tmp_path / "study" / NAME
    write_plan(path, corpus, PARSED, list(SYSTEMS), False)
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
        begun(tmp_path, text={"parser": "spacy", "parser_model": "de_core_news_sm"})


def timed(out: Path, *names: str, update: float = 0.6 / 1.05, start: float = 0) -> None:
    """As if updates of two systems took 0.6 seconds, 5 % of it for validation: 20 minutes a run, 40 a seed."""
    (out / "seconds.json").write_text(json.dumps(dict.fromkeys(names or ("transformer", "pascal"), (update, start))))


def begun(folder: Path, **more) -> tuple[Path, list[Run]]:
    folder.mkdir(exist_ok=True)
    given = {"text": {"parser": "spacy", "parser_model": "en_core_web_sm"}, "systems": ["pascal"]}
    begin(folder / "study", vars(corpus_of(folder, 9)), **{**given, **more})
    path = folder / "study" / NAME
    return path, runs_of(path, path.parent)


def fitted(path: Path, runs: list[Run], budget: str) -> str:
    """What of the experiment fits into a budget, which is kept."""
    found = fit_budget(read_budget(path.parent, budget), read_plan(path), runs, jobs=1)
    write_budget(path.parent, found)
    assert found.systems == 2 and found.time == budget
    return f"{found.seeds} of 3 seeds, {found.updates}%"


def test_a_budget_lowers_seeds_and_then_updates(tmp_path):
    path, runs = begun(tmp_path)
    timed(path.parent)
    assert minutes_left(runs) == pytest.approx(120)
    assert minutes_left(runs, 4) == pytest.approx(40)  # six runs: two rounds
    # another one before the first training: as if it were the first
    for budget, said in (("1000m", "3 of 3 seeds, 100%"), ("22m", "1 of 3 seeds, 55%"), ("100m", "2 of 3 seeds, 100%")):
        assert fitted(path, runs, budget) == said
    plan = read_plan(path).within(1, 55)
    assert (len(plan.seeds), plan.families["transformer"].max_updates) == (1, 1100)
    assert read_budget(path.parent, "100m") == read_budget(path.parent) != Budget("100m")


def test_a_budget_that_is_too_small_names_the_smallest(tmp_path):
    path, runs = begun(tmp_path)
    timed(path.parent)
    with pytest.raises(PlanError, match="1 of 3 seeds with 10 % of the updates take 4 min; give --budget 4m or more"):
        fitted(path, runs, "3m")
    with pytest.raises(PlanError, match="--budget 4 m: give a time such as 8h or 90m"):
        read_budget(path.parent, "4 m")
    assert fitted(path, runs, "4m") == "1 of 3 seeds, 10%"


def test_a_later_budget_leaves_what_was_begun_as_it_is(tmp_path):
    path, runs = begun(tmp_path)
    timed(path.parent)
    assert fitted(path, runs, "22m") == "1 of 3 seeds, 55%"
    for run in runs[:2]:
        run.folder.mkdir(parents=True)
    assert fitted(path, runs, "50m") == "2 of 3 seeds, 55%"
    with pytest.raises(PlanError, match="1 of 3 seeds with 55 % of the updates take 22 min; give --budget 22m or more"):
        fitted(path, runs, "5m")


def test_a_budget_pays_for_translations_and_needs_times(tmp_path):
    path, runs = begun(tmp_path)
    timed(path.parent, "pascal")
    with pytest.raises(PlanError, match="some system could not be timed"):
        fitted(path, runs, "30m")
    # 40 minutes of training, and two starts of five minutes for two runs
    timed(path.parent, start=300 / 3)
    assert minutes_left([run for run in runs if run.seed == 1]) == pytest.approx(50)
    assert int(fitted(path, runs, "31m").removesuffix("%").rpartition(" ")[2]) < 60


def test_systems_and_controls_are_added_and_trained_as_those_of_the_first_call(tmp_path):
    path, _ = begun(tmp_path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("--pascal-heads 2 0 0 0", "--pascal-heads 1 0 0 0"), encoding="utf-8")
    [said] = begin(path.parent, {}, {}, ["sdatt", "pascal"])
    assert said == f"{path}: added global_att, sdatt"
    [said] = begin(path.parent, {}, {}, controls=True)
    assert said == f"{path}: added pascal-linear, pascal-random, sdatt-linear, sdatt-random"
    plan = read_plan(path)
    assert plan.systems["pascal"].control == "pascal-linear" and plan.families["directed"].baseline == "global_att"
    assert plan.systems["pascal-random"].options == plan.systems["pascal"].options != SYSTEMS["pascal"].options
    begun(tmp_path / "other", systems=["pascal", "sdatt"], controls=True)
    other = read_plan(tmp_path / "other" / "study" / NAME)
    assert other.systems.keys() == plan.systems.keys() and other.families == plan.families
    before = path.read_text(encoding="utf-8")
    assert begin(path.parent, {}, {}, ["pascal"], controls=True) == []
    assert path.read_text(encoding="utf-8") == before
    path.write_text(before.replace("baseline = ", "baselin = "), encoding="utf-8")
    with pytest.raises(PlanError, match="baselin"):
        begin(path.parent, {}, {}, ["tag"])


@pytest.mark.parametrize(
    ("corpus", "text", "option"),
    [
        ({}, {"parser": "stanza"}, "--parser"),
        ({}, {"parser": "spacy", "parser_model": "en_core_web_md"}, "--parser-model"),
        ({"target": "sw"}, {}, "--target"),
        ({"tests": {"news": "raw/news"}}, {}, "--test"),
    ],
)
def test_another_text_or_parser_is_refused_by_name(corpus, text, option, tmp_path):
    path, _ = begun(tmp_path)
    before = path.read_bytes()
    with pytest.raises(
        PlanError, match=f"^{option}: .*experiment.toml has .*; leave the option out, edit the file before"
    ):
        begin(path.parent, corpus, text, ["tag"])
    assert path.read_bytes() == before
    begun(tmp_path)  # the same once more
    assert path.read_bytes() == before

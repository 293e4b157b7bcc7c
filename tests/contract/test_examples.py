"""The recipes: they are sound shell, what they would run is accepted, and it is what the paper did."""

import gzip
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from contract.command_lines import parse
from contract.recipes import EXAMPLES, GOLDEN, dry_run, empty_folder, golden, now, ours, recipe, shell
from omegaconf import OmegaConf

from fairseq_syntax.options import fill_defaults
from fairseq_syntax.systems.lgp.model import LatentGraphOptions
from fairseq_syntax.systems.pascal.model import PascalOptions
from fairseq_syntax.systems.sa_nmt.model import SyntaxAttentionOptions
from fairseq_syntax.systems.sdatt.model import SyntaxDirectedOptions

RECIPES = sorted(path.parent.name for path in EXAMPLES.glob("*/settings.sh"))
DEFAULTS = {
    "pascal_transformer": PascalOptions,
    **dict.fromkeys(("nmt_lstm", "fa_nmt", "sa_nmt"), SyntaxAttentionOptions),
    **dict.fromkeys(("global_", "local_att", "flexible_att", "chen17", "sdatt"), SyntaxDirectedOptions),
    "lgp_": LatentGraphOptions,
}


def parsed(command: list[str]):
    """Options of a command, with the defaults of the system where there is one of ours."""
    args = parse(command)
    arch = getattr(args, "arch", None) or ""
    for prefix, options in DEFAULTS.items():
        if arch.startswith(prefix) and "parser" not in arch:
            fill_defaults(args, options)
    return args


def training(*arguments: str, **variables: str):
    """Options of the only fairseq-train of a step: training(RECIPE, SYSTEM, …)"""
    (command,) = [c for c in recipe("train", *arguments, **variables) if c[0] == "fairseq-train"]
    return parsed(command)


def generation(*arguments: str, **variables: str):
    (command,) = [c for c in recipe("evaluate", *arguments, **variables) if c[0] == "fairseq-generate"]
    return parse(command)


def test_every_recipe_has_a_committed_dry_run_and_stops_at_a_failing_command():
    """That scripts are sound says shellcheck, in `make lint`."""
    assert len(RECIPES) >= 13 and {path.stem for path in GOLDEN.glob("*.txt")} >= set(RECIPES)
    for script in EXAMPLES.rglob("*.sh"):
        assert re.search(r"^set -euo pipefail$|^source ", script.read_text(encoding="utf-8"), re.MULTILINE), script


# --- what they would run ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.txt")), ids=lambda path: path.stem)
def test_dry_runs_are_the_committed_ones_and_accepted(path):
    for line, commands in golden(path).items():
        assert now(line) == commands, f"{line}\nmeant? python tests/contract/recipes.py"
        for command in ours([shlex.split(command) for command in commands]):
            words = command[: next((i for i, word in enumerate(command) if word in ("<", ">")), len(command))]
            parse(words)
            assert re.search("outputs/|demo-out/", " ".join(command)), "something is written elsewhere"
    assert not list(empty_folder().iterdir()), "DRY_RUN=1 has made a folder"


def table() -> list:
    """Rows of papers.toml with what they have of their base."""
    found = tomllib.loads((Path(__file__).parent / "papers.toml").read_text(encoding="utf-8"))
    rows = []
    for row in found["row"]:
        base = found["base"][row["base"]]
        merged = {"variables": {}, "prepare": [], "never": [], "pretrain": {}, **base, **row}
        for key in ("train", "generate", "pretrain"):
            merged[key] = {**base.get(key, {}), **row.get(key, {})}
        merged["each"] = {
            system: {**merged["train"], **base.get("each", {}).get(system, {}), **row.get("each", {}).get(system, {})}
            for system in merged["systems"]
        }
        rows.append(pytest.param(merged, id="-".join([row["recipe"], *row.get("variables", {}).values()])))
    return rows


def check(args, expected: dict) -> None:
    for name, value in expected.items():
        found = getattr(args, name, "absent")
        assert found == value or str(found) == value, f"{name}: {found}, not {value}"


@pytest.mark.parametrize("row", table())
def test_settings_are_those_of_the_paper_and_what_is_trained_is_what_is_scored(row):
    name, variables = row["recipe"], row["variables"]
    prepared = [] if name == "aspec" else dry_run("recipe.sh", "prepare", name, **variables)
    folders = (
        {parse(c).destdir for c in ours(recipe("prepare", name, **variables)) if "preprocess" in c[0]}
        if prepared
        else None
    )
    for text in row["prepare"]:
        assert any(text in command for command in prepared), text
    for text in row["never"]:
        assert not any(text in command for command in prepared), text
    for system, expected in row["each"].items():
        trained, translated = training(name, system, **variables), generation(name, system, **variables)
        check(trained, expected)
        check(translated, row["generate"])
        assert (trained.source_lang, trained.target_lang) == (translated.source_lang, translated.target_lang)
        assert variables.get("SOURCE", trained.source_lang) == trained.source_lang
        assert trained.data == translated.data and (not folders or trained.data in folders)
        assert Path(translated.path) == Path(trained.save_dir) / row["checkpoint"]
        assert trained.cpu == translated.cpu
        # what makes the systems of ../pascal* and ../multi30k
        assert trained.data.endswith("-multitask") == (system == "multitask")
        heads = {"lisa": "heads", "planted": "planted_heads"}.get(system, "")
        assert trained.criterion.partition("_with_")[2] == heads
        if "transformer" in trained.arch:
            assert trained.share_all_embeddings
            of_name = {
                "multitask": "transformer",
                **{s: f"{s}_transformer" for s in ("pascal", "lisa", "planted", "tag")},
            }
            assert trained.arch.startswith(f"{of_name.get(system, system)}_")
        elif row["base"] in ("sa_nmt", "sdatt"):
            assert trained.arch == system
    if row["pretrain"]:
        (command,) = ours(recipe("pretrain", name, **variables))
        parser = parse(command)
        check(parser, row["pretrain"])
        started = training(name, "lgp_plus", **variables)
        assert started.lgp_parser_path == f"{parser.save_dir}/checkpoint_last.pt"
        assert Path(parser.lgp_mt_dict).parent == Path(started.data).parent


def test_a_variant_has_files_of_its_own_and_the_data_of_the_others():
    options = ["--pascal-weight-fn", "parent-only"]
    plain = training("nc11", "pascal")
    variant = training("nc11", "pascal", *options, VARIANT="parent", PASCAL_HEADS="0 5 0 0 0 0")
    assert variant.pascal_weight_fn == "parent-only" and variant.pascal_heads == [0, 5, 0, 0, 0, 0]
    assert variant.data == plain.data
    assert [Path(args.save_dir).name for args in (plain, variant)] == ["en-de-pascal-1", "en-de-parent-pascal-1"]
    translated = generation("nc11", "pascal", VARIANT="parent")
    assert translated.path == f"{variant.save_dir}/checkpoint_last.pt"


def test_the_file_for_hydra_has_the_settings_of_the_recipe():
    args = training("multi30k", "pascal")
    cfg = OmegaConf.to_container(OmegaConf.load(EXAMPLES / "multi30k" / "hydra" / "pascal.yaml"))
    for group in ("common", "dataset", "model", "criterion", "optimizer", "lr_scheduler", "optimization"):
        for name, value in cfg[group].items():
            if name not in ("_name", "user_dir"):
                assert getattr(args, name) == value, f"{group}.{name}"
    names = [cfg[group]["_name"] for group in ("model", "criterion", "optimizer", "lr_scheduler")]
    assert names == [args.arch, args.criterion, args.optimizer, args.lr_scheduler]


# --- variables --------------------------------------------------------------------------------------------------------


LINES = tomllib.loads((Path(__file__).parent / "recipes.toml").read_text(encoding="utf-8"))


def split(line: str) -> tuple[list[str], dict[str, str]]:
    """Arguments and variables of a line of recipes.toml."""
    words = shlex.split(line)
    start = next(i for i, word in enumerate(words) if "=" not in word)
    return words[start:], dict(word.split("=", 1) for word in words[:start])


@pytest.mark.parametrize("line", LINES["given"])
def test_variables_and_options_of_the_user_win(line):
    (_, *arguments), variables = split(line)
    expected = LINES["given"][line]
    assert expected
    check(training(*arguments, **variables), expected)


@pytest.mark.parametrize("line", LINES["refused"])
def test_what_does_not_exist_is_refused(line):
    arguments, variables = split(line)
    script = [] if arguments[0].endswith(".sh") else ["recipe.sh"]
    done = shell(*script, *arguments, DRY_RUN="1", **variables)
    assert done.returncode == 2 and LINES["refused"][line] in done.stderr and "+ " not in done.stderr, done.stderr


@pytest.mark.parametrize("line", LINES["missing"])
def test_what_is_missing_is_named_with_its_step(line, tmp_path):
    arguments, variables = split(line)
    work = tmp_path / "out" / "10000"
    if variables:
        for folder in (work / "data-bin", work / "checkpoints" / "lgp-1"):
            folder.mkdir(parents=True)
        (work / "checkpoints" / "lgp-1" / "checkpoint_best.pt").touch()
    done = shell("recipe.sh", *arguments, OUT=str(tmp_path / "out"), MULTI30K=str(tmp_path / "m"), **variables)
    (said,) = done.stderr.splitlines()
    assert done.returncode == 1 and LINES["missing"][line] in said and not said.startswith("+ ")
    assert work.exists() == bool(variables)


# --- text, trees and data ---------------------------------------------------------------------------------------------


def run(line: str, **variables) -> None:
    done = shell("recipe.sh", *line.split(), **{key: str(value) for key, value in variables.items()})
    assert done.returncode == 0, done.stderr[-1000:]


def test_first_pairs_and_their_trees_are_taken(tmp_path):
    """Text and trees are really cut, up to the dictionary."""
    trees = "".join(f"# text = {word}\n1\t{word}\t_\tX\t_\t_\t0\troot\t_\t_\n\n" for word in "abc")
    for split in ("train", "dev", "test", "valid"):
        for language in ("en", "ja"):
            (tmp_path / f"{split}.{language}").write_text("a\nb\nc\n")
        (tmp_path / f"{split}.en.conllu.gz").write_bytes(gzip.compress(trees.encode()))
        (tmp_path / f"{split}.conllu").write_text(trees)
    out, given = tmp_path / "out", {"DATA": str(tmp_path), "TREEBANK": str(tmp_path), "PAIRS": "2"}
    for step in ("text", "trees"):
        done = shell("recipe.sh", "prepare", "lgp", step, OUT=str(out), **given)
        assert done.returncode == 0, done.stderr[-1000:]
    text = out / "2" / "text"
    assert (text / "train.en").read_text() == (text / "train.ja").read_text() == "a\nb\n"
    assert (text / "valid.en").read_text() == (text / "test.ja").read_text() == "a\nb\nc\n"
    assert (text / "train.en.conllu").read_text() == trees[: trees.index("# text = c")]
    assert (text / "test.en.conllu").read_text() == trees


# --- text of the WMT recipes ------------------------------------------------------------------------------------------


def clean(folder: Path, output: str) -> subprocess.CompletedProcess:
    """Clean all.en and all.de of a folder."""
    given = ["clean", "--input", folder / "all", "--source-lang", "en", "--target-lang", "de", "--workers", "1"]
    command = [sys.executable, EXAMPLES / "wmt_text.py", *given, "--output", folder / output]
    return subprocess.run(command, capture_output=True, timeout=60)


def test_cleaning_keeps_pairs_together_and_in_order(tmp_path):
    # empty, too long, more than nine times as long; and spaces at which programs do not agree
    dropped = [("", "leer"), ("w " * 81, "zu lang"), ("a", "z " * 10)]
    kept = [("one two", "eins zwei"), ("w " * 80, "v " * 80), ("a", "z " * 9)]
    pairs = [kept[0], *dropped, *kept[1:], ("line\u2028sep\u00a0nbsp\rcr", "zeile zwei drei")]
    for language, side in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
        (tmp_path / f"all.{language}").write_bytes("".join(f"{line}\n" for line in side).encode())
    done = clean(tmp_path, "train")
    assert done.returncode == 0 and b"kept 4 of 7" in done.stderr
    for language, side in zip(
        ("en", "de"), zip(*kept, ("line sep nbsp cr", "zeile zwei drei"), strict=True), strict=True
    ):
        lines = (tmp_path / f"train.{language}").read_bytes().decode().split("\n")
        assert lines == [*(line.strip() for line in side), ""]
    (tmp_path / "all.de").write_text("a\n")
    done = clean(tmp_path, "other")
    assert done.returncode == 1 and b"differ in length after 1" in done.stderr
    assert not (tmp_path / "other.en").exists()

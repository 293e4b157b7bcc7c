"""The recipes: they are sound shell, what they would run is accepted, and it is what the paper did."""

import gzip
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from contract.command_lines import console_scripts, parse
from contract.recipes import EXAMPLES, GOLDEN, dry_run, empty_folder, golden, now, ours, recipe, shell
from omegaconf import OmegaConf

from fairseq_syntax.options import fill_defaults
from fairseq_syntax.systems.lgp.model import LatentGraphOptions
from fairseq_syntax.systems.pascal.model import PascalOptions
from fairseq_syntax.systems.sa_nmt.model import SyntaxAttentionOptions
from fairseq_syntax.systems.sdatt.model import SyntaxDirectedOptions

SCRIPTS = sorted(EXAMPLES.rglob("*.sh"))
RECIPES = sorted(path.parent.name for path in EXAMPLES.glob("*/settings.sh"))
FILES = ("save_dir", "log_file")
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
        if arch.startswith(prefix) and "parser" not in arch and "sdatt_transformer" not in arch:
            fill_defaults(args, options)
    return args


def training(*arguments: str, **variables: str):
    """Options of the only fairseq-train of a step: training(RECIPE, SYSTEM, …)"""
    (command,) = [c for c in recipe("train", *arguments, **variables) if c[0] == "fairseq-train"]
    return parsed(command)


def generation(*arguments: str, **variables: str):
    (command,) = [c for c in recipe("evaluate", *arguments, **variables) if c[0] == "fairseq-generate"]
    return parse(command)


def settings_of(args, but: tuple[str, ...]) -> dict:
    return {key: value for key, value in vars(args).items() if key not in but}


def touch(folder: Path, *names: str) -> dict[str, str]:
    """Empty files of a corpus that a recipe looks for."""
    for file in names:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).touch()
    return {"DATA": str(folder)}


# --- the scripts as text ----------------------------------------------------------------------------------------------


def test_every_recipe_is_explained_and_has_a_committed_dry_run():
    assert len(RECIPES) >= 13
    for name in RECIPES:
        assert (EXAMPLES / name / "README.md").is_file() and (GOLDEN / f"{name}.txt").is_file()


def is_strict(script: Path) -> bool:
    """Whether `set -euo pipefail`, or a file that has it, comes before any other command."""
    for line in script.read_text(encoding="utf-8").splitlines():
        if not line.strip() or re.match(r"[#: ]|case|esac|;;|[\w*| -]+\)", line):
            continue  # comments and default values of settings
        if line == "set -euo pipefail":
            return True
        sourced = re.fullmatch(r'source "\$\(dirname "\$(?:0|\{BASH_SOURCE\[0\]\})"\)/(\S+)"', line)
        return bool(sourced) and is_strict(script.parent / sourced[1])
    return False


ABSOLUTE = re.compile(r"(?<![\w.}/:$*~-])(?:~/|/(?:home|root|work|usr|tmp|opt|data|mnt|scratch|var|Users)\b)")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_script_is_sound_stops_at_a_failing_command_and_names_no_folder_of_ours(script):
    done = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert is_strict(script)
    for number, line in enumerate(script.read_text(encoding="utf-8").splitlines()[1:], 2):
        # a placeholder for the reader, in a comment, is one
        assert not ABSOLUTE.search(line.replace("/path/to/", "")), f"{script}:{number}: {line}"


@pytest.mark.parametrize("body", ["echo hello\nset -euo pipefail\n", "# nothing\n", "cd x\nsource y\n"])
def test_is_strict_can_say_no(tmp_path, body):
    script = tmp_path / "script.sh"
    script.write_text(f"#!/usr/bin/env bash\n{body}")
    assert not is_strict(script)


def test_absolute_paths_would_be_found():
    for line in ("cd /home/me/x", 'cat "/data/train.en"', "ls ~/corpus", "OUT=/tmp/x"):
        assert ABSOLUTE.search(line)


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


def test_wrong_option_would_be_found():
    with pytest.raises(AssertionError, match="parent-ignorin"):
        parse(["fairseq-train", "data", "--arch", "pascal_transformer_wmt_en_de", "--parent-ignorin", "0.1"])
    with pytest.raises(AssertionError, match="no-distance-matrices"):
        parse(["fairseq-syntax preprocess", "--no-distance-matrices"])
    assert "fairseq-syntax preprocess" in console_scripts()


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
        assert (trained.criterion == "label_smoothed_cross_entropy_with_heads") == (system == "lisa")
        if "transformer" in trained.arch:
            assert trained.share_all_embeddings
            of_name = {"multitask": "transformer", **{s: f"{s}_transformer" for s in ("pascal", "lisa", "tag")}}
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


@pytest.mark.parametrize("name", ["LR", "BETA2"])
def test_settings_of_systems_can_be_overridden_together_or_one_by_one(name):
    def value(system, text):
        args = training("nc11", system, **{name: text})
        return args.lr[0] if name == "LR" else json.loads(args.adam_betas.replace("(", "[").replace(")", "]"))[1]

    assert [value(system, "0.5") for system in ("transformer", "pascal")] == [0.5, 0.5]
    assert [value(system, "0.5 lisa=0.25 tag=0.125") for system in ("lisa", "pascal", "tag")] == [0.25, 0.5, 0.125]


# arguments, variables -> options
GIVEN = {
    "nc11 pascal": (
        {"PARENT_IGNORING": "0.2", "PASCAL_HEADS": "1 2"},
        {"pascal_parent_ignoring": 0.2, "pascal_heads": [1, 2]},
    ),
    "wmt16 pascal --max-update 7": ({"SEED": "7"}, {"max_update": 7, "seed": 7}),
    "sa_nmt sa_nmt --lr 0.5 --sa-root-scores diagonal": (
        {"BATCH_SIZE": "8", "SEED": "7"},
        {
            **{"batch_size": 8, "lr": [0.5], "sa_root_scores": "diagonal"},
            "save_dir": "outputs/sa_nmt/checkpoints/en-de-sa_nmt-7",
        },
    ),
    "wmt17 sa_nmt --lr 0.5": ({"EPOCH_PARTS": "3"}, {"epoch_parts": 3, "lr": [0.5]}),
    **{
        f"sdatt {system} --sdatt-n 3": (
            {"SEED": "7", "MAX_EPOCH": "2", "LR": "0.5", "WARMUP": "11"},
            {
                **{"sdatt_n": 3.0, "max_epoch": 2, "lr": [0.5], "warmup_updates": 11},
                "log_file": f"outputs/sdatt/{system}-7.log",
            },
        )
        for system in ("sdatt", "sdatt_transformer")
    },
    "lgp lgp_plus --lr 0.5 --lgp-decoder-bos": (
        {
            **{"SEED": "7", "MAX_EPOCH": "3", "CRITERION": "blackout", "NOISE": "9", "FIRST_K": "60"},
            **{"WORD_VECTORS": "w.txt", "NGRAM_VECTORS": "n.txt"},
        },
        {
            **{"lr": [0.5], "max_epoch": 3, "blackout_k": 9, "lgp_decoder_bos": True, "seed": 7},
            **{"lgp_word_vectors": "w.txt", "lgp_ngram_vectors": "n.txt"},
            "save_dir": "outputs/lgp/10000/checkpoints/lgp_plus-60-1-7",
            "lgp_parser_path": "outputs/lgp/10000/checkpoints/parser-60-1/checkpoint_last.pt",
        },
    ),
    "latent_tree latent --max-epoch 3": (
        {"LR": "1e-2", "HIDDEN": "32"},
        {"max_epoch": 3, "lr": [1e-2], "rnng_size": 32},
    ),
    # an update is as large on any number of GPUs: 8192 tokens, 32 and 80 sentences
    "nc11 pascal --seed 1": ({"GPUS": "4"}, {"update_freq": [1], "distributed_world_size": 4}),
    "wmt16 pascal --seed 1": ({"GPUS": "2"}, {"update_freq": [2], "distributed_world_size": 2, "max_tokens": 2048}),
    "wmt16 pascal --seed 2": ({"MAX_TOKENS": "8192"}, {"update_freq": [1], "max_tokens": 8192}),
    "wmt17 sa_nmt_shared": ({"GPUS": "4"}, {"batch_size": 8, "distributed_world_size": 4}),
    "wmt14 sdatt": ({"GPUS": "2"}, {"batch_size": 40, "distributed_world_size": 2}),
}  # fmt: skip


@pytest.mark.parametrize("line", GIVEN)
def test_variables_and_options_of_the_user_win(line):
    variables, expected = GIVEN[line]
    check(training(*line.split(), **variables), expected)


CHOICES = "give lgp, lgp_plus or parser; no other one learns a graph"
# arguments, variables, what is said; each with exit status 2, before anything is run
REFUSED = [
    ("train", {}, "give a recipe: aspec "),
    ("fly nc11", {}, "give a verb: prepare "),
    ("train nc12 pascal", {}, "give a recipe: "),
    ("graph nc11", {}, "recipe.sh graph nc11: this recipe does not graph"),
    *[(f"{verb} {n} pascall", {}, "system pascall: choose among") for n in RECIPES for verb in ("train", "evaluate")],
    ("train lgp", {}, "give a system: seq lgp lgp_plus seq_plus dep dep_plus uni uni_plus"),
    ("average lgp", {}, "give a system: seq"),
    ("graph lgp", {}, CHOICES),
    *[(f"graph {name} {system}", {}, CHOICES) for name in ("lgp", "aspec") for system in ("seq", "dep_plus", "uni")],
    *[(f"evaluate {name} {system} test3", {}, "split test3: choose among valid test") for name, system in (
        ("nc11", "pascal"), ("wmt17", "sa_nmt"), ("wmt14", "sdatt"), ("lgp", "seq"), ("aspec", "seq"),
        ("sdatt", "sdatt"), ("sa_nmt", "sa_nmt"), ("multi30k", "pascal"), ("latent_tree", "latent"))],
    ("trees latent_tree latent bogus", {}, "split bogus: choose among"),
    ("trees latent_tree lstm", {}, "lstm builds no trees"),
    ("trees latent_tree bogus", {}, "system bogus: choose among"),
    ("trees sa_nmt bogus", {}, "system bogus: choose among"),
    ("compare sdatt bogus", {}, "split bogus: choose among"),
    ("prepare nc11 bogus", {}, "choose text, parse [SHARD] or binarize; nothing does all three"),
    ("prepare wmt17 bogus", {}, "choose text or binarize; nothing does both"),
    ("prepare lgp bogus", {}, "choose text, trees or binarize; nothing does all three"),
    ("prepare lgp", {"PARSES": "some"}, "PARSES=some: choose given, own or none"),
    *[("prepare aspec", {"SIZE": size}, "give the folder of the corpus, DATA=…") for size in ("small", "large")],
    ("prepare wmt17", {"TARGET": "fr"}, "SOURCE=en TARGET=fr: choose en and de, or en and ru"),
    ("train nc11 pascal", {"TARGET": "fr"}, "SOURCE=en TARGET=fr: choose"),
    ("train nc11 pascal", {"GPUS": "3"}, "are not BATCH=8192 tokens an update"),
    ("train wmt17 sa_nmt", {"GPUS": "3"}, "BATCH_SIZE=32 sentences cannot be shared equally by GPUS=3"),
    ("train wmt14 sdatt", {"GPUS": "3"}, "BATCH_SIZE=80 sentences cannot be shared equally by GPUS=3"),
    *[(f"train {name} bogus", {"SIZE": "huge"}, "SIZE=huge: choose")
      for name in ("multi30k", "sa_nmt", "sdatt", "latent_tree", "lgp", "aspec")],
    *[(f"train {name} seq", {"CRITERION": "hinge"}, "CRITERION=hinge: choose") for name in ("lgp", "aspec")],
    *[(f"train {name} seq_plus", {"PARSER_PARTS": "words"}, "PARSER_PARTS=words: choose") for name in ("lgp", "aspec")],
    *[(f"evaluate {name} lgp", {"PRIOR": "on"}, "PRIOR=on: choose raw, auto or off") for name in ("lgp", "aspec")],
]  # fmt: skip


@pytest.mark.parametrize(("line", "variables", "said"), REFUSED)
def test_what_does_not_exist_is_refused(line, variables, said):
    done = shell("recipe.sh", *line.split(), DRY_RUN="1", **variables)
    assert done.returncode == 2 and said in done.stderr and "+ " not in done.stderr, done.stderr


def test_what_is_missing_is_named_with_its_step(tmp_path):
    def refusal(line, **variables):
        done = shell("recipe.sh", *line.split(), OUT=str(tmp_path / "out"), MULTI30K=str(tmp_path / "m"), **variables)
        assert done.returncode == 1 and "\n+ " not in f"\n{done.stderr}"
        (said,) = done.stderr.splitlines()
        return said

    work = tmp_path / "out" / "10000"
    best = work / "checkpoints" / "lgp-1" / "checkpoint_best.pt"
    assert refusal("train lgp lgp") == f"recipe.sh train lgp: {work}/data-bin is not there: prepare lgp first"
    assert refusal("pretrain lgp").endswith("dict.en.txt is not there: prepare lgp first, or its step text")
    for verb in ("evaluate", "graph"):
        assert refusal(f"{verb} lgp lgp") == f"recipe.sh {verb} lgp: {best} is not there: train lgp first"
    assert refusal("average lgp lgp").endswith("lgp-1 is not there: train lgp first")
    assert "evaluate seq and another system first" in refusal("compare lgp")
    assert refusal("train sdatt sdatt").endswith("run bash examples/recipe.sh prepare sdatt, or set MULTI30K")
    assert refusal("evaluate sdatt sdatt").endswith("checkpoint_best.pt is not there: train it first")
    assert "give the folder of the corpus, CORPUS=…" in refusal("prepare pascal_wat text")
    assert not (tmp_path / "out").exists()
    touch(work / "data-bin", "x")
    touch(best.parent, best.name)
    parser = (
        f"{work}/checkpoints/parser-500-1/checkpoint_last.pt is not there: pretrain lgp first, with the same FIRST_K"
    )
    for line in ("train lgp lgp_plus", "train lgp seq_plus", "graph lgp parser"):
        assert refusal(line, FIRST_K="500").endswith(parser)
    assert refusal("evaluate lgp lgp", AVERAGED="1").endswith("average.pt is not there: average lgp lgp first")


def test_scripts_without_an_environment_say_so(tmp_path):
    done = shell("sdatt/quick.sh", PATH="/usr/bin:/bin", OUT=str(tmp_path / "out"))
    assert done.returncode == 1 and "no fairseq-train; activate the environment first" in done.stderr
    assert not (tmp_path / "out").exists()


# --- one budget -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "systems", "own"),
    [
        ("sdatt", "global_att local_att flexible_att chen17 sdatt global_plus_chen17 global_plus_sdatt",
         ("arch", "sdatt_attention", "sdatt_double_context", "sdatt_sdr")),
        ("lgp", "seq lgp lgp_plus seq_plus dep uni uni_plus", ("lgp_graph", "lgp_parser_path", "lgp_parser_parts")),
        ("sa_nmt", "fa_nmt fa_nmt_shared sa_nmt sa_nmt_shared sa_nmt_hard sa_nmt_1set",
         ("arch", "sa_head_selection", "sa_context", "sa_hard_heads")),
    ],
)  # fmt: skip
def test_all_systems_of_a_recipe_have_one_budget(name, systems, own):
    first, *others = [settings_of(training(name, system), (*own, *FILES)) for system in systems.split()]
    assert all(other == first for other in others)


@pytest.mark.parametrize(
    ("line", "systems", "own"),
    [
        ("bash examples/quickstart.sh", 2, None),
        ("bash examples/sa_nmt/quick.sh", 2, ("sa_head_selection", "sa_context", "sa_hard_heads")),
        ("bash examples/sdatt/quick.sh", 4, ("sdatt_attention", "sdatt_double_context", "sdatt_guide")),
        ("bash examples/latent_tree/quick.sh", 2, None),
    ],
)
def test_all_systems_of_a_quick_run_have_one_budget(line, systems, own):
    commands = [shlex.split(command.split(" > ")[0]) for command in golden(GOLDEN / "quick.txt")[line]]
    trained = [parsed(command) for command in commands if command[0] == "fairseq-train"]
    budget = ("data", "batch_size", "max_tokens", "max_update", "lr", "seed", "optimizer", "clip_norm")
    kept = [settings_of(a, ("arch", *FILES, *own)) if own else {n: getattr(a, n) for n in budget} for a in trained]
    assert len(kept) == systems and all(other == kept[0] for other in kept[1:])
    translated = [parse(command) for command in commands if command[0] == "fairseq-generate"]
    assert {Path(args.path).parent for args in translated} == {Path(args.save_dir) for args in trained}
    assert {args.data for args in translated} == {args.data for args in trained}


def test_options_of_a_quick_run_go_to_all_its_trainings():
    for script, option, count in (
        ("sdatt/quick.sh", "--sdatt-combine add", 4),
        ("latent_tree/quick.sh", "--lr 1e-2", 2),
    ):
        commands = dry_run(script, *option.split(), UPDATES="5")
        trained = [command for command in commands if command.startswith("fairseq-train ")]
        assert len(trained) == count
        assert all(command.endswith(option) and "--max-update 5 " in command for command in trained)


@pytest.mark.parametrize(("size", "there"), [("cpu", "cpu"), ("paper", "gpu")])
@pytest.mark.parametrize("system", ["transformer", "sdatt_transformer", "dasa_transformer"])
def test_transformers_are_trained_as_in_multi30k(system, size, there):
    here = training("sdatt", system, SIZE=size)
    but = (*FILES, "max_epoch")
    assert settings_of(here, but) == settings_of(training("multi30k", system, SIZE=there), but)
    assert here.max_epoch == training("sdatt", "sdatt", SIZE=size).max_epoch


# --- text, trees and data ---------------------------------------------------------------------------------------------


def test_data_of_multi30k_serve_syntax_directed_attention_and_are_not_made_again(tmp_path):
    assert dry_run("recipe.sh", "prepare", "sdatt") == dry_run("recipe.sh", "prepare", "multi30k")
    (tmp_path / "data-bin").mkdir()
    (tmp_path / "data-bin" / "syntax-en-de.json").write_text("{}")
    assert recipe("prepare", "sdatt", MULTI30K=str(tmp_path)) == []
    assert recipe("prepare", "sdatt", MULTI30K=str(tmp_path), SOURCE="de", TARGET="en") != []


def test_several_test_sets():
    sets = {"TEST_SET": "wmt16 wmt17 wmt18", "SOURCE": "de", "TARGET": "en"}
    prepared = recipe("prepare", "nc11", **sets)
    echoed = [(command[2], command[4], command[6]) for command in prepared if command[0] == "sacrebleu"]
    assert set(echoed) == {(f"wmt{year}", "de-en", side) for year in (15, 16, 17, 18) for side in ("src", "ref")}
    (trees,) = [parse(command) for command in prepared if command[0] == "fairseq-syntax preprocess"]
    assert [Path(prefix).name for prefix in trees.testpref.split(",")] == ["test", "test1", "test2"]
    texts = [command[2] for command in prepared if command[0] == "fairseq-syntax parse"]
    assert [Path(text).name for text in texts] == ["train.de", "valid.de", "test.de", "test1.de", "test2.de"]
    commands = recipe("evaluate", "nc11", "pascal", "test2", **sets)
    assert parse(commands[0]).gen_subset == "test2" and commands[-1][:3] == ["sacrebleu", "-t", "wmt18"]
    for split, there in (("valid", "wmt15"), ("test", "wmt16"), ("test1", "wmt17")):
        commands = recipe("evaluate", "wmt17", "sa_nmt", split)
        assert [c[2] for c in commands if c[:2] == ["sacrebleu", "-t"]] == [there]
    for split, there in (("valid", "wmt12"), ("test", "wmt13"), ("test1", "wmt14/full"), ("test2", "wmt15")):
        cased, lowercased = [c for c in recipe("evaluate", "wmt14", "sdatt", split) if c[0] == "sacrebleu"]
        assert lowercased == [*cased, "--lowercase"] and cased[2] == there


def test_shards_are_parsed_once_each_and_joined_in_order():
    steps = [recipe("prepare", "nc11", "parse", str(i), SHARDS="3") for i in range(3)]
    shards = [[c for c in step if "train" in c[2]] for step in steps]
    assert [parse(command).shard for (command,) in shards] == [(0, 3), (1, 3), (2, 3)]
    assert [len(step) for step in steps] == [3, 1, 1], "the first shard also has valid and test"
    joined = [c for c in recipe("prepare", "nc11", "binarize", SHARDS="3") if c[0] == "cat"]
    assert joined == [["cat", *(parse(command).output for (command,) in shards)]]


def test_trees_of_the_large_recipe_are_looked_at_by_the_small_one():
    """README of wmt17: OUT=outputs/wmt17 SIZE=paper LOWERCASE= bash examples/recipe.sh trees sa_nmt …"""
    variables = {"OUT": "outputs/wmt17", "SIZE": "paper", "LOWERCASE": "", "UD_EN": "ud.conllu"}
    attachment, *_ = ours(recipe("trees", "sa_nmt", "sa_nmt", **variables))
    args, trained = parse(attachment), training("wmt17", "sa_nmt")
    assert (args.data, Path(args.path).parent) == (trained.data, Path(trained.save_dir))
    assert (args.lowercase, args.cpu) == (False, False)
    codes = {c[3] for c in recipe("prepare", "wmt17") if c[:2] == ["subword-nmt", "apply-bpe"]}
    assert args.bpe_codes in codes


@pytest.mark.parametrize(("source", "target"), [("en", "de"), ("de", "en")])
def test_trees_are_compared_with_the_treebank_of_the_source(source, target):
    variables = {"SOURCE": source, "TARGET": target, "UD_EN": "ud/en.conllu", "UD_DE": "ud/de.conllu.gz"}
    commands = ours(recipe("trees", "sa_nmt", "sa_nmt", **variables))
    trained = training("sa_nmt", "sa_nmt", SOURCE=source, TARGET=target)
    for command in commands:
        args = parse(command)
        assert (args.data, Path(args.path).parent, args.cpu) == (trained.data, Path(trained.save_dir), True)
    for args in map(parse, commands[:3]):
        assert (args.bpe, args.lowercase, args.bpe_codes) == ("subword_nmt", True, f"outputs/sa_nmt/bpe.codes.{source}")
        assert args.collapse_ranges == (source == "de"), "German text has im, its treebank in and dem"
    assert all(variables[f"UD_{source.upper()}"] in command for command in commands[:3])
    without = ours(recipe("trees", "sa_nmt", "sa_nmt", SOURCE=source, TARGET=target))
    assert without == commands[3:]


def test_what_looks_at_latent_trees_of_text_and_graphs_is_of_the_trained_system():
    stats, draw = map(parse, ours(recipe("trees", "latent_tree", "latent", "valid", IDS="5 7")))
    translated = generation("latent_tree", "latent", "valid")
    assert stats.trees == draw.trees == translated.rnng_tree_output
    assert (translated.gen_subset, draw.sentence) == ("valid", [5, 7])
    for name in ("lgp", "aspec"):
        for system in ("lgp", "lgp_plus", "parser"):
            step = ["pretrain", name] if system == "parser" else ["train", name, system]
            trained = parse(recipe(*step)[-1])
            for args in map(parse, ours(recipe("graph", name, system))):
                assert Path(args.path).parent == Path(trained.save_dir) and args.data == trained.data
                assert str(args.decoder) == "eisner" and args.lowercase == (name == "lgp")


ASPEC_FILES = ("train/train-1.txt", "train/train-2.txt", "dev/dev.txt", "devtest/devtest.txt", "test/test.txt")
TANAKA_FILES = [f"{split}.{language}.gz" for split in ("train", "dev", "test") for language in ("en", "ja")]


@pytest.mark.parametrize("name", ["lgp", "aspec"])
@pytest.mark.parametrize("parses", ["own", "none"])
def test_data_of_latent_graphs_are_accepted(tmp_path, name, parses):
    data = touch(tmp_path, *ASPEC_FILES) if name == "aspec" else {}
    commands = recipe("prepare", name, PARSES=parses, **data)
    programs = [command[0].removeprefix("fairseq-").removeprefix("syntax ") for command in ours(commands)]
    splits = ["valid", "test", "test1"][: 3 if name == "aspec" else 2]
    parsing = ["train", *["parse"] * (1 + len(splits))] if parses == "own" else []
    assert programs == ["dictionary", *parsing, "preprocess", "length-prior", "length-prior"]
    (binarize,) = [command for command in ours(commands) if command[0].endswith("preprocess")]
    assert (binarize[0] == "fairseq-preprocess") == (parses == "none")
    dictionary, *_, binarized, prior, raw = map(parse, ours(commands))
    # an open dictionary: words of all texts, and the spelling of rare ones
    texts = [Path(file).name for file in (*dictionary.train, *dictionary.extra)]
    assert texts == [f"{split}.en" for split in ("train", *splits)]
    assert binarized.srcdict == dictionary.output and not binarized.joined_dictionary
    assert (binarized.thresholdsrc, binarized.thresholdtgt) == (0, 2)
    assert [Path(file).name for file in binarized.testpref.split(",")] == splits[1:]
    assert prior.data == raw.data == binarized.destdir
    # plain counts, as in the paper: a length that was not seen with that of the source has no probability
    assert (raw.smoothing, raw.unseen, raw.bin, prior.smoothing, prior.output) == ("raw", "author", 1, "kernel", None)
    if parses == "own":
        parser, *trees = map(parse, ours(commands)[1:-3])
        for args, split in zip(trees, ("train", *splits), strict=True):
            assert Path(args.input) == Path(dictionary.train[0]).parent / f"{split}.en"
            assert Path(args.parser_model) == Path(parser.save_dir) / "checkpoint_last.pt"
            assert ["cp", args.output, f"{args.input}.conllu"] in commands
        # the paper's parser for DEP has learned from all
        assert parser.lgp_first_k == (None if name == "aspec" else 10_000) and parser.lgp_mt_dict == dictionary.output
    fetched = [Path(command[-1]).name for command in commands if command[0] == "curl"]
    assert fetched[-2:] == ["en_ewt-ud-train.conllu", "en_ewt-ud-dev.conllu"]
    assert len(fetched) == (2 if name == "aspec" else 8)


@pytest.mark.parametrize("pairs", ["300", "all"])
def test_local_copies_of_text_trees_and_treebank_are_taken(tmp_path, pairs):
    trees = [f"{split}.en.conllu.gz" for split in ("train", "dev", "test")]
    data = touch(tmp_path / "tanaka", *TANAKA_FILES, *trees)
    touch(tmp_path / "ud", "en_ewt.train.conllu.gz", "en_ewt-ud-dev.conllu")
    commands = recipe("prepare", "lgp", PAIRS=pairs, UD=str(tmp_path / "ud"), **data)
    assert not [command for command in commands if command[0] == "curl"]
    assert "fairseq-syntax parse" not in {command[0] for command in commands}, "trees are given"
    unpacked = {Path(command[-1]).name for command in commands if command[0] == "gzip"}
    assert unpacked == {*TANAKA_FILES, *trees, "en_ewt.train.conllu.gz", "en_ewt-ud-dev.conllu"}
    cut = [command[-1] for command in commands if command[0] in ("head", "awk")]
    full = [f"outputs/lgp/full/{name}" for name in ("train.en", "train.ja", "train.en.conllu")]
    assert cut == ([] if pairs == "all" else full)
    assert "fairseq-syntax parse" in {command[0] for command in recipe("prepare", "lgp", PARSES="own", **data)}


@pytest.mark.parametrize("splits", ["plain", "packed"])
def test_local_copies_of_characters_are_taken(tmp_path, splits):
    more = ".gz" * (splits == "packed")
    names = ("train", "val", "test_2016_flickr", "test_2017_flickr")
    data = touch(tmp_path, *(f"{name}.{language}{more}" for name in names for language in ("de", "en")))
    commands = recipe("prepare", "latent_tree", **data)
    assert not [command for command in commands if command[0] == "curl"]
    unpacked = [command[-1] for command in commands if command[0] == "gzip"]
    assert len(unpacked) == 8 and all(path.startswith(str(tmp_path)) and path.endswith(more) for path in unpacked)


@pytest.mark.parametrize(
    ("size", "pairs", "threshold"), [("small", "20000", 2), ("medium", "100000", 2), ("large", None, 5)]
)
def test_data_of_aspec_are_those_of_the_paper(tmp_path, size, pairs, threshold):
    commands = recipe("prepare", "aspec", SIZE=size, **touch(tmp_path, *ASPEC_FILES))
    (clean,) = [command for command in commands if "clean" in command]
    assert clean[clean.index("--max-words") + 1] == clean[clean.index("--max-ratio") + 1] == "50"
    extracted = [command for command in commands if command[0] == "awk" and command[-1].endswith("train-2.txt")]
    assert len(extracted) == 2 and all("NR <= 1500000 " in command[3] for command in extracted)
    assert {command[3].split("print ")[1] for command in extracted} == {"$NF }", "$(NF - 1) }"}
    cut = [command[:3] for command in commands if command[0] == "head"]
    assert cut == ([] if pairs is None else [["head", "-n", pairs]] * 2)
    (binarize,) = [command for command in ours(commands) if command[0].endswith("preprocess")]
    assert parse(binarize).thresholdtgt == threshold
    assert (binarize[0] == "fairseq-preprocess") == (size == "large"), "the paper has no DEP of this size"
    assert sum(command[0] == "kytea" for command in commands) == 4


def run(line: str, **variables) -> None:
    done = shell("recipe.sh", *line.split(), **{key: str(value) for key, value in variables.items()})
    assert done.returncode == 0, done.stderr[-1000:]


def test_first_pairs_and_their_trees_are_taken(tmp_path):
    """Text and trees are really cut, up to the dictionary."""
    data, treebank, out = tmp_path / "data", tmp_path / "treebank", tmp_path / "out"
    trees = "".join(f"# text = {word}\n1\t{word}\t_\tX\t_\t_\t0\troot\t_\t_\n\n" for word in "abc")
    data.mkdir()
    for split in ("train", "dev", "test"):
        for language in ("en", "ja"):
            (data / f"{split}.{language}").write_text("a\nb\nc\n")
        (data / f"{split}.en.conllu.gz").write_bytes(gzip.compress(trees.encode()))
    treebank.mkdir()
    for split in ("train", "valid"):
        (treebank / f"{split}.conllu").write_text(trees)
    for step in ("text", "trees"):
        run(f"prepare lgp {step}", DATA=data, OUT=out, TREEBANK=treebank, PAIRS=2)
    text = out / "2" / "text"
    assert (text / "train.en").read_text() == (text / "train.ja").read_text() == "a\nb\n"
    assert (text / "valid.en").read_text() == (text / "test.ja").read_text() == "a\nb\nc\n"
    assert (text / "train.en.conllu").read_text() == trees[: trees.index("# text = c")]
    assert (text / "test.en.conllu").read_text() == trees


def test_text_of_aspec_is_read_from_its_fields(tmp_path):
    """Up to the dictionary, with commands that leave the text as it is."""
    data, out, treebank = tmp_path / "aspec", tmp_path / "out", tmp_path / "treebank"
    touch(data, *ASPEC_FILES)
    for part in (1, 2):
        lines = [f"0.9 ||| A-{part} ||| {n} ||| 本 {part}{n} ||| word {part}{n}\n" for n in range(3)]
        (data / "train" / f"train-{part}.txt").write_text("".join(lines))
    for split in ("dev", "devtest", "test"):
        (data / split / f"{split}.txt").write_text(f"A ||| 1 ||| 本 {split} ||| word {split}\n")
    treebank.mkdir()
    for split in ("train", "valid"):
        (treebank / f"{split}.conllu").write_text("1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n")
    sizes = {"FIRST_PAIRS": 5, "PAIRS": 4, "WORKERS": 1, "TOKENIZE_EN": "cat", "SEGMENT_JA": "cat"}
    run("prepare aspec text", DATA=data, OUT=out, TREEBANK=treebank, **sizes)
    text = out / "small" / "text"
    assert (text / "train.en").read_text() == "word 10\nword 11\nword 12\nword 20\n"
    assert (text / "train.ja").read_text() == "本 10\n本 11\n本 12\n本 20\n"
    for split, there in (("valid", "dev"), ("test", "test"), ("test1", "devtest")):
        assert (text / f"{split}.en").read_text() == f"word {there}\n"
    assert len((out / "full" / "kept.en").read_text().splitlines()) == 5


def test_all_parts_of_aspec_are_read_for_pascal(tmp_path):
    """Up to the words, with commands that leave the text as it is."""
    corpus, out = tmp_path / "ASPEC-JE", tmp_path / "out"
    for split in ("train", "dev", "test"):
        (corpus / split).mkdir(parents=True)
        (corpus / split / f"{split}.txt").write_text(f"A ||| 1 ||| 本 {split} ||| word {split}\n")
    for part in (1, 2, 3):
        line = f"0.9 ||| A-{part} ||| 1 ||| 本 {part} ||| word {part}\n"
        (corpus / "train" / f"train-{part}.txt").write_text(line + " ||| 0 ||| 1 |||  ||| no Japanese\n")
    run("prepare pascal_wat text", CORPUS=corpus, OUT=out, TOKENIZE_en="cat", TOKENIZE_ja="cat", WORKERS=1)
    assert (out / "text" / "train.en").read_text() == "word 1\nword 2\nword 3\n"
    assert (out / "text" / "train.ja").read_text() == "本 1\n本 2\n本 3\n"
    assert [(out / "text" / f"{name}.en").read_text() for name in ("valid", "test")] == ["word dev\n", "word test\n"]


# --- translations and comparisons -------------------------------------------------------------------------------------


def test_comparison_takes_what_has_been_evaluated(tmp_path):
    for system, line in {"global_att": "a b c d", "sdatt": "a b c d e", "dasa_transformer": "a"}.items():
        (tmp_path / f"{system}-1.test.generated").write_text(f"S-0\tx y\nT-0\ta b c d e\nH-0\t-1.0\t{line}\n")
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "test.en").write_text("x y\n")
    (tmp_path / "text" / "test.de").write_text("a b c d e\n")
    done = shell("recipe.sh", "compare", "sdatt", OUT=str(tmp_path), MULTI30K=str(tmp_path))
    assert done.returncode == 0, done.stderr[-1000:]
    assert re.search(r"^sdatt +100\.00 ", done.stdout, re.MULTILINE) and "dasa_transformer" not in done.stdout
    assert f"evaluate transformer and another system first (in {tmp_path}: dasa_transformer)" in done.stderr
    assert (tmp_path / "recurrent-1.test.txt").is_file() and (tmp_path / "recurrent-1.test.svg").is_file()
    (tmp_path / "sdatt-1.test.generated").unlink()
    assert shell("recipe.sh", "compare", "sdatt", OUT=str(tmp_path), MULTI30K=str(tmp_path)).returncode == 1


@pytest.mark.parametrize("system", ["lgp", "dep"])
def test_unknown_words_are_copied_by_the_program_that_can(system):
    translate, _ = ours(recipe("evaluate", "aspec", system, COPY_UNKNOWN="1", PRIOR="off"))
    args = parse(translate)
    assert translate[0] == "fairseq-interactive" and args.replace_unk == "" and args.length_prior == "off"
    assert Path(args.input).name == "test.en" and args.buffer_size >= args.batch_size > 1
    assert args.parser_model == (f"{args.input}.conllu" if system == "dep" else None)
    assert str(args.parser) == ("conllu" if system == "dep" else "stanza")


def test_translations_made_otherwise_have_other_names():
    made = [{}, {"AVERAGED": "1"}, {"PRIOR": "auto"}, {"PRIOR": "raw"}, {"COPY_UNKNOWN": "1"}, {"SEED": "2"}]
    scored = []
    for variables in made:
        (score,) = [command for command in recipe("evaluate", "lgp", "seq", **variables) if command[0] == "sacrebleu"]
        hypotheses = score[score.index("--input") + 1]
        (compared,) = map(parse, recipe("compare", "lgp", **variables))
        assert compared.baseline == hypotheses.replace(".hypotheses", ".generated"), "compared is what was evaluated"
        scored += [hypotheses, compared.draw]
    assert len(set(scored)) == 2 * len(made)


def test_another_parser_makes_another_system():
    """Its checkpoints would be gone on with otherwise, and its translations compared as if they were the first's."""
    names = {
        **{"10000-1-1": {}, "1000-1-1": {"FIRST_K": "1000"}, "10000-2-1": {"PARSER_SEED": "2"}},
        **{"own-1": {"PARSER": "mine/own/checkpoint_last.pt"}, "tables-10000-1-1": {"PARSER_PARTS": "tables"}},
        "lstms-10000-1-1": {"PARSER_PARTS": "lstms"},
    }
    for name, variables in names.items():
        args = training("lgp", "lgp_plus", **variables)
        assert args.save_dir == f"outputs/lgp/10000/checkpoints/lgp_plus-{name}"
        assert generation("lgp", "lgp_plus", **variables).path == f"{args.save_dir}/checkpoint_best.pt"
        assert args.lgp_parser_parts == variables.get("PARSER_PARTS", "all")
        # the others start from scratch, as always
        plain = training("lgp", "lgp", **variables)
        assert (plain.lgp_parser_path, Path(plain.save_dir).name) == (None, "lgp-1")


def test_checkpoints_of_a_system_are_averaged_for_its_translations():
    for name in ("lgp", "aspec"):
        (average,) = map(parse, ours(recipe("average", name, "lgp_plus")))
        trained = training(name, "lgp_plus")
        assert (average.input, average.select_on, average.data) == ([trained.save_dir], "valid", trained.data)
        assert generation(name, "lgp_plus", AVERAGED="1").path == average.output


# --- text of the WMT recipes ------------------------------------------------------------------------------------------


def wmt_text(*arguments: str, **keywords) -> subprocess.CompletedProcess:
    command = [sys.executable, str(EXAMPLES / "wmt_text.py"), *arguments, "--workers", "1"]
    return subprocess.run(command, capture_output=True, timeout=60, **keywords)


def test_cleaning_keeps_pairs_together_and_in_order(tmp_path):
    pairs = [
        ("one two", "eins zwei"),
        ("", "leer"),
        ("w " * 81, "zu lang"),
        ("w " * 80, "v " * 80),
        ("a", "z " * 10),  # more than nine times as long
        ("a", "z " * 9),
        ("line\u2028sep\u00a0nbsp\rcr", "zeile zwei drei"),
    ]
    for language, side in (("en", 0), ("de", 1)):
        (tmp_path / f"all.{language}").write_bytes("".join(f"{pair[side]}\n" for pair in pairs).encode())
    languages = ("--source-lang", "en", "--target-lang", "de")
    done = wmt_text("clean", "--input", str(tmp_path / "all"), "--output", str(tmp_path / "train"), *languages)
    assert done.returncode == 0, done.stderr
    kept = [pairs[0], pairs[3], pairs[5], ("line sep nbsp cr", "zeile zwei drei")]
    for language, side in (("en", 0), ("de", 1)):
        lines = (tmp_path / f"train.{language}").read_bytes().decode().split("\n")
        assert lines == [" ".join(pair[side].split()) for pair in kept] + [""]
    assert b"kept 4 of 7" in done.stderr


def test_cleaning_refuses_texts_of_different_length(tmp_path):
    (tmp_path / "all.en").write_text("a\nb\n")
    (tmp_path / "all.de").write_text("a\n")
    languages = ("--source-lang", "en", "--target-lang", "de")
    done = wmt_text("clean", "--input", str(tmp_path / "all"), "--output", str(tmp_path / "train"), *languages)
    assert done.returncode == 1 and b"differ in length after 1" in done.stderr
    assert not (tmp_path / "train.en").exists()


def test_tokens_are_words_not_escapes():
    pytest.importorskip("sacremoses", reason="the WMT recipes need sacremoses; it is no requirement of the package")
    text = "Rock & Roll [is] <here>, isn't it?\n"
    tokens = wmt_text("tokenize", "--language", "en", input=text.encode()).stdout
    assert b"&amp;" not in tokens and b"Rock & Roll" in tokens and b"<" in tokens
    assert wmt_text("detokenize", "--language", "en", input=tokens).stdout.decode().startswith("Rock & Roll [is]")

"""The recipes: they are sound shell, and what they would run is accepted and is what the paper did."""

import gzip
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from contract.command_lines import REPOSITORY, console_scripts, parse
from fairseq import options
from omegaconf import OmegaConf

from fairseq_syntax.options import fill_defaults
from fairseq_syntax.systems.lgp.model import LatentGraphOptions
from fairseq_syntax.systems.pascal.model import PascalOptions
from fairseq_syntax.systems.sa_nmt.model import SyntaxAttentionOptions
from fairseq_syntax.systems.sdatt.model import SyntaxDirectedOptions

EXAMPLES = REPOSITORY / "examples"
SCRIPTS = sorted(EXAMPLES.rglob("*.sh"))
SYSTEMS = ("transformer", "pascal", "lisa", "tag", "multitask", "sdatt_transformer", "dasa_transformer")
DIRECTIONS = {
    "multi30k": [("en", "de")],
    "nc11": [("en", "de"), ("de", "en")],
    "wmt16": [("en", "de")],
    "pascal_wmt17": [("en", "de")],
    "pascal_wmt18": [("en", "tr")],
    "pascal_wat": [("en", "ja")],
}
RECIPES = [(recipe, pair) for recipe, pairs in DIRECTIONS.items() for pair in pairs]

# specs: the table of settings; heads, parent ignoring, dropout, beta 2, updates, merges
PAPER = {
    ("nc11", ("en", "de")): (2, 0.4, 0.3, 0.997, 20_000, 16_000),
    ("nc11", ("de", "en")): (8, 0.0, 0.3, 0.997, 20_000, 16_000),
    ("wmt16", ("en", "de")): (5, 0.0, 0.1, 0.98, 100_000, 32_000),
    ("pascal_wmt17", ("en", "de")): (7, 0.3, 0.1, 0.997, 100_000, 32_000),
    ("pascal_wmt18", ("en", "tr")): (7, 0.3, 0.3, 0.98, 20_000, 16_000),
    ("pascal_wat", ("en", "ja")): (7, 0.0, 0.1, 0.997, 100_000, 32_000),
}
# learning rate and beta 2 of systems whose are not PASCAL's: the authors' scripts
OTHERS = {
    ("nc11", ("en", "de")): {"transformer": (1e-3, 0.997)},
    ("nc11", ("de", "en")): {"transformer": (1e-3, 0.997), "lisa": (7e-4, 0.98), "multitask": (7e-4, 0.98)},
    ("wmt16", ("en", "de")): dict.fromkeys(("transformer", "tag", "multitask"), (1e-3, 0.997)),
    ("pascal_wmt17", ("en", "de")): dict.fromkeys(("transformer", "tag"), (1e-3, 0.997)),
    ("pascal_wmt18", ("en", "tr")): {
        "transformer": (1e-3, 0.997),
        **dict.fromkeys(("tag", "multitask"), (7e-4, 0.997)),
    },
    ("pascal_wat", ("en", "ja")): {
        **dict.fromkeys(("transformer", "lisa"), (1e-3, 0.997)),
        "multitask": (7e-4, 0.98),
    },
}

# recipes of Tran & Bisk (2018); architecture -> heads, attention to syntax, hard heads (specs: the table of presets)
LATENT_DIRECTIONS = {recipe: [("en", "de"), ("de", "en")] for recipe in ("sa_nmt", "wmt17")}
LATENT_RECIPES = [(recipe, pair) for recipe, pairs in LATENT_DIRECTIONS.items() for pair in pairs]
LATENT_SYSTEMS = {
    "nmt_lstm": None,
    "fa_nmt": ("flat", "separate", False),
    "fa_nmt_shared": ("flat", "shared", False),
    "sa_nmt": ("tree", "separate", False),
    "sa_nmt_shared": ("tree", "shared", False),
    "sa_nmt_hard": ("tree", "shared", True),
    "sa_nmt_1set": ("tree", "one-set", False),
}

# recipes of Chen et al. (2018); architecture -> attention, double context, dependency units (specs: systems to build)
DIRECTED_SYSTEMS = {
    "global_att": ("global", False, 0),
    "local_att": ("local", False, 0),
    "flexible_att": ("flexible", False, 0),
    "chen17": ("global", False, 1),
    "sdatt": ("sdatt", False, 0),
    "global_plus_local": ("local", True, 0),
    "global_plus_flexible": ("flexible", True, 0),
    "global_plus_chen17": ("global", False, 2),
    "global_plus_sdatt": ("sdatt", True, 0),
}
DIRECTED_TRANSFORMERS = ("transformer", "sdatt_transformer", "dasa_transformer")
DIRECTED_RECIPES = ("sdatt", "wmt14")

# recipes of Hashimoto & Tsuruoka (2017); system -> --lgp-graph
GRAPH_SYSTEMS = {
    **{"seq": "seq", "lgp": "latent", "lgp_plus": "latent", "seq_plus": "seq"},
    **{"dep": "dep", "dep_plus": "dep", "uni": "uni", "uni_plus": "uni"},
}
GRAPH_RECIPES = ("lgp", "aspec")
# size -> d3, training pairs, words' least frequency in source and target, noise words, momentum, epochs before the
# learning rate may fall, beam, sentences of the treebank (specs: the tables of settings)
GRAPH_SIZES = {
    "small": (128, "20000", 2, 2, 2000, 0.75, 5, 12, 10_000),
    "medium": (256, "100000", 2, 2, 2000, 0.75, 5, 12, None),
    "large": (512, None, 3, 5, 2500, 0.70, 0, 50, None),
}


def name(script: Path) -> str:
    return str(script.relative_to(EXAMPLES))


def dry_run(script: Path, *arguments: str, status: int = 0, **variables: str) -> list[list[str]]:
    """The commands that a script would run, split into words, without redirections."""
    inherited = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    environment = {**inherited, "DRY_RUN": "1", **variables}
    done = subprocess.run(
        ["bash", str(script), *arguments], env=environment, capture_output=True, text=True, timeout=60, cwd=REPOSITORY
    )
    assert done.returncode == status, done.stderr[-1000:]
    commands = []
    for line in done.stderr.splitlines():
        if line.startswith("+ "):
            words = shlex.split(line[2:])
            cut = next((i for i, word in enumerate(words) if word in ("<", ">")), len(words))
            commands.append(words[:cut])
    return commands


def recipe_commands(recipe: str, pair: tuple[str, str], script: str, *arguments: str, **variables: str) -> list:
    languages = {"SOURCE": pair[0], "TARGET": pair[1], "OUT": "nowhere/out"}
    return dry_run(EXAMPLES / recipe / f"{script}.sh", *arguments, **{**languages, **variables})


def fairseq_commands(commands: list[list[str]]) -> list[list[str]]:
    return [command for command in commands if command[0].startswith("fairseq-")]


# --- the scripts as text ------------------------------------------------------------------------------------------


def test_scripts_are_found():
    assert len(SCRIPTS) >= 12
    for recipe in (*DIRECTIONS, *LATENT_DIRECTIONS, *DIRECTED_RECIPES, *GRAPH_RECIPES):
        assert {"prepare.sh", "train.sh", "evaluate.sh", "settings.sh"} <= {
            script.name for script in SCRIPTS if script.parent.name == recipe
        }
        assert (EXAMPLES / recipe / "README.md").is_file()


@pytest.mark.parametrize("script", SCRIPTS, ids=name)
def test_syntax(script):
    done = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr


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


@pytest.mark.parametrize("script", SCRIPTS, ids=name)
def test_a_failing_command_stops_the_script(script):
    assert is_strict(script)


@pytest.mark.parametrize("body", ["echo hello\nset -euo pipefail\n", "# nothing\n", "cd x\nsource y\n"])
def test_is_strict_can_say_no(tmp_path, body):
    script = tmp_path / "script.sh"
    script.write_text(f"#!/usr/bin/env bash\n{body}")
    assert not is_strict(script)


ABSOLUTE = re.compile(r"(?<![\w.}/:$*~-])(?:~/|/(?:home|root|work|usr|tmp|opt|data|mnt|scratch|var|Users)\b)")


@pytest.mark.parametrize("script", SCRIPTS, ids=name)
def test_no_absolute_path(script):
    for number, line in enumerate(script.read_text(encoding="utf-8").splitlines()[1:], 2):
        # a placeholder for the reader, in a comment, is one
        assert not ABSOLUTE.search(line.replace("/path/to/", "")), f"{script}:{number}: {line}"


def test_absolute_paths_would_be_found():
    for line in ("cd /home/me/x", 'cat "/data/train.en"', "ls ~/corpus", "OUT=/tmp/x"):
        assert ABSOLUTE.search(line)


# --- what they would run ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("recipe", "pair"), RECIPES)
def test_prepare_is_accepted(recipe, pair):
    commands = recipe_commands(recipe, pair, "prepare")
    ours = fairseq_commands(commands)
    programs = {command[0] for command in ours}
    expected = {"fairseq-syntax-parse", "fairseq-syntax-preprocess", "fairseq-syntax-linearize", "fairseq-preprocess"}
    assert programs == expected
    for command in ours:
        parse(command)
    assert not any("nowhere/out" not in " ".join(command) for command in ours), "something is written elsewhere"
    assert not (REPOSITORY / "nowhere").exists(), "DRY_RUN=1 has made a folder"


@pytest.mark.parametrize(("recipe", "pair"), RECIPES)
@pytest.mark.parametrize("system", SYSTEMS)
def test_train_and_evaluate_are_accepted(recipe, pair, system):
    (train,) = recipe_commands(recipe, pair, "train", system)
    commands = recipe_commands(recipe, pair, "evaluate", system)
    (generate,) = fairseq_commands(commands)
    training, generation = parse(train), parse(generate)
    name_of = {"multitask": "transformer", "pascal": "pascal_transformer", "lisa": "lisa_transformer"}
    arch = {**name_of, "tag": "tag_transformer"}.get(system, system)
    assert training.arch.startswith(f"{arch}_") and training.task == "translation"
    assert (training.source_lang, training.target_lang) == pair
    # what is trained is what is scored
    assert training.data == generation.data
    assert Path(generation.path).parent == Path(training.save_dir)
    # and where preparation puts it
    prepared = {
        parse(command).destdir
        for command in fairseq_commands(recipe_commands(recipe, pair, "prepare"))
        if "preprocess" in command[0]
    }
    assert training.data in prepared
    assert training.data.endswith("-multitask") == (system == "multitask")
    with_heads = training.criterion == "label_smoothed_cross_entropy_with_heads"
    assert with_heads == (system == "lisa")
    assert training.share_all_embeddings
    assert any(command[0] == "sacrebleu" for command in commands)


@pytest.mark.parametrize(("recipe", "pair"), PAPER)
@pytest.mark.parametrize("system", SYSTEMS)
def test_settings_of_the_paper(recipe, pair, system):
    heads, ignoring, dropout, beta2, updates, merges = PAPER[recipe, pair]
    (command,) = recipe_commands(recipe, pair, "train", system)
    args = parse(command)
    assert args.arch.endswith("transformer_wmt_en_de")
    lr, beta2 = OTHERS[recipe, pair].get(system, (7e-4, beta2))
    assert (args.dropout, args.max_update, args.lr) == (dropout, updates, [lr])
    assert args.optimizer == "adam" and re.sub(r"\s", "", args.adam_betas) == f"(0.9,{beta2})"
    assert (args.lr_scheduler, args.warmup_updates) == ("inverse_sqrt", 8000)
    assert args.label_smoothing == 0.1
    assert args.max_tokens == 2048 and args.update_freq == [4] and args.distributed_world_size == 1
    if system == "pascal":
        assert args.encoder_pascal_heads == [heads, 0, 0, 0, 0, 0]
        assert args.parent_ignoring == ignoring
        fill_defaults(args, PascalOptions)
        assert (args.pascal_variance, str(args.pascal_weight_fn)) == (1.0, "normal")
    (generate,) = fairseq_commands(recipe_commands(recipe, pair, "evaluate", system))
    args = parse(generate)
    assert (args.beam, args.lenpen) == (4, 0.6)
    assert Path(args.path).name == "checkpoint_last.pt"
    prepared = recipe_commands(recipe, pair, "prepare")
    (learn,) = [command for command in prepared if command[:2] == ["subword-nmt", "learn-joint-bpe-and-vocab"]]
    assert learn[learn.index("-s") + 1] == str(merges)
    assert [Path(word).name for word in learn if "/train." in word] == [f"train.{each}" for each in sorted(pair)]
    assert [Path(word).name for word in learn if "/vocab." in word] == [f"vocab.{each}" for each in sorted(pair)]
    for command in fairseq_commands(prepared):
        if "preprocess" in command[0]:
            assert parse(command).joined_dictionary


def test_the_file_for_hydra_has_the_settings_of_the_recipe():
    args = parse(*dry_run(EXAMPLES / "multi30k" / "train.sh", "pascal"))
    cfg = OmegaConf.to_container(OmegaConf.load(EXAMPLES / "multi30k" / "hydra" / "pascal.yaml"))
    for group in ("common", "dataset", "model", "criterion", "optimizer", "lr_scheduler", "optimization"):
        for name, value in cfg[group].items():
            if name not in ("_name", "user_dir"):
                assert getattr(args, name) == value, f"{group}.{name}"
    names = [cfg[group]["_name"] for group in ("model", "criterion", "optimizer", "lr_scheduler")]
    assert names == [args.arch, args.criterion, args.optimizer, args.lr_scheduler]


@pytest.mark.parametrize("name", ["LR", "BETA2"])
def test_settings_of_systems_can_be_overridden_together_or_one_by_one(name):
    def value(system, text):
        args = parse(*recipe_commands("nc11", ("en", "de"), "train", system, **{name: text}))
        return args.lr[0] if name == "LR" else json.loads(args.adam_betas.replace("(", "[").replace(")", "]"))[1]

    assert [value(system, "0.5") for system in ("transformer", "pascal")] == [0.5, 0.5]
    assert [value(system, "0.5 lisa=0.25 tag=0.125") for system in ("lisa", "pascal", "tag")] == [0.25, 0.5, 0.125]


def test_texts_of_the_other_tasks():
    """The validation and test sets of the paper, and what is not to be downloaded."""
    for recipe, pair, sets in (
        ("pascal_wmt17", ("en", "de"), {"wmt16", "wmt17"}),
        ("pascal_wmt18", ("en", "tr"), {"wmt16", "wmt17"}),
        ("wmt17", ("en", "ru"), {"wmt16", "wmt17"}),
        ("wmt17", ("ru", "en"), {"wmt16", "wmt17"}),
    ):
        prepared = recipe_commands(recipe, pair, "prepare", "text")
        assert {command[2] for command in prepared if command[0] == "sacrebleu"} == sets
        (cleaned,) = [command for command in prepared if "clean" in command]
        assert cleaned[cleaned.index("--source-lang") + 1 :: 2][:2] == list(pair)
    (prepare, evaluate) = (recipe_commands("pascal_wat", ("en", "ja"), name, *rest) for name, *rest in (
        ("prepare", "text"), ("evaluate", "pascal")))  # fmt: skip
    assert [command[0] for command in prepare].count("mecab") == 3 and not any("curl" in c for c in prepare)
    assert [command[0] for command in evaluate] == ["fairseq-generate", "tr", "kytea", "kytea", "sacrebleu"]
    wrong = {"SOURCE": "en", "TARGET": "fr"}
    dry_run(EXAMPLES / "wmt17" / "prepare.sh", status=2, **wrong)


@pytest.mark.parametrize("pair", [("en", "ru"), ("ru", "en")])
def test_settings_of_the_paper_for_english_and_russian(pair):
    (train,) = recipe_commands("wmt17", pair, "train", "sa_nmt")
    args = parse(train)
    assert 4_500 <= 2_100_000 / args.batch_size / args.epoch_parts <= 5_500, "updates between evaluations"
    prepared = recipe_commands("wmt17", pair, "prepare")
    (binarize,) = fairseq_commands(prepared)
    binarized = parse(binarize)
    assert args.data == binarized.destdir and (args.source_lang, args.target_lang) == pair
    assert {binarized.source_lang, binarized.target_lang} == set(pair)
    assert [Path(prefix).name for prefix in binarized.testpref.split(",")] == ["test"]
    joined = [command[1:] for command in prepared if command[0] == "cat"]
    corpora = ["commoncrawl.ru-en", "news-commentary-v12.ru-en", "corpus.en_ru.1m"]
    assert [[Path(file).stem for file in files] for files in joined] == [corpora, corpora]
    # beside English and German, not on top of them
    folders = {parse(*dry_run(EXAMPLES / "wmt17" / "train.sh", "sa_nmt", TARGET=t)).data for t in ("de", "ru")}
    assert len(folders) == 2


@pytest.mark.parametrize("recipe", ["nc11", "wmt16"])
@pytest.mark.parametrize(("gpus", "max_tokens", "steps"), [(1, 2048, 4), (2, 2048, 2), (4, 2048, 1), (1, 8192, 1)])
def test_an_update_has_as_many_tokens_on_any_machine(recipe, gpus, max_tokens, steps):
    (command,) = recipe_commands(recipe, ("en", "de"), "train", "pascal", GPUS=str(gpus), MAX_TOKENS=str(max_tokens))
    args = parse(command)
    assert args.update_freq == [steps]
    assert args.distributed_world_size * args.max_tokens * steps == 4 * 2048


def test_a_batch_that_cannot_be_made_is_an_error():
    dry_run(EXAMPLES / "nc11" / "train.sh", "pascal", GPUS="3", status=2)


def test_variables_and_options_of_the_user_win():
    (command,) = recipe_commands("nc11", ("en", "de"), "train", "pascal", PARENT_IGNORING="0.2", PASCAL_HEADS="1 2")
    assert parse(command).encoder_pascal_heads == [1, 2] and parse(command).parent_ignoring == 0.2
    (command,) = dry_run(EXAMPLES / "wmt16" / "train.sh", "pascal", "--max-update", "7")
    assert parse(command).max_update == 7


@pytest.mark.parametrize("recipe", [*DIRECTIONS, *LATENT_DIRECTIONS, *DIRECTED_RECIPES, *GRAPH_RECIPES])
@pytest.mark.parametrize("script", ["train", "evaluate"])
def test_unknown_system_is_refused(recipe, script):
    dry_run(EXAMPLES / recipe / f"{script}.sh", "pascall", status=2)


@pytest.mark.parametrize(
    ("recipe", "system"),
    [
        ("nc11", "pascal"),
        ("wmt16", "pascal"),
        ("wmt17", "sa_nmt"),
        ("wmt14", "sdatt"),
        *((r, "seq") for r in GRAPH_RECIPES),
    ],
)
def test_split_that_does_not_exist_is_refused(recipe, system):
    dry_run(EXAMPLES / recipe / "evaluate.sh", system, "test3", status=2)


def test_several_test_sets():
    sets = {"TEST_SET": "wmt16 wmt17 wmt18"}
    prepared = recipe_commands("nc11", ("de", "en"), "prepare", **sets)
    echoed = [(command[2], command[4], command[6]) for command in prepared if command[0] == "sacrebleu"]
    assert set(echoed) == {(f"wmt{year}", "de-en", side) for year in (15, 16, 17, 18) for side in ("src", "ref")}
    (trees,) = [parse(command) for command in prepared if command[0] == "fairseq-syntax-preprocess"]
    assert [Path(prefix).name for prefix in trees.testpref.split(",")] == ["test", "test1", "test2"]
    parsed = [command[2] for command in prepared if command[0] == "fairseq-syntax-parse"]
    assert [Path(text).name for text in parsed] == ["train.de", "valid.de", "test.de", "test1.de", "test2.de"]
    commands = recipe_commands("nc11", ("de", "en"), "evaluate", "pascal", "test2", **sets)
    assert parse(commands[0]).gen_subset == "test2" and commands[-1][:3] == ["sacrebleu", "-t", "wmt18"]


@pytest.mark.parametrize("recipe", ["nc11", "wmt16"])
def test_shards_are_parsed_once_each_and_joined_in_order(recipe):
    steps = [recipe_commands(recipe, ("en", "de"), "prepare", "parse", str(i), SHARDS="3") for i in range(3)]
    shards = [[c for c in step if "train" in c[2]] for step in steps]
    assert [parse(command).shard for (command,) in shards] == [(0, 3), (1, 3), (2, 3)]
    assert [len(step) for step in steps] == [3, 1, 1], "the first shard also has valid and test"
    outputs = [parse(command).output for (command,) in shards]
    joined = [c for c in recipe_commands(recipe, ("en", "de"), "prepare", "binarize", SHARDS="3") if c[0] == "cat"]
    assert joined == [["cat", *outputs]]


# --- latent trees ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("recipe", "pair"), LATENT_RECIPES)
def test_preparation_without_trees_is_accepted(recipe, pair):
    commands = recipe_commands(recipe, pair, "prepare")
    (binarize,) = fairseq_commands(commands)
    args = parse(binarize)
    assert binarize[0] == "fairseq-preprocess" and not args.joined_dictionary
    assert [Path(prefix).name for prefix in args.testpref.split(",")] == ["test", "test1"]
    # one set of codes for each language, learnt from its text
    learnt = [command for command in commands if command[:2] == ["subword-nmt", "learn-bpe"]]
    assert len(learnt) == 2
    applied = [command for command in commands if command[:2] == ["subword-nmt", "apply-bpe"]]
    assert {Path(command[3]).name for command in applied} == {"bpe.codes.en", "bpe.codes.de"}
    assert not any("nowhere/out" not in " ".join(command) for command in fairseq_commands(commands))
    assert not (REPOSITORY / "nowhere").exists(), "DRY_RUN=1 has made a folder"


@pytest.mark.parametrize(("recipe", "pair"), LATENT_RECIPES)
@pytest.mark.parametrize("system", LATENT_SYSTEMS)
def test_latent_training_and_evaluation_are_accepted(recipe, pair, system):
    (train,) = recipe_commands(recipe, pair, "train", system)
    commands = recipe_commands(recipe, pair, "evaluate", system, "test1")
    (generate,) = fairseq_commands(commands)
    training, generation = parse(train), parse(generate)
    assert (training.arch, training.task) == (system, "translation")
    assert (training.source_lang, training.target_lang) == pair == (generation.source_lang, generation.target_lang)
    assert training.data == generation.data
    assert Path(generation.path) == Path(training.save_dir) / "checkpoint_best.pt"
    assert generation.gen_subset == "test1" and generation.beam == 5
    (prepared,) = fairseq_commands(recipe_commands(recipe, pair, "prepare"))
    assert training.data == parse(prepared).destdir
    # what is common to both recipes: Sec. 4.3 of the paper
    assert (training.criterion, training.optimizer, training.lr) == ("cross_entropy", "adam", [1e-3])
    assert training.dropout == 0.3
    assert (training.lr_scheduler, training.lr_shrink) == ("reduce_lr_on_plateau", 0.5)
    assert (training.lr_patience, training.lr_threshold) == (0, 0), "the first evaluation that is no better"
    assert 1e-3 / 2**5 < training.stop_min_lr < 1e-3 / 2**4, "the fifth time ends the training"
    scores = [command for command in commands if command[0] == "sacrebleu"]
    assert any("--tokenize" in command and command[1].endswith(f"test1.{pair[1]}") for command in scores)


@pytest.mark.parametrize("pair", LATENT_DIRECTIONS["wmt17"])
@pytest.mark.parametrize("system", LATENT_SYSTEMS)
def test_settings_of_the_paper_for_latent_trees(pair, system):
    (command,) = recipe_commands("wmt17", pair, "train", system)
    args = parse(command)
    fill_defaults(args, SyntaxAttentionOptions)
    sizes = (args.encoder_embed_dim, 2 * args.encoder_hidden_size, args.decoder_embed_dim, args.decoder_hidden_size)
    assert sizes == (1024, 1024, 1024, 1024)
    assert args.encoder_layers == args.decoder_layers == 2
    assert (args.dropout, args.init_range, args.untied_output) == (0.3, 0.04, False)
    assert (args.batch_size, args.distributed_world_size, args.update_freq) == (32, 1, [1])
    assert 9_500 <= 5_900_000 / args.batch_size / args.epoch_parts <= 10_500, "updates between evaluations"
    assert not args.max_update and not args.max_epoch, "only the learning rate ends the training"
    presets = LATENT_SYSTEMS[system]
    if presets:
        assert (args.head_selection, args.syntax_context, args.hard_heads) == presets
        assert (args.root_scores, args.unscaled_heads, args.punctuation_never_heads) == ("query", False, False)
    prepared = recipe_commands("wmt17", pair, "prepare")
    learnt = [command for command in prepared if command[:2] == ["subword-nmt", "learn-bpe"]]
    assert [command[command.index("-s") + 1] for command in learnt] == ["32000", "32000"]
    (joined,) = [command for command in prepared if command[0] == "cat" and command[1].endswith(pair[0])]
    corpora = ["europarl-v7.de-en", "commoncrawl.de-en", "rapid2016.de-en", "news-commentary-v12.de-en"]
    assert [Path(file).stem for file in joined[1:]] == corpora
    echoed = {command[2] for command in prepared if command[0] == "sacrebleu"}
    assert echoed == {"wmt15", "wmt16", "wmt17"}
    for split, name_there in (("valid", "wmt15"), ("test", "wmt16"), ("test1", "wmt17")):
        commands = recipe_commands("wmt17", pair, "evaluate", system, split)
        assert [c[2] for c in commands if c[:2] == ["sacrebleu", "-t"]] == [name_there]


@pytest.mark.parametrize(("gpus", "batch"), [(1, 32), (2, 16), (4, 8)])
def test_an_update_has_32_sentences_on_any_machine(gpus, batch):
    (command,) = recipe_commands("wmt17", ("en", "de"), "train", "sa_nmt_shared", GPUS=str(gpus))
    args = parse(command)
    assert (args.distributed_world_size, args.batch_size) == (gpus, batch)


def test_sentences_that_cannot_be_shared_are_an_error():
    dry_run(EXAMPLES / "wmt17" / "train.sh", "sa_nmt_shared", GPUS="3", status=2)


@pytest.mark.parametrize("recipe", LATENT_DIRECTIONS)
def test_variables_and_options_of_the_user_win_for_latent_trees(recipe):
    variables = {"BATCH_SIZE": "8", "SEED": "7", "EPOCH_PARTS": "3"}
    (command,) = recipe_commands(recipe, ("en", "de"), "train", "sa_nmt", "--lr", "0.5", "--root-scores", "diagonal",
                                 **variables)  # fmt: skip
    args = parse(command)
    assert (args.batch_size, args.seed, args.lr, args.root_scores) == (8, 7, [0.5], "diagonal")
    assert args.save_dir.endswith("en-de-sa_nmt-7")
    assert args.epoch_parts == (3 if recipe == "wmt17" else 1)
    commands = recipe_commands(recipe, ("en", "de"), "prepare", MERGES="77")
    assert all("77" in command for command in commands if command[:2] == ["subword-nmt", "learn-bpe"])


@pytest.mark.parametrize("pair", LATENT_DIRECTIONS["sa_nmt"])
@pytest.mark.parametrize("system", [system for system in LATENT_SYSTEMS if system != "nmt_lstm"])
def test_what_looks_at_the_trees_is_accepted(pair, system):
    commands = recipe_commands("sa_nmt", pair, "trees", system, UD_EN="ud/en.conllu", UD_DE="ud/de.conllu.gz")
    ours = fairseq_commands(commands)
    programs = [command[0].removeprefix("fairseq-syntax-") for command in ours]
    gates = [] if system == "sa_nmt_1set" else ["gates"]  # which has no gate
    assert programs == ["attachment", "grammar", "trees", "trees", "attention", *gates]
    (train,) = recipe_commands("sa_nmt", pair, "train", system)
    for command in ours:
        args = parse(command)
        assert (args.data, Path(args.path).parent) == (parse(train).data, Path(parse(train).save_dir))
        assert args.cpu
        if getattr(args, "gold", None) or (getattr(args, "output", None) or "").endswith("conllu"):
            assert (args.bpe, args.lowercase) == ("subword_nmt", True)
            assert args.bpe_codes == f"nowhere/out/bpe.codes.{pair[0]}"
            treebank = {"en": "ud/en.conllu", "de": "ud/de.conllu.gz"}[pair[0]]
            assert treebank in command
            assert args.collapse_ranges == (pair[0] == "de"), "German text has im, its treebank in and dem"
    pictures = [parse(command).sentence for command in ours if "--sentence" in command]
    assert len(pictures) == 2 and len(set(pictures)) == 1, "both pictures are of one sentence"
    without = fairseq_commands(recipe_commands("sa_nmt", pair, "trees", system))
    assert without == ours[3:]


def test_trees_of_the_large_recipe_are_where_trees_sh_looks():
    """README of wmt17: OUT=outputs/wmt17 SIZE=paper LOWERCASE= bash examples/sa_nmt/trees.sh"""
    variables = {"SIZE": "paper", "LOWERCASE": "", "UD_EN": "ud.conllu"}
    (attachment, *_) = fairseq_commands(recipe_commands("sa_nmt", ("en", "de"), "trees", "sa_nmt", **variables))
    args = parse(attachment)
    (train,) = recipe_commands("wmt17", ("en", "de"), "train", "sa_nmt")
    assert (args.data, Path(args.path).parent) == (parse(train).data, Path(parse(train).save_dir))
    assert (args.lowercase, args.cpu) == (False, False)
    codes = {c[3] for c in recipe_commands("wmt17", ("en", "de"), "prepare") if c[:2] == ["subword-nmt", "apply-bpe"]}
    assert args.bpe_codes in codes


def test_the_quick_run_is_accepted():
    commands = dry_run(EXAMPLES / "sa_nmt" / "quick.sh", OUT="nowhere/quick", UPDATES="5")
    ours = fairseq_commands(commands)
    trainings = {args.arch: args for args in map(parse, ours) if getattr(args, "arch", None)}
    assert set(trainings) == {"nmt_lstm_tiny", "sa_nmt_shared_tiny"}
    one, other = (vars(args) for args in trainings.values())
    differing = {key for key in one if key in other and one[key] != other[key]}
    assert differing <= {"arch", "save_dir"}, "one budget for both"
    for command in ours:
        args = parse(command)
        if command[0] == "fairseq-generate":
            assert Path(args.path).parent in {Path(training.save_dir) for training in trainings.values()}
    assert sum(command[0] == "fairseq-generate" for command in ours) == 4
    assert {"fairseq-syntax-trees", "fairseq-syntax-attachment", "fairseq-syntax-attention"} <= {c[0] for c in ours}
    assert not (REPOSITORY / "nowhere").exists(), "DRY_RUN=1 has made a folder"


# --- syntax-directed attention --------------------------------------------------------------------------------------


def directed_commands(script: str, *arguments: str, **variables: str) -> list[list[str]]:
    """Of the recipe sdatt, whose data is not in OUT."""
    folders = {"OUT": "nowhere/out", "MULTI30K": "nowhere/multi30k"}
    return dry_run(EXAMPLES / "sdatt" / f"{script}.sh", *arguments, **{**folders, **variables})


def settings_of(args, but: tuple[str, ...]) -> dict:
    return {key: value for key, value in vars(args).items() if key not in but}


FILES = ("save_dir", "log_file")


def test_data_of_syntax_directed_attention_are_those_of_multi30k():
    assert directed_commands("prepare") == recipe_commands("multi30k", ("en", "de"), "prepare", OUT="nowhere/multi30k")
    commands = fairseq_commands(directed_commands("prepare", SIZE="paper"))
    assert parse(commands[-3]).input == "nowhere/multi30k/bpe/test"
    assert not (REPOSITORY / "nowhere").exists(), "DRY_RUN=1 has made a folder"


def test_data_that_are_there_are_not_made_again(tmp_path):
    (tmp_path / "data-bin").mkdir()
    (tmp_path / "data-bin" / "syntax-en-de.json").write_text("{}")
    assert directed_commands("prepare", MULTI30K=str(tmp_path)) == []
    assert directed_commands("prepare", MULTI30K=str(tmp_path), SOURCE="de", TARGET="en") != []


@pytest.mark.parametrize("size", ["cpu", "paper"])
@pytest.mark.parametrize("system", [*DIRECTED_SYSTEMS, *DIRECTED_TRANSFORMERS])
def test_directed_training_and_evaluation_are_accepted(system, size):
    (train,) = fairseq_commands(directed_commands("train", system, SIZE=size))
    commands = directed_commands("evaluate", system, "test1", SIZE=size)
    (generate,) = fairseq_commands(commands)
    training, generation = parse(train), parse(generate)
    preset = f"{system}_iwslt_de_en" if system in DIRECTED_TRANSFORMERS else system
    assert (training.arch, training.task) == (preset, "translation")
    for args in (training, generation):
        assert (args.source_lang, args.target_lang) == ("en", "de")
        assert args.cpu == (size == "cpu")
    prepared = {parse(c).destdir for c in fairseq_commands(directed_commands("prepare")) if "preprocess" in c[0]}
    assert training.data == generation.data == "nowhere/multi30k/data-bin" and training.data in prepared
    assert training.save_dir == f"nowhere/out/checkpoints/{system}-1"
    assert training.log_file == f"nowhere/out/{system}-1.log"
    assert Path(generation.path) == Path(training.save_dir) / "checkpoint_best.pt"
    assert (generation.gen_subset, generation.beam) == ("test1", 5)
    (score,) = [command for command in commands if command[0] == "sacrebleu"]
    assert score[1] == "nowhere/multi30k/text/test1.de" and "none" in score


def test_recurrent_systems_have_one_budget():
    trainings = {s: parse(fairseq_commands(directed_commands("train", s))[0]) for s in DIRECTED_SYSTEMS}
    for args in trainings.values():
        fill_defaults(args, SyntaxDirectedOptions)
    systems = {s: (args.attention, args.double_context, args.sdr) for s, args in trainings.items()}
    assert systems == DIRECTED_SYSTEMS
    but = ("arch", "attention", "double_context", "sdr", *FILES)
    first, *others = [settings_of(args, but) for args in trainings.values()]
    assert all(other == first for other in others)
    args = trainings["sdatt"]
    sizes = (args.encoder_embed_dim, args.encoder_hidden_size, args.decoder_embed_dim, args.decoder_hidden_size)
    assert sizes == (256, 128, 256, 256) and args.share_all_embeddings and args.init_range == 0.08
    assert (args.criterion, args.optimizer, args.clip_norm) == ("cross_entropy", "adam", 1.0)
    assert (args.lr, args.lr_scheduler, args.warmup_updates) == ([2e-3], "inverse_sqrt", 300)
    assert (args.batch_size, args.max_epoch, args.num_workers) == (64, 6, 0)


@pytest.mark.parametrize(("size", "there"), [("cpu", "cpu"), ("paper", "gpu")])
@pytest.mark.parametrize("system", DIRECTED_TRANSFORMERS)
def test_transformers_are_trained_as_in_multi30k(system, size, there):
    (command,) = fairseq_commands(directed_commands("train", system, SIZE=size))
    folder = {"OUT": "nowhere/multi30k", "SIZE": there}
    (same,) = recipe_commands("multi30k", ("en", "de"), "train", system, **folder)
    but = (*FILES, "max_epoch")
    assert settings_of(parse(command), but) == settings_of(parse(same), but)
    recurrent = parse(fairseq_commands(directed_commands("train", "sdatt", SIZE=size))[0])
    assert parse(command).max_epoch == recurrent.max_epoch


@pytest.mark.parametrize("system", ["sdatt", "sdatt_transformer"])
def test_variables_and_options_of_the_user_win_for_directed_systems(system):
    variables = {"SEED": "7", "MAX_EPOCH": "2", "LR": "0.5", "WARMUP": "11"}
    (command,) = fairseq_commands(directed_commands("train", system, "--sdatt-n", "3", **variables))
    args = parse(command)
    assert (args.seed, args.max_epoch, args.lr, args.warmup_updates, args.sdatt_n) == (7, 2, [0.5], 11, 3.0)
    assert args.save_dir.endswith(f"{system}-7") and args.log_file.endswith(f"{system}-7.log")
    dry_run(EXAMPLES / "sdatt" / "train.sh", system, SIZE="large", status=2)


def test_all_systems_are_compared_with_the_baseline_of_their_kind():
    recurrent, transformers = directed_commands("compare", "test1", SEED="3")
    for command, systems in ((recurrent, [*DIRECTED_SYSTEMS]), (transformers, [*DIRECTED_TRANSFORMERS])):
        args = parse(command)
        assert args.names == systems and systems[0] in ("global_att", "transformer")
        outputs = [f"nowhere/out/{system}-3.test1.generated" for system in systems]
        assert [args.baseline, *args.systems] == outputs
        assert (args.reference, args.source) == (["nowhere/multi30k/text/test1.de"], "nowhere/multi30k/text/test1.en")
        assert args.plot.endswith(".svg") and args.tokenize == "none"
    assert parse(recurrent).plot != parse(transformers).plot
    # the paper's dagger: significantly better than Chen et al. (2017)
    assert parse(recurrent).against == ["chen17", "global_plus_chen17"] and not parse(transformers).against


def test_comparison_takes_what_has_been_evaluated(tmp_path):
    lines = {"global_att": "a b c d", "sdatt": "a b c d e", "dasa_transformer": "a"}
    for system, line in lines.items():
        (tmp_path / f"{system}-1.test.generated").write_text(f"S-0\tx y\nT-0\ta b c d e\nH-0\t-1.0\t{line}\n")
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "test.en").write_text("x y\n")
    (tmp_path / "text" / "test.de").write_text("a b c d e\n")
    environment = {**os.environ, "OUT": str(tmp_path), "MULTI30K": str(tmp_path)}

    def compare():
        script = str(EXAMPLES / "sdatt" / "compare.sh")
        return subprocess.run(["bash", script], env=environment, capture_output=True, text=True, timeout=120)

    done = compare()
    assert done.returncode == 0, done.stderr[-1000:]
    assert re.search(r"^sdatt +100\.00 ", done.stdout, re.MULTILINE) and "dasa_transformer" not in done.stdout
    assert f"evaluate transformer and another system first (in {tmp_path}: dasa_transformer)" in done.stderr
    assert (tmp_path / "recurrent-1.test.txt").is_file() and (tmp_path / "recurrent-1.test.svg").is_file()
    (tmp_path / "sdatt-1.test.generated").unlink()
    assert compare().returncode == 1


@pytest.mark.parametrize("recipe", DIRECTED_RECIPES)
@pytest.mark.parametrize("system", DIRECTED_SYSTEMS)
def test_settings_of_the_paper_for_directed_systems(recipe, system):
    variables = {"OUT": "nowhere/out", "SIZE": "paper"}
    (command,) = fairseq_commands(dry_run(EXAMPLES / recipe / "train.sh", system, **variables))
    args = parse(command)
    fill_defaults(args, SyntaxDirectedOptions)
    assert (args.attention, args.double_context, args.sdr) == DIRECTED_SYSTEMS[system]
    assert (args.encoder_embed_dim, args.decoder_embed_dim) == (620, 620)
    assert (args.encoder_hidden_size, args.decoder_hidden_size) == (1000, 1000)
    assert (args.encoder_layers, args.cell, args.decoder_kind) == (1, "gru", "conditional-gru")
    assert (args.share_all_embeddings, args.untied_output, args.output_bias) == (False, True, True)
    assert (args.dropout, args.init_range) == (0.2, None)
    # Nematus drops recurrent states, too, and the same components at all positions
    assert (args.variational_dropout, args.recurrent_dropout, args.sdatt_guide) == (True, 0.2, "none")
    assert (args.sdatt_n, args.sdatt_sigma, args.sdatt_combine, args.local_window) == (4, None, None, 10)
    assert (args.optimizer, args.lr, args.adadelta_rho, args.adadelta_eps) == ("adadelta", [1.0], 0.95, 1e-6)
    assert (args.lr_scheduler, args.clip_norm) == ("fixed", 1.0) and not args.force_anneal
    assert (args.criterion, args.sentence_avg, args.batch_size) == ("cross_entropy", True, 80)
    assert args.max_update == (400_000 if recipe == "wmt14" else 0)


def test_data_of_wmt14_are_those_of_the_paper():
    commands = recipe_commands("wmt14", ("en", "de"), "prepare")
    for command in fairseq_commands(commands):
        parse(command)
    programs = {command[0] for command in fairseq_commands(commands)}
    assert programs == {"fairseq-syntax-parse", "fairseq-syntax-preprocess"}, "no corpus for the multi-task system"
    (joined,) = [command for command in commands if command[0] == "cat" and command[1].endswith(".en")]
    corpora = ["europarl-v7.de-en", "commoncrawl.de-en", "news-commentary-v9.de-en"]
    assert [Path(file).stem for file in joined[1:]] == corpora
    fetched = [command[-1] for command in commands if command[0] == "curl"]
    assert len(fetched) == 3 and fetched[-1].endswith("wmt14/training-parallel-nc-v9.tgz")
    echoed = [command[2] for command in commands if command[0] == "sacrebleu" and command[-1] == "src"]
    assert echoed == ["wmt12", "wmt13", "wmt14/full", "wmt15"]
    (clean,) = [command for command in commands if "clean" in command]
    assert clean[clean.index("--max-words") + 1] == "80"
    (learn,) = [command for command in commands if command[:2] == ["subword-nmt", "learn-joint-bpe-and-vocab"]]
    assert learn[learn.index("-s") + 1] == "50000"
    assert not any("nowhere/out" not in " ".join(command) for command in fairseq_commands(commands))
    assert not (REPOSITORY / "nowhere").exists(), "DRY_RUN=1 has made a folder"


@pytest.mark.parametrize("system", DIRECTED_SYSTEMS)
def test_evaluation_of_wmt14_is_that_of_the_paper(system):
    (train,) = recipe_commands("wmt14", ("en", "de"), "train", system)
    prepared = recipe_commands("wmt14", ("en", "de"), "prepare", "binarize")
    names = {"valid": "wmt12", "test": "wmt13", "test1": "wmt14/full", "test2": "wmt15"}
    for split, name_there in names.items():
        commands = recipe_commands("wmt14", ("en", "de"), "evaluate", system, split)
        (generate,) = fairseq_commands(commands)
        args = parse(generate)
        assert (args.gen_subset, args.beam) == (split, 12)
        assert (args.data, Path(args.path).parent) == (parse(train).data, Path(parse(train).save_dir))
        assert args.data == parse(fairseq_commands(prepared)[-1]).destdir
        cased, lowercased = [command for command in commands if command[0] == "sacrebleu"]
        assert lowercased == [*cased, "--lowercase"] and cased[2] == name_there


@pytest.mark.parametrize(("gpus", "batch"), [(1, 80), (2, 40), (4, 20)])
def test_an_update_has_80_sentences_on_any_machine(gpus, batch):
    (command,) = recipe_commands("wmt14", ("en", "de"), "train", "sdatt", GPUS=str(gpus))
    args = parse(command)
    assert (args.distributed_world_size, args.batch_size) == (gpus, batch)
    dry_run(EXAMPLES / "wmt14" / "train.sh", "sdatt", GPUS="3", status=2)


def test_the_quick_run_of_directed_systems_is_accepted():
    script = EXAMPLES / "sdatt" / "quick.sh"
    commands = dry_run(script, "--sdatt-combine", "add", OUT="nowhere/quick", UPDATES="5")
    ours = fairseq_commands(commands)
    trainings = {Path(args.save_dir).name: args for args in map(parse, ours) if getattr(args, "arch", None)}
    for args in trainings.values():
        fill_defaults(args, SyntaxDirectedOptions)
    assert {name: args.arch for name, args in trainings.items()} == {
        "global_att": "global_att_tiny",
        "sdatt": "sdatt_tiny",
        "sdatt_centres": "sdatt_tiny",
        "global_plus_sdatt": "global_plus_sdatt_tiny",
    }
    assert [name for name, args in trainings.items() if args.sdatt_guide != "none"] == ["sdatt_centres"]
    different = ("arch", "attention", "double_context", "sdatt_guide", "save_dir")
    first, *others = [settings_of(args, different) for args in trainings.values()]
    assert others == [first] * 3, "one budget for all"
    assert (first["max_update"], first["sdatt_combine"]) == (5, "add")
    (prepared,) = [parse(command) for command in ours if command[0] == "fairseq-syntax-preprocess"]
    generations = [parse(command) for command in ours if command[0] == "fairseq-generate"]
    assert len(generations) == 8
    for args in (*trainings.values(), *generations):
        assert args.data == prepared.destdir
    assert {Path(args.path).parent for args in generations} == {Path(args.save_dir) for args in trainings.values()}
    compared = parse(ours[-1])
    assert [compared.baseline, *compared.systems] == [f"nowhere/quick/{name}.test.generated" for name in compared.names]
    assert compared.names[0] == "global_att"
    assert not (REPOSITORY / "nowhere").exists(), "DRY_RUN=1 has made a folder"


# --- latent graphs --------------------------------------------------------------------------------------------------


def graph_commands(recipe: str, script: str, *arguments: str, **variables: str) -> list[list[str]]:
    folders = {"OUT": "nowhere/out"}
    return dry_run(EXAMPLES / recipe / f"{script}.sh", *arguments, **{**folders, **variables})


def parse_validation(command: list[str]):
    assert command[0] == "fairseq-validate"
    return options.parse_args_and_arch(options.get_validation_parser(), input_args=command[1:])


def touch(folder: Path, *names: str) -> dict[str, str]:
    """Empty files of a corpus that a recipe looks for."""
    for file in names:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).touch()
    return {"DATA": str(folder)}


ASPEC_FILES = ("train/train-1.txt", "train/train-2.txt", "dev/dev.txt", "devtest/devtest.txt", "test/test.txt")
TANAKA_FILES = [f"{split}.{language}.gz" for split in ("train", "dev", "test") for language in ("en", "ja")]


@pytest.mark.parametrize("recipe", GRAPH_RECIPES)
@pytest.mark.parametrize("parses", ["own", "none"])
def test_data_of_latent_graphs_are_accepted(tmp_path, recipe, parses):
    data = touch(tmp_path, *ASPEC_FILES) if recipe == "aspec" else {}
    commands = graph_commands(recipe, "prepare", PARSES=parses, **data)
    ours = [parse(command) for command in fairseq_commands(commands)]
    programs = [command[0].removeprefix("fairseq-").removeprefix("syntax-") for command in fairseq_commands(commands)]
    splits = ["valid", "test", "test1"][: 3 if recipe == "aspec" else 2]
    parsing = ["train", *["parse"] * (1 + len(splits))] if parses == "own" else []
    assert programs == ["dictionary", *parsing, "preprocess", "length-prior", "length-prior"]
    dictionary, *_, binarized, prior, raw_prior = ours
    (binarize,) = [command for command in fairseq_commands(commands) if command[0].endswith("preprocess")]
    assert (binarize[0] == "fairseq-preprocess") == (parses == "none")
    # an open dictionary: words of all texts, and the spelling of rare ones
    assert [Path(file).name for file in (*dictionary.train, *dictionary.extra)] == [
        f"{split}.en" for split in ("train", *splits)
    ]
    assert binarized.srcdict == dictionary.output and not binarized.joined_dictionary
    assert (binarized.thresholdsrc, binarized.thresholdtgt) == (0, 2)
    assert [Path(file).name for file in binarized.testpref.split(",")] == splits[1:]
    assert prior.data == raw_prior.data == binarized.destdir
    if parses == "own":
        parser, *parsed = ours[1:-3]
        for args, split in zip(parsed, ("train", *splits), strict=True):
            assert Path(args.input) == Path(dictionary.train[0]).parent / f"{split}.en"
            assert Path(args.parser) == Path(parser.save_dir) / "checkpoint_last.pt"
            assert ["cp", args.output, f"{args.input}.conllu"] in commands
        assert parser.first_k == (None if recipe == "aspec" else 10_000), (
            "the paper's parser for DEP has learned from all"
        )
        assert parser.mt_dict == dictionary.output
    fetched = [command[-1] for command in commands if command[0] == "curl"]
    assert [Path(url).name for url in fetched[-2:]] == ["en_ewt-ud-train.conllu", "en_ewt-ud-dev.conllu"]
    assert len(fetched) == (2 if recipe == "aspec" else 8)
    assert not any("nowhere/out" not in " ".join(command) for command in fairseq_commands(commands))
    assert not (REPOSITORY / "nowhere").exists(), "DRY_RUN=1 has made a folder"


@pytest.mark.parametrize("pairs", ["300", "all"])
def test_local_copies_of_text_trees_and_treebank_are_taken(tmp_path, pairs):
    trees = [f"{split}.en.conllu.gz" for split in ("train", "dev", "test")]
    data = touch(tmp_path / "tanaka", *TANAKA_FILES, *trees)
    touch(tmp_path / "ud", "en_ewt.train.conllu.gz", "en_ewt-ud-dev.conllu")
    commands = graph_commands("lgp", "prepare", PAIRS=pairs, UD=str(tmp_path / "ud"), **data)
    assert not [command for command in commands if command[0] == "curl"]
    programs = [command[0] for command in fairseq_commands(commands)]
    # two tables of lengths: smoothed, and the paper's
    tables = ["fairseq-syntax-length-prior"] * 2
    assert programs == ["fairseq-syntax-dictionary", "fairseq-syntax-preprocess", *tables]
    unpacked = {Path(command[-1]).name for command in commands if command[0] == "gzip"}
    assert unpacked == {*TANAKA_FILES, *trees, "en_ewt.train.conllu.gz", "en_ewt-ud-dev.conllu"}
    cut = [command[-1] for command in commands if command[0] in ("head", "awk")]
    full = [f"nowhere/out/full/{name}" for name in ("train.en", "train.ja", "train.en.conllu")]
    assert cut == ([] if pairs == "all" else full)
    own = fairseq_commands(graph_commands("lgp", "prepare", PARSES="own", **data))
    assert "fairseq-syntax-parse" in {command[0] for command in own}
    dry_run(EXAMPLES / "lgp" / "prepare.sh", PARSES="some", status=2)


def test_first_pairs_and_their_trees_are_taken(tmp_path):
    """Text and trees are really cut, up to the dictionary."""
    data = tmp_path / "data"
    data.mkdir()
    words = ["a", "b", "c"]
    for split in ("train", "dev", "test"):
        for language in ("en", "ja"):
            (data / f"{split}.{language}").write_text("".join(f"{word}\n" for word in words))
        trees = "".join(f"# text = {word}\n1\t{word}\t_\tX\t_\t_\t0\troot\t_\t_\n\n" for word in words)
        (data / f"{split}.en.conllu.gz").write_bytes(gzip.compress(trees.encode()))
    treebank = tmp_path / "treebank"
    touch(treebank, "x")
    for split in ("train", "valid"):
        (treebank / f"{split}.conllu").write_text(trees)
    out = tmp_path / "out"
    variables = {"DATA": str(data), "OUT": str(out), "TREEBANK": str(treebank), "PAIRS": "2"}
    environment = {**os.environ, **variables, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for step in ("text", "trees"):
        script = str(EXAMPLES / "lgp" / "prepare.sh")
        done = subprocess.run(["bash", script, step], env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr[-1000:]
    text = out / "2" / "text"
    assert (text / "train.en").read_text() == (text / "train.ja").read_text() == "a\nb\n"
    assert (text / "valid.en").read_text() == (text / "test.ja").read_text() == "a\nb\nc\n"
    assert (text / "train.en.conllu").read_text() == trees[: trees.index("# text = c")]
    assert (text / "test.en.conllu").read_text() == trees


@pytest.mark.parametrize("recipe", GRAPH_RECIPES)
@pytest.mark.parametrize("system", GRAPH_SYSTEMS)
def test_systems_of_latent_graphs_are_accepted(recipe, system):
    (train,) = fairseq_commands(graph_commands(recipe, "train", system))
    (average,) = fairseq_commands(graph_commands(recipe, "average", system))
    training, averaged = parse(train), parse(average)
    fill_defaults(training, LatentGraphOptions)
    assert (training.task, training.arch) == ("syntax_translation", "lgp_small")
    assert (training.source_lang, training.target_lang) == ("en", "ja")
    assert str(training.lgp_graph) == GRAPH_SYSTEMS[system]
    (parser,) = [parse(command) for command in fairseq_commands(graph_commands(recipe, "pretrain"))]
    expected = f"{parser.save_dir}/checkpoint_last.pt" if system.endswith("_plus") else None
    assert training.lgp_parser_path == expected and training.lgp_parser_parts == "all"
    assert averaged.inputs == [training.save_dir] and averaged.select_on == "valid"
    assert averaged.data == training.data and averaged.cpu == training.cpu == (recipe == "lgp")
    for variables, checkpoint in (({}, "checkpoint_best.pt"), ({"AVERAGED": "1"}, "average.pt")):
        commands = graph_commands(recipe, "evaluate", system, "valid", **variables)
        generate, validate = fairseq_commands(commands)
        generation = parse(generate)
        assert generation.path == parse_validation(validate).path == f"{training.save_dir}/{checkpoint}"
        assert generation.data == parse_validation(validate).data == training.data
        assert generation.gen_subset == parse_validation(validate).valid_subset == "valid"
        # it lowers BLEU there; the paper's setting is that of SIZE=paper
        prior = "off" if recipe == "lgp" else f"{training.data}/length_prior_raw.en-ja.npz"
        assert (generation.beam, generation.lenpen, generation.length_prior) == (12, 1, prior)
        assert (generation.max_len_a, generation.max_len_b, generation.cpu) == (2, 20, training.cpu)
        (score,) = [command for command in commands if command[0] == "sacrebleu"]
        assert score[1].endswith("/text/valid.ja") and score[score.index("--tokenize") + 1] == "none"
    assert averaged.output == f"{training.save_dir}/average.pt"


@pytest.mark.parametrize("recipe", GRAPH_RECIPES)
@pytest.mark.parametrize("system", ["lgp", "dep"])
def test_unknown_words_are_copied_by_the_program_that_can(recipe, system):
    variables = {"COPY_UNKNOWN": "1", "PRIOR": "off"}
    translate, _ = fairseq_commands(graph_commands(recipe, "evaluate", system, **variables))
    args = parse(translate)
    assert translate[0] == "fairseq-interactive" and args.replace_unk == "" and args.length_prior == "off"
    assert Path(args.input).name == "test.en" and args.buffer_size >= args.batch_size > 1
    assert args.syntax_conllu == (f"{args.input}.conllu" if system == "dep" else None)
    assert str(args.syntax_parser) == ("conllu" if system == "dep" else "stanza")
    dry_run(EXAMPLES / recipe / "evaluate.sh", system, PRIOR="on", status=2)


def test_translations_made_otherwise_have_other_names():
    made = [{}, {"AVERAGED": "1"}, {"PRIOR": "auto"}, {"PRIOR": "raw"}, {"COPY_UNKNOWN": "1"}, {"SEED": "2"}]
    scored = []
    for variables in made:
        commands = graph_commands("lgp", "evaluate", "seq", **variables)
        (score,) = [command for command in commands if command[0] == "sacrebleu"]
        hypotheses = score[score.index("--input") + 1]
        (compared,) = [parse(command) for command in graph_commands("lgp", "compare", **variables)]
        assert compared.baseline == hypotheses.replace(".hypotheses", ".generated"), "compared is what was evaluated"
        assert compared.names == list(GRAPH_SYSTEMS) and len(compared.systems) == 7
        assert compared.reference == [score[1]] and compared.tokenize == "none"
        scored += [hypotheses, compared.plot]
    assert len(set(scored)) == 2 * len(made)


def test_the_length_prior_is_the_papers_in_its_settings(tmp_path):
    """Plain counts: a length that was not seen with that of the source has no probability."""
    for recipe, variables in (("lgp", {"SIZE": "paper"}), ("aspec", {})):
        data = touch(tmp_path, *ASPEC_FILES) if recipe == "aspec" else {}
        commands = graph_commands(recipe, "prepare", **variables, **data)
        smoothed, raw = [parse(command) for command in commands if command[0] == "fairseq-syntax-length-prior"]
        assert (raw.smoothing, raw.unseen, raw.bin, raw.data) == ("raw", "author", 1, smoothed.data)
        assert (smoothed.smoothing, smoothed.output) == ("kernel", None)
        generate, _ = fairseq_commands(graph_commands(recipe, "evaluate", "lgp", **variables))
        assert parse(generate).length_prior == str(raw.output)
        generate, _ = fairseq_commands(graph_commands(recipe, "evaluate", "lgp", **variables, PRIOR="auto"))
        assert parse(generate).length_prior == "auto"


def test_another_parser_makes_another_system():
    """Its checkpoints would be gone on with otherwise, and its translations compared as if they were the first's."""
    folders = []
    for variables in (
        *({}, {"FIRST_K": "1000"}, {"PARSER_SEED": "2"}, {"PARSER": "mine/own/checkpoint_last.pt"}),
        *({"PARSER_PARTS": "tables"}, {"PARSER_PARTS": "lstms"}),
    ):
        (train,) = fairseq_commands(graph_commands("lgp", "train", "lgp_plus", **variables))
        generate, _ = fairseq_commands(graph_commands("lgp", "evaluate", "lgp_plus", **variables))
        folders.append(parse(train).save_dir)
        assert parse(generate).path == f"{folders[-1]}/checkpoint_best.pt"
    names = [Path(folder).name for folder in folders]
    assert names == [
        *("lgp_plus-10000-1-1", "lgp_plus-1000-1-1", "lgp_plus-10000-2-1", "lgp_plus-own-1"),
        *("lgp_plus-tables-10000-1-1", "lgp_plus-lstms-10000-1-1"),
    ]


@pytest.mark.parametrize("system", [system for system in GRAPH_SYSTEMS if system.endswith("_plus")])
@pytest.mark.parametrize("recipe", GRAPH_RECIPES)
def test_parts_of_a_parser_for_every_graph(recipe, system):
    for parts in ("tables", "lstms"):
        (train,) = fairseq_commands(graph_commands(recipe, "train", system, PARSER_PARTS=parts))
        args = parse(train)
        assert args.lgp_parser_parts == parts and args.lgp_parser_path
        assert f"/{system}-{parts}-" in args.save_dir and f"/{system}-{parts}-" in args.log_file
        # the others start from scratch, as always
        (train,) = fairseq_commands(graph_commands(recipe, "train", system.removesuffix("_plus"), PARSER_PARTS=parts))
        plain = parse(train)
        fill_defaults(plain, LatentGraphOptions)
        assert (plain.lgp_parser_path, plain.save_dir.count(parts)) == (None, 0)
    dry_run(EXAMPLES / recipe / "train.sh", system, PARSER_PARTS="words", status=2)


def refusal(script: str, *arguments: str, **variables: str) -> str:
    """What a script says that stops before it runs anything."""
    environment = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        ["bash", str(EXAMPLES / script), *arguments],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode in (1, 2) and "\n+ " not in f"\n{done.stderr}"
    (said,) = done.stderr.splitlines()
    return said


def test_what_is_missing_is_named_with_its_script(tmp_path):
    out = tmp_path / "out"
    work = out / "10000"
    best = work / "checkpoints" / "lgp-1" / "checkpoint_best.pt"
    settings = {"OUT": str(out)}
    data = "train.sh: " + f"{work}/data-bin is not there: run prepare.sh first"
    assert refusal("lgp/train.sh", "lgp", **settings) == data
    assert refusal("lgp/pretrain.sh", **settings).endswith("dict.en.txt is not there: run prepare.sh text first")
    assert refusal("lgp/evaluate.sh", "lgp", **settings) == f"evaluate.sh: {best} is not there: train lgp first"
    assert refusal("lgp/graph.sh", "lgp", **settings) == f"graph.sh: {best} is not there: train lgp first"
    assert refusal("lgp/average.sh", "lgp", **settings).endswith("lgp-1 is not there: train lgp first")
    assert not out.exists()
    touch(work / "data-bin", "x")
    touch(best.parent, best.name)
    parser = f"{work}/checkpoints/parser-500-1/checkpoint_last.pt is not there: run pretrain.sh first, with the same"
    for system in ("lgp_plus", "seq_plus"):
        assert f"train.sh: {parser} FIRST_K" == refusal("lgp/train.sh", system, FIRST_K="500", **settings)
    assert f"graph.sh: {parser} FIRST_K" == refusal("lgp/graph.sh", "parser", FIRST_K="500", **settings)
    averaged = refusal("lgp/evaluate.sh", "lgp", AVERAGED="1", **settings)
    assert averaged.endswith("average.pt is not there: run average.sh lgp first")


def test_scripts_without_what_they_need_say_what_it_is():
    for script in ("train", "evaluate", "average"):
        assert refusal(f"lgp/{script}.sh") == f"{script}.sh: give a system: {' '.join(GRAPH_SYSTEMS)}"
    assert refusal("lgp/graph.sh") == "graph.sh: give lgp, lgp_plus or parser"
    assert refusal("aspec/prepare.sh").startswith("prepare.sh: give the folder of the corpus, DATA=…; its owners")


def test_graphs_without_a_baseline_are_not_compared():
    script = str(EXAMPLES / "lgp" / "compare.sh")
    environment = {**os.environ, "OUT": "nowhere/out"}
    done = subprocess.run(["bash", script], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "evaluate seq and another system first" in done.stderr


def test_one_budget_for_all_graphs():
    of_each = ("lgp_graph", "lgp_parser_path", "lgp_parser_parts", *FILES)
    trainings = [parse(*graph_commands("lgp", "train", system)[-1:]) for system in GRAPH_SYSTEMS]
    first, *others = [settings_of(args, of_each) for args in trainings]
    assert all(other == first for other in others)
    args = trainings[0]
    assert (args.criterion, args.max_epoch, args.epoch_parts) == ("cross_entropy", 20, 2)


@pytest.mark.parametrize(
    ("recipe", "size"), [("lgp", "cpu"), ("lgp", "paper"), *(("aspec", size) for size in GRAPH_SIZES)]
)
@pytest.mark.parametrize("system", ["seq", "lgp_plus"])
def test_settings_of_the_paper_for_latent_graphs(recipe, size, system):
    width, _, source, _, noise, momentum, halve, beam, k = GRAPH_SIZES[size if recipe == "aspec" else "small"]
    variables = {"SIZE": size}
    args = parse(graph_commands(recipe, "train", system, **variables)[-1])
    fill_defaults(args, LatentGraphOptions)
    assert (args.lgp_parser_size, args.lgp_pos_size, args.lgp_size, args.dropout) == (100, 50, width, 0.2)
    assert args.lgp_src_min_freq == source
    assert (args.optimizer, args.momentum, args.weight_decay, args.lr) == ("lgp_sgd", momentum, 1e-6, [1.0])
    assert (args.lr_scheduler, args.lr_halve_after, args.lr_shrink) == ("halve_on_drop", halve, 0.5)
    assert (args.batch_size, args.update_freq, args.max_tokens, args.distributed_world_size) == (128, [1], None, 1)
    assert (args.clip_norm, args.sentence_avg, args.epoch_parts) == (1.0, True, 2)
    assert args.eval_bleu and args.eval_tokenized_bleu and json.loads(args.eval_bleu_args)["beam"] == 1
    assert (args.best_checkpoint_metric, args.maximize_best_checkpoint_metric) == ("bleu", True)
    assert not args.no_epoch_checkpoints, "they are averaged"
    if size == "cpu":
        assert args.criterion == "cross_entropy" and args.cpu
    else:
        assert (args.criterion, args.blackout_k, args.blackout_alpha) == ("blackout", noise, 0.4)
        assert args.blackout_share == "sentence"
    generate, _ = fairseq_commands(graph_commands(recipe, "evaluate", system, **variables))
    assert parse(generate).beam == beam
    command = graph_commands(recipe, "pretrain", **variables)[-1]
    assert {"--pos-batch-size", "--dep-batch-size"} <= set(command), "seen at a glance"
    parser = parse(command)
    assert (parser.arch, parser.task, parser.criterion) == ("lgp_parser", "dependency_parsing", "joint_parsing")
    assert (parser.first_k, parser.max_epoch, parser.lr, parser.lr_rho) == (k, 20, [1.0], 0.3)
    assert (parser.momentum, parser.pass_clip_norms, parser.sentence_avg) == (0, [1.0, 2.0], True)
    assert (parser.pos_batch_size, parser.dep_batch_size, parser.lgp_src_min_freq) == (25, 15, source)
    assert parser.strip_subtypes and parser.lowercase == (recipe == "lgp")
    assert parser.mt_dict and Path(parser.mt_dict).parent == Path(args.data).parent


@pytest.mark.parametrize("size", GRAPH_SIZES)
def test_data_of_aspec_are_those_of_the_paper(tmp_path, size):
    data = touch(tmp_path, *ASPEC_FILES)
    commands = graph_commands("aspec", "prepare", SIZE=size, **data)
    (clean,) = [command for command in commands if "clean" in command]
    assert clean[clean.index("--max-words") + 1] == clean[clean.index("--max-ratio") + 1] == "50"
    extracted = [command for command in commands if command[0] == "awk" and command[-1].endswith("train-2.txt")]
    assert len(extracted) == 2 and all("NR <= 1500000 " in command[3] for command in extracted)
    assert {command[3].split("print ")[1] for command in extracted} == {"$NF }", "$(NF - 1) }"}
    pairs, target = GRAPH_SIZES[size][1], GRAPH_SIZES[size][3]
    cut = [command[:3] for command in commands if command[0] == "head"]
    assert cut == ([] if pairs is None else [["head", "-n", pairs]] * 2)
    (binarize,) = [command for command in fairseq_commands(commands) if command[0].endswith("preprocess")]
    assert parse(binarize).thresholdtgt == target
    assert (binarize[0] == "fairseq-preprocess") == (size == "large"), "the paper has no DEP of this size"
    assert sum(command[0] == "kytea" for command in commands) == 4
    dry_run(EXAMPLES / "aspec" / "prepare.sh", SIZE=size, status=2)  # where is the corpus?


def test_text_of_aspec_is_read_from_its_fields(tmp_path):
    """Up to the dictionary, with commands that leave the text as it is."""
    data, out = tmp_path / "aspec", tmp_path / "out"
    touch(data, *ASPEC_FILES)
    for part in (1, 2):
        lines = [f"0.9 ||| A-{part} ||| {n} ||| 本 {part}{n} ||| word {part}{n}\n" for n in range(3)]
        (data / "train" / f"train-{part}.txt").write_text("".join(lines))
    for split in ("dev", "devtest", "test"):
        (data / split / f"{split}.txt").write_text(f"A ||| 1 ||| 本 {split} ||| word {split}\n")
    treebank = tmp_path / "treebank"
    touch(treebank, "x")
    for split in ("train", "valid"):
        (treebank / f"{split}.conllu").write_text("1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n")
    given = {"DATA": data, "OUT": out, "TREEBANK": treebank, "FIRST_PAIRS": 5, "PAIRS": 4, "WORKERS": 1}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "TOKENIZE_EN": "cat", "SEGMENT_JA": "cat"}
    environment.update({key: str(value) for key, value in given.items()})
    script = str(EXAMPLES / "aspec" / "prepare.sh")
    done = subprocess.run(["bash", script, "text"], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-1000:]
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
    for part in (1, 2, 3):
        line = f"0.9 ||| A-{part} ||| 1 ||| 本 {part} ||| word {part}\n"
        (corpus / "train" / f"train-{part}.txt").write_text(line + " ||| 0 ||| 1 |||  ||| no Japanese\n")
    for split in ("dev", "test"):
        (corpus / split / f"{split}.txt").write_text(f"A ||| 1 ||| 本 {split} ||| word {split}\n")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    more = {"CORPUS": str(corpus), "OUT": str(out), "TOKENIZE_en": "cat", "TOKENIZE_ja": "cat", "WORKERS": "1"}
    script = EXAMPLES / "pascal_wat" / "prepare.sh"
    environment = {key: value for key, value in os.environ.items() if key != "DRY_RUN"} | {"PATH": path, **more}
    done = subprocess.run(["bash", str(script), "text"], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-1000:]
    assert (out / "text" / "train.en").read_text() == "word 1\nword 2\nword 3\n"
    assert (out / "text" / "train.ja").read_text() == "本 1\n本 2\n本 3\n"
    assert [(out / "text" / f"{name}.en").read_text() for name in ("valid", "test")] == ["word dev\n", "word test\n"]
    status, message = run_script("pascal_wat/prepare.sh", "text", OUT=str(out), PATH=path)
    assert status == 1 and "give the folder of the corpus, CORPUS=…" in message


@pytest.mark.parametrize("recipe", GRAPH_RECIPES)
def test_variables_and_options_of_the_user_win_for_latent_graphs(recipe):
    variables = {"SEED": "7", "MAX_EPOCH": "3", "CRITERION": "blackout", "NOISE": "9", "FIRST_K": "60"}
    vectors = {"WORD_VECTORS": "w.txt", "NGRAM_VECTORS": "n.txt"}
    command = graph_commands(recipe, "train", "lgp_plus", "--lr", "0.5", "--lgp-decoder-bos", **variables, **vectors)[
        -1
    ]
    args = parse(command)
    assert (args.seed, args.max_epoch, args.lr, args.blackout_k, args.lgp_decoder_bos) == (7, 3, [0.5], 9, True)
    assert args.save_dir.endswith("/lgp_plus-60-1-7") and args.log_file.endswith("/lgp_plus-60-1-7.log")
    parser = parse(graph_commands(recipe, "pretrain", "--max-epoch", "4", **variables, **vectors)[-1])
    assert (parser.first_k, parser.max_epoch) == (60, 4) and Path(args.lgp_parser_path).parent == Path(parser.save_dir)
    for each in (args, parser):
        assert (each.lgp_word_vectors, each.lgp_ngram_vectors) == ("w.txt", "n.txt")
    dry_run(EXAMPLES / recipe / "train.sh", "seq", SIZE="huge", status=2)
    dry_run(EXAMPLES / recipe / "train.sh", "seq", CRITERION="hinge", status=2)


@pytest.mark.parametrize("recipe", GRAPH_RECIPES)
@pytest.mark.parametrize("system", ["lgp", "lgp_plus", "parser"])
def test_what_looks_at_the_graphs_is_accepted(recipe, system):
    commands = fairseq_commands(graph_commands(recipe, "graph", system))
    attachment, trees = [parse(command) for command in commands]
    trained = graph_commands(recipe, *(["pretrain"] if system == "parser" else ["train", system]))[-1]
    for args in (attachment, trees):
        assert Path(args.path).parent == Path(parse(trained).save_dir) and args.data == parse(trained).data
        assert str(args.decoder) == "eisner" and args.lowercase == (recipe == "lgp")
    treebank = parse(graph_commands(recipe, "pretrain")[-1]).data
    assert attachment.gold == trees.input == f"{treebank}/valid.conllu"
    for other in ("seq", "uni", "dep", "seq_plus"):
        dry_run(EXAMPLES / recipe / "graph.sh", other, status=2)


def test_wrong_option_would_be_found():
    with pytest.raises(AssertionError, match="parent-ignorin"):
        parse(["fairseq-train", "data", "--arch", "pascal_transformer_wmt_en_de", "--parent-ignorin", "0.1"])
    with pytest.raises(AssertionError, match="no-distance-matrices"):
        parse(["fairseq-syntax-preprocess", "--no-distance-matrices"])
    assert "fairseq-syntax-preprocess" in console_scripts()


# --- text of the WMT recipes --------------------------------------------------------------------------------------


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


def run_script(script, *arguments, **environment):
    """A script, not run dry: its exit status and what it says."""
    inherited = {key: value for key, value in os.environ.items() if key != "DRY_RUN"}
    command = ["bash", str(EXAMPLES / script), *arguments]
    done = subprocess.run(command, env={**inherited, **environment}, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr.strip()


def test_scripts_say_what_comes_first(tmp_path):
    place = {"OUT": str(tmp_path / "out"), "MULTI30K": str(tmp_path / "multi30k")}
    status, message = run_script("sdatt/train.sh", "sdatt", **place)
    assert status == 1 and "data-bin is not there: run bash examples/sdatt/prepare.sh" in message
    (tmp_path / "multi30k" / "data-bin").mkdir(parents=True)
    status, message = run_script("sdatt/evaluate.sh", "sdatt", **place)
    assert status == 1 and message.endswith("checkpoint_best.pt is not there: train sdatt first")
    status, message = run_script("sdatt/evaluate.sh", "sdatt", "bogus", **place)
    assert status == 2 and "no split bogus: choose test, test1 or valid" in message
    assert not (tmp_path / "out").exists()


def test_scripts_without_an_environment_say_so(tmp_path):
    status, message = run_script("sdatt/quick.sh", PATH="/usr/bin:/bin", OUT=str(tmp_path / "out"))
    assert status == 1 and "no fairseq-train; activate the environment first" in message
    assert not (tmp_path / "out").exists()


def test_quick_runs_leave_checkpoints_of_recipes_alone(tmp_path):
    (tmp_path / "quick.log").write_text("")
    (tmp_path / "checkpoints").mkdir()
    status, message = run_script("sdatt/quick.sh", OUT=str(tmp_path))
    assert status == 1 and "is not from an earlier run" in message
    assert (tmp_path / "checkpoints").is_dir()

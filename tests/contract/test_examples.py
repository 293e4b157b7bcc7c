"""The recipes: they are sound shell, and what they would run is accepted and is what the paper did."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from contract.command_lines import REPOSITORY, console_scripts, parse

from fairseq_syntax.models.pascal_transformer import PascalOptions
from fairseq_syntax.models.syntax_transformer import fill_defaults

EXAMPLES = REPOSITORY / "examples"
SCRIPTS = sorted(EXAMPLES.rglob("*.sh"))
SYSTEMS = ("transformer", "pascal", "lisa", "tag", "multitask")
DIRECTIONS = {
    "multi30k": [("en", "de")],
    "nc11": [("en", "de"), ("de", "en")],
    "wmt16": [("en", "de")],
}
RECIPES = [(recipe, pair) for recipe, pairs in DIRECTIONS.items() for pair in pairs]

# specs: the table of settings; heads, parent ignoring, dropout, beta 2, updates, merges
PAPER = {
    ("nc11", ("en", "de")): (2, 0.4, 0.3, 0.997, 20_000, 16_000),
    ("nc11", ("de", "en")): (8, 0.0, 0.3, 0.997, 20_000, 16_000),
    ("wmt16", ("en", "de")): (5, 0.0, 0.1, 0.98, 100_000, 32_000),
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
    for recipe in DIRECTIONS:
        assert {"prepare.sh", "train.sh", "evaluate.sh", "settings.sh"} <= {s.name for s in SCRIPTS if recipe in str(s)}
        assert (EXAMPLES / recipe / "README.md").is_file()


@pytest.mark.parametrize("script", SCRIPTS, ids=name)
def test_syntax(script):
    done = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr


def is_strict(script: Path) -> bool:
    """Whether `set -euo pipefail`, or a file that has it, comes before any other command."""
    for line in script.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith(("#", ":", "case", "en-de)", "de-en)", "*)", "esac", ";;", " ")):
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
    arch = {"multitask": "transformer"}.get(system, system if system == "transformer" else f"{system}_transformer")
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
    assert training.share_all_embeddings == (system != "tag")
    assert any(command[0] == "sacrebleu" for command in commands)


@pytest.mark.parametrize(("recipe", "pair"), PAPER)
@pytest.mark.parametrize("system", SYSTEMS)
def test_settings_of_the_paper(recipe, pair, system):
    heads, ignoring, dropout, beta2, updates, merges = PAPER[recipe, pair]
    (command,) = recipe_commands(recipe, pair, "train", system)
    args = parse(command)
    assert args.arch.endswith("transformer_wmt_en_de")
    assert (args.dropout, args.max_update, args.lr) == (dropout, updates, [7e-4])
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
    assert {Path(word).name for word in learn if "/train." in word} == {"train.en", "train.de"}
    for command in fairseq_commands(prepared):
        if "preprocess" in command[0]:
            assert parse(command).joined_dictionary


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


@pytest.mark.parametrize("recipe", DIRECTIONS)
@pytest.mark.parametrize("script", ["train", "evaluate"])
def test_unknown_system_is_refused(recipe, script):
    dry_run(EXAMPLES / recipe / f"{script}.sh", "pascall", status=2)


@pytest.mark.parametrize("recipe", ["nc11", "wmt16"])
def test_shards_are_parsed_once_each_and_joined_in_order(recipe):
    steps = [recipe_commands(recipe, ("en", "de"), "prepare", "parse", str(i), SHARDS="3") for i in range(3)]
    shards = [[c for c in step if "train" in c[2]] for step in steps]
    assert [parse(command).shard for (command,) in shards] == [(0, 3), (1, 3), (2, 3)]
    assert [len(step) for step in steps] == [3, 1, 1], "the first shard also has valid and test"
    outputs = [parse(command).output for (command,) in shards]
    joined = [c for c in recipe_commands(recipe, ("en", "de"), "prepare", "binarize", SHARDS="3") if c[0] == "cat"]
    assert joined == [["cat", *outputs]]


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

"""Damaged checkpoints, given to every command that takes one: one clear message each, nothing executed or written."""

import importlib
import itertools
import random
import shutil
from pathlib import Path

import pytest
import torch
import treebanks
from corpora import random_items, write_split
from damage import CHECKPOINTS
from integration import commands

from fairseq_syntax.systems.pascal.model import PascalTransformerModel

SYNTAX, LATENT = "pascal_transformer_tiny", "sa_nmt_shared_tiny"


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """Data and texts, a treebank, and models that are as they should be."""
    folder = tmp_path_factory.mktemp("checkpoints")
    for seed, (name, count) in enumerate((("train", 12), ("valid", 4), ("test", 3))):
        write_split(folder / "text" / name, random_items(count, seed))
    commands.binarize({name: folder / "text" / name for name in ("train", "valid", "test")}, folder / "bin")
    for arch in (SYNTAX, LATENT):
        train(folder, folder / arch, arch)
    treebanks.make(folder / "treebank", 12, 4)
    few = ["--cpu", "--num-workers", "0", "--max-update", "1", "--no-epoch-checkpoints"]
    commands.run(
        "fairseq-train", folder / "treebank", *treebanks.TRAINING, *few, "--save-dir", folder / "lgp_parser_tiny"
    )
    return folder


def train(world, save_dir, arch, *options):
    return commands.train(world / "bin", save_dir, arch, "-s", "en", "-t", "de", "--max-update", 1, *options)


def program(name):
    """A program of ours as a command: data directory, checkpoint and options in its own order."""

    def call(*arguments):
        main = importlib.import_module(f"fairseq_syntax.cli.{name}").main
        return main([str(argument) for argument in arguments])

    return call


def text(world):
    return world / "text" / "test.en"


# command -> the model it wants; what it does with the folder, the checkpoint and a path to write to
COMMANDS = {
    "fairseq-generate": (SYNTAX, lambda w, c, out: commands.generate(w / "bin", c)),
    "fairseq-validate": (
        SYNTAX,
        lambda w, c, out: commands.run(
            "fairseq-validate", w / "bin", "--path", c, "--cpu", "--batch-size", 4, "--task", "translation"
        ),
    ),
    "fairseq-interactive": (
        SYNTAX,
        lambda w, c, out: commands.interactive(
            w / "bin", c, text(w), "-s", "en", "-t", "de", "--parser", "conllu", "--parser-model", f"{text(w)}.conllu"
        ),
    ),
    "fairseq-train --restore-file": (SYNTAX, lambda w, c, out: train(w, out, SYNTAX, "--restore-file", c)),
    "fairseq-train --finetune-from-model": (
        SYNTAX,
        lambda w, c, out: train(w, out, SYNTAX, "--finetune-from-model", c),
    ),
    "fairseq-train --lgp-parser-path": (
        "lgp_parser_tiny",
        lambda w, c, out: train(w, out, "lgp_tiny", "--lgp-parser-path", c),
    ),
    "fairseq-interactive --parser checkpoint": (
        "lgp_parser_tiny",
        lambda w, c, out: commands.interactive(
            w / "bin",
            w / SYNTAX / "checkpoint_last.pt",
            text(w),
            "-s",
            "en",
            "-t",
            "de",
            "--parser",
            "checkpoint",
            "--parser-model",
            c,
        ),
    ),
    "from_pretrained": (
        SYNTAX,
        lambda w, c, out: PascalTransformerModel.from_pretrained(str(c.parent), c.name, str(w / "bin")),
    ),
    "fairseq-syntax attention": (
        SYNTAX,
        lambda w, c, out: program("attention")(w / "bin", "--path", c, "--cpu", "--draw", f"{out}.svg"),
    ),
    "fairseq-syntax gates": (
        LATENT,
        lambda w, c, out: program("gates")(w / "bin", "--path", c, "--cpu", "--output", out),
    ),
    "fairseq-syntax trees": (
        LATENT,
        lambda w, c, out: program("trees")(w / "bin", "--path", c, "--cpu", "--input", text(w), "--output", out),
    ),
    "fairseq-syntax graph": (
        LATENT,
        lambda w, c, out: program("graph")(w / "bin", "--path", c, "--cpu", "--input", text(w), "--output", out),
    ),
    "fairseq-syntax attachment": (
        LATENT,
        lambda w, c, out: program("attachment")(w / "bin", "--path", c, "--cpu", "--gold", f"{text(w)}.conllu"),
    ),
    "fairseq-syntax average": (
        LATENT,
        lambda w, c, out: program("average")("--input", w / LATENT / "checkpoint_last.pt", c, "--output", out),
    ),
    "fairseq-syntax average --select-on": (
        LATENT,
        lambda w, c, out: program("average")(
            "--input", c, "--select-on", "test", "--data", w / "bin", "--cpu", "--output", out
        ),
    ),
    "fairseq-syntax parse": (
        "lgp_parser_tiny",
        lambda w, c, out: program("parse")(
            "--input", text(w), "--output", out, "--parser", "checkpoint", "--parser-model", c, "--parser-device", "cpu"
        ),
    ),
}
CASES = list(itertools.product(COMMANDS, CHECKPOINTS))
TENTH = random.Random(14).sample(CASES, len(CASES) // 10)


def examine(command, kind, world, tmp_path, capsys):
    arch, run = COMMANDS[command]
    state = torch.load(world / arch / "checkpoint_last.pt", map_location="cpu", weights_only=True)
    path, victim, output = tmp_path / "given.pt", tmp_path / "executed", tmp_path / "output"
    path.write_bytes(CHECKPOINTS[kind](state, victim))
    capsys.readouterr()
    try:
        code = run(world, path, output)
    except (ValueError, OSError) as error:
        message = str(error)
    except Exception as error:  # fairseq has no better one for a model that does not fit
        assert type(error) is Exception, error
        message = str(error)
    except SystemExit as stopped:
        code, message = stopped.code, None
    else:
        message = None
    said = capsys.readouterr().err
    if message is None:
        assert code == 1, (code, said[-300:])
        assert "Traceback" not in said
        # there may be a note before
        *_, message = [line for line in said.splitlines() if line.startswith(command.split(" ")[0])]
    assert "\n" not in message.strip() and len(message) < 600 + 2 * len(str(tmp_path)), message
    assert str(path) in message, message
    assert "weights_only" not in message + said
    assert not victim.exists()
    left = {entry.name for entry in Path(tmp_path).iterdir()}
    assert left <= {"given.pt", "output"} and not (output.is_file() or list(output.glob("*.pt"))), left


@pytest.mark.parametrize(("command", "kind"), TENTH)
def test_a_damaged_checkpoint(command, kind, world, tmp_path, capsys):
    examine(command, kind, world, tmp_path, capsys)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "kind"), CASES)
def test_every_damaged_checkpoint_by_every_command(command, kind, world, tmp_path, capsys):
    examine(command, kind, world, tmp_path, capsys)


@pytest.mark.parametrize("kind", ["half", "payload", "a list", "no cfg", "NaN"])
def test_a_run_is_not_resumed_from_a_damaged_checkpoint(kind, world, tmp_path):
    state = torch.load(world / SYNTAX / "checkpoint_last.pt", map_location="cpu", weights_only=True)
    path, victim = tmp_path / "checkpoint_last.pt", tmp_path / "executed"
    path.write_bytes(CHECKPOINTS[kind](state, victim))
    with pytest.raises(ValueError) as caught:
        train(world, tmp_path, SYNTAX)
    assert str(caught.value).startswith(f"{path}: ") and "weights_only" not in str(caught.value)
    assert [entry.name for entry in tmp_path.iterdir()] == ["checkpoint_last.pt"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_checkpoint_that_is_right_is_taken(command, world, tmp_path):
    """Otherwise the tests above would prove nothing."""
    arch, run = COMMANDS[command]
    path = shutil.copy(world / arch / "checkpoint_last.pt", tmp_path / "given.pt")
    assert run(world, path, tmp_path / "output") not in (1, 2)

"""Damaged checkpoints, given to every command that takes one: one clear message each, nothing executed or written."""

import random
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import treebanks
from contract.conftest import train
from damage import CHECKPOINTS
from integration import commands

from fairseq_syntax.cli import program
from fairseq_syntax.systems.pascal.model import PascalTransformerModel

SYNTAX, LATENT, PARSER = "pascal_transformer_tiny", "sa_nmt_shared_tiny", "lgp_parser_tiny"


@pytest.fixture(scope="session")
def world(good, trained, tmp_path_factory):
    """Data and texts, and models that are as they should be."""
    models = {SYNTAX: trained(SYNTAX), LATENT: trained(LATENT)}
    treebank = treebanks.make(tmp_path_factory.mktemp("treebank"), 12, 4)
    few = ["--cpu", "--num-workers", "0", "--max-update", "1", "--no-epoch-checkpoints"]
    save = good / "models" / PARSER
    commands.run("fairseq-train", treebank, *treebanks.TRAINING, *few, "--save-dir", save)
    models[PARSER] = save / "checkpoint_last.pt"
    return SimpleNamespace(models=models, bin=good / "bin", text=good / "text" / "test.en")


TRAIN = (
    f"fairseq-train {{bin}} --arch {{arch}} --save-dir {{out}} --max-update 1 {' '.join(commands.TRAINING)} -s en -t de"
)
DECODE = " ".join(commands.DECODING)
LIVE = f"fairseq-interactive {{bin}} --input {{text}} {DECODE} -s en -t de"
LOOK = "{bin} --path {given} --cpu"
# name -> the model it wants; the command line
COMMANDS = {
    "fairseq-generate": (SYNTAX, f"fairseq-generate {{bin}} --path {{given}} {DECODE}"),
    "fairseq-validate": (SYNTAX, f"fairseq-validate {LOOK} --batch-size 4 --task translation"),
    "fairseq-interactive": (SYNTAX, f"{LIVE} --path {{given}} --parser conllu --parser-model {{text}}.conllu"),
    "fairseq-train --restore-file": (SYNTAX, f"{TRAIN} --restore-file {{given}}"),
    "fairseq-train --finetune-from-model": (SYNTAX, f"{TRAIN} --finetune-from-model {{given}}"),
    "fairseq-train --lgp-parser-path": (PARSER, f"{TRAIN.replace('{arch}', 'lgp_tiny')} --lgp-parser-path {{given}}"),
    "fairseq-interactive --parser checkpoint": (
        PARSER,
        f"{LIVE} --path {{bin}}/../models/{SYNTAX}/checkpoint_last.pt --parser checkpoint --parser-model {{given}}",
    ),
    "from_pretrained": (SYNTAX, None),
    "fairseq-syntax whatif": (SYNTAX, f"whatif {LOOK} --subset test --sentence 1 --head 1=2"),
    "fairseq-syntax look --draw": (SYNTAX, f"look {LOOK} --subset test --draw {{out}}.svg"),
    "fairseq-syntax look --output": (LATENT, f"look {LOOK} --input {{text}} --output {{out}}"),
    "fairseq-syntax attachment": (LATENT, f"attachment {LOOK} --gold {{text}}.conllu"),
    "fairseq-syntax average": (
        LATENT,
        f"average --input {{bin}}/../models/{LATENT}/checkpoint_last.pt {{given}} --output {{out}}",
    ),
    "fairseq-syntax parse": (
        PARSER,
        "parse --input {text} --output {out} --parser checkpoint --parser-model {given} --parser-device cpu",
    ),
}


def run(command, world, given, out):
    """What a command of ours returns, or one of fairseq's prints."""
    arch, line = COMMANDS[command]
    if line is None:
        return PascalTransformerModel.from_pretrained(str(given.parent), given.name, str(world.bin))
    places = {"bin": world.bin, "text": world.text, "given": given, "out": out, "arch": arch}
    name, *arguments = line.format(**places).split()
    return commands.run(name, *arguments) if name.startswith("fairseq-") else program.load(name).main(arguments)


def cases():
    """Every command with code in a checkpoint, and with another kind of damage, which is drawn."""
    rng = random.Random(14)
    others = sorted(CHECKPOINTS.keys() - {"code in a dict"})
    for command in COMMANDS:
        for kind in ("code in a dict", *rng.sample(others, 1)):
            yield command, kind


def examine(command, kind, world, tmp_path, capsys):
    """What a command says of a damaged checkpoint; it must write and execute nothing."""
    arch, _ = COMMANDS[command]
    state = torch.load(world.models[arch], map_location="cpu", weights_only=True)
    path, victim, output = tmp_path / "given.pt", tmp_path / "executed", tmp_path / "output"
    path.write_bytes(CHECKPOINTS[kind](state, victim))
    capsys.readouterr()
    try:
        code = run(command, world, path, output)
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
    assert "weights_only" not in message + said
    assert not victim.exists()
    left = {entry.name for entry in Path(tmp_path).iterdir()}
    assert left <= {"given.pt", "output"} and not (output.is_file() or list(output.glob("*.pt"))), left
    return message


@pytest.mark.parametrize(("command", "kind"), cases())
def test_a_damaged_checkpoint(command, kind, world, tmp_path, capsys):
    assert str(tmp_path / "given.pt") in examine(command, kind, world, tmp_path, capsys)


@pytest.mark.parametrize("kind", ["half", "code in a dict"])
def test_a_run_is_not_resumed_from_a_damaged_checkpoint(kind, world, tmp_path):
    state = torch.load(world.models[SYNTAX], map_location="cpu", weights_only=True)
    path, victim = tmp_path / "checkpoint_last.pt", tmp_path / "executed"
    path.write_bytes(CHECKPOINTS[kind](state, victim))
    with pytest.raises(ValueError) as caught:
        train(world.bin, tmp_path, SYNTAX)
    assert str(caught.value).startswith(f"{path}: ") and "weights_only" not in str(caught.value)
    assert [entry.name for entry in tmp_path.iterdir()] == ["checkpoint_last.pt"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_checkpoint_that_is_right_is_taken(command, world, tmp_path):
    """Otherwise the tests above would prove nothing."""
    arch, _ = COMMANDS[command]
    path = Path(shutil.copy(world.models[arch], tmp_path / "given.pt"))
    assert run(command, world, path, tmp_path / "output") not in (1, 2)

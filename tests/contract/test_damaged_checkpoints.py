"""Checkpoints with code, given to every command, and damaged ones: one clear message, nothing executed or written."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import treebanks
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
    "fairseq-train resumed": (SYNTAX, TRAIN.replace("{out}", "{folder}")),
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
    places = {"bin": world.bin, "text": world.text, "given": given, "out": out, "arch": arch, "folder": given.parent}
    name, *arguments = line.format(**places).split()
    return commands.run(name, *arguments) if name.startswith("fairseq-") else program.verb_module(name).main(arguments)


def examine(command, kind, world, tmp_path, capsys):
    """A command says of a damaged checkpoint in one message what it is; it writes and executes nothing."""
    state = torch.load(world.models[COMMANDS[command][0]], map_location="cpu", weights_only=True)
    folder, victim = tmp_path / "wrong", tmp_path / "executed"
    folder.mkdir()
    path = folder / "checkpoint_last.pt"
    path.write_bytes(CHECKPOINTS[kind](state, victim))
    capsys.readouterr()
    message = ""
    try:
        assert run(command, world, path, folder / "output") == 1
    except (ValueError, OSError) as error:
        message = str(error)
    except Exception as error:  # fairseq has no better one for a model that does not fit
        assert type(error) is Exception, error
        message = str(error)
    said = capsys.readouterr().err
    if not message:  # there may be a note before
        *_, message = [line for line in said.splitlines() if line.startswith(command.split(" ")[0])]
    assert str(path) in message and "\n" not in message.strip() and len(message) < 600 + 2 * len(str(tmp_path))
    assert "weights_only" not in message + said and "Traceback" not in said
    output = folder / "output"
    assert not victim.exists() and {*folder.iterdir()} <= {path, output}
    assert not (output.is_file() or list(output.glob("*.pt")))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_a_checkpoint_that_is_right_and_refuses_code(command, world, tmp_path, capsys):
    (tmp_path / "right").mkdir()
    right = Path(shutil.copy(world.models[COMMANDS[command][0]], tmp_path / "right" / "checkpoint_last.pt"))
    assert run(command, world, right, tmp_path / "right" / "output") not in (1, 2)
    examine(command, "code in a dict", world, tmp_path, capsys)


@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_every_kind_of_damage_is_one_message(kind, world, tmp_path, capsys):
    examine("fairseq-generate", kind, world, tmp_path, capsys)

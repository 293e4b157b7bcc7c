"""The commands as users type them: options, orders of import, spellings of --user-dir."""

import json

import pytest
import torch
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.options import get_preprocessing_parser
from fairseq_cli import preprocess
from integration import commands
from integration.commands import OPTIONS, PACKAGE, binarize, run_process

SIZES = ["", "_tiny", "_iwslt_de_en", "_wmt_en_de", "_wmt_en_de_big"]
# a published name stays; that each system has those of its page: tests/contract/test_rooms.py
TRANSFORMERS = [f"{name}_transformer" for name in ("pascal", "lisa", "planted", "tag", "dasa")]
FEW = ["--max-update", "2"]
SHORT = ["--gen-subset", "valid", "--beam", "1", "--max-len-b", "5"]
VALID = list(range(61))


LSTM = [f"--{name}=16" for name in ("encoder-embed-dim", "encoder-hidden-size", "decoder-embed-dim")]
LSTM += [f"--{name}=16" for name in ("decoder-hidden-size", "decoder-out-embed-dim")]


# an architecture of each class of models: others are presets, which tests/contract/test_architectures.py tries
CLASS = {ARCH_MODEL_REGISTRY[arch]: arch for arch in OPTIONS}.values()


@pytest.mark.parametrize(
    ("arch", "options"),
    [*((arch, OPTIONS[arch]) for arch in CLASS), ("lisa_transformer_tiny", []), ("lstm", LSTM)],
    ids=lambda o: o if isinstance(o, str) else " ",
)
def test_every_system_trains_and_generates(data_bin, tmp_path, arch, options):
    """Some with --task and some without, which is the same task; LISA also without its criterion."""
    task = ["--task", "syntax_translation"] if len(arch) % 2 else []
    log = commands.train(data_bin, tmp_path, arch, *options, *task, *FEW)
    assert [int(record["num_updates"]) for record in commands.records(log) if "loss" in record] == [1, 2]
    checkpoint = tmp_path / "checkpoint_last.pt"
    assert sorted(commands.generate(data_bin, checkpoint, *SHORT, *task)) == VALID
    # options are plain values
    model = vars(torch.load(checkpoint, weights_only=True)["cfg"]["model"])
    assert model["arch"] == arch and type(model.get("sa_context", "")) is str


def test_directory_command_from_elsewhere(data_bin, tmp_path):
    """`--user-dir "$(fairseq-syntax dir)"` in a directory without the package."""
    printed = run_process("bash", "-c", "fairseq-syntax dir 2> /dev/null", cwd=tmp_path)
    assert printed == f"{PACKAGE.resolve()}\n"
    model = ["--arch", "lisa_transformer_tiny", *OPTIONS["lisa_transformer_tiny"], "--save-dir", tmp_path / "model"]
    arguments = [data_bin, "--user-dir", printed.strip(), *commands.TRAINING, *model, "--max-update", "1"]
    log = run_process("fairseq-train", *arguments, cwd=tmp_path)
    assert any("parse_loss" in record for record in commands.records(log))


# Prints what fairseq's registries hold before and after.
_REGISTRIES = """
import json, sys
from argparse import Namespace
import fairseq.tasks, fairseq.models, fairseq.criterions
from fairseq import utils
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.tasks import TASK_REGISTRY

def architectures():
    return {name: f"{cls.__module__}.{cls.__name__}" for name, cls in ARCH_MODEL_REGISTRY.items()}

before = architectures()
for step in sys.argv[1:]:
    if step == "import":
        import fairseq_syntax
    elif step == "register":
        import fairseq_syntax
        fairseq_syntax.register()
    else:
        utils.import_user_module(Namespace(user_dir=step))
print("\\n" + json.dumps({
    "before": before,
    "after": architectures(),
    "criterion": CRITERION_REGISTRY["label_smoothed_cross_entropy_with_heads"].__module__,
    "task": TASK_REGISTRY["syntax_translation"].__module__,
}))
"""


def test_orders_of_import(tmp_path):
    """Everything is registered once, whatever comes later."""
    steps = [PACKAGE, "import", "register", "register"]
    program = tmp_path / "registries.py"
    program.write_text(_REGISTRIES)
    output = run_process(program, *steps, cwd=tmp_path)
    found = json.loads(output.splitlines()[-1])
    own = {
        name: f"{c.__module__}.{c.__name__}"
        for name, c in ARCH_MODEL_REGISTRY.items()
        if "fairseq_syntax." in c.__module__
    }
    assert {f"{name}{size}" for name in TRANSFORMERS for size in SIZES} <= own.keys()
    # no name was fairseq's before, none of fairseq's is changed
    assert not own.keys() & found["before"].keys()
    assert {name: cls for name, cls in found["after"].items() if found["before"].get(name) != cls} == own
    assert found["criterion"] == "fairseq_syntax.systems.lisa.criterion"
    assert found["task"] == "fairseq_syntax.task"


def test_data_without_trees_trains_models_that_need_none(corpus, tmp_path):
    splits = [part for split in ("train", "valid") for part in (f"--{split}pref", str(corpus / split))]
    data = tmp_path / "data"
    arguments = ["-s", "en", "-t", "de", *splits, "--destdir", str(data), "--joined-dictionary"]
    preprocess.main(get_preprocessing_parser().parse_args(arguments))
    commands.train(data, tmp_path / "sa_nmt", "sa_nmt_tiny", *FEW)
    assert sorted(commands.generate(data, tmp_path / "sa_nmt" / "checkpoint_last.pt", *SHORT)) == VALID
    with pytest.raises(ValueError, match="this data has no trees, but the model needs parents"):
        commands.train(data, tmp_path / "pascal", "pascal_transformer_tiny", *FEW)
    binarize({"train": corpus / "train", "valid": corpus / "valid"}, data, "--only-syntax")
    commands.train(data, tmp_path / "pascal", "pascal_transformer_tiny", *FEW)

"""The commands as users type them: options, orders of import, spellings of --user-dir."""

import json
import sys

import pytest
import torch
from fairseq.models import ARCH_MODEL_REGISTRY
from integration import commands
from integration.commands import OPTIONS, PACKAGE, binarize, run_process

from fairseq_syntax.tools import linearize

SIZES = ["", "_tiny", "_iwslt_de_en", "_wmt_en_de", "_wmt_en_de_big"]
CLASSES = {
    "pascal_transformer": "pascal.model.PascalTransformerModel",
    "lisa_transformer": "lisa.model.LisaTransformerModel",
    "planted_transformer": "planted.model.PlantedTransformerModel",
    "tag_transformer": "tags.model.TagTransformerModel",
    "sdatt_transformer": "distance_transformers.sdatt_transformer.SyntaxDirectedTransformerModel",
    "dasa_transformer": "distance_transformers.dasa.DistanceBiasTransformerModel",
}
DIRECTED = ["global_att", "local_att", "flexible_att", "chen17", "sdatt"]
DIRECTED += [f"global_plus_{kind}" for kind in ("local", "flexible", "chen17", "sdatt")]
SYSTEMS = ["fa_nmt", "fa_nmt_shared", "sa_nmt", "sa_nmt_shared", "sa_nmt_hard", "sa_nmt_1set"]
GRAPHS = ["lgp_nmt", "lgp_tiny", "lgp_small", "lgp_medium", "lgp_large"]
FEW = ["--max-update", "3"]
SHORT = ["--gen-subset", "valid", "--beam", "1", "--max-len-b", "5"]
VALID = list(range(61))


def test_train_and_generate_as_documented(data_bin, tmp_path, repository):
    """No --task, a relative --user-dir, all else fairseq's defaults; from the checkout."""
    plugin = ["--user-dir", "fairseq_syntax"]
    model = ["--arch", "pascal_transformer_tiny", "--optimizer", "adam", "--lr", "0.001", "--max-tokens", "1500"]
    options = [*plugin, *model, "--max-update", "3", "--save-dir", tmp_path, "--no-epoch-checkpoints", "--cpu"]
    run_process("fairseq-train", data_bin, *options, cwd=repository)
    path = ["--path", tmp_path / "checkpoint_last.pt"]
    output = run_process("fairseq-generate", data_bin, *plugin, *path, *SHORT, "--max-len-a", "0", cwd=repository)
    assert sorted(commands.hypotheses(output)) == VALID


LSTM = [f"--{name}=16" for name in ("encoder-embed-dim", "encoder-hidden-size", "decoder-embed-dim")]
LSTM += [f"--{name}=16" for name in ("decoder-hidden-size", "decoder-out-embed-dim")]


@pytest.mark.parametrize(
    ("arch", "options"),
    [*OPTIONS.items(), ("lisa_transformer_tiny", []), ("lstm", LSTM)],
    ids=lambda o: o if isinstance(o, str) else " ",
)
def test_every_architecture_trains_and_generates(data_bin, tmp_path, arch, options):
    """Some with --task and some without, which is the same task; LISA also without its criterion."""
    task = ["--task", "syntax_translation"] if len(arch) % 2 else []
    log = commands.train(data_bin, tmp_path, arch, *options, *task, *FEW)
    assert [int(record["num_updates"]) for record in commands.records(log) if "loss" in record] == [1, 2, 3]
    checkpoint = tmp_path / "checkpoint_last.pt"
    assert sorted(commands.generate(data_bin, checkpoint, *SHORT, *task)) == VALID
    # options are plain values
    model = vars(torch.load(checkpoint, weights_only=True)["cfg"]["model"])
    assert model["arch"] == arch and type(model.get("sa_context", "")) is str


def test_multi_task_corpus(corpus, tmp_path):
    """fairseq-syntax linearize, then fairseq's own Transformer and preprocessing without trees."""
    languages = ["--source-lang", "en", "--target-lang", "de"]
    for split, more in (("train", []), ("valid", ["--translate-only"])):
        arguments = ["--input", str(corpus / split), "--output", str(tmp_path / split), *languages, *more]
        assert linearize.main(arguments) == 0
    lines = (tmp_path / "train.en").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2 * 403 and sum(line.startswith("<parse> ") for line in lines) == 403
    splits = [part for split in ("train", "valid") for part in (f"--{split}pref", tmp_path / split)]
    data = tmp_path / "data"
    run_process("fairseq-preprocess", *languages, *splits, "--destdir", data, "--joined-dictionary", cwd=tmp_path)
    commands.train(data, tmp_path / "model", "transformer_tiny", "--share-all-embeddings", *FEW)
    assert sorted(commands.generate(data, tmp_path / "model" / "checkpoint_last.pt", *SHORT)) == VALID


def test_directory_command_from_elsewhere(data_bin, tmp_path):
    """`--user-dir "$(fairseq-syntax dir)"` in a directory without the package."""
    command = """
        set -e
        dir="$(fairseq-syntax dir)"
        fairseq-train "$@" --user-dir "$dir"
    """
    model = ["--arch", "lisa_transformer_tiny", *OPTIONS["lisa_transformer_tiny"], "--save-dir", tmp_path / "model"]
    arguments = [data_bin, *commands.TRAINING, *model, "--max-update", "1"]
    log = run_process("bash", "-c", command, "bash", *arguments, cwd=tmp_path)
    assert any("parse_loss" in record for record in commands.records(log))
    printed = run_process("bash", "-c", "fairseq-syntax dir 2> /dev/null", cwd=tmp_path)
    assert printed == f"{PACKAGE.resolve()}\n"


# Prints what fairseq's registries hold before and after; a fresh interpreter each, as orders of import matter.
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


@pytest.mark.parametrize(
    "steps",
    [
        ["import", "DIRECTORY", "DIRECTORY"],
        ["LINK", "DIRECTORY", "import", "register", "register"],
    ],
    ids=" ".join,
)
def test_orders_of_import(tmp_path, steps):
    """Everything is registered once, whatever comes first; a symbolic link is the directory it leads to."""
    link = tmp_path / "elsewhere" / "fairseq_syntax"
    link.parent.mkdir()
    link.symlink_to(PACKAGE, target_is_directory=True)
    places = {"DIRECTORY": PACKAGE, "LINK": link}
    output = run_process(sys.executable, "-c", _REGISTRIES, *(places.get(step, step) for step in steps), cwd=tmp_path)
    found = json.loads(output.splitlines()[-1])
    own = {
        name: f"{c.__module__}.{c.__name__}"
        for name, c in ARCH_MODEL_REGISTRY.items()
        if "fairseq_syntax." in c.__module__
    }
    fixed = {f"{model}{size}": f"fairseq_syntax.systems.{name}" for model, name in CLASSES.items() for size in SIZES}
    for size in ("", "_tiny"):
        fixed[f"nmt_lstm{size}"] = "fairseq_syntax.systems.recurrent.model.RecurrentModel"
        fixed |= {f"{system}{size}": "fairseq_syntax.systems.sa_nmt.model.SyntaxAttentionModel" for system in SYSTEMS}
        fixed |= {f"{system}{size}": "fairseq_syntax.systems.sdatt.model.SyntaxDirectedModel" for system in DIRECTED}
    fixed |= dict.fromkeys(GRAPHS, "fairseq_syntax.systems.lgp.model.LatentGraphModel")
    fixed |= dict.fromkeys(
        ("lgp_parser", "lgp_parser_tiny"), "fairseq_syntax.systems.parser.model.LatentGraphParserModel"
    )
    constituents = "fairseq_syntax.systems.latent_tree.model.LatentTreeRNNG"
    fixed |= dict.fromkeys(("latent_tree_rnng", "latent_tree_rnng_tiny"), constituents)
    fixed["char_lstm"] = "fairseq_syntax.systems.recurrent.model.RecurrentModel"
    # these names stay
    assert fixed.items() <= own.items()
    # no name was fairseq's before, none of fairseq's is changed
    assert not own.keys() & found["before"].keys()
    assert {name: cls for name, cls in found["after"].items() if found["before"].get(name) != cls} == own
    assert found["criterion"] == "fairseq_syntax.systems.lisa.criterion"
    assert found["task"] == "fairseq_syntax.task"


def test_data_without_trees_trains_models_that_need_none(corpus, tmp_path):
    splits = [part for split in ("train", "valid") for part in (f"--{split}pref", corpus / split)]
    languages = ["--source-lang", "en", "--target-lang", "de"]
    data = tmp_path / "data"
    run_process("fairseq-preprocess", *languages, *splits, "--destdir", data, "--joined-dictionary", cwd=tmp_path)
    for arch in ("transformer_tiny", "sa_nmt_tiny"):
        commands.train(data, tmp_path / arch, arch, *FEW)
        assert sorted(commands.generate(data, tmp_path / arch / "checkpoint_last.pt", *SHORT)) == VALID
    with pytest.raises(ValueError, match="this data has no trees, but the model needs parents"):
        commands.train(data, tmp_path / "pascal", "pascal_transformer_tiny", *FEW)
    binarize({"train": corpus / "train", "valid": corpus / "valid"}, data, "--only-syntax")
    commands.train(data, tmp_path / "pascal", "pascal_transformer_tiny", *FEW)

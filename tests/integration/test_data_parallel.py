"""Two processes make the updates of one process that collects the gradients of two batches."""

import json
import shlex
from itertools import pairwise

import pytest
import torch
import treebanks
from integration import commands
from integration.commands import OPTIONS, PACKAGE, run_process

PASCAL = "pascal_transformer_tiny"


@pytest.fixture
def launcher(repository):
    return repository / "examples" / "distributed" / "launch.sh"


def assert_equal_parameters(actual, expected):
    actual, expected = commands.parameters(actual), commands.parameters(expected)
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(actual[name], value, atol=1e-6, rtol=0, msg=name)


# five batches: the last one has no other beside it
BATCHES = ["--train-subset", "valid", "--batch-size", "13", "--required-batch-size-multiple", "1", "--max-update", "5"]
# Adam divides by the size of a gradient, also of one that is nothing but rounding
STEPS = ["--optimizer", "sgd", "--momentum", "0.9", "--lr", "0.1", "--clip-norm", "1"]
# a Transformer, and a recurrent system whose parser is learned, too
FAMILIES = {"pascal": [PASCAL, *OPTIONS[PASCAL]], "lgp latent": ["lgp_tiny", "--lgp-graph", "latent"]}


@pytest.mark.parametrize("name", FAMILIES)
def test_two_processes_equal_two_batches_an_update(data_bin, tmp_path, name):
    """The same updates, losses of validation and parameters; without dropout, which draws other masks."""
    given = [part for part in commands.TRAINING if part != "--disable-validation"]
    arguments = [data_bin, *given, "--arch", *FAMILIES[name], "--dropout", "0", *BATCHES, *STEPS]
    one, two = tmp_path / "one", tmp_path / "two"
    commands.run("fairseq-train", *arguments, "--update-freq", 2, "--save-dir", one)
    commands.train_in_two(tmp_path, *arguments, "--save-dir", two)
    assert_equal_parameters(two / "checkpoint_last.pt", one / "checkpoint_last.pt")
    states = [torch.load(path / "checkpoint_last.pt", weights_only=True) for path in (one, two)]
    assert [state["optimizer_history"][-1]["num_updates"] for state in states] == [5, 5]
    losses = [state["extra_state"]["val_loss"] for state in states]
    assert losses[1] == pytest.approx(losses[0], abs=2e-3)  # three digits are kept


def test_two_processes_with_parse_loss(launcher, data_bin, tmp_path):
    one, two, arch = tmp_path / "one", tmp_path / "two", "lisa_transformer_tiny"
    # its log figures must be summed over the processes, too; arguments with quotes arrive whole
    more = ["--max-update", "2", "--eval-bleu-args", '{"beam": 1, "max_len_b": 9}', "--eval-bleu-detok-args", "{}"]
    more = [*OPTIONS[arch], "--dropout", "0", *more]
    log = commands.train(data_bin, one, arch, *more, "--update-freq", 2)
    expected = [record for record in commands.records(log) if "loss" in record]
    # of TRAINING, the launcher sets the first three itself
    given = [data_bin, "--user-dir", PACKAGE, "--arch", arch, *commands.TRAINING[3:], *more, "--save-dir", two]
    log = run_process("bash", launcher, *given, cwd=tmp_path, CPU_PROCESSES="2")
    found = [record for record in commands.records(log) if "loss" in record]
    assert len(found) == len(expected) == 2
    for name in ("loss", "parse_loss", "head_accuracy", "uas"):
        assert [float(r[name]) for r in found] == pytest.approx([float(r[name]) for r in expected], abs=2e-3), name
    assert_equal_parameters(two / "checkpoint_last.pt", one / "checkpoint_last.pt")


def test_two_processes_train_a_parser(tmp_path):
    """In place of a fourth batch of tags, fairseq takes one of the validation; what tags do not use rests."""
    folder = treebanks.make(tmp_path / "treebank")
    options = [*treebanks.TRAINING, "--lr", "0.1", "--max-epoch", "2", "--num-workers", "0", "--no-epoch-checkpoints"]
    options += ["--lgp-lstm-decay", "0.1", "--lgp-classifier-decay", "0.1", "--cpu"]
    one, two = tmp_path / "one", tmp_path / "two"
    commands.run("fairseq-train", folder, *options, "--update-freq", 2, "--save-dir", one)
    commands.train_in_two(tmp_path, folder, *options, "--ddp-backend", "legacy_ddp", "--save-dir", two)
    assert_equal_parameters(two / "checkpoint_last.pt", one / "checkpoint_last.pt")


def test_launcher_prints_what_it_would_run(launcher, tmp_path):
    given = ["data bin", "--eval-bleu-args", json.dumps({"beam": 4, "it's": '"'})]
    where = {"NNODES": "2", "NODE_RANK": "1", "MASTER_ADDR": "first", "MASTER_PORT": "1234", "GPUS_PER_NODE": "4"}
    words = shlex.split(run_process("bash", launcher, *given, cwd=tmp_path, DRY_RUN="1", **where))
    assert words[0] == "python" and words[1].endswith("torchrun.py") and words[-len(given) :] == given
    shown = "--nnodes 2 --nproc_per_node 4 --node_rank 1 --master_addr first --master_port 1234".split()
    assert {*zip(shown[::2], shown[1::2], strict=True)} <= {*pairwise(words)}
    said = run_process("bash", launcher, "data", cwd=tmp_path, DRY_RUN="1", CPU_PROCESSES="1")
    assert "one process only" in said

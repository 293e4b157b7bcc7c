"""A run that was killed and goes on is the run that was not: every loss, every parameter."""

import signal

import torch
from integration import commands
from integration.commands import KILLED, OPTIONS, PACKAGE

ARCH = "pascal_transformer_tiny"
# three sources of random numbers
RANDOM = ["--dropout", "0.3", "--pascal-parent-ignoring", "0.3", "--parse-dropout", "0.3"]
# eight updates an epoch
MODEL = [*OPTIONS[ARCH], *RANDOM, "--train-subset", "valid", "--batch-size", "8"]
VALIDATION = ["--lr-scheduler", "inverse_sqrt", "--warmup-updates", "10"]


def arguments(data_bin, directory, *options):
    validated = [part for part in commands.TRAINING if part != "--disable-validation"]
    return [data_bin, "--arch", ARCH, *validated, *MODEL, *VALIDATION, "--save-dir", directory, *options]


def train(data_bin, directory, *options) -> list[dict]:
    return commands.records(commands.run("fairseq-train", *arguments(data_bin, directory, *options)))


def train_killed(data_bin, directory, when: str, *options) -> None:
    given = [*when.split(), *arguments(data_bin, directory, *options), "--user-dir", PACKAGE]
    commands.run_process(KILLED, *given, cwd=directory.parent, status=-signal.SIGKILL)


def test_no_half_written_checkpoint_has_a_final_name(data_bin, tmp_path):
    """Killed while it writes the second checkpoint, then while it copies one to checkpoint_last."""
    whole, directory = tmp_path / "whole", tmp_path / "run"
    uninterrupted = train(data_bin, whole, "--max-epoch", "2")
    options = ["--max-epoch", "2", "--save-interval-updates", "3", "--disable-validation"]
    for when in ("save 2", "copy 1"):
        train_killed(data_bin, directory, when, *options)
        left = sorted(path.name for path in directory.iterdir())
        assert any(name.endswith(".tmp") for name in left), left
        for path in directory.glob("*.pt"):
            assert commands.parameters(path), path
    found = train(data_bin, directory, "--max-epoch", "2")
    start = min(int(record["num_updates"]) for record in found if "loss" in record)
    assert start > 1
    for key in ("loss", "train_loss", "valid_loss"):
        expected = [record for record in uninterrupted if key in record]
        expected = [record for record in expected if key != "loss" or int(record["num_updates"]) >= start]
        assert expected and [record for record in found if key in record] == expected
    resumed, expected = (commands.parameters(path / "checkpoint_last.pt") for path in (directory, whole))
    assert resumed.keys() == expected.keys()
    assert all(torch.equal(resumed[name], value) for name, value in expected.items())


def test_patience_goes_on_counting(data_bin, tmp_path):
    """By the published metric, turned around: no validation is better than the first."""
    options = ["--maximize-best-checkpoint-metric", "--batch-size", "61", "--patience", "2", "--max-epoch", "5"]
    assert train(data_bin, tmp_path / "parts", *options, "--max-epoch", "2")[-1]["epoch"] == 2
    assert train(data_bin, tmp_path / "parts", *options)[-1]["epoch"] == 3
    # who resets the meters begins anew
    reset = [*options, "--reset-meters", "--restore-file", tmp_path / "parts" / "checkpoint_last.pt"]
    assert train(data_bin, tmp_path / "reset", *reset)[-1]["epoch"] == 5

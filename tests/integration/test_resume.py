"""A run that was killed and goes on is the run that was not: every loss, every parameter."""

import signal

import pytest
import torch
from integration import commands
from integration.commands import KILLED, OPTIONS, PACKAGE

ARCH = "pascal_transformer_tiny"
# three sources of random numbers
RANDOM = ["--dropout", "0.3", "--pascal-parent-ignoring", "0.3", "--parse-dropout", "0.3"]
# eight updates an epoch
MODEL = [*OPTIONS[ARCH], *RANDOM, "--train-subset", "valid", "--batch-size", "8"]
VALIDATION = ["--lr-scheduler", "inverse_sqrt", "--warmup-updates", "10"]


def train(data_bin, directory, *options) -> list[dict]:
    arguments = [part for part in commands.TRAINING if part != "--disable-validation"]
    log = commands.run(
        "fairseq-train", data_bin, "--arch", ARCH, *arguments, *MODEL, *VALIDATION, "--save-dir", directory, *options
    )
    return commands.records(log)


def train_killed(data_bin, directory, when: str, *options) -> list[dict]:
    arguments = [part for part in commands.TRAINING if part != "--disable-validation"]
    log = commands.run_process(
        *(KILLED, *when.split(), data_bin, "--user-dir", PACKAGE, "--arch", ARCH),
        *(*arguments, *MODEL, *VALIDATION, "--save-dir", directory, *options),
        cwd=directory.parent,
        status=-signal.SIGKILL,
    )
    return commands.records(log)


@pytest.fixture(scope="module")
def uninterrupted(data_bin, tmp_path_factory):
    """(records, parameters) of three epochs without interruption."""
    directory = tmp_path_factory.mktemp("uninterrupted")
    found = train(data_bin, directory, "--max-epoch", "3")
    return found, commands.parameters(directory / "checkpoint_last.pt")


def assert_continues(found, directory, uninterrupted, first_epoch, validated=True):
    """Updates and epochs after the interruption are those of the uninterrupted run."""
    expected, parameters = uninterrupted
    start = min(int(record["num_updates"]) for record in found if "loss" in record)
    expected = [record for record in expected if record["epoch"] >= first_epoch]
    expected = [record for record in expected if "loss" not in record or int(record["num_updates"]) >= start]
    for key in ("loss", "train_loss", *(["valid_loss"] if validated else [])):
        tail = [record for record in expected if key in record]
        assert tail and [record for record in found if key in record] == tail
    resumed = commands.parameters(directory / "checkpoint_last.pt")
    assert resumed.keys() == parameters.keys()
    assert all(torch.equal(resumed[name], value) for name, value in parameters.items())


def test_resume_after_a_kill_in_the_second_epoch(data_bin, tmp_path, uninterrupted):
    updates = [record for record in uninterrupted[0] if "loss" in record]
    epoch = sum(record["epoch"] == 1 for record in updates)
    assert epoch >= 6
    # saved every third update; the kill loses the one update after the last checkpoint
    saved = (epoch + 5) // 3 * 3
    kill = saved + 1
    # every save would validate, and stopping the workers of every validation takes seconds
    options = ["--max-epoch", "3", "--num-workers", "2", "--save-interval-updates", "3", "--disable-validation"]
    options += ["--keep-interval-updates", "1"]
    before = train_killed(data_bin, tmp_path / "run", f"update {kill}", *options)
    assert [record for record in before if "loss" in record] == updates[: len([r for r in before if "loss" in r])]
    assert epoch < saved
    names = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert f"checkpoint_2_{saved}.pt" in names, names
    found = train(data_bin, tmp_path / "run", *options)
    assert int(next(record for record in found if "loss" in record)["num_updates"]) == saved + 1
    assert_continues(found, tmp_path / "run", uninterrupted, 2, validated=False)


def test_resume_at_the_end_of_an_epoch(data_bin, tmp_path, uninterrupted):
    train(data_bin, tmp_path, "--max-epoch", "1")
    assert_continues(train(data_bin, tmp_path, "--max-epoch", "3"), tmp_path, uninterrupted, 2)


def test_no_half_written_checkpoint_has_a_final_name(data_bin, tmp_path, uninterrupted):
    """Killed while it writes the second checkpoint, then while it copies one to checkpoint_last."""
    directory = tmp_path / "run"
    options = ["--max-epoch", "3", "--save-interval-updates", "3", "--disable-validation"]
    for when in ("save 2", "copy 1"):
        train_killed(data_bin, directory, when, *options)
        left = sorted(path.name for path in directory.iterdir())
        assert any(name.endswith(".tmp") for name in left), left
        for path in directory.glob("*.pt"):
            assert commands.parameters(path), path
    assert_continues(train(data_bin, directory, "--max-epoch", "3"), directory, uninterrupted, 1)


# by the published metric, turned around: no validation is better than the first
NO_PROGRESS = ["--maximize-best-checkpoint-metric", "--batch-size", "61"]


def test_patience_goes_on_counting(data_bin, tmp_path):
    options = [*NO_PROGRESS, "--patience", "2", "--max-epoch", "5"]
    assert train(data_bin, tmp_path / "whole", *options)[-1]["epoch"] == 3
    assert train(data_bin, tmp_path / "parts", *options, "--max-epoch", "2")[-1]["epoch"] == 2
    assert train(data_bin, tmp_path / "parts", *options)[-1]["epoch"] == 3
    # who resets the meters begins anew
    reset = [*options, "--reset-meters", "--restore-file", tmp_path / "whole" / "checkpoint_last.pt"]
    assert train(data_bin, tmp_path / "reset", *reset)[-1]["epoch"] == 5


def test_patience_of_the_learning_rate_goes_on_counting(data_bin, tmp_path):
    options = [*NO_PROGRESS, "--lr-scheduler", "reduce_lr_on_plateau", "--warmup-updates", "0", "--lr-patience", "1"]
    options += ["--lr-shrink", "0.5", "--max-epoch", "4"]

    def rates(records):
        return {record["epoch"]: float(record["train_lr"]) for record in records if "train_lr" in record}

    assert rates(train(data_bin, tmp_path / "whole", *options)) == {1: 5e-3, 2: 5e-3, 3: 5e-3, 4: 2.5e-3}
    train(data_bin, tmp_path / "parts", *options, "--max-epoch", "3")
    assert rates(train(data_bin, tmp_path / "parts", *options)) == {4: 2.5e-3}

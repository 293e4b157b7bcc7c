"""Repairs of fairseq: each acts, and is in the documentation; another fairseq is let alone."""

import argparse
import re
from pathlib import Path
from unittest.mock import MagicMock, patch

import fairseq
import pytest
import torch
from contract.command_lines import REPOSITORY
from fairseq import checkpoint_utils, utils
from fairseq.file_io import PathManager
from fairseq.optim.lr_scheduler.reduce_lr_on_plateau import ReduceLROnPlateauLRSchedule
from fairseq.tasks import TASK_REGISTRY
from fairseq.trainer import Trainer
from omegaconf import OmegaConf

from fairseq_syntax.compat import REPAIRS, repair_fairseq


def resume(folder: Path, arch: str = "x", criterion: str = "c", task: str = "t") -> MagicMock:
    """Let a trainer load what one of x, c and t has saved between two epochs; returns the trainer."""
    place = folder / "checkpoint_last.pt"
    state = {
        "args": None,
        "cfg": {"model": {"arch": "x", "_name": "x"}, "criterion": {"_name": "c"}, "task": {"_name": "t"}},
        "model": {},
        "optimizer_history": [{"num_updates": 5}],
        "extra_state": {"train_iterator": {"epoch": 2, "iterations_in_epoch": 0}, "val_loss": 1.5},
    }
    torch.save(state, place)
    trainer = MagicMock(
        data_parallel_world_size=1, data_parallel_rank=0, tpu=False, is_fsdp=False, checkpoint_suffix=""
    )
    trainer.cfg = OmegaConf.create(
        {
            "model": {"arch": arch, "_name": arch},
            "criterion": {"_name": criterion},
            "task": {"_name": task},
            "checkpoint": {
                **{"save_dir": str(folder), "restore_file": place.name},
                "load_checkpoint_on_all_dp_ranks": False,
            },
            "ema": {"store_ema": False},
            "distributed_training": {"zero_sharding": "none"},
        }
    )
    trainer.get_criterion.return_value = torch.nn.Module()
    with patch.object(checkpoint_utils, "load_checkpoint_to_cpu", return_value=state):
        Trainer.load_checkpoint(trainer, str(place))
    return trainer


def test_namespaces_load(tmp_path):
    torch.save(argparse.Namespace(arch="x"), tmp_path / "namespace.pt")
    assert torch.load(tmp_path / "namespace.pt", weights_only=True).arch == "x"


def test_a_copy_is_renamed_into_place(tmp_path):
    for name in ("from", "to"):
        (tmp_path / name).write_text(name)
    before = (tmp_path / "to").stat().st_ino
    PathManager.copy(str(tmp_path / "from"), str(tmp_path / "to"), overwrite=True)
    assert (tmp_path / "to").read_text() == "from" and (tmp_path / "to").stat().st_ino != before


def test_a_resumed_run_makes_the_step_of_its_last_validation(tmp_path):
    assert (1, 1.5) in [call.args for call in resume(tmp_path).lr_step.call_args_list]


def test_bad_epochs_are_saved():
    schedule = MagicMock()
    schedule.lr_scheduler.num_bad_epochs = 3
    assert ReduceLROnPlateauLRSchedule.state_dict(schedule)["num_bad_epochs"] == 3


def test_unknown_words_of_an_empty_line_stay():
    assert utils.replace_unk("<unk>", "", [0], {}, "<unk>") == "<unk>"


def test_the_task_is_the_default_one():
    assert TASK_REGISTRY["translation"] is TASK_REGISTRY[None] is TASK_REGISTRY["syntax_translation"]


def test_the_documentation_lists_them():
    page = (REPOSITORY / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \|", page.split("\n## Repairs of fairseq\n")[1], re.MULTILINE)
    assert sorted(rows) == sorted(REPAIRS)


def test_another_fairseq_is_let_alone(monkeypatch, caplog):
    before = Trainer.load_checkpoint, utils.replace_unk, PathManager.copy
    monkeypatch.setattr(fairseq, "__version__", "0.13.1")
    repair_fairseq.__wrapped__()
    assert (Trainer.load_checkpoint, utils.replace_unk, PathManager.copy) == before
    assert "fairseq 0.13.1 is not repaired, as 0.12.x would be" in caplog.text


@pytest.mark.parametrize(
    "system, message",
    [
        ({"arch": "y"}, "--arch x, not y"),
        ({"criterion": "y"}, "--criterion c, not y"),
        ({"task": "y"}, "--task t, not y"),
        ({}, None),
    ],
)
def test_another_system_in_the_save_folder_is_named(system, message, tmp_path):
    if message is None:
        assert resume(tmp_path, **system)
        return
    with pytest.raises(ValueError, match=f"checkpoint_last.pt was trained with {message}; .*--finetune-from-model"):
        resume(tmp_path, **system)


def test_other_errors_are_not_laid_on_the_dictionaries(monkeypatch):
    """Such as those of memory, or of a model of one's own."""

    def load(filenames, arg_overrides=None, task=None, strict=True):
        raise RuntimeError("can't allocate memory")

    monkeypatch.setattr(checkpoint_utils, "load_model_ensemble_and_task", load)
    monkeypatch.setattr(checkpoint_utils, "load_checkpoint_to_cpu", load)
    REPAIRS["bad-checkpoints"]()
    with pytest.raises(RuntimeError, match=r"^can't allocate memory$"):
        checkpoint_utils.load_model_ensemble_and_task(["x.pt"])

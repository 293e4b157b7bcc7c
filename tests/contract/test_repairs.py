"""Repairs of fairseq: each acts, lets another fairseq alone, and is in the documentation."""

import argparse
import re
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock, patch

import fairseq.distributed.utils
import pytest
import torch
from contract.command_lines import REPOSITORY
from fairseq import checkpoint_utils, file_utils, utils
from fairseq.data import FairseqDataset, codedataset
from fairseq.data.fasta_dataset import FastaDataset
from fairseq.data.iterators import EpochBatchIterator
from fairseq.file_io import PathManager
from fairseq.optim.lr_scheduler.reduce_lr_on_plateau import ReduceLROnPlateauLRSchedule
from fairseq.tasks import TASK_REGISTRY, FairseqTask
from fairseq.trainer import Trainer

from fairseq_syntax.compat import REPAIRS, apply


class Numbers(FairseqDataset):
    """Three numbers."""

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return index

    def collater(self, samples):
        return samples

    def num_tokens(self, index):
        return self.size(index)

    def size(self, index):
        return 1


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
    trainer.cfg = SimpleNamespace(
        model={"arch": arch, "_name": arch},
        criterion={"_name": criterion},
        task={"_name": task},
        checkpoint=SimpleNamespace(
            save_dir=str(folder), restore_file=place.name, load_checkpoint_on_all_dp_ranks=False
        ),
        ema=SimpleNamespace(store_ema=False),
        distributed_training=SimpleNamespace(zero_sharding="none"),
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


def test_workers_end_with_their_epoch():
    task = FairseqTask(argparse.Namespace())
    first = task.get_batch_iterator(Numbers(), max_sentences=1, num_workers=1, disable_iterator_cache=True)
    assert sorted(first.next_epoch_itr()) == [[0], [1], [2]]
    assert first.dataloader is not None
    task.get_batch_iterator(Numbers(), max_sentences=1, num_workers=1, disable_iterator_cache=True)
    assert first.dataloader is None


def test_unknown_words_of_an_empty_line_stay():
    assert utils.replace_unk("<unk>", "", [0], {}, "<unk>") == "<unk>"


def test_the_task_is_the_default_one():
    assert TASK_REGISTRY["translation"] is TASK_REGISTRY[None] is TASK_REGISTRY["syntax_translation"]


def test_the_documentation_lists_them():
    page = (REPOSITORY / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \|", page.split("\n## Repairs of fairseq\n")[1], re.MULTILINE)
    assert sorted(rows) == sorted(REPAIRS)


def another(unexpected):
    """Takes the place of a function of fairseq's."""
    raise AssertionError


# repair -> where another fairseq may be another
PLACES = {
    "checkpoint-classes": [(fairseq.distributed.utils, "_TensorPlaceholder")],
    "bad-checkpoints": [
        (checkpoint_utils, "load_checkpoint_to_cpu"),
        (checkpoint_utils, "load_model_ensemble_and_task"),
    ],
    "data-as-code": [(FastaDataset, "exists"), (file_utils, "load_archive_file"), (codedataset, "parse_manifest")],
    "whole-copies": [(PathManager, "copy")],
    "save-folder": [(Trainer, "load_checkpoint")],
    "last-validation": [(Trainer, "load_checkpoint")],
    "patience": [
        *((Trainer, "save_checkpoint"), (Trainer, "load_checkpoint")),
        *((ReduceLROnPlateauLRSchedule, "state_dict"), (ReduceLROnPlateauLRSchedule, "load_state_dict")),
    ],
    "loader-processes": [(FairseqTask, "get_batch_iterator"), (EpochBatchIterator, "__init__")],
    "unknown-words": [(utils, "replace_unk")],
}


@pytest.mark.parametrize("name, place", [(name, place) for name, places in PLACES.items() for place in places])
def test_another_fairseq_is_let_alone(name, place, monkeypatch, caplog):
    if name == "checkpoint-classes":
        monkeypatch.delattr(*place)  # a class, which is not called but imported
    else:
        monkeypatch.setattr(*place, another)
    everything = {each for places in PLACES.values() for each in places}
    before = {each: getattr(*each, None) for each in everything}
    apply(name)
    # none of several places is repaired if one does not fit
    assert {each: getattr(*each, None) for each in everything} == before
    (message,) = caplog.messages
    assert f"the repair {name} does not fit this fairseq" in message


def test_a_function_without_source_is_let_alone(monkeypatch, caplog):
    monkeypatch.setattr(utils, "replace_unk", print)
    apply("unknown-words")
    assert utils.replace_unk is print
    assert "no source of print" in caplog.text


def test_further_parameters_of_another_fairseq_are_passed_on(monkeypatch):
    seen = []

    def replace_unk(hypo_str, src_str, alignment, align_dict, unk, shout=False):
        seen.append(shout)
        return ["<eos>"]

    monkeypatch.setattr(utils, "replace_unk", replace_unk)
    apply("unknown-words")
    assert utils.replace_unk("a", "b", [], {}, "<unk>", shout=True) == ["<eos>"]
    assert utils.replace_unk("a", "", [], {}, "<unk>", shout=True) == "a"
    assert seen == [True]


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
    apply("bad-checkpoints")
    with pytest.raises(RuntimeError, match=r"^can't allocate memory$"):
        checkpoint_utils.load_model_ensemble_and_task(["x.pt"])

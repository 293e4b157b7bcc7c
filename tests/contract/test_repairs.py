"""Repairs of fairseq: each acts, can be left out by name, lets another fairseq alone, and is in the documentation."""

import json
import logging
import re
import subprocess
import sys
from pathlib import Path

import fairseq.distributed.utils
import pytest
from contract.command_lines import REPOSITORY
from contract.repair_probe import PROBES, resume
from fairseq import checkpoint_utils, file_utils, options, utils
from fairseq.data import codedataset
from fairseq.data.fasta_dataset import FastaDataset
from fairseq.data.iterators import EpochBatchIterator
from fairseq.file_io import PathManager
from fairseq.optim.lr_scheduler.reduce_lr_on_plateau import ReduceLROnPlateauLRSchedule
from fairseq.tasks import TASK_REGISTRY, FairseqTask
from fairseq.trainer import Trainer

from fairseq_syntax.compat import REPAIRS, apply
from fairseq_syntax.task import SyntaxTranslationTask

TASK = (SyntaxTranslationTask, ("translation", None))


def test_every_repair_acts_unless_it_is_left_out_by_name(tmp_path):
    # in groups of which each has another combination of names, so that few processes tell them apart
    groups = [[name for number, name in enumerate(PROBES, 1) if number >> bit & 1] for bit in range(4)]
    left_out = [[], [*PROBES], *groups]
    command = [sys.executable, Path(__file__).with_name("repair_probe.py"), tmp_path, *map(",".join, left_out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "does not fit" not in done.stderr + done.stdout
    assert PROBES.keys() == REPAIRS.keys()
    for names, line in zip(left_out, done.stdout.splitlines(), strict=True):
        assert json.loads(line) == {name: name not in names for name in PROBES}


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
    "shards": [(options, "parse_args_and_arch")],
    "same-path": [(utils, "import_user_module")],
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


def test_another_default_task_is_let_alone(monkeypatch, caplog):
    class Other:
        pass

    monkeypatch.setitem(TASK_REGISTRY, "translation", Other)
    apply("default-task", *TASK)
    assert TASK_REGISTRY["translation"] is Other
    assert "its task translation is not a base of SyntaxTranslationTask" in caplog.text


def test_a_repair_is_made_once(monkeypatch):
    """The package may be imported under two names."""
    for name, places in PLACES.items():
        before = [getattr(*place) for place in places]
        apply(name)
        assert [getattr(*place) for place in places] == before


def test_a_repair_is_noted_at_level_debug(caplog, monkeypatch):
    caplog.set_level(logging.DEBUG, "fairseq_syntax.compat.repair_registry")
    apply("default-task", *TASK)
    monkeypatch.setenv("FAIRSEQ_SYNTAX_WITHOUT", "default-task")
    apply("default-task", *TASK)
    assert [record.levelname for record in caplog.records] == ["DEBUG"] * 2
    assert caplog.messages[0].startswith("default-task: Make ")
    assert caplog.messages[1] == "default-task: left out by FAIRSEQ_SYNTAX_WITHOUT"


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

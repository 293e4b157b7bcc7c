"""Whether each repair of fairseq acts, by what fairseq then does: run as a program, in processes that share one import.

    python repair_probe.py FOLDER NAMES NAMES …

For each NAMES, a value of FAIRSEQ_SYNTAX_WITHOUT, prints a JSON object: repair -> whether it acts. Anything that is
logged as a warning is printed, too.
"""

import argparse
import json
import logging
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock, patch

import fairseq_cli.interactive  # noqa: F401  (the program of which logs are quietest; imports fairseq)
import torch
from fairseq import checkpoint_utils, options, utils
from fairseq.data import FairseqDataset
from fairseq.data.fasta_dataset import FastaDataset
from fairseq.file_io import PathManager
from fairseq.optim.lr_scheduler.reduce_lr_on_plateau import ReduceLROnPlateauLRSchedule
from fairseq.tasks import TASK_REGISTRY, FairseqTask
from fairseq.trainer import Trainer


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


def loads_namespaces(folder: Path) -> bool:
    torch.save(argparse.Namespace(arch="x"), folder / "namespace.pt")
    try:
        return torch.load(folder / "namespace.pt", weights_only=True).arch == "x"
    except Exception as error:
        assert "Unsupported global" in str(error)
        return False


def refuses_bad_checkpoints(folder: Path) -> bool:
    options = {"_name": "transformer"}
    code = {**options, "xformers_att_config": "print()"}
    loaded = [
        loads(folder, code, torch.zeros(1), "Python code"),
        loads(folder, options, torch.tensor([float("nan")]), "NaN"),
    ]
    assert loaded[0] == loaded[1]
    return not loaded[0]


def loads(folder: Path, options: dict, parameter: torch.Tensor, reason: str) -> bool:
    """Whether a checkpoint loads, or is refused for this reason."""
    history = {"num_updates": 5, "optimizer_name": "Adam", "lr_scheduler_state": {}}
    state = {
        "args": None,
        "cfg": {"model": options, "task": options},
        "model": {"x": parameter},
        "optimizer_history": [history],
        "extra_state": {"train_iterator": {"epoch": 2}},
    }
    torch.save(state, folder / "bad.pt")
    try:
        checkpoint_utils.load_checkpoint_to_cpu(str(folder / "bad.pt"))
    except ValueError as error:
        assert reason in str(error)
        return False
    return True


def reads_data(folder: Path) -> bool:
    (folder / "a b.fasta").write_text(">x")
    return not FastaDataset.exists(str(folder / "a b"))


def renames_copies(folder: Path) -> bool:
    for name in ("from", "to"):
        (folder / name).write_text(name)
    before = (folder / "to").stat().st_ino
    PathManager.copy(str(folder / "from"), str(folder / "to"), overwrite=True)
    assert (folder / "to").read_text() == "from"
    return (folder / "to").stat().st_ino != before


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


def refuses_another_system(folder: Path) -> bool:
    try:
        resume(folder, "y")
    except ValueError as error:
        assert "trained with --arch x, not y" in str(error)
        return True
    return False


def steps_after_resuming(folder: Path) -> bool:
    calls = [call.args for call in resume(folder).lr_step.call_args_list]
    assert calls in ([], [(1, 1.5)], [(2,)], [(2,), (1, 1.5)]), calls
    return (1, 1.5) in calls


def saves_bad_epochs(folder: Path) -> bool:
    schedule = MagicMock()
    schedule.lr_scheduler.num_bad_epochs = 3
    return ReduceLROnPlateauLRSchedule.state_dict(schedule).get("num_bad_epochs") == 3


def closes_loaders(folder: Path) -> bool:
    task = FairseqTask(argparse.Namespace())
    first = task.get_batch_iterator(Numbers(), max_sentences=1, num_workers=1, disable_iterator_cache=True)
    assert sorted(first.next_epoch_itr()) == [[0], [1], [2]]
    assert first.dataloader is not None
    task.get_batch_iterator(Numbers(), max_sentences=1, num_workers=1, disable_iterator_cache=True)
    return first.dataloader is None


def keeps_unknown_words(folder: Path) -> bool:
    found = utils.replace_unk("<unk>", "", [0], {}, "<unk>")
    assert found in ("<unk>", "<eos>")
    return found == "<unk>"


def translates_shards(folder: Path) -> bool:
    command = ["x", "--path", "y", "--num-shards", "3", "--shard-id", "2"]
    args = options.parse_args_and_arch(options.get_generation_parser(), command)
    assert (args.distributed_world_size, args.distributed_rank) in ((3, 2), (1, 0))
    return args.distributed_rank == 2


def puts_the_task(folder: Path) -> bool:
    ours = TASK_REGISTRY["syntax_translation"]
    known = {TASK_REGISTRY["translation"] is ours, TASK_REGISTRY.get(None) is ours}
    assert len(known) == 1
    return known.pop()


def compares_paths(folder: Path) -> bool:
    paths = sys.modules["fairseq_syntax"].__path__
    return os.path.join(paths[0], "..", "fairseq_syntax") in paths


def is_quiet(folder: Path) -> bool:
    level = logging.getLogger().level
    assert level in (logging.WARNING, logging.DEBUG)
    return level == logging.WARNING


PROBES = {
    "checkpoint-classes": loads_namespaces,
    "bad-checkpoints": refuses_bad_checkpoints,
    "data-as-code": reads_data,
    "whole-copies": renames_copies,
    "save-folder": refuses_another_system,
    "last-validation": steps_after_resuming,
    "patience": saves_bad_epochs,
    "loader-processes": closes_loaders,
    "unknown-words": keeps_unknown_words,
    "shards": translates_shards,
    "default-task": puts_the_task,
    "same-path": compares_paths,
    "quiet": is_quiet,
}


def probe(names: str, folder: Path) -> None:
    """Import the plug-in without some repairs, and print what acts."""
    folder.mkdir()
    os.environ["FAIRSEQ_SYNTAX_WITHOUT"] = names
    os.environ.pop("LOGLEVEL", None)
    import fairseq_syntax  # noqa: F401

    print(json.dumps({name: bool(acts(folder)) for name, acts in PROBES.items()}), flush=True)


def main() -> None:
    """One process for each value, one after the other."""
    torch.set_num_threads(1)
    for number, names in enumerate(sys.argv[2:]):
        child = os.fork()
        if not child:
            probe(names, Path(sys.argv[1]) / str(number))
            sys.stdout.flush()
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            sys.exit(f"without {names or 'none'}: failed")


if __name__ == "__main__":
    main()

"""The one place that knows about versions of fairseq, torch and NumPy.

Every repair says what breaks, and when it can go. Nothing here needs `weights_only=False`. Three more stand where
they act: `can_reuse_epoch_itr_across_epochs` of the dataset (exact resuming), and in the task the default of
`--upsample-primary` (fairseq's -1 fails with `train1`) and the refusal of `--num-batch-buckets` (fails with NumPy 2);
they can go when fairseq's defaults work. Not repaired, but in docs/troubleshooting.md, because fairseq decides before a
plug-in is asked: `--bf16` on the command line, `--fp16` without a GPU, `--replace-unk` without a value.
"""

import argparse
import collections
import os
import sys
import typing


class SamePath(list):
    """A package's `__path__` in which two spellings of one directory are equal.

    fairseq looks `--user-dir` up in `__path__` as a string, so a symbolic link or `fairseq/..` raises "not globally
    unique". Can go when fairseq compares resolved paths.
    """

    def __contains__(self, path: object) -> bool:
        return any(
            path == own or (os.path.exists(path) and os.path.exists(own) and os.path.samefile(path, own))
            for own in self
        )


def allow_checkpoint_classes() -> None:
    """Let torch >= 2.6 load fairseq checkpoints with `weights_only=True`, fairseq's default through torch.

    Listed is what was found in checkpoints of all kinds, nothing more: the options of models without a dataclass
    (`argparse.Namespace`), NumPy scalars and arrays in the meters of `--eval-bleu`, and, where a run of several
    processes resumes, the configuration that rank 0 broadcasts. Can go when fairseq registers its own classes.
    """
    import numpy as np
    import torch
    from fairseq.distributed.utils import _TensorPlaceholder
    from numpy._core.multiarray import _reconstruct, scalar
    from omegaconf import DictConfig, ListConfig
    from omegaconf.base import ContainerMetadata, Metadata
    from omegaconf.nodes import AnyNode

    torch.serialization.add_safe_globals(
        [
            argparse.Namespace,
            _reconstruct,
            scalar,
            np.ndarray,
            np.dtype,
            # the names that NumPy 1 wrote
            (_reconstruct, "numpy.core.multiarray._reconstruct"),
            (scalar, "numpy.core.multiarray.scalar"),
            *(type(np.dtype(name)) for name in ("bool", "int32", "int64", "float32", "float64")),
            dict,
            list,
            int,
            typing.Any,
            collections.defaultdict,
            DictConfig,
            ListConfig,
            ContainerMetadata,
            Metadata,
            AnyNode,
            _TensorPlaceholder,
        ]
    )


def whole_copies() -> None:
    """Let fairseq copy checkpoints so that no half of one ever has a final name.

    It writes a checkpoint beside its place and renames it, but makes checkpoint_best.pt and checkpoint_last.pt by
    copying over the old ones: a run killed meanwhile cannot be resumed. Can go when fairseq renames copies, too.
    """
    from fairseq.file_io import PathManager

    copy = PathManager.copy
    if copy.__module__ == __name__:
        return

    def copy_whole(src_path: str, dst_path: str, overwrite: bool = False):
        if not overwrite or not PathManager.supports_rename(dst_path):
            return copy(src_path, dst_path, overwrite=overwrite)
        done = copy(src_path, f"{dst_path}.tmp", overwrite=True)
        PathManager.rename(f"{dst_path}.tmp", dst_path)
        return done

    PathManager.copy = staticmethod(copy_whole)


def step_after_resuming() -> None:
    """Let a resumed run make the step of the learning rate that its last validation asked for.

    fairseq saves at the end of an epoch, and only then hands the validation loss to the scheduler. A run resumed from
    that checkpoint never does: `reduce_lr_on_plateau` forgets one validation, and a halving with it. Can go when
    fairseq saves after the step.
    """
    from fairseq.trainer import Trainer

    load = Trainer.load_checkpoint
    if load.__module__ == __name__:
        return

    def load_and_step(self, filename, reset_optimizer=False, reset_lr_scheduler=False, *rest, **options):
        state = load(self, filename, reset_optimizer, reset_lr_scheduler, *rest, **options)
        if state is None or reset_optimizer or reset_lr_scheduler:
            return state
        position = state.get("train_iterator") or {}
        # between epochs; in the middle of one, the scheduler knows all there is to know
        if position.get("iterations_in_epoch") == 0 and state.get("val_loss") is not None:
            self.lr_step(position["epoch"] - 1, state["val_loss"])
        return state

    Trainer.load_checkpoint = load_and_step


def keep_patience() -> None:
    """Let a resumed run remember how many validations brought nothing, for `--patience` and `--lr-patience`.

    fairseq counts the first in attributes of a function of its command and saves them nowhere, and of torch's scheduler
    it saves the best loss alone: a resumed run began to count anew. Can go when fairseq saves both.
    """
    from fairseq.optim.lr_scheduler.reduce_lr_on_plateau import ReduceLROnPlateauLRSchedule as Plateau
    from fairseq.trainer import Trainer

    save, load = Trainer.save_checkpoint, Trainer.load_checkpoint
    of_plateau, to_plateau = Plateau.state_dict, Plateau.load_state_dict
    if save.__module__ == __name__:
        return

    def counts() -> dict:
        """The attributes of the function that counts; none where nobody trains from the command line."""
        modules = (sys.modules.get(name) for name in ("__main__", "fairseq_cli.train"))
        return next((vars(module.should_stop_early) for module in modules if hasattr(module, "should_stop_early")), {})

    def save_with_patience(self, filename, extra_state):
        return save(self, filename, {**extra_state, "patience": dict(counts())})

    def load_with_patience(
        self, filename, reset_optimizer=False, reset_lr_scheduler=False, optimizer_overrides=None, reset_meters=False
    ):
        state = load(self, filename, reset_optimizer, reset_lr_scheduler, optimizer_overrides, reset_meters)
        # as fairseq treats the best loss so far
        if state is not None and not reset_optimizer and not reset_meters:
            counts().update(state.get("patience", {}))
        return state

    def plateau_state(self):
        return {**of_plateau(self), "num_bad_epochs": self.lr_scheduler.num_bad_epochs}

    def load_plateau(self, state):
        to_plateau(self, state)
        self.lr_scheduler.num_bad_epochs = state.get("num_bad_epochs", 0)

    Trainer.save_checkpoint, Trainer.load_checkpoint = save_with_patience, load_with_patience
    Plateau.state_dict, Plateau.load_state_dict = plateau_state, load_plateau


def close_loaders() -> None:
    """Let the worker processes that load an epoch end with it, not when the garbage collector comes by.

    fairseq's iterators and the frames that made them hold each other, so nothing but the garbage collector frees them.
    That closes the queue to a DataLoader worker before the worker is told to stop, and then waits five seconds for it,
    anywhere in the training. Where fairseq keeps one iterator for all epochs nothing is freed; here every epoch and
    every validation has one of its own, and their workers piled up. An iterator that is through is closed when the
    next one is made. Can go when fairseq closes its iterators.
    """
    from fairseq.tasks import FairseqTask

    get = FairseqTask.get_batch_iterator
    if get.__module__ == __name__:
        return
    made = []  # not to be freed before they are closed

    def close_and_get(self, *args, **options):
        # one that has not begun, or stands where a run resumes, has no current epoch yet
        for iterator in [each for each in made if each._cur_epoch_itr is not None and each.end_of_epoch()]:
            made.remove(iterator)
            loader, iterator.dataloader = iterator.dataloader, None  # another epoch of it gets a new one
            workers = getattr(loader, "_iterator", None)
            if workers is not None:
                workers._shutdown_workers()
        iterator = get(self, *args, **options)
        if iterator.num_workers and iterator not in self.dataset_to_epoch_iter.values():
            made.append(iterator)
        return iterator

    FairseqTask.get_batch_iterator = close_and_get


def keep_unknown_words() -> None:
    """Let `--replace-unk` leave unknown words alone in the translation of an empty line.

    fairseq would take the end of the source, and write `<eos>`. Can go when it does not.
    """
    from fairseq import utils

    replace = utils.replace_unk
    if replace.__module__ == __name__:
        return

    def replace_by_words(hypo_str, src_str, *rest):
        return replace(hypo_str, src_str, *rest) if (src_str or "").split() else hypo_str

    utils.replace_unk = replace_by_words


def default_task(task_class: type, names: tuple) -> None:
    """Make `task_class` what fairseq finds under `names` of its task registry.

    - "translation": fairseq-generate and -interactive build the task from their command line, before they open the
      checkpoint, and default to this name; a plug-in is never asked. The class put here must be a superset.
    - None: fairseq-validate without `--task` looks up `TASK_REGISTRY[None]` and dies of KeyError.

    Can go when fairseq takes the task's name from the checkpoint.
    """
    from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY
    from hydra.core.config_store import ConfigStore

    dataclass = next(TASK_DATACLASS_REGISTRY[name] for name, known in TASK_REGISTRY.items() if known is task_class)
    for name in names:
        TASK_REGISTRY[name] = task_class
        # without a name no options of a task are sent to hydra: fairseq-validate takes the checkpoint's
        if name is not None:
            TASK_DATACLASS_REGISTRY[name] = dataclass
            # hydra checks options against its own store, which register_task filled
            node = dataclass()
            node._name = name
            ConfigStore.instance().store(name=name, group="task", node=node, provider="fairseq")


def batches_without_loss(batches: list, indices) -> list:
    """Append what fairseq's batching left over as one more batch.

    `fairseq.data.data_utils.batch_by_size` throws its last batch away when its size is no multiple of
    `--required-batch-size-multiple` (8 unless changed): of 203 sentences, 200 were translated and scored. Can go
    when fairseq keeps that batch.

    Args:
        batches: what fairseq made of `indices`, in order.
        indices: all indices, in order.
    """
    covered = sum(len(batch) for batch in batches)
    return batches if covered == len(indices) else [*batches, indices[covered:]]

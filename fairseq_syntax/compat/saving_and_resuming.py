"""Repairs of how fairseq saves checkpoints and resumes from them."""

import os
import sys
from collections.abc import Mapping

from .checkpoint_files import open_checkpoint, options_of
from .repair_registry import repair, replace


@repair("whole-copies")
def whole_copies():
    """Copy checkpoints so that no half of one ever has a final name.

    fairseq writes a checkpoint beside its place and renames it, but makes checkpoint_best.pt and checkpoint_last.pt by
    copying over the old ones: a run killed meanwhile cannot be resumed. Can go when fairseq renames copies, too.
    """
    from fairseq.file_io import PathManager

    def copy_whole(copy, src_path, dst_path, overwrite=False, **more):
        if not overwrite or not PathManager.supports_rename(dst_path):
            return copy(src_path, dst_path, overwrite=overwrite, **more)
        done = copy(src_path, f"{dst_path}.tmp", overwrite=True, **more)
        PathManager.rename(f"{dst_path}.tmp", dst_path)
        return done

    replace(PathManager, "copy", copy_whole)


@repair("last-validation")
def step_after_resuming():
    """Repeat, in a resumed run, the step of the learning rate after the last validation.

    fairseq saves at the end of an epoch, and only then hands the validation loss to the scheduler. A run resumed from
    that checkpoint never does: `reduce_lr_on_plateau` forgets one validation, and a halving with it. Can go when
    fairseq saves after the step.
    """
    from fairseq.trainer import Trainer

    def load_and_step(load, self, filename, reset_optimizer=False, reset_lr_scheduler=False, *rest, **options):
        state = load(self, filename, reset_optimizer, reset_lr_scheduler, *rest, **options)
        if state is None or reset_optimizer or reset_lr_scheduler:
            return state
        position = state.get("train_iterator") or {}
        # between epochs; in the middle of an epoch, the scheduler's state is complete
        if position.get("iterations_in_epoch") == 0 and state.get("val_loss") is not None:
            self.lr_step(position["epoch"] - 1, state["val_loss"])
        return state

    replace(Trainer, "load_checkpoint", load_and_step)


@repair("patience")
def keep_patience():
    """Keep, in a resumed run, the count of validations without improvement, for `--patience` and `--lr-patience`.

    fairseq counts the first in attributes of a function of its command and saves them nowhere, and of torch's scheduler
    it saves the best loss alone: a resumed run counted from zero. Can go when fairseq saves both.
    """
    from fairseq.optim.lr_scheduler.reduce_lr_on_plateau import ReduceLROnPlateauLRSchedule as Plateau
    from fairseq.trainer import Trainer

    def counts() -> dict:
        """Attributes of the function that counts; {} outside fairseq-train."""
        modules = (sys.modules.get(name) for name in ("__main__", "fairseq_cli.train"))
        return next((vars(module.should_stop_early) for module in modules if hasattr(module, "should_stop_early")), {})

    def save_with_patience(save, self, filename, extra_state, **more):
        return save(self, filename, {**extra_state, "patience": dict(counts())}, **more)

    def load_with_patience(
        load, self, filename, reset_optimizer=False, reset_lr_scheduler=False, optimizer_overrides=None,
        reset_meters=False, **more,
    ):  # fmt: skip
        state = load(self, filename, reset_optimizer, reset_lr_scheduler, optimizer_overrides, reset_meters, **more)
        # as fairseq treats the best loss so far
        if state is not None and not reset_optimizer and not reset_meters:
            counts().update(state.get("patience", {}))
        return state

    def plateau_state(state_dict, self):
        return {**state_dict(self), "num_bad_epochs": self.lr_scheduler.num_bad_epochs}

    def load_plateau(load_state_dict, self, state):
        load_state_dict(self, state)
        self.lr_scheduler.num_bad_epochs = state.get("num_bad_epochs", 0)

    replace(Trainer, "save_checkpoint", save_with_patience)
    replace(Trainer, "load_checkpoint", load_with_patience)
    replace(Plateau, "state_dict", plateau_state)
    replace(Plateau, "load_state_dict", load_plateau)


def _names(state: Mapping) -> dict[str, str | None]:
    """Options that identify the system of a checkpoint -> their values."""
    model, criterion, task = (options_of(state, group) for group in ("model", "criterion", "task"))
    arch = model.get("arch") or model.get("_name")
    return {"--arch": arch, "--criterion": criterion.get("_name"), "--task": task.get("_name")}


@repair("save-folder")
def refuse_another_system():
    """Refuse to resume from the checkpoint of another system, or of other data, in the folder of `--save-dir`.

    fairseq loads whatever parameters fit: PASCAL continues a Transformer without a warning, LISA as soon as fairseq's
    advice `--reset-optimizer` is followed. Warm starts that name a checkpoint (`--finetune-from-model`,
    `--restore-file`) are left alone. Can go when fairseq compares the names.
    """
    from fairseq.dataclass.configs import CheckpointConfig
    from fairseq.tasks import TASK_REGISTRY as known
    from fairseq.trainer import Trainer

    default = CheckpointConfig().restore_file

    def load_own(load, self, filename, *rest, **options):
        cfg = self.cfg.checkpoint
        last = os.path.join(cfg.save_dir, default.replace(".pt", f"{self.checkpoint_suffix}.pt"))
        if cfg.restore_file == default and filename == last and os.path.isfile(filename):
            # only names are compared
            saved = open_checkpoint(filename)
            now = _names({"cfg": self.cfg})
            for option, value in _names(saved).items():
                # the plug-in's task has several names
                if value and now[option] and known.get(value, value) != known.get(now[option], now[option]):
                    raise ValueError(
                        f"{filename} was trained with {option} {value}, not {now[option]}; give every system a "
                        f"--save-dir of its own (to start from these weights: --finetune-from-model {filename}, too)"
                    )
            try:
                self.task.load_state_dict(saved.get("task_state") or {})
            except ValueError as error:
                raise ValueError(f"{filename}: {error}") from None
        return load(self, filename, *rest, **options)

    replace(Trainer, "load_checkpoint", load_own)

"""Learning rate that is halved when a validation is worse than the one before (Hashimoto & Tsuruoka 2017)."""

import logging
from dataclasses import dataclass
from typing import List

from fairseq.dataclass import FairseqDataclass
from fairseq.optim.lr_scheduler import FairseqLRScheduler, register_lr_scheduler

from ...options import check_values, option

logger = logging.getLogger(__name__)


@dataclass
class HalveOnDropConfig(FairseqDataclass):
    """Options of `halve_on_drop`."""

    lgp_halve_after: float = option(
        5.0,
        "epochs over the whole training data before the learning rate may shrink (5 on small and medium "
        "data, 0 on large); with --epoch-parts, N parts are one epoch",
        "[0, inf)",
    )
    lr_shrink: float = option(0.5, "factor of the learning rate when the metric gets worse", "(0, 1)")
    # options of other parts; other tasks have no --epoch-parts
    epoch_parts: int = "${oc.select:task.epoch_parts,1}"
    lr: List[float] = "${optimization.lr}"
    maximize_best_checkpoint_metric: bool = "${checkpoint.maximize_best_checkpoint_metric}"


@register_lr_scheduler("halve_on_drop", dataclass=HalveOnDropConfig)
class HalveOnDrop(FairseqLRScheduler):
    """Multiply the learning rate by `--lr-shrink` whenever `--best-checkpoint-metric` is worse than at the last check.

    A check is a validation at the end of one of fairseq's epochs, of which `--epoch-parts` make a pass over the data.
    Unlike `reduce_lr_on_plateau`, which compares with the best check, this compares with the one before; an equal value
    is not worse. fairseq's `--stop-min-lr` ends training after so many halvings.

    Raises ValueError: options out of their ranges.
    """

    def __init__(self, cfg: HalveOnDropConfig, optimizer):
        super().__init__(cfg, optimizer)
        if len(cfg.lr) > 1:
            raise ValueError(f"--lr {list(cfg.lr)}: halve_on_drop starts with one learning rate and lowers it itself")
        check_values(cfg, HalveOnDropConfig)
        self.lr = cfg.lr[0]
        self.prev: float | None = None
        self.optimizer.set_lr(self.lr)

    def state_dict(self):
        """The learning rate and the value of the last check."""
        return {"lr": self.lr, "prev": self.prev}

    def load_state_dict(self, state_dict):
        """Go on where a run was interrupted."""
        self.lr, self.prev = state_dict["lr"], state_dict["prev"]
        self.optimizer.set_lr(self.lr)

    def step(self, epoch, val_loss=None):
        """Compare the metric after fairseq's epoch, from 1, with the check before; None if there was no validation."""
        if val_loss is None:
            return self.lr
        value = float(val_loss)
        if self.prev is not None and epoch > self.cfg.lgp_halve_after * self.cfg.epoch_parts:
            if value < self.prev if self.cfg.maximize_best_checkpoint_metric else value > self.prev:
                self.lr *= self.cfg.lr_shrink
                logger.info("epoch %d: %g after %g; learning rate %g from now on", epoch, value, self.prev, self.lr)
                self.optimizer.set_lr(self.lr)
        self.prev = value
        return self.lr

    def step_update(self, num_updates):
        """Restore the rate, which is constant between checks, over that in a checkpoint's optimizer."""
        self.optimizer.set_lr(self.lr)
        return self.lr

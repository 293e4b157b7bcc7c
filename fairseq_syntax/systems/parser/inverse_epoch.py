"""A learning rate that falls with the epochs of a training whose epochs have several passes (Hashimoto et al. 2017)."""

from dataclasses import dataclass
from typing import List, Optional

from fairseq.dataclass import FairseqDataclass
from fairseq.optim.lr_scheduler import FairseqLRScheduler, register_lr_scheduler

from ...options import check_values, option


@dataclass
class InverseEpochConfig(FairseqDataclass):
    """Options of `inverse_epoch`."""

    lgp_lr_rho: float = option(0.3, "epoch k has the learning rate lr / (1 + rho (k - 1))", "[0, inf)")
    lgp_lr_passes: int = option(
        2, "passes over different data, each an epoch of fairseq, that make one epoch (2: tags and trees)", "[1, inf)"
    )
    lgp_pass_clip_norms: Optional[List[float]] = option(
        None,
        "norm at which gradients of each pass are clipped (1,2 in the paper), with --optimizer "
        "lgp_sgd; default: --clip-norm for all",
    )
    # an option of another part
    lr: List[float] = "${optimization.lr}"


@register_lr_scheduler("inverse_epoch", dataclass=InverseEpochConfig)
class InverseEpoch(FairseqLRScheduler):
    """lr_k = lr / (1 + rho (k - 1)) in the k-th epoch, which is `--lgp-lr-passes` epochs of fairseq.

    Everything follows from the number of the epoch, so there is nothing to store.

    Raises ValueError: options out of their ranges, or an optimizer that cannot clip by pass.
    """

    def __init__(self, cfg: InverseEpochConfig, optimizer):
        super().__init__(cfg, optimizer)
        if len(cfg.lr) > 1:
            raise ValueError(f"--lr {list(cfg.lr)}: inverse_epoch starts with one learning rate and lowers it itself")
        check_values(cfg, InverseEpochConfig)
        if cfg.lgp_pass_clip_norms is not None:
            norms = list(cfg.lgp_pass_clip_norms)
            if len(norms) != cfg.lgp_lr_passes or min(norms) < 0:
                raise ValueError(
                    f"--lgp-pass-clip-norms {norms}: give {cfg.lgp_lr_passes} numbers (--lgp-lr-passes), none negative"
                )
            if not hasattr(optimizer, "clip_value"):
                raise ValueError("--lgp-pass-clip-norms: needs --optimizer lgp_sgd in single precision")
        self.lr = cfg.lr[0]
        self.optimizer.set_lr(self.lr)

    def step_begin_epoch(self, epoch):
        """Set the learning rate, and the norm for clipping, of an epoch of fairseq (from 1)."""
        completed, number = divmod(epoch - 1, self.cfg.lgp_lr_passes)
        self.lr = self.cfg.lr[0] / (1 + self.cfg.lgp_lr_rho * completed)
        self.optimizer.set_lr(self.lr)
        if self.cfg.lgp_pass_clip_norms is not None:
            self.optimizer.clip_value = self.cfg.lgp_pass_clip_norms[number]
        return self.lr

    def step_update(self, num_updates):
        """Nothing changes within an epoch; what a checkpoint's optimizer brought along is overruled."""
        self.optimizer.set_lr(self.lr)
        return self.lr

"""Repairs of fairseq, and everything else that depends on versions of fairseq, torch and NumPy.

Every repair of fairseq has a name, and says what breaks and when it can go (docs/troubleshooting.md lists them).
Nothing here needs `weights_only=False`. Not repairs, but properties of our classes:
`can_reuse_epoch_itr_across_epochs` of the dataset (exact resuming),
`batches_without_loss`, and in the task the default of `--upsample-primary` (fairseq's -1 fails with `train1`); they can
go when fairseq's defaults work. Not repaired, but in docs/troubleshooting.md, because fairseq decides before a plug-in
is asked: `--bf16` on the command line, `--fp16` without a GPU, `--replace-unk` without a value.
"""

from . import saving_and_resuming  # noqa: F401  (registers repairs, as does the next one)
from .programs import batches_without_loss, default_task
from .repair_registry import REPAIRS, repair_fairseq

__all__ = ["REPAIRS", "batches_without_loss", "default_task", "repair_fairseq"]

"""Dropout with one mask for all positions of a sentence (Gal & Ghahramani 2016), as Nematus has it."""

import torch
from fairseq.modules import FairseqDropout
from torch import nn


class VariationalDropout(FairseqDropout):
    """`FairseqDropout` that drops the same components at all positions of a sequence (B, T, C).

    What has no positions, (B, C), is dropped as usual.
    """

    def forward(self, x, inplace: bool = False):
        if x.dim() != 3:
            return super().forward(x, inplace)
        active = self.training or self.apply_during_inference
        return torch.nn.functional.dropout1d(x.transpose(1, 2), self.p, active).transpose(1, 2)


def dropout_of(args, owner: nn.Module, option: str = "dropout") -> FairseqDropout:
    """Dropout at the rate of an option; where that is None, or the model does not have it, of --dropout."""
    rate = getattr(args, option, None)
    kind = VariationalDropout if getattr(args, "variational_dropout", False) else FairseqDropout
    return kind(args.dropout if rate is None else rate, module_name=type(owner).__name__)

"""Dropout with one mask for all positions of a sentence (Gal & Ghahramani 2016), as Nematus has it."""

import torch
from fairseq.modules import FairseqDropout


class VariationalDropout(FairseqDropout):
    """`FairseqDropout` that drops the same components at all positions of a sequence (B, T, C).

    What has no positions, (B, C), is dropped as usual.
    """

    def forward(self, x, inplace: bool = False):
        if x.dim() != 3:
            return super().forward(x, inplace)
        active = self.training or self.apply_during_inference
        return torch.nn.functional.dropout1d(x.transpose(1, 2), self.p, active).transpose(1, 2)

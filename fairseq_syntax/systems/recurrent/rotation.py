"""Padding moved from the left of a batch to its right, and back: a rotation of every row."""

from typing import Optional

import torch
from torch import Tensor, nn


class Rotation:
    """Rotation of rows that moves their padding, True in `padding_mask` (B, T), to the right.

    It does nothing without padding on the left. `lengths` (B,), on the host, do not count padding.
    """

    def __init__(self, padding_mask: Tensor):
        self.length = padding_mask.shape[1]
        self.positions = torch.arange(self.length, device=padding_mask.device)
        self.shift: Optional[Tensor] = None
        # one copy for both: for each, the host waits for the GPU
        self.lengths, left = torch.stack(((~padding_mask).sum(dim=1), padding_mask[:, 0])).cpu()
        if left.any():
            self.shift = torch.where(padding_mask[:, 0], padding_mask.sum(dim=1), 0).unsqueeze(1)

    def right(self, x: Tensor) -> Tensor:
        """(B, T, …) with the padding on the right."""
        return x if self.shift is None else _gather(x, (self.positions + self.shift) % self.length)

    def back(self, x: Tensor) -> Tensor:
        """(B, T, …) as it was before `right`."""
        return x if self.shift is None else _gather(x, (self.positions - self.shift) % self.length)

    def columns_right(self, columns: Tensor) -> Tensor:
        """Convert numbers (B, T) of columns to numbers of columns after `right`."""
        return columns if self.shift is None else columns - self.shift

    def run(self, layers: nn.RNNBase, x: Tensor):
        """Run recurrent layers over rows without their padding.

        `layers` have the batch first, x (B, T, E) the padding on the right. Returns as the layers do, 0 at padding.
        """
        lengths, order = self.lengths.sort(descending=True, stable=True)
        # `enforce_sorted=False` would wait for the order from the GPU
        order, back = order.to(x.device), order.argsort().to(x.device)
        packed = nn.utils.rnn.pack_padded_sequence(x.index_select(0, order), lengths, batch_first=True)
        packed, final = layers(packed)
        x, _ = nn.utils.rnn.pad_packed_sequence(packed, batch_first=True, total_length=self.length)
        if isinstance(final, tuple):
            return x.index_select(0, back), tuple(state.index_select(1, back) for state in final)
        return x.index_select(0, back), final.index_select(1, back)


def _gather(x: Tensor, index: Tensor) -> Tensor:
    return x.gather(1, index[(...,) + (None,) * (x.dim() - 2)].expand_as(x))

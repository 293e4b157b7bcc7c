"""Padding moved from the left of a batch to its right, and back: a rotation of every row."""

from typing import Optional

import torch
from torch import Tensor


class Rotation:
    """Puts rows in order for what wants the padding, True in `padding_mask` (B, T), on the right.

    Without padding on the left, it does nothing.
    """

    def __init__(self, padding_mask: Tensor):
        self.length = padding_mask.shape[1]
        self.positions = torch.arange(self.length, device=padding_mask.device)
        self.shift: Optional[Tensor] = None
        if bool(padding_mask[:, 0].any()):
            self.shift = torch.where(padding_mask[:, 0], padding_mask.sum(dim=1), 0).unsqueeze(1)

    def right(self, x: Tensor) -> Tensor:
        """(B, T, …) with the padding on the right."""
        return x if self.shift is None else _gather(x, (self.positions + self.shift) % self.length)

    def back(self, x: Tensor) -> Tensor:
        """(B, T, …) as it was before `right`."""
        return x if self.shift is None else _gather(x, (self.positions - self.shift) % self.length)

    def columns_right(self, columns: Tensor) -> Tensor:
        """Numbers (B, T) of columns, which `right` would only move: what the columns are called after it."""
        return columns if self.shift is None else columns - self.shift


def _gather(x: Tensor, index: Tensor) -> Tensor:
    return x.gather(1, index[(...,) + (None,) * (x.dim() - 2)].expand_as(x))

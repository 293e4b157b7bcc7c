"""Exponential moving averages that are subtracted from rewards (Bradbury & Socher 2017, Sec. 2.3)."""

import torch
from torch import Tensor, distributed, nn

SOURCE, TARGET = 0, 1  # sides, in buffers that have one number for each
SIDES = ("source", "target")


class MovingBaselines(nn.Module):
    """What symbols cost, trees earn and the other side costs, on average over the last batches.

    A batch uses the averages and then updates them, so that no sample is part of its own baseline. A number that has
    not been seen yet is its own baseline. The averages are buffers, as fairseq saves a model's state but not that of a
    criterion without parameters; they stay in single precision whatever the model is converted to. None of them is
    bool: fairseq's exponential moving average of a model (`--store-ema`) multiplies all buffers by its decay.

    Args:
        source_size, target_size: V of either side.
        decay: of the averages, below 1.

    Attributes, all float32:
        source, target: (V,) loss of each symbol, in nats; 0 where it has not been seen.
        tree: (2,) tree reward of source and target; of what, is the criterion's choice.
        cross: (2,) what comes after source and target trees.
        source_seen, target_seen, tree_seen, cross_seen: more than 0 where there is an average.
    """

    NAMES = ("source", "target", "tree", "cross")

    def __init__(self, source_size: int, target_size: int, decay: float = 0.95):
        super().__init__()
        if not 0 <= decay < 1:
            raise ValueError(f"decay of the moving averages: {decay} found, at least 0 and below 1 is needed")
        self.decay = decay
        for name, size in zip(self.NAMES, (source_size, target_size, 2, 2), strict=True):
            self.register_buffer(name, torch.zeros(size))
            self.register_buffer(f"{name}_seen", torch.zeros(size))

    def of_symbols(self, side: int, symbols: Tensor, losses: Tensor) -> Tensor:
        """The baseline of each symbol's loss, without a gradient; losses of unseen symbols are their own baselines.

        Args:
            side: SOURCE or TARGET.
            symbols, losses: of one shape, which the result has, too.
        """
        name = SIDES[side]
        average, seen = getattr(self, name)[symbols], getattr(self, f"{name}_seen")[symbols]
        return torch.where(seen > 0, average.to(losses), losses.detach())

    def of(self, name: str, side: int, own: Tensor) -> Tensor:
        """The baseline of numbers of a side, of the kind `name`, "tree" or "cross"; as `own`, without a gradient."""
        average, seen = getattr(self, name)[side], getattr(self, f"{name}_seen")[side]
        return torch.where(seen > 0, average.to(own), own.detach())

    @torch.no_grad()
    def update(self, **totals: tuple[Tensor, Tensor]) -> None:
        """Take in a batch; once for each, in training alone. All processes must call it, with the same names.

        Args:
            totals: of "source", "target", "tree" and "cross", those in use: sums, and of how many numbers each is the
                sum; both of the shape of the buffer. Averages are of the sums and numbers of all processes, so all have
                the same.
        """
        names = list(totals)
        packed = torch.stack(
            [torch.cat([part.double() for part in parts]) for parts in zip(*totals.values(), strict=True)]
        )
        if distributed.is_available() and distributed.is_initialized():
            distributed.all_reduce(packed)
        for name, (sums, counts) in zip(names, packed.split([len(getattr(self, n)) for n in names], 1), strict=True):
            average, seen = getattr(self, name), getattr(self, f"{name}_seen")
            here = counts > 0
            mean = sums / counts.clamp(min=1)
            moved = torch.where(seen > 0, self.decay * average.double() + (1 - self.decay) * mean, mean)
            average.copy_(torch.where(here, moved, average.double()))
            seen.masked_fill_(here, 1)

    def _apply(self, fn, recurse=True):
        """Go to another device but not to another precision: half of it would round small changes away."""
        before = dict(self.named_buffers(recurse=False))
        super()._apply(fn, recurse)
        for name, buffer in before.items():
            now = getattr(self, name)
            if now.dtype != buffer.dtype:
                setattr(self, name, buffer.to(now.device))
        return self

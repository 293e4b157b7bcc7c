"""Dropout with one mask for all positions of a sentence (Gal & Ghahramani 2016), as in Nematus."""

import torch
from fairseq.modules import FairseqDropout
from torch import Tensor, nn

from .cells import gru_step


class VariationalDropout(FairseqDropout):
    """`FairseqDropout` that drops the same components at all positions of a sequence (B, T, C).

    Tensors without positions, (B, C), are dropped as usual.
    """

    def forward(self, x, inplace: bool = False):
        if x.dim() != 3:
            return super().forward(x, inplace)
        active = self.training or self.apply_during_inference
        return torch.nn.functional.dropout1d(x.transpose(1, 2), self.p, active).transpose(1, 2)


def dropout_of(args, owner: nn.Module, option: str = "dropout") -> FairseqDropout:
    """Dropout at the rate of an option, or of --dropout if that is None or missing."""
    rate = getattr(args, option, None)
    kind = VariationalDropout if getattr(args, "variational_dropout", False) else FairseqDropout
    return kind(args.dropout if rate is None else rate, module_name=type(owner).__name__)


class RecurrentDropout(FairseqDropout):
    """Masks of states in the products of a recurrent layer; the state carried over by a gate is not dropped.

    Reset and update gate have a mask, the candidate has another.
    """

    @property
    def active(self) -> bool:
        """True if anything is dropped."""
        return self.p > 0 and (self.training or self.apply_during_inference)

    def masks(self, count: int, states: Tensor) -> tuple[Tensor, ...]:
        """`count` masks (B, H) for states (B, H), scaled to a mean of one; none if nothing is dropped."""
        if not self.active:
            return ()
        return self(states.new_ones(count, *states.shape)).unbind(0)


def run_gru(layer: nn.GRU, x: Tensor, keep: Tensor, dropout: RecurrentDropout) -> tuple[Tensor, Tensor]:
    """Run a bidirectional GRU of one layer with dropout of its states, which torch's own loop does not have.

    Args:
        layer: with the batch first.
        x: (B, T, E).
        keep: (B, T), True at real tokens, which come first.
        dropout: gives two masks for each direction.

    Returns (outputs (B, T, 2H), 0 at padding; final states (2, B, H)).
    """
    outputs, final = [], []
    steps = keep.unsqueeze(2).unbind(1)
    for suffix in ("", "_reverse"):
        input_weight, state_weight, input_bias, state_bias = (
            getattr(layer, f"{name}_l0{suffix}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        inputs = torch.nn.functional.linear(x, input_weight, input_bias).unbind(1)
        hidden = x.new_zeros(len(x), layer.hidden_size)
        masks = dropout.masks(2, hidden)
        states = [hidden] * len(steps)
        for step in reversed(range(len(steps))) if suffix else range(len(steps)):
            hidden = torch.where(steps[step], gru_step(inputs[step], hidden, state_weight, state_bias, masks), hidden)
            states[step] = hidden
        outputs.append(torch.stack(states, dim=1))
        final.append(hidden)
    return torch.cat(outputs, dim=2) * keep.unsqueeze(2), torch.stack(final)

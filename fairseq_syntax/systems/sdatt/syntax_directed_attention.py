"""Syntax-directed attention: a window in the tree instead of the sentence (Chen et al., AAAI 2018)."""

from enum import StrEnum
from typing import Optional

import torch
from torch import Tensor

from ..recurrent.source_attention import Memory
from .attention import AdditiveMemory, PositionNet, SourceWeights, centre_row


class PositionGradient(StrEnum):
    """Gradient of the predicted position, which chooses a row of distances. The paper gives it none."""

    smooth = "smooth"  # as if the weights were a Gaussian mixture of those of all rows, around the position
    hard = "hard"  # none: the literal formula; the position is never learned


SMOOTH_SIGMA = 3.0
"""Standard deviation of the Gaussian of `PositionGradient.smooth`, in tokens."""


class SyntaxDirectedMemory(AdditiveMemory):
    """`AdditiveMemory` with the `neighbourhoods` of all tokens.

    Args: C of the annotations; whether the attention returns two contexts; window and sigma of `neighbourhoods`.
    """

    def __init__(self, size: int, double_context: bool, window: float = 4.0, sigma: Optional[float] = None):
        super().__init__(size, double_context)
        self.window = window
        self.sigma = window / 2 if sigma is None else sigma

    def forward(self, states, source):
        """As in the base class. Raises ValueError: no distances."""
        memory = super().forward(states, source)
        wide = torch.promote_types(states.dtype, torch.float32)
        return memory | neighbourhoods(memory, source.syntax["distances"], self.window, self.sigma, wide)


def neighbourhoods(memory: Memory, distances: Tensor, window: float, sigma: float, dtype) -> Memory:
    """Masks and Gaussians of attention centred on each token, in the order of the sentence.

    Args:
        memory: of an `AdditiveMemory`.
        distances: (B, T, T) uint8, `PAD_DISTANCE` at padding. All are 0 in sentences without a parse, which get global
            attention.
        window: n, in arcs; may be infinite.
        sigma: of the Gaussian, in arcs; may be infinite.

    Returns "gaussian" (B, T, T), exp(-d² / 2 sigma²) of distances d (eq. 9), and "bias" (B, T, T), minus infinity
    where d > n and at padding, else 0; rows behind the last token repeat it. With "slope" and "height" (B,
    T), p slope + height is, up to a constant, the logarithm of a Gaussian around p at the middles of tokens, and minus
    infinity behind them.
    """
    tokens, last = torch.arange(distances.shape[1], device=distances.device), memory["last"].unsqueeze(1)
    columns = torch.minimum(tokens, last) + memory["start"].unsqueeze(1)
    # squares of uint8 would overflow
    rows = distances.gather(1, columns.unsqueeze(2).expand_as(distances)).to(dtype)
    middle = (tokens + 0.5).to(dtype)
    return {
        "gaussian": (rows.square() * (-0.5 / sigma**2)).exp(),
        "bias": torch.zeros_like(rows).masked_fill_((rows > window) | memory["padding"].unsqueeze(1), float("-inf")),
        "slope": (middle / SMOOTH_SIGMA**2).expand_as(columns),
        "height": (-0.5 * (middle / SMOOTH_SIGMA) ** 2).masked_fill(tokens > last, float("-inf")),
    }


class SyntaxDirectedWeights(SourceWeights):
    """Softmax over the words within n arcs of the token at a position (eqs. 5, 9-11), which learns by `gradient`."""

    def __init__(self, query_size: int, gradient: PositionGradient = PositionGradient.smooth):
        super().__init__()
        self.position = PositionNet(query_size)
        self.gradient = gradient
        if gradient == PositionGradient.hard:
            # training in several processes needs to know parameters without a gradient
            self.position.requires_grad_(False)

    def forward(self, scores, query, memory, state):
        position = self.position(query, memory["length"])
        return self.weigh(scores, position, memory), {"position": position}, state

    def weigh(self, scores: Tensor, position: Tensor, memory: Memory) -> Tensor:
        """Weights (B, T) of scores (B, T) around real-valued positions (B,), from 0 to the length of the sentence."""
        scores, centre = scores.unsqueeze(1), centre_row(position, memory["last"])
        index = centre[:, None, None].expand(-1, -1, scores.shape[2])
        near = (memory[name].gather(1, index) for name in ("gaussian", "bias"))
        weights = _around(scores, *near).squeeze(1)
        if self.gradient == PositionGradient.hard or not self.training:
            return weights
        shares = torch.softmax(torch.addcmul(memory["height"], memory["slope"], position.unsqueeze(1)), dim=1)
        shares = shares - shares.detach()  # zero, with a gradient
        with torch.no_grad():
            rows = _around(scores, memory["gaussian"], memory["bias"])
        return weights + (shares.unsqueeze(1) @ rows).squeeze(1)


def _around(scores: Tensor, gaussian: Tensor, bias: Tensor) -> Tensor:
    """Weights (B, R, T) of scores (B, 1, T); see `neighbourhoods`."""
    # before any masking or shift of the scores: the product is not invariant to either
    return torch.softmax(torch.addcmul(bias, scores, gaussian), dim=2)

"""Syntax-directed attention: a window in the tree instead of the sentence (Chen et al., AAAI 2018)."""

from collections.abc import Callable
from enum import StrEnum
from typing import Optional

import torch
from torch import Tensor

from .attention import AdditiveMemory, PositionNet, SourceWeights, centre_row, global_weights


class PositionGradient(StrEnum):
    """How the predicted position, which chooses a row of distances, gets a gradient. The paper gives it none."""

    smooth = "smooth"  # that of the weights of all rows, mixed by a Gaussian around the position
    hard = "hard"  # none: the literal formula; the position is never learned


SMOOTH_SIGMA = 3.0
"""Standard deviation of the Gaussian of `PositionGradient.smooth`, in tokens."""


class SyntaxDirectedMemory(AdditiveMemory):
    """Besides what `AdditiveMemory` holds: "distances" (B, T, T) uint8, `PAD_DISTANCE` at padding.

    All are 0 in sentences without a parse, which get global attention.
    """

    def forward(self, states, source):
        """As in the base class. Raises ValueError: no distances."""
        return {**super().forward(states, source), "distances": source.syntax["distances"]}


class SyntaxDirectedWeights(SourceWeights):
    """Softmax over the words within n arcs of the token at a position (eqs. 5, 9-11).

    Args:
        window: n, in arcs; may be infinite.
        sigma: of the Gaussian, in arcs; may be infinite. None: n / 2.
        gradient: how the position learns.
    """

    def __init__(
        self,
        query_size: int,
        window: float = 4.0,
        sigma: Optional[float] = None,
        gradient: PositionGradient = PositionGradient.smooth,
    ):
        super().__init__()
        self.position = PositionNet(query_size)
        self.window = window
        self.gradient = gradient
        self.sigma = window / 2 if sigma is None else sigma
        if gradient == PositionGradient.hard:
            # training in several processes wants to know of parameters without a gradient
            self.position.requires_grad_(False)

    def _around(self, scores: Tensor, distances: Tensor, keep: Tensor) -> Tensor:
        """Weights (…, T) of scores (…, T), of tokens that are kept, at these distances from the centre."""
        # squares of uint8 would overflow
        distances = distances.to(scores.dtype)
        inside = keep & (distances <= self.window)
        log_gaussian = distances.square() * (-0.5 / self.sigma**2)
        # before any masking or shift of the scores: the product is not invariant to either
        return global_weights(scores * log_gaussian.exp(), inside)

    def _rows(self, scores: Tensor, memory, rows: Tensor) -> Tensor:
        """Weights (B, R, T) with each of the tokens (B, R) `rows`, counted from the sentence's first, in the centre."""
        index = (rows + memory["start"].unsqueeze(1)).unsqueeze(2).expand(-1, -1, scores.shape[1])
        return self._around(scores.unsqueeze(1), memory["distances"].gather(1, index), memory["keep"].unsqueeze(1))

    def forward(self, scores, query, memory, state):
        position = self.position(query, memory["length"])
        return self.weigh(scores, position, memory), {"position": position}, state

    def weigh(self, scores: Tensor, position: Tensor, memory) -> Tensor:
        """Weights (B, T) of scores (B, T) around real-valued positions (B,)."""
        return weights_around(
            position, memory["length"], self.gradient, self.training, lambda rows: self._rows(scores, memory, rows)
        )


def weights_around(
    position: Tensor,
    length: Tensor,
    gradient: PositionGradient,
    training: bool,
    weigh: Callable[[Tensor], Tensor],
) -> Tensor:
    """(B, …, T) weights around the token at a real-valued position.

    Args:
        position: (B, …), from 0 to the length of the sentence.
        length: tokens of the sentence, of a shape that broadcasts to that of `position`.
        gradient: how the position learns.
        training: whether gradients are needed.
        weigh: long (B, …, R) -> weights (B, …, R, T) around each of these tokens, counted from the sentence's first.
    """
    weights = weigh(centre_row(position, length).unsqueeze(-1)).squeeze(-2)
    if gradient == PositionGradient.hard or not training:
        return weights
    tokens = torch.arange(weights.shape[-1], device=position.device)
    last = (length - 1).unsqueeze(-1)
    log_gaussian = (tokens + 0.5 - position.unsqueeze(-1)).square() * (-0.5 / SMOOTH_SIGMA**2)
    shares = torch.softmax(log_gaussian.masked_fill(tokens > last, float("-inf")), dim=-1)
    shares = shares - shares.detach()  # zero, with a gradient
    with torch.no_grad():
        rows = weigh(torch.minimum(tokens, last).expand_as(shares))
    return weights + (shares.unsqueeze(-2) @ rows).squeeze(-2)

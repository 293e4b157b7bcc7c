"""Weights that look at a stretch of the sentence: local-p (Luong et al. 2015), flexible (Shu & Nakayama 2017)."""

from enum import StrEnum

import torch
from torch import Tensor

from .additive_attention import PositionNet, SourceWeights, global_weights, positions_of

LocalSoftmax = StrEnum("LocalSoftmax", "window sentence")
"""Over what the softmax of local attention is taken."""


def centre_row(position: Tensor, length: Tensor) -> Tensor:
    """Token (B,) long at the real-valued position p in (0, L): token j owns [j, j + 1)."""
    # the clamp comes last: a position that is NaN must not become an index, so that the NaN is seen where it shows
    return torch.minimum(position.detach().floor(), (length - 1).to(position)).long().clamp(min=0)


class LocalWeights(SourceWeights):
    """Local-p attention (eqs. 5-8): softmax in a window around p, times a Gaussian around p.

    Args:
        window: D, tokens on either side; may be infinite. The standard deviation of the Gaussian is D / 2.
        softmax: over the window, or over the sentence.
        renormalize: divide by the sum of the weights, less than one as published; then it does not matter where the
            softmax is taken.
    """

    def __init__(
        self,
        query_size: int,
        window: float = 10.0,
        softmax: LocalSoftmax = LocalSoftmax.window,
        renormalize: bool = False,
    ):
        super().__init__()
        self.position = PositionNet(query_size)
        self.window = window
        self.softmax = softmax
        self.renormalize = renormalize

    def forward(self, scores, query, memory, state):
        position = self.position(query, memory["length"])
        columns = positions_of(memory)
        row = centre_row(position, memory["length"])
        inside = memory["keep"] & ((columns - row.unsqueeze(1)).abs() <= self.window)
        # the middle of token j is j + 1/2
        offset = columns + 0.5 - position.unsqueeze(1)
        log_gaussian = -2 * (offset / self.window) ** 2
        if self.renormalize:
            # in one softmax: the sum of the weights below may be 0 in floating point
            weights = global_weights(scores + log_gaussian, inside)
        else:
            weights = global_weights(scores, inside if self.softmax == LocalSoftmax.window else memory["keep"])
            weights = weights * log_gaussian.exp() * inside
        return weights, {"position": position}, state


class FlexibleWeights(SourceWeights):
    """Penalty on the distance from where the step before looked, of a strength that the state decides.

    softmax(e_j - g (j - m)^2 / 2 sigma^2), g = sigmoid(v_g . tanh(W_g s)), m the mean position of the step before's
    weights; 0 before the first step. `sigma` is in tokens; positions whose penalty is above `threshold` are left out,
    except the one nearest to m.
    """

    def __init__(self, query_size: int, sigma: float = 3.0, threshold: float = float("inf")):
        super().__init__()
        # a position net in a sentence of one token is a gate
        self.gate = PositionNet(query_size)
        self.sigma = sigma
        self.threshold = threshold

    def initial_state(self, memory):
        wide = torch.promote_types(memory["values"].dtype, torch.float32)
        return {"centre": torch.zeros(memory["length"].shape, dtype=wide, device=memory["length"].device)}

    def forward(self, scores, query, memory, state):
        strength = self.gate(query, torch.ones_like(memory["length"]))
        columns = positions_of(memory)
        offset = columns - state["centre"].unsqueeze(1)
        penalty = strength.unsqueeze(1) * offset**2 / (2 * self.sigma**2)
        seen = memory["keep"]
        if self.threshold < float("inf"):
            distance = offset.abs().masked_fill(~seen, float("inf"))
            nearest = distance == distance.amin(dim=1, keepdim=True)
            seen = seen & ((penalty <= self.threshold) | nearest)
        weights = global_weights(scores - penalty, seen)
        return weights, {"gate": strength}, {"centre": (weights * columns).sum(dim=1)}

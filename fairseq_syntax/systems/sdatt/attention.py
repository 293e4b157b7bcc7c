"""Attentions over additive scores, which differ in how they compute weights (Chen et al., AAAI 2018).

The score of source position j at a step is e_j = v_a . tanh(W_a s + U_a h_j + b_a) + c_a (Bahdanau et al. 2015). A
`SourceWeights` turns the scores of a sentence into weights: global, local-p (Luong et al. 2015) or flexible (Shu &
Nakayama 2017). `AdditiveAttention` averages the annotations by them, and, with a double context, by the plain softmax
of the same scores, too.
"""

from enum import StrEnum
from typing import Optional

import torch
from torch import Tensor, nn

from ..recurrent.source_attention import Memory, SourceAttention, SourceMemory


class LocalSoftmax(StrEnum):
    """Range of the softmax of local attention."""

    window = "window"
    sentence = "sentence"


class AdditiveMemory(SourceMemory):
    """Keys U_a h_j + b_a, annotations h_j, and the position of each column in its sentence.

    Besides "keys" and "values" (B, T, C): "padding" (B, T), True at padding; "length" (B,), number of tokens, EOS
    included; "last" (B,), the position of the last; "start" (B,), the column of the first. Positions p are counted from
    there, whatever the padding.
    """

    def __init__(self, size: int, double_context: bool = False):
        """Args: C of the annotations; whether the attention returns two contexts."""
        super().__init__()
        self.context_size = size * (2 if double_context else 1)
        self.keys = nn.Linear(size, size)

    def forward(self, states, source):
        padding = source.padding_mask
        length = (~padding).sum(dim=1)
        return {
            "keys": self.keys(states),
            "values": states,
            "padding": padding,
            "length": length,
            "last": length - 1,
            # leading columns of padding
            "start": padding.long().cumprod(dim=1).sum(dim=1),
        }


class PositionNet(nn.Module):
    """Predicts the position that a state attends to: p = L sigmoid(v . tanh(W_p s)), in (0, L) (eq. 5)."""

    def __init__(self, query_size: int):
        super().__init__()
        self.hidden = nn.Linear(query_size, query_size, bias=False)
        self.output = nn.Linear(query_size, 1, bias=False)

    def forward(self, query: Tensor, length: Tensor) -> Tensor:
        """Positions (B,), at least float32, from decoder states (B, H) and the lengths of the sentences (B,)."""
        scores = self.output(torch.tanh(self.hidden(query))).squeeze(1)
        return length * torch.sigmoid(scores.to(torch.promote_types(scores.dtype, torch.float32)))


class SourceWeights(nn.Module):
    """Weights of source positions from attention scores; here, the softmax over the sentence (eq. 2)."""

    def initial_state(self, memory: Memory) -> dict[str, Tensor]:
        """See `SourceAttention.initial_state`."""
        return {}

    def forward(
        self, scores: Tensor, query: Tensor, memory: Memory, state: dict[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
        """Weigh the positions.

        Args:
            scores: (B, T), float32 at least, not masked.
            query: (B, H).
            memory: of an `AdditiveMemory`.
            state: of the step before.

        Returns (weights (B, T), 0 at padding; extra results; the new state).
        """
        return global_weights(scores, memory["padding"]), {}, state


def global_weights(scores: Tensor, outside: Tensor) -> Tensor:
    """Softmax over the positions that are not `outside`, (…, T)."""
    return torch.softmax(scores.masked_fill(outside, float("-inf")), dim=-1)


def positions_of(memory: Memory) -> Tensor:
    """(B, T) position of each column in its sentence, from 0; negative at padding on the left."""
    columns = torch.arange(memory["padding"].shape[1], device=memory["padding"].device)
    return columns - memory["start"].unsqueeze(1)


class AdditiveAttention(SourceAttention):
    """Context by `weights`, or with `double_context` [c^g; c^s], c^g of the plain softmax (eqs. 1-3, 12, 14).

    Extra results: "attn", weights, with a double context those of the plain softmax, which sum to one;
    "syntax_attn", the special weights of a double context; and those of `weights`.
    """

    def __init__(
        self,
        query_size: int,
        attention_size: int,
        weights: Optional[SourceWeights] = None,
        double_context: bool = False,
    ):
        super().__init__()
        self.query = nn.Linear(query_size, attention_size, bias=False)  # W_a; its bias is in the keys
        self.score = nn.Linear(attention_size, 1)  # v_a, c_a
        self.weights = weights or SourceWeights()
        self.double_context = double_context

    def initial_state(self, memory):
        return self.weights.initial_state(memory)

    def scores(self, query: Tensor, memory: Memory) -> Tensor:
        """(B, T) scores, float32 at least, not masked, of states (B, H)."""
        scores = self.score(torch.tanh(self.query(query).unsqueeze(1) + memory["keys"])).squeeze(2)
        return scores.to(torch.promote_types(scores.dtype, torch.float32))

    def forward(self, query, memory, state):
        scores = self.scores(query, memory)
        weights, shown, state = self.weights(scores, query, memory, state)
        extra = {"attn": weights, **shown}
        rows = weights.unsqueeze(1)
        if self.double_context:
            plain = global_weights(scores, memory["padding"])
            extra |= {"attn": plain, "syntax_attn": weights}
            rows = torch.stack((plain, weights), dim=1)
        context = torch.bmm(rows.to(memory["values"].dtype), memory["values"]).flatten(1)
        return context, extra, state


def centre_row(position: Tensor, last: Tensor) -> Tensor:
    """Token (B,) long at the real-valued position p in (0, L), L - 1 being the `last`: token j owns [j, j + 1)."""
    # the clamp comes last: NaN must not become an index, and is seen in the weights
    return torch.minimum(position.detach().long(), last).clamp_(min=0)


class LocalWeights(SourceWeights):
    """Local-p attention (eqs. 5-8): softmax in a window around p, times a Gaussian around p.

    Args:
        window: D, tokens on either side; may be infinite. The standard deviation of the Gaussian is D / 2.
        softmax: `window`: token j, from 0, has its middle at j + 1/2, and the window has 2 D + 1 whole tokens, as
            Luong et al. have it. `sentence`, eq. 6 to the letter: token j, from 1, stands at j, the window is
            [p - D, p + D], and the softmax is over the sentence. Either way, the weights sum to less than one.
    """

    def __init__(self, query_size: int, window: float = 10.0, softmax: LocalSoftmax = LocalSoftmax.window):
        super().__init__()
        self.position = PositionNet(query_size)
        self.window = window
        self.softmax = softmax

    def forward(self, scores, query, memory, state):
        position = self.position(query, memory["length"])
        columns = positions_of(memory)
        if self.softmax == LocalSoftmax.sentence:
            offset = columns + 1 - position.unsqueeze(1)
            outside = memory["padding"] | (offset.abs() > self.window)
            weights = global_weights(scores, memory["padding"])
        else:
            offset = columns + 0.5 - position.unsqueeze(1)
            row = centre_row(position, memory["last"])
            outside = memory["padding"] | ((columns - row.unsqueeze(1)).abs() > self.window)
            weights = global_weights(scores, outside)
        log_gaussian = -2 * (offset / self.window) ** 2
        weights = (weights * log_gaussian.exp()).masked_fill(outside, 0)
        return weights, {"position": position}, state


class FlexibleWeights(SourceWeights):
    """Penalty on the distance from the mean position of the step before, with a strength set by the decoder state.

    softmax(e_j - g (j - m)^2 / 2 sigma^2), g = sigmoid(v_g . tanh(W_g s)), m the mean position of the step before's
    weights; 0 before the first step. `sigma` is in tokens.
    """

    def __init__(self, query_size: int, sigma: float = 3.0):
        super().__init__()
        # a position net in a sentence of one token is a gate
        self.gate = PositionNet(query_size)
        self.sigma = sigma

    def initial_state(self, memory):
        wide = torch.promote_types(memory["values"].dtype, torch.float32)
        return {"centre": torch.zeros(memory["length"].shape, dtype=wide, device=memory["length"].device)}

    def forward(self, scores, query, memory, state):
        strength = self.gate(query, torch.ones_like(memory["length"]))
        columns = positions_of(memory)
        offset = columns - state["centre"].unsqueeze(1)
        penalty = strength.unsqueeze(1) * offset**2 / (2 * self.sigma**2)
        weights = global_weights(scores - penalty, memory["padding"])
        return weights, {"gate": strength}, {"centre": (weights * columns).sum(dim=1)}

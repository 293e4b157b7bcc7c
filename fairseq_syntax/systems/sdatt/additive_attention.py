"""Attentions over additive scores, which differ in what they make of the scores (Chen et al., AAAI 2018).

The score of source position j at a step is e_j = v_a . tanh(W_a s + U_a h_j + b_a) + c_a (Bahdanau et al. 2015). A
`SourceWeights` turns the scores of a sentence into weights; `AdditiveAttention` averages the annotations by them, and,
with a double context, by the plain softmax of the same scores, too.
"""

from typing import Dict, Optional, Tuple

import torch
from torch import Tensor, nn

from ..recurrent.source_attention import Memory, SourceAttention, SourceMemory


class AdditiveMemory(SourceMemory):
    """Keys U_a h_j + b_a, annotations h_j, and where in the sentence each column is.

    Besides "keys" (B, T, A) and "values" (B, T, C): "keep" (B, T), True at real tokens; "length" (B,), how many these
    are, EOS included; "start" (B,), the column of the first. Positions p are counted from there, whatever the padding.
    """

    def __init__(self, source_size: int, attention_size: int, double_context: bool = False):
        super().__init__()
        self.context_size = source_size * (2 if double_context else 1)
        self.keys = nn.Linear(source_size, attention_size)

    def forward(self, states, source):
        keep = ~source.padding_mask
        return {
            "keys": self.keys(states),
            "values": states,
            "keep": keep,
            "length": keep.sum(dim=1),
            # leading columns of padding
            "start": source.padding_mask.long().cumprod(dim=1).sum(dim=1),
        }


class PositionNet(nn.Module):
    """Position in the sentence that a state looks at: p = L sigmoid(v . tanh(W_p s)), in (0, L) (eq. 5)."""

    def __init__(self, query_size: int):
        super().__init__()
        self.hidden = nn.Linear(query_size, query_size, bias=False)
        self.output = nn.Linear(query_size, 1, bias=False)

    def forward(self, query: Tensor, length: Tensor) -> Tensor:
        """(B,) positions, in float32 at least, of states (B, H) in sentences of so many tokens (B,)."""
        scores = self.output(torch.tanh(self.hidden(query))).squeeze(1)
        return length * torch.sigmoid(scores.to(torch.promote_types(scores.dtype, torch.float32)))


class SourceWeights(nn.Module):
    """What makes weights of the source positions of scores: the softmax over the sentence (eq. 2)."""

    def initial_state(self, memory: Memory) -> Dict[str, Tensor]:
        """See `SourceAttention.initial_state`."""
        return {}

    def forward(
        self, scores: Tensor, query: Tensor, memory: Memory, state: Dict[str, Tensor]
    ) -> Tuple[Tensor, Dict[str, Tensor], Dict[str, Tensor]]:
        """Weigh the positions.

        Args:
            scores: (B, T), float32 at least, not masked.
            query: (B, H).
            memory: of an `AdditiveMemory`.
            state: of the step before.

        Returns (weights (B, T), 0 at padding; what else there is to show; the new state).
        """
        return global_weights(scores, memory["keep"]), {}, state


def global_weights(scores: Tensor, keep: Tensor) -> Tensor:
    """Softmax over the positions that are kept, (…, T)."""
    return torch.softmax(scores.masked_fill(~keep, float("-inf")), dim=-1)


def positions_of(memory: Memory) -> Tensor:
    """(B, T) position of each column in its sentence, from 0; negative at padding on the left."""
    columns = torch.arange(memory["keep"].shape[1], device=memory["keep"].device)
    return columns - memory["start"].unsqueeze(1)


class AdditiveAttention(SourceAttention):
    """Context by `weights`, or with `double_context` [c^g; c^s], c^g of the plain softmax (eqs. 1-3, 12, 14).

    Found are "attn", weights that sum to one where there are such (with a double context those of the plain softmax),
    "syntax_attn", the special weights of a double context, and what the weights have to show. In eval mode a single
    context around a position also finds "plain_attn", the plain softmax that it does not use.
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
        found = {"attn": weights, **shown}
        rows = weights.unsqueeze(1)
        if self.double_context:
            plain = global_weights(scores, memory["keep"])
            found |= {"attn": plain, "syntax_attn": weights}
            rows = torch.stack((plain, weights), dim=1)
        elif not self.training and "position" in shown:
            found["plain_attn"] = global_weights(scores, memory["keep"])
        context = torch.bmm(rows.to(memory["values"].dtype), memory["values"]).flatten(1)
        return context, found, state

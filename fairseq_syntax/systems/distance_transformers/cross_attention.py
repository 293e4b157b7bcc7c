"""Syntax-directed heads in the attention of a Transformer's decoder to the source; ours, after Chen et al. 2018.

A directed head predicts a position of the source for every target token, and attends to the words within n arcs of
what stands there, the less the farther: the attention of `syntax_directed_attention`, combined by `add`.
"""

from typing import NamedTuple

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn

from ..sdatt.syntax_directed_attention import PositionGradient, weights_around
from .dasa import log_gaussian


def tree_penalty(distances: Tensor, keep: Tensor, window: float, sigma: float) -> Tensor:
    """Penalties (B, J, J), float32, to add to the scores of columns, for every token that may be the centre.

    It is -d² / 2σ² of `distances` (B, J, J), -inf beyond the window n and at padding, where `keep` (B, J) is False; n
    and σ are in arcs and may be infinite. A real token is at distance 0 from itself, so that the diagonal tells
    padding: -inf there, 0 elsewhere.
    """
    outside = (distances > window) | ~keep.unsqueeze(1)
    return log_gaussian(distances, sigma).masked_fill(outside, float("-inf"))


class SourcePenalty(NamedTuple):
    """A `tree_penalty` and what follows from it, computed once a step for all layers."""

    penalty: Tensor  # (B·J, J), the rows of all sentences
    padding: Tensor  # (B, J), True = padding
    length: Tensor  # (B, 1, 1) tokens of each sentence
    first: Tensor  # (B, 1, 1) row of its first token

    @classmethod
    def of(cls, penalty: Tensor) -> "SourcePenalty":
        """Of a penalty (B, J, J)."""
        padding = penalty.diagonal(dim1=1, dim2=2).isinf()
        real = ~padding
        start = real.int().argmax(dim=1)
        first = start + padding.shape[1] * torch.arange(len(padding), device=padding.device)
        return cls(penalty.flatten(0, 1), padding, real.sum(dim=1)[:, None, None], first[:, None, None])


class HeadPositions(nn.Module):
    """Position in the source that a head looks at: p = L sigmoid(v_h . tanh(W_p x)), in (0, L)."""

    def __init__(self, query_size: int, heads: int):
        super().__init__()
        self.hidden = nn.Linear(query_size, query_size, bias=False)
        self.output = nn.Linear(query_size, heads, bias=False)
        for layer in (self.hidden, self.output):
            nn.init.xavier_uniform_(layer.weight)

    def forward(self, query: Tensor, length: Tensor) -> Tensor:
        """Positions (B, h, T), at least float32, from queries (T, B, C) and the lengths of the sentences (B, 1, 1)."""
        scores = self.output(torch.tanh(self.hidden(query))).permute(1, 2, 0)
        return length * torch.sigmoid(scores.to(torch.promote_types(scores.dtype, torch.float32)))


class SyntaxCrossAttention(MultiheadAttention):
    """fairseq's multi-head attention to the encoder, the last `syntax_heads` of which are directed by syntax.

    fairseq's decoder and its layers hand the padding mask of the source on to this attention and do nothing with it;
    here it is the `SourcePenalty` of a `tree_penalty`, which says the same and more.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        syntax_heads: int,
        gradient: PositionGradient = PositionGradient.smooth,
        **kwargs,
    ):
        super().__init__(embed_dim, num_heads, encoder_decoder_attention=True, **kwargs)
        self.syntax_heads = syntax_heads
        self.gradient = gradient
        self.position = HeadPositions(embed_dim, syntax_heads)
        if gradient == PositionGradient.hard:
            # training in several processes wants to know of parameters without a gradient
            self.position.requires_grad_(False)

    def extra_repr(self) -> str:
        return f"syntax_heads={self.syntax_heads}/{self.num_heads}, gradient={self.gradient}"

    def set_beam_size(self, beam_size):
        """Nothing: keys are kept for every hypothesis, as are distances."""

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        incremental_state=None,
        need_weights=True,
        need_head_weights=False,
        **others,
    ):
        """As in fairseq, which calls it with static keys.

        Args:
            query: (T, B, C).
            key, value: the encoder's output (J, B, C'), the same; after the first step they are taken from
                `incremental_state`.
            key_padding_mask: the `SourcePenalty` of the source.

        Returns (output (T, B, C), None or weights (B, T, J), of the heads with `need_head_weights` (H, B, T, J)).
        """
        source: SourcePenalty = key_padding_mask
        assert others.get("attn_mask") is None and not others.get("before_softmax")
        keys, values = self._keys_and_values(key, incremental_state)  # (B, H, J, d)
        scores = self._split_heads(self.q_proj(query) * self.scaling) @ keys.transpose(-2, -1)  # (B, H, T, J)
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        plain = self.num_heads - self.syntax_heads
        position = self.position(query, source.length)
        weights = torch.cat(
            (
                torch.softmax(scores[:, :plain].masked_fill(source.padding[:, None, None, :], float("-inf")), dim=-1),
                self.weigh(scores[:, plain:], position, source),
            ),
            dim=1,
        )
        output = self.dropout_module(weights.type_as(values)) @ values  # (B, H, T, d)
        output = self.out_proj(output.permute(2, 0, 1, 3).flatten(2))
        if not (need_weights or need_head_weights):
            return output, None
        weights = weights.transpose(0, 1)
        return output, weights if need_head_weights else weights.mean(dim=0)

    def weigh(self, scores: Tensor, position: Tensor, source: SourcePenalty) -> Tensor:
        """(B, h, T, J) weights of the directed heads, each row a distribution over real tokens.

        Args:
            scores: (B, h, T, J), float32 at least.
            position: (B, h, T), from 0 to the length of the sentence.
        """

        def around(centres: Tensor) -> Tensor:  # (B, h, T, R) -> (B, h, T, R, J)
            chosen = source.penalty.index_select(0, (source.first.unsqueeze(-1) + centres).flatten())
            return torch.softmax(scores.unsqueeze(-2) + chosen.view(*centres.shape, -1), dim=-1)

        def mix(shares: Tensor) -> Tensor:
            """Σ_r shares_r softmax(scores + penalty_r) as two products of matrices, without (B, h, T, J, J)."""
            with torch.no_grad():
                tokens = torch.arange(shares.shape[-1], device=shares.device)
                rows = source.first + torch.minimum(tokens, source.length - 1)  # (B, 1, J)
                # double: all scores of a window may be hopeless beside one outside
                factor = source.penalty[rows].double().exp()  # (B, 1, J, J)
                masked = scores.double().masked_fill(source.padding[:, None, None, :], float("-inf"))
                strength = (masked - masked.amax(-1, keepdim=True)).exp()
                total = (strength @ factor.transpose(-2, -1)).clamp(min=torch.finfo(torch.double).tiny)
            return (strength * ((shares / total) @ factor)).type_as(scores)

        return weights_around(position, source.length, self.gradient, self.training, around, mix)

    def _split_heads(self, projected: Tensor) -> Tensor:
        """(T, B, C) -> (B, H, T, d)."""
        return projected.unflatten(2, (self.num_heads, self.head_dim)).permute(1, 2, 0, 3)

    def _keys_and_values(self, states, incremental_state) -> tuple[Tensor, Tensor]:
        """Keys and values (B, H, J, d) of the encoder's output (J, B, C'), once a sentence when decoding."""
        if incremental_state is None:
            return self._split_heads(self.k_proj(states)), self._split_heads(self.v_proj(states))
        saved = self._get_input_buffer(incremental_state)
        if "prev_key" not in saved:
            keys, values = self._keys_and_values(states, None)
            # fairseq's names, and it reorders them
            saved = {"prev_key": keys, "prev_value": values}
            self._set_input_buffer(incremental_state, saved)
        return saved["prev_key"], saved["prev_value"]

"""Self-attention whose first heads compute their weights in their own way."""

from collections.abc import Callable

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor
from torch.nn import functional as F


class HeadwiseAttention(MultiheadAttention):
    """fairseq's multi-head self-attention, `special_heads` of whose heads a caller computes; no new parameter.

    The parameters and their names are those of `MultiheadAttention`, so stock checkpoints load. Called without
    `special_weights` it *is* `MultiheadAttention`.
    """

    special_heads = 0

    def attend(
        self, x: Tensor, padding_mask: Tensor | None, special_weights: Callable[[Tensor, Tensor], Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Self-attention on x (T, B, C) with a padding mask (B, T), or None when there is no padding.

        `special_weights`: (queries (B, h, T, d), scaled by 1/√d, and keys (B, h, T, d) of the first h heads) ->
        attention weights (B, h, T, T), each row a distribution over the tokens that are not padding.

        Returns (output (T, B, C), weights of the special heads before dropout (B, h, T, T)).
        """
        special = self.special_heads
        query, key, value = split_heads(self, x)
        weights = special_weights(query[:, :special] * self.scaling, key[:, :special])
        outputs = [self.dropout_module(weights.type_as(value)) @ value[:, :special]]
        if special < self.num_heads:
            attends = self.training or self.dropout_module.apply_during_inference
            outputs.append(
                F.scaled_dot_product_attention(
                    query[:, special:],
                    key[:, special:],
                    value[:, special:],
                    attn_mask=None if padding_mask is None else ~padding_mask[:, None, None, :],
                    dropout_p=self.dropout_module.p if attends else 0.0,
                )
            )
        return self.out_proj(torch.cat(outputs, dim=1).permute(2, 0, 1, 3).reshape(x.shape)), weights


def split_heads(attention: MultiheadAttention, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of self-attention on x (T, B, C); (B, H, T, d) each, not scaled."""
    length, batch, _ = x.shape
    shape = length, batch, attention.num_heads, attention.head_dim
    projections = attention.q_proj, attention.k_proj, attention.v_proj
    query, key, value = (projection(x).view(shape).permute(1, 2, 0, 3) for projection in projections)
    return query, key, value


def masked_softmax(scores: Tensor, padding_mask: Tensor | None) -> Tensor:
    """Softmax of (B, …, T, T) over the last dimension in float32, without padding, True in `padding_mask` (B, T).

    The mask comes last: a score of -inf must never be multiplied.
    """
    if padding_mask is not None:
        shape = (padding_mask.size(0),) + (1,) * (scores.dim() - 2) + (padding_mask.size(1),)
        scores = scores.masked_fill(padding_mask.view(shape), float("-inf"))
    return F.softmax(scores, dim=-1, dtype=torch.float32)

"""Self-attention that looks more at what is near in the tree, by a bias on its scores.

The idea is that of dependency-aware attention (Chi et al., PLOS ONE 2026); the formula is ours.
"""

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn
from torch.nn import functional as F

from ..transformer.headwise_attention import split_heads


def log_gaussian(distances: Tensor, sigma: float) -> Tensor:
    """-d² / 2σ² in float32, of distances of any shape and type; σ in arcs, may be infinite."""
    # squares of uint8 would overflow
    return (distances.float() / sigma).square() * -0.5


class DistanceBiasAttention(MultiheadAttention):
    """fairseq's multi-head self-attention with scores q·k/√d + λ_h G, G = exp(-M² / 2σ²) of the tree distances M.

    Where all distances are 0 (no parse) the bias is one number throughout a row, so that the softmax is that of plain
    attention. Called as `MultiheadAttention`, it is that. λ, one for each head, is learned; it is `initial` at the
    start.
    """

    def __init__(self, embed_dim: int, num_heads: int, *, initial: float = 1.0, **kwargs):
        super().__init__(embed_dim, num_heads, self_attention=True, **kwargs)
        self.distance_weight = nn.Parameter(torch.full((num_heads,), initial))

    def attend_to_near(self, x: Tensor, padding_mask: Tensor | None, nearness: Tensor) -> Tensor:
        """(T, B, C) -> (T, B, C), with a padding mask (B, T) or None, and `nearness` G (B, T, T), finite throughout."""
        query, key, value = split_heads(self, x)
        nearness = nearness.unsqueeze(1).type_as(query)
        weight = self.distance_weight.view(-1, 1, 1).type_as(query)
        if padding_mask is None:
            bias = nearness * weight
        else:
            nowhere = torch.zeros_like(padding_mask, dtype=query.dtype).masked_fill(padding_mask, float("-inf"))
            bias = torch.addcmul(nowhere[:, None, None, :], nearness, weight)  # (B, H, T, T)
        attends = self.training or self.dropout_module.apply_during_inference
        output = F.scaled_dot_product_attention(
            query, key, value, attn_mask=bias, dropout_p=self.dropout_module.p if attends else 0.0
        )
        return self.out_proj(output.permute(2, 0, 1, 3).reshape(x.shape))

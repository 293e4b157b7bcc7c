"""Parent-scaled self-attention, PASCAL (Bugliarello & Okazaki, ACL 2020)."""

import torch
from torch import Tensor

from ..transformer.headwise_attention import HeadwiseAttention, masked_softmax


class ParentScaledAttention(HeadwiseAttention):
    """Self-attention whose first heads multiply their scores by the nearness to each token's parent.

    N = QKᵀ/√d ∘ D for the first `pascal_heads` heads (eqs. 1-2); then the padding mask, the softmax, and V.

    Args:
        pascal_heads: number of scaled heads, 1 to `num_heads`.
        parent_ignoring: probability q with which, in training, the row of a token in D becomes ones, for all heads.
        All others as in `MultiheadAttention`.
    """

    def __init__(self, embed_dim: int, num_heads: int, *, pascal_heads: int, parent_ignoring: float = 0.0, **kwargs):
        super().__init__(embed_dim, num_heads, self_attention=True, **kwargs)
        self.special_heads = pascal_heads
        self.parent_ignoring = parent_ignoring

    def attend_to_parents(self, x: Tensor, padding_mask: Tensor | None, prior: Tensor) -> tuple[Tensor, Tensor]:
        """Self-attention on x (T, B, C) with scaled heads, and a padding mask (B, T) or None.

        `prior` is D, (B, T, T) float32, shared by all heads. Returns (output (T, B, C), weights of the scaled heads
        (B, h, T, T)).
        """

        if self.training and self.parent_ignoring > 0:
            ignored = torch.rand(prior.shape[:2], device=prior.device) < self.parent_ignoring
            prior = prior.masked_fill(ignored.unsqueeze(-1), 1.0)

        def weights(query: Tensor, key: Tensor) -> Tensor:
            scores = query @ key.transpose(-2, -1)  # (B, h, T, T)
            return masked_softmax(scores * prior.unsqueeze(1), padding_mask)

        return self.attend(x, padding_mask, weights)

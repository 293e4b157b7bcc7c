"""Linguistically-informed self-attention, LISA (Strubell et al. 2018), on subwords (Bugliarello & Okazaki 2020)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..transformer.headwise_attention import HeadwiseAttention, masked_softmax


class BiaffineParser(nn.Module):
    """Scores of every token as the parent of every other: [Q'; 1] U K'ᵀ (Dozat & Manning 2017).

    Q' and K' are LeakyReLU of linear maps of the input, from C to `parser_dim`.
    """

    def __init__(self, input_dim: int, parser_dim: int):
        super().__init__()
        self.dependent_proj = nn.Linear(input_dim, parser_dim)
        self.parent_proj = nn.Linear(input_dim, parser_dim)
        self.weight = nn.Parameter(torch.empty(parser_dim + 1, parser_dim))
        nn.init.xavier_uniform_(self.dependent_proj.weight)
        nn.init.xavier_uniform_(self.parent_proj.weight)
        nn.init.zeros_(self.dependent_proj.bias)
        nn.init.zeros_(self.parent_proj.bias)
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Args: x (T, B, C). Returns: logits (B, T dependent, T parent), natural log, not masked."""
        x = x.transpose(0, 1)
        dependents = F.leaky_relu(self.dependent_proj(x))
        parents = F.leaky_relu(self.parent_proj(x))
        # [Q'; 1] U = Q' U[:-1] + U[-1], without building [Q'; 1]
        return (dependents @ self.weight[:-1] + self.weight[-1]) @ parents.transpose(1, 2)


class ParserAttention(HeadwiseAttention):
    """Self-attention whose first head attends by the distribution of a biaffine parser.

    Args: as in `MultiheadAttention`.
    """

    special_heads = 1

    def __init__(self, embed_dim: int, num_heads: int, **kwargs):
        super().__init__(embed_dim, num_heads, self_attention=True, **kwargs)
        self.parser = BiaffineParser(embed_dim, self.head_dim)

    def attend_with_parser(
        self, x: Tensor, padding_mask: Tensor | None, gold_parents: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Self-attention on x (T, B, C) with a parsing head, and a padding mask (B, T) or None.

        `gold_parents` (B, T) are columns of parents that replace the parser's distribution, except where they are
        negative. Returns (output (T, B, C), weights of the parsing head (B, 1, T, T), parser logits (B, T,
        T), not masked).
        """
        logits = self.parser(x)
        distribution = masked_softmax(logits, padding_mask)
        if gold_parents is not None:
            one_hot = F.one_hot(gold_parents.clamp(min=0).long(), x.size(0)).to(distribution)
            is_gold = (gold_parents >= 0).unsqueeze(-1)
            distribution = torch.where(is_gold, one_hot, distribution)
        output, weights = self.attend(x, padding_mask, lambda query, key: distribution.unsqueeze(1))
        return output, weights, logits

"""A Transformer whose encoder looks more at what is near in the tree, by a bias on the scores of self-attention.

The idea is that of dependency-aware attention (Chi et al., PLOS ONE 2026); the formula is ours.
"""

from dataclasses import dataclass

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.models import register_model
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn
from torch.nn import functional as F

from ...data.collating import SourceSyntax
from ...options import option
from ..transformer.encoder import SyntaxEncoder, SyntaxEncoderLayer
from ..transformer.headwise_attention import split_heads
from ..transformer.model import SyntaxTransformerModel, register_sizes


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


@dataclass
class DistanceBiasOptions(FairseqDataclass):
    """Options of the distance bias."""

    dasa_sigma: float = option(2.0, "standard deviation of the Gaussian of tree distances, in arcs, or inf", "(0, inf]")
    dasa_init: float = option(
        1.0, "weight of the bias at the start, in logits; it is learned for every head and layer", "(-inf, inf)"
    )


class DistanceBiasEncoderLayer(SyntaxEncoderLayer):
    """An encoder layer whose self-attention has the bias."""

    attention = DistanceBiasAttention

    def attention_options(self, cfg):
        return {"initial": cfg.dasa_init}

    def attend(self, x, encoder_padding_mask, syntax):
        return self.self_attn.attend_to_near(x, encoder_padding_mask, syntax["nearness"]), {}


class DistanceBiasEncoder(SyntaxEncoder):
    """The encoder with the bias in all layers."""

    def syntax_layer(self, cfg, number):
        return DistanceBiasEncoderLayer(cfg)

    def layer_syntax(self, src_syntax: SourceSyntax):
        """G of the batch, once for all layers and heads."""
        return {"nearness": log_gaussian(src_syntax["distances"], self.cfg.dasa_sigma).exp()}


@register_model("dasa_transformer")
class DistanceBiasTransformerModel(SyntaxTransformerModel):
    """Transformer with tree distances in its encoder."""

    options = DistanceBiasOptions
    own_parameters = ("self_attn.distance_weight",)
    syntax_inputs = ("distances",)

    @classmethod
    def build_encoder(cls, cfg, src_dict, embed_tokens):
        return DistanceBiasEncoder(cfg, src_dict, embed_tokens)


register_sizes("dasa_transformer")

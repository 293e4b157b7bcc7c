"""Dependency-aware self-attention, "DASA": a Transformer whose encoder prefers tokens that are near in the tree.

The idea, and the words "element-wise modulation of attention logits", are those of Chi et al. (PLOS ONE 2026), whose
equations could not be read. `multiply` and `log` follow public code that is probably theirs
(github.com/alvin2026/DASA_NMT, December 2025, with ε = 1e-9); `add` is ours.
"""

from dataclasses import dataclass
from enum import StrEnum

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.models import register_model
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn
from torch.nn import functional as F

from ...data.collating import SourceSyntax
from ...options import option
from ...trees.distances import PAD_DISTANCE
from ..transformer.encoder import SyntaxEncoder, SyntaxEncoderLayer
from ..transformer.headwise_attention import HeadwiseAttention, masked_softmax, split_heads
from ..transformer.model import SyntaxTransformerModel, register_sizes


class DasaMode(StrEnum):
    """Effects of tree distances on the scores of self-attention."""

    add = "add"
    multiply = "multiply"
    log = "log"


def log_gaussian(distances: Tensor, sigma: float) -> Tensor:
    """-d² / 2σ² in float32, for distances of any shape and type; σ, in arcs, may be infinite."""
    # squares of uint8 would overflow
    return (distances.float() / sigma).square() * -0.5


def inverse_distances(distances: Tensor, epsilon: float) -> Tensor:
    """W = 1 / (d + ε), each row divided by its sum over the sentence: (B, T, T) -> (B, T, T) in float32, 0 at padding.

    Args:
        distances: tree distances d in arcs, `PAD_DISTANCE` at padding.
        epsilon: ε, in arcs.
    """
    inverse = (distances.float() + epsilon).reciprocal().masked_fill(distances == PAD_DISTANCE, 0)
    return inverse / inverse.sum(-1, keepdim=True).clamp(min=torch.finfo(torch.float32).tiny)


class DistanceBiasAttention(MultiheadAttention):
    """fairseq's multi-head self-attention with scores q·k/√d + λ_h G, for a G (T, T) of the tree of each sentence.

    If a row of G is constant (no parse), the softmax is that of plain attention. The weight λ of each head is fixed at
    `initial`, or starts there if it is `learned`. Called as `MultiheadAttention`, the module is just that.
    """

    def __init__(self, embed_dim: int, num_heads: int, *, initial: float = 1.0, learned: bool = True, **kwargs):
        super().__init__(embed_dim, num_heads, self_attention=True, **kwargs)
        weight = torch.full((num_heads,), initial)
        if learned:
            self.distance_weight = nn.Parameter(weight)
        else:
            self.register_buffer("distance_weight", weight, persistent=False)

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


class DistanceScaledAttention(HeadwiseAttention):
    """fairseq's multi-head self-attention with scores W · q·k/√d, for a W (T, T) of the tree of each sentence."""

    def __init__(self, embed_dim: int, num_heads: int, **kwargs):
        super().__init__(embed_dim, num_heads, self_attention=True, **kwargs)
        self.special_heads = num_heads

    def attend_scaled(self, x: Tensor, padding_mask: Tensor | None, factors: Tensor) -> Tensor:
        """(T, B, C) -> (T, B, C), with a padding mask (B, T) or None, and `factors` W (B, T, T)."""

        def weigh(query: Tensor, key: Tensor) -> Tensor:
            return masked_softmax((query @ key.transpose(2, 3)) * factors.unsqueeze(1).type_as(query), padding_mask)

        return self.attend(x, padding_mask, weigh)[0]


@dataclass
class DistanceBiasOptions(FairseqDataclass):
    """Options of tree distances in the encoder."""

    dasa_mode: DasaMode = option(
        DasaMode.add,
        "what distances d do to scores: add λ exp(-d²/2σ²); multiply them by W, which is 1/(d + ε), normalised; or add "
        "λ log W",
    )
    dasa_sigma: float = option(
        2.0, "of --dasa-mode add: standard deviation of the Gaussian of tree distances, in arcs, or inf", "(0, inf]"
    )
    dasa_epsilon: float = option(
        1.0, "of --dasa-mode multiply and log: what is added to a distance, in arcs; 1e-9 as published", "(0, inf)"
    )
    dasa_init: float = option(
        1.0,
        "λ, in logits; --dasa-mode add learns it from there for every head and layer, log keeps it (0.5 as published)",
        "(-inf, inf)",
    )


class DistanceBiasEncoderLayer(SyntaxEncoderLayer):
    """An encoder layer whose self-attention has the bias."""

    attention = DistanceBiasAttention

    def attention_options(self, cfg):
        return {"initial": cfg.dasa_init, "learned": cfg.dasa_mode == DasaMode.add}

    def attend(self, x, encoder_padding_mask, syntax):
        return self.self_attn.attend_to_near(x, encoder_padding_mask, syntax["nearness"]), {}


class DistanceScaledEncoderLayer(SyntaxEncoderLayer):
    """An encoder layer whose self-attention has scaled scores."""

    attention = DistanceScaledAttention

    def attend(self, x, encoder_padding_mask, syntax):
        return self.self_attn.attend_scaled(x, encoder_padding_mask, syntax["factors"]), {}


class DistanceBiasEncoder(SyntaxEncoder):
    """The encoder with tree distances in all layers."""

    def syntax_layer(self, cfg, number):
        return DistanceScaledEncoderLayer(cfg) if cfg.dasa_mode == DasaMode.multiply else DistanceBiasEncoderLayer(cfg)

    def layer_syntax(self, src_syntax: SourceSyntax):
        """G or W of the batch, computed once for all layers and heads."""
        distances = src_syntax["distances"]
        if self.cfg.dasa_mode == DasaMode.add:
            return {"nearness": log_gaussian(distances, self.cfg.dasa_sigma).exp()}
        weights = inverse_distances(distances, self.cfg.dasa_epsilon)
        padding = distances == PAD_DISTANCE
        if self.cfg.dasa_mode == DasaMode.log:
            return {"nearness": weights.log().masked_fill(padding, 0)}
        # without a parse, all distances are 0: plain attention
        parsed = distances.masked_fill(padding, 0).flatten(1).any(1)
        return {"factors": torch.where(parsed[:, None, None], weights, torch.ones_like(weights))}


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

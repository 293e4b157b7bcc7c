"""A stock Transformer with encoder heads trained to look at the parent."""

from dataclasses import dataclass

from fairseq.dataclass import FairseqDataclass
from fairseq.models import register_model
from fairseq.modules import MultiheadAttention
from torch import Tensor
from torch.nn import functional as F

from ...data.collating import SourceSyntax
from ..transformer.encoder import SyntaxEncoder, SyntaxEncoderLayer
from ..transformer.layer_choice import add_heads_option, check_layers_with_a_loss, heads_by_layer
from ..transformer.model import SyntaxTransformerModel, register_sizes


def head_logits(attention: MultiheadAttention, x: Tensor, heads: int) -> Tensor:
    """Logits of the first heads of self-attention, before masks: (T, B, C) -> (B, heads, T, T)."""
    length, batch, _ = x.shape
    size = heads * attention.head_dim
    query, key = (
        F.linear(x, projection.weight[:size], projection.bias[:size])
        .view(length, batch, heads, attention.head_dim)
        .permute(1, 2, 0, 3)
        for projection in (attention.q_proj, attention.k_proj)
    )
    return (query * attention.scaling) @ key.transpose(2, 3)


class PlantedEncoderLayer(SyntaxEncoderLayer):
    """fairseq's encoder layer, which also returns the logits of its first heads."""

    attention = MultiheadAttention

    def __init__(self, cfg, heads: int):
        self._heads = heads
        super().__init__(cfg)

    def attention_options(self, cfg):
        return {"self_attention": True}

    def attend(self, x, encoder_padding_mask, syntax):
        output, _ = self.self_attn(x, x, x, key_padding_mask=encoder_padding_mask, need_weights=False)
        return output, {"planted_logits": head_logits(self.self_attn, x, self._heads)}


class PlantedEncoder(SyntaxEncoder):
    """fairseq's encoder, unless a criterion compares its heads with trees."""

    def syntax_layer(self, cfg, number):
        heads = cfg.planted_heads[number]
        return PlantedEncoderLayer(cfg, heads) if heads else None

    def layer_syntax(self, src_syntax: SourceSyntax):
        """An empty dict, or None without trees (in translation), which makes the layers fairseq's."""
        return {} if self.training or "parent_pieces" in src_syntax else None


@dataclass
class PlantedOptions(FairseqDataclass):
    """No options but `--planted-heads`, which is added separately, because it takes a list."""


@register_model("planted_transformer")
class PlantedTransformerModel(SyntaxTransformerModel):
    """fairseq's Transformer; train it with --criterion label_smoothed_cross_entropy_with_planted_heads.

    Trees are needed to train it, not to translate with it.
    """

    options = PlantedOptions
    training_syntax_inputs = ("parent_pieces", "word_starts")
    criterion = "label_smoothed_cross_entropy_with_planted_heads"

    @classmethod
    def add_args(cls, parser):
        super().add_args(parser)
        add_heads_option(parser, "--planted-heads", "heads that learn to look at the parent")

    @classmethod
    def check_options(cls, args, task):
        args.planted_heads = heads_by_layer("--planted-heads", args.planted_heads, args)
        if not any(args.planted_heads):
            raise ValueError("--planted-heads 0: plants no head; use --arch transformer")
        check_layers_with_a_loss(args)

    @classmethod
    def build_encoder(cls, cfg, src_dict, embed_tokens):
        return PlantedEncoder(cfg, src_dict, embed_tokens)


def _preset(args, suffix):
    if not hasattr(args, "planted_heads"):
        args.planted_heads = [0, 1]


register_sizes("planted_transformer", _preset)

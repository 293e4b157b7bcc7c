"""PASCAL: a Transformer whose first encoder layer looks at syntactic parents (Bugliarello & Okazaki, ACL 2020)."""

import math
from dataclasses import dataclass

from fairseq.dataclass import FairseqDataclass
from fairseq.models import register_model

from ...data.collating import SourceSyntax
from ...options import option
from ..transformer.encoder import SyntaxEncoder, SyntaxEncoderLayer
from ..transformer.layer_choice import add_heads_option, heads_by_layer
from ..transformer.model import SyntaxTransformerModel, register_sizes
from .attention import ParentScaledAttention
from .parent_kernel import ParentKernel, parent_weights


@dataclass
class PascalOptions(FairseqDataclass):
    """Options of PASCAL; defaults are the paper's. `--pascal-heads`, a list, is added separately."""

    pascal_weight_fn: ParentKernel = option(ParentKernel.normal, "weight of a token by its distance from the parent")
    pascal_variance: float = option(1.0, "variance of the weight, in squared tokens", "(0, inf]")
    pascal_parent_ignoring: float = option(0.0, "probability that a token's parent is ignored in training", "[0, 1]")


class PascalEncoderLayer(SyntaxEncoderLayer):
    """An encoder layer with parent-scaled heads."""

    attention = ParentScaledAttention

    def __init__(self, cfg, pascal_heads):
        self._pascal_heads = pascal_heads
        super().__init__(cfg)

    def attention_options(self, cfg):
        return {"pascal_heads": self._pascal_heads, "parent_ignoring": cfg.pascal_parent_ignoring}

    def attend(self, x, encoder_padding_mask, syntax):
        output, weights = self.self_attn.attend_to_parents(x, encoder_padding_mask, syntax["prior"])
        return output, {"attention": weights}


class PascalEncoder(SyntaxEncoder):
    """The encoder of PASCAL."""

    def __init__(self, cfg, dictionary, embed_tokens):
        self.scales = any(cfg.pascal_heads)
        super().__init__(cfg, dictionary, embed_tokens)

    def syntax_layer(self, cfg, number):
        heads = cfg.pascal_heads[number]
        return PascalEncoderLayer(cfg, heads) if heads else None

    def layer_syntax(self, src_syntax: SourceSyntax):
        """The matrix D of the batch, computed once for all layers and heads."""
        if not self.scales:
            return None
        if self.training and self.cfg.pascal_parent_ignoring == 1:
            return None  # all rows of D are ones: the stock layer, to the bit
        return {"prior": parent_weights(src_syntax["parents"], self.cfg.pascal_weight_fn, self.cfg.pascal_variance)}


@register_model("pascal_transformer")
class PascalTransformerModel(SyntaxTransformerModel):
    """Transformer with parent-scaled self-attention. With --pascal-heads 0 it is the stock Transformer."""

    options = PascalOptions

    @property
    def syntax_inputs(self):
        """Parents, if any head is scaled."""
        return ("parents",) if self.encoder.scales else ()

    @classmethod
    def add_args(cls, parser):
        super().add_args(parser)
        add_heads_option(parser, "--pascal-heads", "parent-scaled heads")

    @classmethod
    def check_options(cls, args, task):
        args.pascal_heads = heads_by_layer("--pascal-heads", args.pascal_heads, args)
        if math.isinf(args.pascal_variance) and args.pascal_weight_fn == ParentKernel.normal:
            raise ValueError("--pascal-variance inf: this normal density is 0; give --pascal-weight-fn uniform, too")

    @classmethod
    def build_encoder(cls, cfg, src_dict, embed_tokens):
        return PascalEncoder(cfg, src_dict, embed_tokens)


def _preset(args, suffix):
    # the share of heads that the paper found best on WMT16: 5 of 8
    heads = {"_tiny": 1, "_iwslt_de_en": 2, "_wmt_en_de_big": 10}.get(suffix, 5)
    if not hasattr(args, "pascal_heads"):
        args.pascal_heads = [heads]


register_sizes("pascal_transformer", _preset)

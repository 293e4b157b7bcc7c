"""LISA: an encoder head that parses (Strubell et al. 2018), in a Transformer that translates subwords."""

from dataclasses import dataclass

from fairseq.dataclass import FairseqDataclass
from fairseq.models import register_model

from ...data.collating import SourceSyntax
from ...options import option
from ..transformer.encoder import SyntaxEncoder, SyntaxEncoderLayer
from ..transformer.layer_choice import check_layers_with_a_loss
from ..transformer.model import SyntaxTransformerModel, register_sizes
from .attention import ParserAttention


@dataclass
class LisaOptions(FairseqDataclass):
    """Options of LISA."""

    lisa_layer: int = option(0, "encoder layer whose first head parses, from 0")


class LisaEncoderLayer(SyntaxEncoderLayer):
    """An encoder layer whose first head is a parser."""

    attention = ParserAttention

    def attend(self, x, encoder_padding_mask, syntax):
        output, weights, logits = self.self_attn.attend_with_parser(x, encoder_padding_mask, syntax.get("gold_parents"))
        return output, {"attention": weights, "parse_logits": logits}


class LisaEncoder(SyntaxEncoder):
    """The encoder of LISA."""

    def syntax_layer(self, cfg, number):
        return LisaEncoderLayer(cfg) if number == cfg.lisa_layer else None

    def layer_syntax(self, src_syntax: SourceSyntax):
        """Given parses, where they replace the predicted ones (never in training)."""
        if not self.cfg.lisa_gold_parses or self.training:
            return {}
        return {"gold_parents": src_syntax["parent_pieces"]}


@register_model("lisa_transformer")
class LisaTransformerModel(SyntaxTransformerModel):
    """Transformer with a parsing head; train it with --criterion label_smoothed_cross_entropy_with_heads.

    Trees are needed to train it, not to translate with it (unless with --lisa-gold-parses).
    """

    options = LisaOptions
    own_parameters = ("self_attn.parser.",)
    training_syntax_inputs = ("parent_pieces", "word_starts")
    criterion = "label_smoothed_cross_entropy_with_heads"

    @property
    def syntax_inputs(self):
        """The given parents, where they replace the predicted ones."""
        return ("parent_pieces",) if self.encoder.cfg.lisa_gold_parses else ()

    @classmethod
    def check_options(cls, args, task):
        if args.lisa_layer not in range(args.encoder_layers):
            raise ValueError(f"--lisa-layer {args.lisa_layer}: give 0 to {args.encoder_layers - 1}")
        check_layers_with_a_loss(args)
        args.lisa_gold_parses = task.cfg.lisa_gold_parses

    @classmethod
    def build_encoder(cls, cfg, src_dict, embed_tokens):
        return LisaEncoder(cfg, src_dict, embed_tokens)


register_sizes("lisa_transformer")

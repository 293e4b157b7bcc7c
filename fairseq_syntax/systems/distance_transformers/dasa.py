"""A Transformer whose encoder attends by tree distance, too; beyond the papers, after Chi et al. (PLOS ONE 2026)."""

from dataclasses import dataclass

from fairseq.dataclass import FairseqDataclass
from fairseq.models import register_model

from ...data.collating import SourceSyntax
from ...options import option
from ..transformer.encoder import SyntaxEncoder, SyntaxEncoderLayer
from ..transformer.layer_choice import check_choice, chosen_layers, kept_layers
from ..transformer.model import SyntaxTransformerModel, register_sizes
from .distance_bias import DistanceBiasAttention, log_gaussian


@dataclass
class DistanceBiasOptions(FairseqDataclass):
    """Options of the distance bias."""

    dasa_sigma: float = option(2.0, "standard deviation of the Gaussian of tree distances, in arcs, or inf", "(0, inf]")
    dasa_init: float = option(
        1.0, "weight of the bias at the start, in logits; it is learned for every head and layer", "(-inf, inf)"
    )
    dasa_layers: str = option(
        "all", "encoder layers with the bias: all, none (the stock Transformer), or numbers from 0: 0,2,3"
    )


class DistanceBiasEncoderLayer(SyntaxEncoderLayer):
    """An encoder layer whose self-attention has the bias."""

    attention = DistanceBiasAttention

    def attention_options(self, cfg):
        return {"initial": cfg.dasa_init}

    def attend(self, x, encoder_padding_mask, syntax):
        return self.self_attn.attend_to_near(x, encoder_padding_mask, syntax["nearness"]), {}


class DistanceBiasEncoder(SyntaxEncoder):
    """The encoder with the bias in chosen layers."""

    def __init__(self, cfg, dictionary, embed_tokens):
        self.biased_layers = chosen_layers(cfg.dasa_layers, kept_layers(cfg.encoder))
        super().__init__(cfg, dictionary, embed_tokens)

    def syntax_layer(self, cfg, number):
        return DistanceBiasEncoderLayer(cfg) if number in self.biased_layers else None

    def layer_syntax(self, src_syntax: SourceSyntax):
        """G of the batch, once for all layers and heads."""
        if not self.biased_layers:
            return None
        return {"nearness": log_gaussian(src_syntax["distances"], self.cfg.dasa_sigma).exp()}


@register_model("dasa_transformer")
class DistanceBiasTransformerModel(SyntaxTransformerModel):
    """Transformer with tree distances in its encoder. With --dasa-layers none it is the stock Transformer."""

    options = DistanceBiasOptions
    own_parameters = ("self_attn.distance_weight",)

    @property
    def syntax_inputs(self):
        """Distances, if any layer has the bias."""
        return ("distances",) if self.encoder.biased_layers else ()

    @classmethod
    def check_options(cls, args, task):
        check_choice(args.dasa_layers, args.encoder_layers, "--dasa-layers")

    @classmethod
    def build_encoder(cls, cfg, src_dict, embed_tokens):
        return DistanceBiasEncoder(cfg, src_dict, embed_tokens)


register_sizes("dasa_transformer")

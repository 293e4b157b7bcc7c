"""A Transformer with syntax-directed heads in its decoder; beyond the paper of SDAtt (Chen et al., AAAI 2018)."""

from dataclasses import dataclass
from typing import Optional

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.distributed import fsdp_wrap
from fairseq.logging import metrics
from fairseq.models import register_model
from fairseq.models.transformer import TransformerDecoderBase
from fairseq.modules.checkpoint_activations import checkpoint_wrapper
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase
from torch import Tensor

from ...data.collating import GivenSyntax, SourceSyntax
from ...options import option
from ..sdatt.position_metrics import log_correlations, progress
from ..sdatt.syntax_directed_attention import POSITION_HELP, MissingParse, PositionGradient, distances_of
from ..transformer.encoder import SyntaxEncoder
from ..transformer.model import SyntaxTransformerModel, register_sizes
from .cross_attention import HeadPositions, SourcePenalty, SyntaxCrossAttention, tree_penalty


@dataclass
class SyntaxDirectedTransformerOptions(FairseqDataclass):
    """Options of syntax-directed heads."""

    sdatt_heads: Optional[int] = option(
        None,
        "number of syntax-directed heads in each layer of the decoder's attention to the source; default: half of "
        "them; 0: the stock Transformer",
    )
    sdatt_n: float = option(4.0, "window in arcs of the tree, or inf", "(0, inf]")
    sdatt_sigma: Optional[float] = option(
        None, "standard deviation of the Gaussian, in arcs, or inf; default: half the window", "(0, inf]"
    )
    sdatt_position: PositionGradient = option(PositionGradient.smooth, POSITION_HELP, reading=True)
    sdatt_missing: MissingParse = option(
        MissingParse.all_equal,
        "what a sentence without a parse gets. global: all words are equally near; error: it is refused",
    )


class SyntaxDirectedEncoder(SyntaxEncoder):
    """fairseq's encoder, which hands the trees on if the decoder has syntax-directed heads.

    Its output then also has "tree_penalty": a list of one `tree_penalty` (B, T, T).
    """

    def __init__(self, cfg, dictionary, embed_tokens):
        self.directs = cfg.sdatt_heads > 0
        super().__init__(cfg, dictionary, embed_tokens)

    def forward(
        self,
        src_tokens,
        src_lengths=None,
        return_all_hiddens: bool = False,
        token_embeddings=None,
        src_syntax: Optional[SourceSyntax] = None,
    ):
        encoder_out = super().forward(src_tokens, src_lengths, return_all_hiddens, token_embeddings)
        if not self.directs:
            return encoder_out
        keep = ~encoder_out["encoder_padding_mask"][0]
        distances = distances_of(GivenSyntax(src_syntax or {}), keep, self.cfg.sdatt_missing)
        window, sigma = self.cfg.sdatt_n, self.cfg.sdatt_sigma
        encoder_out["tree_penalty"] = [tree_penalty(distances, keep, window, window / 2 if sigma is None else sigma)]
        return encoder_out

    def reorder_encoder_out(self, encoder_out, new_order):
        """As in fairseq, which drops what it does not know."""
        reordered = super().reorder_encoder_out(encoder_out, new_order)
        if self.directs:
            reordered["tree_penalty"] = [penalty.index_select(0, new_order) for penalty in encoder_out["tree_penalty"]]
        return reordered


class SyntaxDirectedDecoderLayer(TransformerDecoderLayerBase):
    """fairseq's decoder layer with another attention to the source; it gets a `SourcePenalty` as its padding mask."""

    def build_encoder_attention(self, embed_dim, cfg):
        return SyntaxCrossAttention(
            embed_dim,
            cfg.decoder.attention_heads,
            syntax_heads=cfg.sdatt_heads,
            gradient=cfg.sdatt_position,
            kdim=cfg.encoder.embed_dim,
            vdim=cfg.encoder.embed_dim,
            dropout=cfg.attention_dropout,
            q_noise=self.quant_noise,
            qn_block_size=self.quant_noise_block_size,
        )


class SyntaxDirectedDecoder(TransformerDecoderBase):
    """fairseq's decoder with syntax-directed heads in all layers."""

    def build_decoder_layer(self, cfg, no_encoder_attn=False):
        layer = SyntaxDirectedDecoderLayer(cfg)
        if cfg.checkpoint_activations:
            layer = checkpoint_wrapper(layer, offload_to_cpu=cfg.offload_activations)
        return fsdp_wrap(layer, min_num_params=0 if cfg.checkpoint_activations else cfg.min_params_to_wrap)

    def extract_features(self, prev_output_tokens, encoder_out=None, *args, **kwargs):
        """As in fairseq, which passes the padding mask, and nothing else of the source, on to the layers."""
        if encoder_out is not None:
            penalties = [SourcePenalty.of(penalty) for penalty in encoder_out["tree_penalty"]]
            encoder_out = {**encoder_out, "encoder_padding_mask": penalties}
        return super().extract_features(prev_output_tokens, encoder_out, *args, **kwargs)


@register_model("sdatt_transformer")
class SyntaxDirectedTransformerModel(SyntaxTransformerModel):
    """Transformer with syntax-directed heads. With --sdatt-heads 0 it is the stock Transformer."""

    options = SyntaxDirectedTransformerOptions
    own_parameters = ("encoder_attn.position.",)

    @property
    def syntax_inputs(self):
        """Distances, if any head is directed by syntax."""
        return ("distances",) if self.encoder.directs else ()

    @property
    def refuses_unparsed(self):
        """Whether a sentence without a parse is an error."""
        return self.encoder.directs and self.encoder.cfg.sdatt_missing == MissingParse.error

    def forward(self, src_tokens, src_lengths, prev_output_tokens, features_only: bool = False, **kwargs):
        """As in fairseq; outside training, logs how much predicted positions vary, and whether they only track time.

        A predictor that has not learned anything has a spread near 0: it points at the same share of every sentence.
        """
        # by name above: BlackOut asks by the signature
        kwargs["features_only"] = features_only
        if self.training or not self.encoder.directs:
            return super().forward(src_tokens, src_lengths, prev_output_tokens, **kwargs)
        positions: list[Tensor] = []
        predictors = [module for module in self.modules() if isinstance(module, HeadPositions)]
        hooks = [
            module.register_forward_hook(lambda _, inputs, output: positions.append(output)) for module in predictors
        ]
        try:
            result = super().forward(src_tokens, src_lengths, prev_output_tokens, **kwargs)
        finally:
            for hook in hooks:
                hook.remove()
        length = src_tokens.ne(self.encoder.dictionary.pad()).sum(dim=1)
        shares = torch.cat(positions, dim=1) / length[:, None, None]  # (B, heads of all layers, S)
        of_target = prev_output_tokens.ne(self.decoder.dictionary.pad())
        shares = shares.transpose(1, 2)[of_target]
        metrics.log_scalar("position_spread", shares.std(dim=0, correction=0).mean(), weight=len(shares), round=3)
        log_correlations(shares.flatten(), progress(of_target).repeat_interleave(shares.shape[1]))
        return result

    @classmethod
    def check_options(cls, args, task):
        heads = args.decoder_attention_heads
        if args.sdatt_heads is None:
            args.sdatt_heads = max(1, heads // 2)
        if not 0 <= args.sdatt_heads <= heads:
            raise ValueError(f"--sdatt-heads {args.sdatt_heads}: give 0 to {heads} (--decoder-attention-heads)")
        for name in ("no_cross_attention", "cross_self_attention"):
            if args.sdatt_heads and getattr(args, name, False):
                raise ValueError(
                    f"--{name.replace('_', '-')} leaves no attention to the source alone that syntax could direct; "
                    "leave it out, or give --sdatt-heads 0"
                )

    @classmethod
    def build_encoder(cls, cfg, src_dict, embed_tokens):
        return SyntaxDirectedEncoder(cfg, src_dict, embed_tokens)

    @classmethod
    def build_decoder(cls, cfg, tgt_dict, embed_tokens):
        if not cfg.sdatt_heads:
            return super().build_decoder(cfg, tgt_dict, embed_tokens)
        return SyntaxDirectedDecoder(cfg, tgt_dict, embed_tokens)


register_sizes("sdatt_transformer")

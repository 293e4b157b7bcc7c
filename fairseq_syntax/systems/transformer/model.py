"""Base of the Transformers with syntax: options, presets, warm start."""

import argparse
import logging
from collections.abc import Callable
from typing import Optional

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import register_model_architecture
from fairseq.models.transformer import (
    TransformerModel,
    base_architecture,
    tiny_architecture,
    transformer_iwslt_de_en,
    transformer_wmt_en_de,
    transformer_wmt_en_de_big,
)

from ...data.collating import SourceSyntax
from ...hub import HubModel
from ...options import as_namespace, fill_defaults, require_trees

logger = logging.getLogger(__name__)

# suffix of the preset -> fairseq's preset of the same size
SIZES: dict[str, Callable] = {
    "": base_architecture,
    "_tiny": tiny_architecture,
    "_iwslt_de_en": transformer_iwslt_de_en,
    "_wmt_en_de": transformer_wmt_en_de,
    "_wmt_en_de_big": transformer_wmt_en_de_big,
}


class SyntaxTransformerModel(HubModel, TransformerModel):
    """fairseq's Transformer whose encoder takes `src_syntax`. Subclasses set `options` and `build_encoder`.

    Class attributes:
        options: a `FairseqDataclass` with the options beyond fairseq's; the command line, checkpoints and presets
            take them from it.
        own_parameters: substrings of parameter names that the stock Transformer does not have; a checkpoint without
            any of them warm-starts the model.
    """

    options: type[FairseqDataclass]
    own_parameters: tuple[str, ...] = ()
    takes_syntax = True
    syntax_inputs: tuple[str, ...] = ()
    training_syntax_inputs: tuple[str, ...] = ()

    @classmethod
    def add_args(cls, parser):
        """fairseq's options of the Transformer, and ours."""
        TransformerModel.add_args(parser)
        gen_parser_from_dataclass(parser, cls.options(), delete_default=True)

    @classmethod
    def build_model(cls, args, task):
        """Build the model; the options may also come from hydra.

        Raises ValueError: options that contradict each other, or a task without trees.
        """
        require_trees(cls, task)
        args = as_namespace(args)
        fill_defaults(args, cls.options)
        if getattr(args, "encoder_layers_to_keep", None):
            raise ValueError("--encoder-layers-to-keep: layers that learn from trees cannot be left out; leave it out")
        cls.check_options(args, task)
        return super().build_model(args, task)

    @classmethod
    def check_options(cls, args, task):
        """Raise ValueError for options that contradict each other."""

    def forward(
        self,
        src_tokens,
        src_lengths,
        prev_output_tokens,
        return_all_hiddens: bool = True,
        features_only: bool = False,
        alignment_layer: Optional[int] = None,
        alignment_heads: Optional[int] = None,
        src_syntax: Optional[SourceSyntax] = None,
    ):
        """As in fairseq; the decoder's extra dict also holds the encoder's extra results, under "syntax"."""
        encoder_out = self.encoder(
            src_tokens, src_lengths=src_lengths, return_all_hiddens=return_all_hiddens, src_syntax=src_syntax
        )
        output, extra = self.decoder(
            prev_output_tokens,
            encoder_out=encoder_out,
            features_only=features_only,
            alignment_layer=alignment_layer,
            alignment_heads=alignment_heads,
            src_lengths=src_lengths,
            return_all_hiddens=return_all_hiddens,
        )
        extra["syntax"] = encoder_out.get("syntax", [])
        return output, extra

    def syntactic_heads(self, src_tokens, src_syntax=None):
        """The first layer with heads that learn from trees: their attention (B, h, T, T), or None, and its number."""
        numbers = [i for i, layer in enumerate(self.encoder.layers, 1) if getattr(layer, "uses_syntax", False)]
        if not numbers:
            return None, 0
        # planted heads return logits only if there are parents, even unknown ones
        unknown = {"parent_pieces": torch.full_like(src_tokens, -1)}
        syntax = (self.encoder(src_tokens, src_syntax=trees)["syntax"] for trees in (src_syntax, unknown))
        [layer, *_] = next(filter(None, syntax))
        return layer["planted_logits"].softmax(-1) if "planted_logits" in layer else layer.get("attention"), numbers[0]

    def upgrade_state_dict_named(self, state_dict, name):
        """Let a checkpoint of the stock Transformer warm-start this model.

        Only if *all* parameters of our own are missing: a checkpoint with some of them is damaged, which
        strict loading must report.
        """
        super().upgrade_state_dict_named(state_dict, name)
        own = {
            key: value for key, value in self.state_dict().items() if any(part in key for part in self.own_parameters)
        }
        if own and not any(key in state_dict for key in own):
            logger.warning("the checkpoint has no %s; these parameters start afresh", ", ".join(sorted(own)))
            state_dict.update(own)


def register_sizes(model_name: str, preset: Callable[[argparse.Namespace, str], None] | None = None) -> None:
    """Register presets `<model_name><suffix>` for all `SIZES`.

    `preset` is called with (args, suffix) before fairseq's preset of that size, and sets the model's own options.
    """
    for suffix, base in SIZES.items():

        def architecture(args, suffix=suffix, base=base):
            if preset:
                preset(args, suffix)
            base(args)

        register_model_architecture(model_name, f"{model_name}{suffix}")(architecture)

"""The recurrent encoder-decoder with attention on which the recurrent systems of the suite are built."""

import argparse
from dataclasses import dataclass
from typing import Optional

from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import FairseqEncoderDecoderModel, register_model
from torch import nn

from ...hub import HubModel
from ...options import (
    as_namespace,
    fill_defaults,
    keep_for_checkpoints,
    option,
    register_presets,
    require_joined_dictionary,
    require_trees,
)
from .decoder import InputFeedingDecoder, RecurrentDecoder
from .encoder import RecurrentEncoder
from .source_attention import GlobalAttention, GlobalMemory, SourceAttention, SourceMemory


@dataclass
class RecurrentOptions(FairseqDataclass):
    """Options of the recurrent base; defaults are those of Tran & Bisk (2018), Sec. 4.3."""

    dropout: float = option(0.3, "dropout between layers and of the output state", "[0, 1)")
    embedding_dropout: Optional[float] = option(0.0, "dropout of source and target embeddings", "[0, 1)")
    annotation_dropout: Optional[float] = option(0.0, "dropout of annotations, before all attention to them", "[0, 1)")
    encoder_embed_dim: int = option(1024, "size of source embeddings", "[1, inf)")
    encoder_hidden_size: int = option(512, "size of the encoder's state in each of two directions", "[1, inf)")
    encoder_layers: int = option(2, "bidirectional layers of the encoder", "[1, inf)")
    decoder_embed_dim: int = option(1024, "size of target embeddings, and of what enters the output layer", "[1, inf)")
    decoder_hidden_size: int = option(1024, "size of the decoder's state", "[1, inf)")
    decoder_layers: int = option(2, "layers of the decoder, as many as in the encoder")
    share_all_embeddings: bool = option(False, "one table of embeddings for both languages; needs a joined dictionary")
    untied_output: bool = option(False, "give the output layer a matrix of its own instead of the target embeddings")
    output_bias: bool = option(False, "give the output layer a bias")
    init_range: float = option(0.04, "all parameters start uniformly distributed between -R and R", "(0, inf)")


@register_model("nmt_lstm")
class RecurrentModel(HubModel, FairseqEncoderDecoderModel):
    """Attentional recurrent encoder-decoder (Luong et al. 2015; Tran & Bisk 2018, Sec. 2), the baseline of SA-NMT.

    Systems with another attention subclass it: they override `build_attention`, and `options` to add their own.
    """

    options = RecurrentOptions
    takes_syntax = True
    syntax_inputs: tuple[str, ...] = ()
    training_syntax_inputs: tuple[str, ...] = ()
    clamped_by: tuple[str, ...] = ()
    has_latent_trees = False

    @classmethod
    def add_args(cls, parser):
        """Options of the model's dataclass; defaults come from presets and `fill_defaults`."""
        gen_parser_from_dataclass(parser, cls.options(), delete_default=True)

    @classmethod
    def build_attention(cls, args, task) -> tuple[SourceMemory, SourceAttention]:
        """The two halves of the source attention: in the encoder and in the decoder."""
        memory = GlobalMemory(2 * args.encoder_hidden_size, args.decoder_hidden_size)
        return memory, GlobalAttention()

    @classmethod
    def build_encoder(cls, args, task, embed_tokens, memory) -> RecurrentEncoder:
        """The encoder that fills a memory."""
        return RecurrentEncoder(task.source_dictionary, args, embed_tokens, memory)

    @classmethod
    def build_decoder(cls, args, task, embed_tokens, attention, context_size: int) -> RecurrentDecoder:
        """The decoder around an attention that returns contexts of this size."""
        if args.encoder_layers != args.decoder_layers:
            raise ValueError(
                f"--encoder-layers {args.encoder_layers} and --decoder-layers {args.decoder_layers} must be equal: "
                "each layer of the decoder starts from the last state of one of the encoder"
            )
        return InputFeedingDecoder(task.target_dictionary, args, embed_tokens, attention, context_size)

    @classmethod
    def complete_options(cls, args, task) -> argparse.Namespace:
        """All options with a value, checked.

        Raises ValueError: options that contradict each other or are out of range.
        """
        args = as_namespace(args)
        fill_defaults(args, cls.options)
        cls.check_options(args, task)
        for side in ("source", "target"):
            # options of the task, too, which fairseq puts into the same namespace
            setattr(args, name := f"max_{side}_positions", getattr(args, name, None) or 1024)
        return args

    @classmethod
    def build_model(cls, args, task):
        """Build the model. Raises ValueError: options that contradict each other or are out of range."""
        original, args = args, cls.complete_options(args, task)
        memory, attention = cls.build_attention(args, task)
        source_table = target_table = _embeddings(task.source_dictionary, args.encoder_embed_dim)
        if not args.share_all_embeddings:
            target_table = _embeddings(task.target_dictionary, args.decoder_embed_dim)
        model = cls(
            cls.build_encoder(args, task, source_table, memory),
            cls.build_decoder(args, task, target_table, attention, memory.context_size),
        )
        if model.syntax_inputs:
            require_trees(cls, task)
        cls.initialize(model, args)
        keep_for_checkpoints(original, args)
        for table in (source_table, target_table):
            nn.init.zeros_(table.weight[table.padding_idx])
        return model

    @classmethod
    def initialize(cls, model, args) -> None:
        """Initialise all parameters; rows of padding are set later."""
        for parameter in model.parameters():
            nn.init.uniform_(parameter, -args.init_range, args.init_range)

    @classmethod
    def check_options(cls, args, task):
        """Raise ValueError for options that contradict each other or are out of range."""
        if args.share_all_embeddings:
            require_joined_dictionary(task)
            if args.encoder_embed_dim != args.decoder_embed_dim:
                raise ValueError(
                    f"--share-all-embeddings: --encoder-embed-dim {args.encoder_embed_dim} and --decoder-embed-dim "
                    f"{args.decoder_embed_dim} must be equal"
                )

    def forward(self, src_tokens, src_lengths, prev_output_tokens, src_syntax=None, features_only=False):
        """Scores (B, S, V) and a dict of extras, see `RecurrentDecoder.extract_features`."""
        encoder_out = self.encoder(src_tokens, src_lengths, src_syntax=src_syntax)
        return self.decoder(prev_output_tokens, encoder_out=encoder_out, features_only=features_only)


def _embeddings(dictionary, size: int) -> nn.Embedding:
    return nn.Embedding(len(dictionary), size, padding_idx=dictionary.pad())


TINY = {
    "encoder_embed_dim": 64,
    "encoder_hidden_size": 32,
    "decoder_embed_dim": 64,
    "decoder_hidden_size": 64,
    "init_range": 0.1,
}

# the baseline of latent-tree RNNGs, "two layers and 384 hidden units from the OpenNMT project" (Bradbury & Socher 2017,
# Sec. 3): OpenNMT's attentional LSTM, with input feeding, an output layer of its own and a bias in it, and its way of
# starting parameters; the encoder is OpenNMT's with `-brnn`, of 192 units in each direction
CHAR = {
    "encoder_embed_dim": 384,
    "encoder_hidden_size": 192,
    "decoder_embed_dim": 384,
    "decoder_hidden_size": 384,
    "dropout": 0.1,
    "untied_output": True,
    "output_bias": True,
    "init_range": 0.1,
}

register_presets("nmt_lstm", {"nmt_lstm": {}, "nmt_lstm_tiny": TINY, "char_lstm": CHAR})

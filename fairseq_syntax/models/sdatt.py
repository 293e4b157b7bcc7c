"""SDAtt: syntax-directed attention, and the attentions it is compared with (Chen et al., AAAI 2018)."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Optional

import torch
from fairseq.logging import metrics
from fairseq.models import register_model, register_model_architecture
from torch import Tensor, nn

from ..modules.additive_attention import AdditiveAttention, AdditiveMemory, SourceWeights
from ..modules.dependency_units import SMALLEST_UNIT
from ..modules.recurrent_cells import GRUCell, LSTMCell, RecurrentCell
from ..modules.syntax_directed_attention import (
    Combine,
    MissingParse,
    PositionGradient,
    SyntaxDirectedMemory,
    SyntaxDirectedWeights,
)
from ..modules.two_sequence_attention import TwoSequenceAttention
from ..modules.window_attention import FlexibleWeights, LocalSoftmax, LocalWeights, centre_row
from .conditional_gru import ConditionalGRUDecoder
from .dependency_units import UNIT_INPUTS, TwoMemories, TwoSequenceEncoder, TwoStateDecoder, UnitEncoder
from .recurrent import CellType, RecurrentEncoder, RecurrentModel, RecurrentOptions


class AttentionKind(StrEnum):
    """What makes weights of attention scores."""

    plain = "global"
    local = "local"
    flexible = "flexible"
    syntax = "sdatt"


class DecoderKind(StrEnum):
    """The recurrent decoder."""

    conditional_gru = "conditional-gru"
    input_feeding = "input-feeding"


class ContextState(StrEnum):
    """Which contexts of a double context enter the second GRU; both enter the deep output."""

    both = "both"
    readout = "readout"


@dataclass
class SyntaxDirectedOptions(RecurrentOptions):
    """Options of SDAtt and its peers; the presets choose the attention."""

    cell: CellType = field(default=CellType.gru, metadata={"help": "recurrent cell of encoder and decoder"})
    dropout: float = field(
        default=0.2, metadata={"help": "dropout of embeddings, of annotations, and around the deep output"}
    )
    embedding_dropout: Optional[float] = field(
        default=None, metadata={"help": "dropout of source and target embeddings; default: --dropout, as in Nematus"}
    )
    annotation_dropout: Optional[float] = field(
        default=None, metadata={"help": "dropout of the encoder's annotations; default: --dropout, as in Nematus"}
    )
    encoder_embed_dim: int = field(default=620, metadata={"help": "size of source embeddings"})
    encoder_hidden_size: int = field(default=1000, metadata={"help": "size of the encoder's state in each direction"})
    encoder_layers: int = field(default=1, metadata={"help": "bidirectional layers of the encoder"})
    decoder_embed_dim: int = field(default=620, metadata={"help": "size of target embeddings and of the deep output"})
    decoder_hidden_size: int = field(default=1000, metadata={"help": "size of the decoder's state"})
    decoder_layers: int = field(default=1, metadata={"help": "layers of the input-feeding decoder"})
    init_range: Optional[float] = field(
        default=None,
        metadata={
            "help": "all parameters start uniformly distributed between -R and R; default: as in Nematus, square "
            "matrices orthogonal, others normal with standard deviation 0.01, biases 0"
        },
    )
    decoder_kind: DecoderKind = field(
        default=DecoderKind.conditional_gru, metadata={"help": "conditional GRU with deep output, or input feeding"}
    )
    attention_size: Optional[int] = field(
        default=None, metadata={"help": "size of attention keys; default: that of the annotations"}
    )
    attention: AttentionKind = field(default=AttentionKind.plain, metadata={"help": "weights of the (second) context"})
    double_context: bool = field(default=False, metadata={"help": "use the context of global attention, too"})
    double_context_state: ContextState = field(
        default=ContextState.both,
        metadata={"help": "what enters the second GRU: both contexts, or the global one (readout has both)"},
    )
    sdatt_n: float = field(default=4.0, metadata={"help": "window in arcs of the tree, or inf"})
    sdatt_sigma: Optional[float] = field(
        default=None, metadata={"help": "standard deviation of the Gaussian, in arcs, or inf; default: half the window"}
    )
    sdatt_combine: Optional[Combine] = field(
        default=None,
        metadata={
            "help": "how distance changes scores: mul (published; default of the conditional GRU), add (default "
            "elsewhere), post"
        },
    )
    sdatt_position: PositionGradient = field(
        default=PositionGradient.ste, metadata={"help": "gradient of the predicted position"}
    )
    sdatt_missing: MissingParse = field(
        default=MissingParse.all_equal,
        metadata={
            "help": "what a sentence without a parse gets: global, all words as near as any (and units of themselves "
            "alone); linear, distances in the sentence, not for units; error, it is refused"
        },
    )
    variational_dropout: bool = field(
        default=False, metadata={"help": "drop the same components at all positions of a sentence, as Nematus does"}
    )
    sdr: int = field(
        default=0,
        metadata={
            "help": "dependency units, as wide as --encoder-embed-dim: 0 none, 1 the encoder reads them beside the "
            "words, 2 an encoder of their own"
        },
    )
    sdr_lambda: float = field(
        default=0.5, metadata={"help": "share of words in the attention scores of --sdr 2; that of units is the rest"}
    )
    sdr_unit_size: int = field(default=SMALLEST_UNIT, metadata={"help": "words in a dependency unit"})
    sdr_depthwise: bool = field(
        default=False, metadata={"help": "convolve each dimension of the embeddings of a unit by itself"}
    )
    local_window: float = field(default=10.0, metadata={"help": "window of local attention on either side, or inf"})
    local_softmax: LocalSoftmax = field(
        default=LocalSoftmax.window, metadata={"help": "where local attention takes its softmax"}
    )
    local_renorm: bool = field(default=False, metadata={"help": "make the weights of local attention sum to one"})
    flex_sigma: float = field(default=3.0, metadata={"help": "scale of the penalty of flexible attention, in tokens"})
    flex_threshold: float = field(
        default=float("inf"), metadata={"help": "leave out positions with a greater penalty in flexible attention"}
    )


@register_model("sdatt")
class SyntaxDirectedModel(RecurrentModel):
    """Conditional GRU (or input-feeding) decoder over any of the attentions."""

    options = SyntaxDirectedOptions

    @property
    def syntax_inputs(self):
        """Distances, if attention is directed by syntax; what dependency units are made of."""
        distances = ("distances",) if isinstance(self.encoder.memory, SyntaxDirectedMemory) else ()
        return distances + (UNIT_INPUTS if isinstance(self.encoder, UnitEncoder) else ())

    @property
    def refuses_unparsed(self):
        """Whether a sentence without a parse is an error."""
        return any(getattr(part, "missing", None) == MissingParse.error for part in (self.encoder, self.encoder.memory))

    def forward(self, src_tokens, src_lengths, prev_output_tokens, src_syntax=None, features_only=False):
        """As of the base; in validation, what the predicted positions are like goes into fairseq's log."""
        scores, extra = super().forward(src_tokens, src_lengths, prev_output_tokens, src_syntax, features_only)
        if not self.training and "position" in extra:
            source, target = self.encoder.dictionary.pad(), self.decoder.dictionary.pad()
            _log_positions(extra, src_tokens.ne(source), prev_output_tokens.ne(target))
        return scores, extra

    @classmethod
    def check_options(cls, args, task):
        super().check_options(args, task)
        if args.double_context and args.attention == AttentionKind.plain:
            raise ValueError("--double-context: the second context needs --attention local, flexible or sdatt")
        for name in ("sdatt_n", "sdatt_sigma", "local_window", "flex_sigma", "flex_threshold"):
            value = getattr(args, name)
            if value is not None and not value > 0:
                raise ValueError(f"--{name.replace('_', '-')} {value}: must be greater than 0")
        if args.decoder_kind == DecoderKind.conditional_gru and (args.cell != CellType.gru or args.decoder_layers != 1):
            raise ValueError(
                "--decoder-kind conditional-gru has one layer of --cell gru; choose input-feeding for more"
            )
        if args.decoder_kind == DecoderKind.input_feeding and args.variational_dropout:
            raise ValueError("--variational-dropout: needs --decoder-kind conditional-gru")
        if args.variational_dropout and args.encoder_layers > 1:
            raise ValueError(
                f"--variational-dropout: needs --encoder-layers 1, not {args.encoder_layers}; between layers, PyTorch "
                "drops anew at every position"
            )
        if args.double_context_state == ContextState.readout and (
            not args.double_context or args.decoder_kind == DecoderKind.input_feeding
        ):
            raise ValueError(
                "--double-context-state readout: needs --double-context and --decoder-kind conditional-gru"
            )
        _check_units(args)
        # an option without a default value, which `fill_defaults` checks for the others
        choices = [choice.value for choice in Combine]
        if args.sdatt_combine is not None and args.sdatt_combine not in choices:
            raise ValueError(f"--sdatt-combine {args.sdatt_combine}: choose from {', '.join(choices)}")
        if args.attention_size is not None and args.attention_size < 1:
            raise ValueError(f"--attention-size {args.attention_size}: must be at least 1")

    @classmethod
    @torch.no_grad()
    def initialize(cls, model, args):
        if args.init_range is not None:
            return super().initialize(model, args)
        gates = (GRUCell if args.cell == CellType.gru else LSTMCell).gates
        # matrices of all gates, one below the other
        layers = [module for module in model.modules() if isinstance(module, (nn.RNNBase, RecurrentCell))]
        of_gates = {id(parameter) for layer in layers for parameter in layer.parameters()}
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                nn.init.zeros_(parameter)
            elif parameter.dim() == 3:
                # convolutions, which Nematus does not have, keep the values that PyTorch gives them
                continue
            elif "weight_hh" in name or "recurrent" in name:
                # in an LSTM of ours the input comes first
                nn.init.normal_(parameter, std=0.01)
                for gate in parameter.chunk(gates):
                    nn.init.orthogonal_(gate[:, -len(gate) :])
            else:
                for matrix in parameter.chunk(gates) if id(parameter) in of_gates else (parameter,):
                    if matrix.shape[0] == matrix.shape[1]:
                        nn.init.orthogonal_(matrix)
                    else:
                        nn.init.normal_(matrix, std=0.01)

    @classmethod
    def build_attention(cls, args, task):
        source, query = 2 * args.encoder_hidden_size, args.decoder_hidden_size
        size = args.attention_size or source
        if args.sdr == 2:
            return TwoMemories(source, size), TwoSequenceAttention(query, size, args.sdr_lambda)
        if args.attention == AttentionKind.syntax:
            memory = SyntaxDirectedMemory(source, size, args.double_context, args.sdatt_missing)
        else:
            memory = AdditiveMemory(source, size, args.double_context)
        return memory, AdditiveAttention(query, size, _weights(args, query), args.double_context)

    @classmethod
    def build_encoder(cls, args, task, embed_tokens, memory):
        kind = (RecurrentEncoder, UnitEncoder, TwoSequenceEncoder)[args.sdr]
        return kind(task.source_dictionary, args, embed_tokens, memory)

    @classmethod
    def build_decoder(cls, args, task, embed_tokens, attention, context_size):
        if args.sdr == 2:
            return TwoStateDecoder(task.target_dictionary, args, embed_tokens, attention, context_size)
        if args.decoder_kind == DecoderKind.input_feeding:
            return super().build_decoder(args, task, embed_tokens, attention, context_size)
        fed = context_size if args.double_context_state == ContextState.both else 2 * args.encoder_hidden_size
        return ConditionalGRUDecoder(task.target_dictionary, args, embed_tokens, attention, context_size, fed)


def _log_positions(extra, of_source: Tensor, of_target: Tensor) -> None:
    """Log how far predicted positions are from where attention is strongest, and how much they vary.

    A predictor that has not learned anything has a spread near 0: it points at the same share of every sentence.

    Args:
        extra: of the decoder: "attn" [(B, S, T)] and "position" (B, S).
        of_source, of_target: (B, T) and (B, S), True at real tokens.
    """
    length = of_source.sum(dim=1, keepdim=True)
    first = of_source.int().argmax(dim=1, keepdim=True)
    strongest = extra["attn"][0].argmax(dim=2) - first
    position = extra["position"]
    away = (centre_row(position, length) - strongest).abs()[of_target]
    share = (position / length)[of_target]
    metrics.log_scalar("position_error", away.float().mean(), weight=len(away), round=2)
    metrics.log_scalar("position_spread", share.std(correction=0), weight=len(share), round=3)


def _check_units(args) -> None:
    if args.sdr not in (0, 1, 2):
        raise ValueError(f"--sdr {args.sdr}: choose 0, 1 or 2")
    if args.sdr_unit_size < SMALLEST_UNIT:
        raise ValueError(f"--sdr-unit-size {args.sdr_unit_size}: must be at least {SMALLEST_UNIT}")
    if not 0 <= args.sdr_lambda <= 1:
        raise ValueError(f"--sdr-lambda {args.sdr_lambda}: must be from 0 to 1")
    if args.sdr == 2 and (args.attention != AttentionKind.plain or args.decoder_kind != DecoderKind.conditional_gru):
        raise ValueError("--sdr 2: needs --attention global and --decoder-kind conditional-gru")
    if args.sdr and args.attention != AttentionKind.syntax and args.sdatt_missing == MissingParse.linear:
        raise ValueError("--sdatt-missing linear: units have no linear form; choose global or error")


def _weights(args, query: int) -> SourceWeights:
    if args.attention == AttentionKind.local:
        return LocalWeights(query, args.local_window, args.local_softmax, args.local_renorm)
    if args.attention == AttentionKind.flexible:
        return FlexibleWeights(query, args.flex_sigma, args.flex_threshold)
    if args.attention == AttentionKind.syntax:
        combine = args.sdatt_combine
        if combine is None:
            published = args.decoder_kind == DecoderKind.conditional_gru
            combine = Combine.mul if published else Combine.add
        return SyntaxDirectedWeights(query, args.sdatt_n, args.sdatt_sigma, combine, args.sdatt_position)
    return SourceWeights()


TINY = {
    "encoder_embed_dim": 64,
    "encoder_hidden_size": 32,
    "decoder_embed_dim": 64,
    "decoder_hidden_size": 64,
}

# name of the architecture, as the paper names the row -> its system
SYSTEMS = {
    "global_att": {"attention": "global"},
    "local_att": {"attention": "local"},
    "flexible_att": {"attention": "flexible"},
    "chen17": {"attention": "global", "sdr": 1},
    "sdatt": {"attention": "sdatt"},
    "global_plus_local": {"attention": "local", "double_context": True},
    "global_plus_flexible": {"attention": "flexible", "double_context": True},
    "global_plus_chen17": {"attention": "global", "sdr": 2},
    "global_plus_sdatt": {"attention": "sdatt", "double_context": True},
}


def _register(name: str, settings: dict) -> None:
    def architecture(args):
        for option, value in settings.items():
            if not hasattr(args, option):
                setattr(args, option, value)

    register_model_architecture("sdatt", name)(architecture)


for _name, _settings in SYSTEMS.items():
    _register(_name, _settings)
    _register(f"{_name}_tiny", {**_settings, **TINY})

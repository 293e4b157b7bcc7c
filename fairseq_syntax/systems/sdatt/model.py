"""SDAtt: syntax-directed attention, and the attentions it is compared with (Chen et al., AAAI 2018)."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Optional

import torch
from fairseq.models import register_model, register_model_architecture
from torch import nn

from ...options import require_trees
from ..recurrent.cells import GRUCell, LSTMCell, RecurrentCell
from ..recurrent.model import CellType, RecurrentEncoder, RecurrentModel, RecurrentOptions
from .additive_attention import AdditiveAttention, AdditiveMemory, SourceWeights
from .conditional_gru import ConditionalGRUDecoder
from .dependency_units import SMALLEST_UNIT
from .position_metrics import log_positions
from .syntax_directed_attention import (
    Combine,
    MissingParse,
    PositionGradient,
    PositionGuide,
    SyntaxDirectedMemory,
    SyntaxDirectedWeights,
)
from .two_sequence_attention import TwoSequenceAttention
from .unit_encoders import UNIT_INPUTS, TwoMemories, TwoSequenceEncoder, TwoStateDecoder, UnitEncoder
from .window_attention import FlexibleWeights, LocalSoftmax, LocalWeights


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
    recurrent_dropout: float = field(
        default=0.0,
        metadata={
            "help": "dropout of recurrent states where they enter gates, candidates and the attention, the same "
            "components at all steps; Nematus has the rate of --dropout here"
        },
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
    sdatt_guide: PositionGuide = field(
        default=PositionGuide.none,
        metadata={
            "help": "what plain attention, the softmax of the scores over the whole sentence, does for the position "
            "(ours): none, nothing; loss, a term of the loss in training pulls the prediction to where it looks on the "
            "average; centres, the centre is where it looks, and nothing is predicted"
        },
    )
    sdatt_guide_weight: float = field(
        default=1.0,
        metadata={"help": "weight of the term of --sdatt-guide loss, L KL(t/L || p/L) to where it looks, t"},
    )
    sdatt_position_lr: float = field(
        default=1.0,
        metadata={"help": "learning rate of W_p and v_p, which predict the position, as a share of the others'"},
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
        default=LocalSoftmax.window,
        metadata={
            "help": "where local attention takes its softmax: in the window, as Luong et al. (2015) and Nematus do, or "
            "over the sentence, which is eq. 6 of Chen et al. (2018) to the letter"
        },
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
        if self.training and "guide_loss" in extra:
            of_target = prev_output_tokens.ne(self.decoder.dictionary.pad())
            extra["auxiliary_loss"] = extra["guide_loss"][of_target].sum()
        if not self.training and "position" in extra:
            source, target = self.encoder.dictionary.pad(), self.decoder.dictionary.pad()
            plain = extra["plain_attn"] if "plain_attn" in extra else extra["attn"][0]
            log_positions(extra["position"], plain, src_tokens.ne(source), prev_output_tokens.ne(target))
        return scores, extra

    def step_shares(self) -> list[tuple[nn.Parameter, float]]:
        """Parameters that the task has learn faster or slower than others, and what share of a step they take."""
        nets = [module for module in self.modules() if getattr(module, "step_share", 1) != 1]
        return [(parameter, net.step_share) for net in nets for parameter in net.parameters()]

    @classmethod
    def check_options(cls, args, task):
        super().check_options(args, task)
        _check_guide(args)
        if args.sdatt_position_lr != 1:
            require_trees(cls, task)  # other tasks step as fairseq does
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
        if not 0 <= args.recurrent_dropout < 1:
            raise ValueError(f"--recurrent-dropout {args.recurrent_dropout}: must be at least 0 and less than 1")
        if args.recurrent_dropout and (args.decoder_kind == DecoderKind.input_feeding or args.encoder_layers > 1):
            raise ValueError(
                f"--recurrent-dropout {args.recurrent_dropout}: needs --decoder-kind conditional-gru and "
                "--encoder-layers 1"
            )
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


def _check_guide(args) -> None:
    guided = args.sdatt_guide != PositionGuide.none
    predicts = args.attention in (AttentionKind.local, AttentionKind.syntax) and args.sdr != 2
    if guided and args.attention != AttentionKind.syntax:
        raise ValueError(f"--sdatt-guide {args.sdatt_guide}: needs --attention sdatt")
    if not 0 <= args.sdatt_guide_weight < float("inf"):
        raise ValueError(f"--sdatt-guide-weight {args.sdatt_guide_weight}: must be at least 0 and finite")
    if args.sdatt_guide_weight != 1 and args.sdatt_guide != PositionGuide.loss:
        raise ValueError(f"--sdatt-guide-weight {args.sdatt_guide_weight}: needs --sdatt-guide loss")
    if not 0 <= args.sdatt_position_lr < float("inf"):
        raise ValueError(f"--sdatt-position-lr {args.sdatt_position_lr}: must be at least 0 and finite")
    if args.sdatt_position_lr != 1 and (not predicts or args.sdatt_guide == PositionGuide.centres):
        raise ValueError(f"--sdatt-position-lr {args.sdatt_position_lr}: the system predicts no position")
    hard = args.attention == AttentionKind.syntax and args.sdatt_position == PositionGradient.hard
    if args.sdatt_position_lr != 1 and hard and not guided:
        raise ValueError(f"--sdatt-position-lr {args.sdatt_position_lr}: --sdatt-position hard does not learn it")


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
        weights = LocalWeights(query, args.local_window, args.local_softmax, args.local_renorm)
    elif args.attention == AttentionKind.flexible:
        return FlexibleWeights(query, args.flex_sigma, args.flex_threshold)
    elif args.attention == AttentionKind.syntax:
        combine = args.sdatt_combine
        if combine is None:
            published = args.decoder_kind == DecoderKind.conditional_gru
            combine = Combine.mul if published else Combine.add
        weights = SyntaxDirectedWeights(
            query,
            args.sdatt_n,
            args.sdatt_sigma,
            combine,
            args.sdatt_position,
            args.sdatt_guide,
            args.sdatt_guide_weight,
        )
    else:
        return SourceWeights()
    if weights.position is not None:
        weights.position.step_share = args.sdatt_position_lr
    return weights


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

"""SDAtt: syntax-directed attention, and the attentions it is compared with (Chen et al., AAAI 2018)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Optional

import torch
from fairseq.models import register_model
from torch import nn

from ...options import option, register_presets
from ..recurrent.cells import GRUCell
from ..recurrent.model import RecurrentModel, RecurrentOptions
from .attention import AdditiveAttention, AdditiveMemory, FlexibleWeights, LocalSoftmax, LocalWeights, SourceWeights
from .conditional_gru import ConditionalGRUDecoder, GRUEncoder
from .syntax_directed_attention import PositionGradient, SyntaxDirectedMemory, SyntaxDirectedWeights
from .units import UNIT_INPUTS, TwoMemories, TwoSequenceAttention, TwoSequenceEncoder, TwoStateDecoder, UnitEncoder


class AttentionKind(StrEnum):
    """Kinds of weights from attention scores."""

    plain = "global"
    local = "local"
    flexible = "flexible"
    syntax = "sdatt"


@dataclass
class SyntaxDirectedOptions(RecurrentOptions):
    """Options of SDAtt and its peers; the presets choose the attention."""

    dropout: float = option(0.2, "dropout of embeddings, of annotations, and around the deep output", "[0, 1)")
    embedding_dropout: Optional[float] = option(
        None, "dropout of source and target embeddings; default: --dropout, as in Nematus", "[0, 1)"
    )
    annotation_dropout: Optional[float] = option(
        None, "dropout of the encoder's annotations; default: --dropout, as in Nematus", "[0, 1)"
    )
    recurrent_dropout: float = option(
        0.0,
        "dropout of recurrent states where they enter gates, candidates and the attention, the same "
        "components at all steps; Nematus has the rate of --dropout here",
        "[0, 1)",
    )
    encoder_embed_dim: int = option(620, "size of source embeddings", "[1, inf)")
    encoder_hidden_size: int = option(1000, "size of the encoder's state in each direction", "[1, inf)")
    encoder_layers: int = option(1, "bidirectional layers of the encoder", "[1, inf)")
    decoder_embed_dim: int = option(620, "size of target embeddings and of the deep output", "[1, inf)")
    decoder_hidden_size: int = option(1000, "size of the decoder's state", "[1, inf)")
    decoder_layers: int = option(1, "layers of the decoder; 1")
    init_range: Optional[float] = option(
        None,
        "all parameters start uniformly distributed between -R and R; default: as in Nematus, square "
        "matrices orthogonal, others normal with standard deviation 0.01, biases 0",
        "(0, inf)",
    )
    sdatt_attention: AttentionKind = option(AttentionKind.plain, "weights of the (second) context")
    sdatt_double_context: bool = option(False, "use the context of global attention, too")
    sdatt_n: float = option(4.0, "window in arcs of the tree, or inf", "(0, inf]")
    sdatt_sigma: Optional[float] = option(
        None, "standard deviation of the Gaussian, in arcs, or inf; default: half the window", "(0, inf]"
    )
    sdatt_position: PositionGradient = option(
        PositionGradient.smooth,
        "gradient of the predicted position, of which the paper says nothing: smooth, from all words, those near it "
        "the most; hard, none",
        reading=True,
    )
    variational_dropout: bool = option(
        False, "drop the same components at all positions of a sentence, as Nematus does"
    )
    sdatt_sdr: int = option(
        0,
        "dependency units, as wide as --encoder-embed-dim: 0 none, 1 the encoder reads them beside the "
        "words, 2 an encoder of their own",
        "[0, 2]",
    )
    sdatt_local_window: float = option(10.0, "window of local attention on either side, or inf", "(0, inf]")
    sdatt_local_softmax: LocalSoftmax = option(
        LocalSoftmax.window,
        "where local attention takes its softmax: in the window, as Luong et al. (2015) and Nematus do, or "
        "over the sentence, which is eq. 6 of Chen et al. (2018) to the letter",
        reading=True,
    )
    sdatt_flex_sigma: float = option(3.0, "scale of the penalty of flexible attention, in tokens", "(0, inf]")


@register_model("sdatt")
class SyntaxDirectedModel(RecurrentModel):
    """Conditional GRU decoder over any of the attentions."""

    options = SyntaxDirectedOptions

    @property
    def syntax_inputs(self):
        """Distances, if attention is directed by syntax; heads and starts of words, if there are dependency units."""
        distances = ("distances",) if isinstance(self.encoder.memory, SyntaxDirectedMemory) else ()
        return distances + (UNIT_INPUTS if isinstance(self.encoder, UnitEncoder) else ())

    @classmethod
    def check_options(cls, args, task):
        super().check_options(args, task)
        if args.decoder_layers != 1:
            raise ValueError(f"--decoder-layers {args.decoder_layers}: a conditional GRU has one layer")
        if args.encoder_layers > 1 and (args.recurrent_dropout or args.variational_dropout):
            raise ValueError(
                f"--encoder-layers {args.encoder_layers}: --recurrent-dropout and --variational-dropout need one, "
                "because PyTorch draws its dropout between layers at every position"
            )
        if args.sdatt_sdr == 2 and args.sdatt_attention != AttentionKind.plain:
            raise ValueError("--sdatt-sdr 2: needs --sdatt-attention global")

    @classmethod
    @torch.no_grad()
    def initialize(cls, model, args):
        if args.init_range is not None:
            return super().initialize(model, args)
        # layers that stack the matrices of their gates
        layers = [module for module in model.modules() if isinstance(module, (nn.GRU, GRUCell))]
        gated = {id(parameter) for layer in layers for parameter in layer.parameters()}
        for parameter in model.parameters():
            if parameter.dim() == 1:
                nn.init.zeros_(parameter)
            elif parameter.dim() == 2:  # convolutions, which Nematus does not have, keep the values of PyTorch
                for matrix in parameter.chunk(GRUCell.gates) if id(parameter) in gated else (parameter,):
                    if matrix.shape[0] == matrix.shape[1]:
                        nn.init.orthogonal_(matrix)
                    else:
                        nn.init.normal_(matrix, std=0.01)

    @classmethod
    def build_attention(cls, args, task):
        size, query = 2 * args.encoder_hidden_size, args.decoder_hidden_size
        if args.sdatt_sdr == 2:
            return TwoMemories(size), TwoSequenceAttention(query, size)
        if args.sdatt_attention == AttentionKind.syntax:
            memory = SyntaxDirectedMemory(size, args.sdatt_double_context, args.sdatt_n, args.sdatt_sigma)
        else:
            memory = AdditiveMemory(size, args.sdatt_double_context)
        return memory, AdditiveAttention(query, size, _weights(args, query), args.sdatt_double_context)

    @classmethod
    def build_encoder(cls, args, task, embed_tokens, memory):
        kind = (GRUEncoder, UnitEncoder, TwoSequenceEncoder)[args.sdatt_sdr]
        return kind(task.source_dictionary, args, embed_tokens, memory)

    @classmethod
    def build_decoder(cls, args, task, embed_tokens, attention, context_size):
        kind = TwoStateDecoder if args.sdatt_sdr == 2 else ConditionalGRUDecoder
        return kind(task.target_dictionary, args, embed_tokens, attention, context_size)


def _weights(args, query: int) -> SourceWeights:
    if args.sdatt_attention == AttentionKind.local:
        return LocalWeights(query, args.sdatt_local_window, args.sdatt_local_softmax)
    if args.sdatt_attention == AttentionKind.flexible:
        return FlexibleWeights(query, args.sdatt_flex_sigma)
    if args.sdatt_attention == AttentionKind.syntax:
        return SyntaxDirectedWeights(query, args.sdatt_position)
    return SourceWeights()


TINY = {"encoder_embed_dim": 64, "encoder_hidden_size": 32, "decoder_embed_dim": 64, "decoder_hidden_size": 64}

# name of the architecture, as the paper names the row -> its system
SYSTEMS = {
    "global_att": {"sdatt_attention": "global"},
    "local_att": {"sdatt_attention": "local"},
    "flexible_att": {"sdatt_attention": "flexible"},
    "chen17": {"sdatt_attention": "global", "sdatt_sdr": 1},
    "sdatt": {"sdatt_attention": "sdatt"},
    "global_plus_local": {"sdatt_attention": "local", "sdatt_double_context": True},
    "global_plus_flexible": {"sdatt_attention": "flexible", "sdatt_double_context": True},
    "global_plus_chen17": {"sdatt_attention": "global", "sdatt_sdr": 2},
    "global_plus_sdatt": {"sdatt_attention": "sdatt", "sdatt_double_context": True},
}

register_presets("sdatt", SYSTEMS)
register_presets("sdatt", {f"{name}_tiny": {**settings, **TINY} for name, settings in SYSTEMS.items()})

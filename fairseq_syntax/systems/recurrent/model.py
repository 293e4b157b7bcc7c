"""The recurrent encoder-decoder with attention on which the recurrent systems of the suite are built."""

import argparse
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Dict, List, Optional

import torch
from fairseq import utils
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import (
    FairseqEncoder,
    FairseqEncoderDecoderModel,
    FairseqIncrementalDecoder,
    register_model,
)
from fairseq.modules import FairseqDropout
from torch import Tensor, nn

from ...data.inputs import SourceSyntax
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
from .cells import GRUCell, LSTMCell
from .recurrent_dropout import RecurrentDropout, run_gru
from .rotation import Rotation
from .source_attention import GlobalAttention, GlobalMemory, Source, SourceAttention, SourceMemory
from .variational_dropout import VariationalDropout


class CellType(StrEnum):
    """Kind of recurrent cell, in encoder and decoder."""

    lstm = "lstm"
    gru = "gru"


_ENCODERS = {CellType.lstm: nn.LSTM, CellType.gru: nn.GRU}
_CELLS = {CellType.lstm: LSTMCell, CellType.gru: GRUCell}


@dataclass
class RecurrentOptions(FairseqDataclass):
    """Options of the recurrent base; defaults are those of Tran & Bisk (2018), Sec. 4.3."""

    cell: CellType = option(CellType.lstm, "recurrent cell of encoder and decoder")
    dropout: float = option(0.3, "dropout between layers and of the output state", "[0, 1)")
    embedding_dropout: Optional[float] = option(
        0.0, "dropout of source and target embeddings; OpenNMT has none", "[0, 1)"
    )
    annotation_dropout: Optional[float] = option(
        0.0, "dropout of the encoder's annotations, before all attention to them; OpenNMT has none", "[0, 1)"
    )
    encoder_embed_dim: int = option(1024, "size of source embeddings", "[1, inf)")
    encoder_embed_path: Optional[str] = option(None, "file of pre-trained source embeddings")
    encoder_hidden_size: int = option(
        512, "size of the encoder's state in each direction; annotations have twice that", "[1, inf)"
    )
    encoder_layers: int = option(2, "bidirectional layers of the encoder", "[1, inf)")
    decoder_embed_dim: int = option(1024, "size of target embeddings, and of what enters the output layer", "[1, inf)")
    decoder_embed_path: Optional[str] = option(None, "file of pre-trained target embeddings")
    decoder_hidden_size: int = option(1024, "size of the decoder's state", "[1, inf)")
    decoder_layers: int = option(2, "layers of the decoder, as many as of the encoder")
    share_all_embeddings: bool = option(False, "one table of embeddings for both languages; needs a joined dictionary")
    untied_output: bool = option(False, "give the output layer a matrix of its own instead of the target embeddings")
    output_bias: bool = option(False, "give the output layer a bias")
    init_range: float = option(0.04, "all parameters start uniformly distributed between -R and R", "(0, inf)")


def _dropout(args, owner: nn.Module, option: str = "dropout") -> FairseqDropout:
    """Dropout at the rate of an option; where that is None, or the model does not have it, of --dropout."""
    rate = getattr(args, option, None)
    kind = VariationalDropout if getattr(args, "variational_dropout", False) else FairseqDropout
    return kind(args.dropout if rate is None else rate, module_name=type(owner).__name__)


class RecurrentEncoder(FairseqEncoder):
    """Bidirectional LSTM or GRU (eq. 1), and the memory that the decoder attends to.

    Sentences may be padded on either side; everything returned has the columns of `src_tokens`.
    """

    def __init__(
        self, dictionary, args, embed_tokens: nn.Embedding, memory: SourceMemory, input_size: Optional[int] = None
    ):
        super().__init__(dictionary)
        self.embed_tokens = embed_tokens
        self.embedding_dropout = _dropout(args, self, "embedding_dropout")
        self.annotation_dropout = _dropout(args, self, "annotation_dropout")
        self.recurrent_dropout = RecurrentDropout(getattr(args, "recurrent_dropout", 0.0), type(self).__name__)
        self.rnn = self.build_layers(args, input_size or args.encoder_embed_dim)
        self.memory = memory
        self._max_positions = args.max_source_positions

    @staticmethod
    def build_layers(args, input_size: int) -> nn.RNNBase:
        """The recurrent layers."""
        return _ENCODERS[args.cell](
            input_size,
            args.encoder_hidden_size,
            args.encoder_layers,
            dropout=args.dropout if args.encoder_layers > 1 else 0.0,
            bidirectional=True,
            batch_first=True,
        )

    def embed(self, source: Source) -> Tensor:
        """Input (B, T, E) of the recurrent layers."""
        return self.embed_tokens(source.tokens)

    def run(self, layers: nn.RNNBase, x: Tensor, padding_mask: Tensor):
        """Run recurrent layers.

        Args:
            layers: bidirectional.
            x: (B, T, E).
            padding_mask: (B, T), True at padding, on either side.

        Returns:
            (annotations (B, T, 2H), 0 at padding; final states, each (B, layers, 2H), the output first).
        """
        rotation = Rotation(padding_mask)
        lengths = (~padding_mask).sum(dim=1).cpu()
        x = self.embedding_dropout(rotation.right(x))
        if self.recurrent_dropout.active:
            x, final = run_gru(layers, x, ~rotation.right(padding_mask), self.recurrent_dropout)
        else:
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths, True, enforce_sorted=False)
            packed, final = layers(packed)
            x, _ = nn.utils.rnn.pad_packed_sequence(packed, batch_first=True, total_length=x.shape[1])
        x = rotation.back(x)
        # (layers x 2, B, H) -> (B, layers, 2H)
        final = [
            state.unflatten(0, (-1, 2)).permute(2, 0, 1, 3).flatten(2)
            for state in (final if isinstance(final, tuple) else (final,))
        ]
        return self.annotation_dropout(x), final

    def source(self, src_tokens: Tensor, src_syntax: Optional[SourceSyntax] = None) -> Source:
        """What a batch is made of; see `forward`."""
        padding_mask = src_tokens.eq(self.dictionary.pad())
        return Source(src_tokens, padding_mask, ~padding_mask & src_tokens.ne(self.dictionary.eos()), src_syntax)

    def annotate(self, source: Source):
        """Annotations S (B, T, 2H), and final states, each (B, layers, 2H), the output first."""
        return self.run(self.rnn, self.embed(source), source.padding_mask)

    def remember(self, source: Source) -> Dict[str, object]:
        """What the decoder attends to, "memory", and the last states, "final": batch first."""
        states, final = self.annotate(source)
        return {"memory": self.memory(states, source), "final": final}

    def forward(self, src_tokens, src_lengths=None, src_syntax: Optional[SourceSyntax] = None, **unused):
        """Encode a batch.

        Args:
            src_tokens: (B, T), padded on either side.
            src_lengths: not needed.
            src_syntax: trees, for the memory of models that need them.

        Returns:
            a dict whose tensors have the batch first: "memory", "final" (the encoder's last states),
            "encoder_padding_mask" and "sentence", the number of each row's sentence in the batch.
        """
        source = self.source(src_tokens, src_syntax)
        return {
            **self.remember(source),
            "encoder_padding_mask": source.padding_mask,
            "sentence": torch.arange(len(src_tokens), device=src_tokens.device),
        }

    def reorder_encoder_out(self, encoder_out, new_order):
        """Rows in a new order. Beam search mostly reorders within a sentence, whose rows are all the same."""
        sentence = encoder_out["sentence"].index_select(0, new_order)
        if torch.equal(sentence, encoder_out["sentence"]):
            return encoder_out
        return utils.apply_to_sample(lambda tensor: tensor.index_select(0, new_order), encoder_out)

    def max_positions(self):
        """Longest sentence, EOS included."""
        return self._max_positions


class RecurrentDecoder(FairseqIncrementalDecoder):
    """What recurrent decoders share: the loop over the steps, and its state. Subclasses define the step.

    A state is nested dicts, lists and tuples of tensors, all with the batch first.
    """

    def __init__(self, dictionary, args, embed_tokens: nn.Embedding, attention: SourceAttention, features: int):
        super().__init__(dictionary)
        self.embed_tokens = embed_tokens
        self.attention = attention
        self.dropout = _dropout(args, self)
        self.embedding_dropout = _dropout(args, self, "embedding_dropout")
        self.output_projection = nn.Linear(features, len(dictionary), bias=args.output_bias)
        if not args.untied_output:
            self.output_projection.weight = embed_tokens.weight
        self.need_attn = True
        self._max_positions = args.max_target_positions

    def embed(self, tokens: Tensor) -> Tensor:
        """Embeddings (B, S, E) of the words before (B, S)."""
        return self.embedding_dropout(self.embed_tokens(tokens))

    def initial_state(self, encoder_out) -> Dict[str, object]:
        """State before the first step."""
        raise AssertionError("a subclass defines the state")

    def project_ahead(self, embedded: Tensor) -> Tensor:
        """What the steps need of the words before, for all steps at once: (S, B, E) -> (S, B, …)."""
        raise AssertionError("a subclass defines the step")

    def step(self, ahead: Tensor, state: Dict[str, object], memory: Dict[str, Tensor]):
        """One target position.

        Args:
            ahead: (B, …), of `project_ahead`.
            state: of the step before.
            memory: of the source.

        Returns:
            (output (B, …); what the attention found, name -> (B, …); the new state).
        """
        raise AssertionError("a subclass defines the step")

    def read_out(self, outputs: Tensor, embedded: Tensor) -> Tensor:
        """Features (B, S, C) of the outputs (B, S, …) of all steps and the words before (B, S, E)."""
        return outputs

    def extract_features(self, prev_output_tokens, encoder_out, incremental_state=None, **unused):
        """Run all steps, or with `incremental_state` those that are new.

        Returns:
            (features (B, S, C); extra: "attn" [(B, S, T)] in eval mode, and what else the attention found, (B, S, …);
            in training "guide_loss" only).
        """
        state = self.get_incremental_state(incremental_state, "cached_state")
        if state is None:
            state = self.initial_state(encoder_out)
        else:
            prev_output_tokens = prev_output_tokens[:, -1:]
        embedded = self.embed(prev_output_tokens)
        outputs, findings = [], []
        for ahead in self.project_ahead(embedded.transpose(0, 1)).unbind(0):
            output, found, state = self.step(ahead, state, encoder_out["memory"])
            outputs.append(output)
            findings.append(found)
        self.set_incremental_state(incremental_state, "cached_state", state)
        extra: Dict[str, object] = {"attn": [None]}
        if "guide_loss" in findings[0]:
            extra["guide_loss"] = torch.stack([found["guide_loss"] for found in findings], dim=1)
        if not self.training and self.need_attn:
            extra = {name: torch.stack([found[name] for found in findings], dim=1) for name in findings[0]}
            extra["attn"] = [extra["attn"]]
        return self.read_out(torch.stack(outputs, dim=1), embedded), extra

    def output_layer(self, features):
        """Scores of the vocabulary (…, V)."""
        return self.output_projection(features)

    def forward(self, prev_output_tokens, encoder_out=None, incremental_state=None, features_only=False, **unused):
        """Scores (B, S, V), or features (B, S, C), and a dict of extras, see `extract_features`."""
        x, extra = self.extract_features(prev_output_tokens, encoder_out, incremental_state)
        return (x if features_only else self.output_layer(x)), extra

    def reorder_incremental_state(self, incremental_state, new_order):
        """Put the hypotheses in a new order."""
        state = self.get_incremental_state(incremental_state, "cached_state")
        if state is not None:
            state = utils.apply_to_sample(lambda tensor: tensor.index_select(0, new_order), state)
            self.set_incremental_state(incremental_state, "cached_state", state)

    def max_positions(self):
        """Longest output."""
        return self._max_positions

    def make_generation_fast_(self, need_attn=False, **kwargs):
        """Called before generation; attention is collected only where it will be shown."""
        self.need_attn = need_attn


class InputFeedingDecoder(RecurrentDecoder):
    """Stacked LSTM or GRU with input feeding and any `SourceAttention` (eqs. 2-5, 18).

    u_t = tanh(W_u [h_t; context_t]) enters the output layer, and the first layer at the next step. Only what depends
    on u_{t-1} is done in the loop over the steps.
    """

    def __init__(self, dictionary, args, embed_tokens, attention, context_size: int):
        hidden, output = args.decoder_hidden_size, args.decoder_embed_dim
        super().__init__(dictionary, args, embed_tokens, attention, output)
        cell = _CELLS[args.cell]
        self.cells = nn.ModuleList(
            cell(output if layer == 0 else hidden, hidden, ahead_size=args.decoder_embed_dim if layer == 0 else 0)
            for layer in range(args.decoder_layers)
        )
        # the encoder's last states start the decoder; of another size, they need a bridge
        self.bridges = None
        if 2 * args.encoder_hidden_size != hidden:
            self.bridges = nn.ModuleList(
                nn.Linear(2 * args.encoder_hidden_size, hidden) for _ in range(cell.num_states)
            )
        self.output_state = nn.Linear(hidden + context_size, output, bias=False)  # W_u

    def initial_state(self, encoder_out):
        final = encoder_out["final"]
        if self.bridges is not None:
            final = [bridge(state) for bridge, state in zip(self.bridges, final, strict=True)]
        return {
            "layers": [tuple(state[:, layer] for state in final) for layer in range(len(self.cells))],
            "feed": final[0].new_zeros(len(final[0]), self.output_state.out_features),
            "attention": self.attention.initial_state(encoder_out["memory"]),
        }

    def project_ahead(self, embedded):
        return self.cells[0].project_ahead(embedded)

    def step(self, ahead, state, memory):
        layers: List[tuple] = []
        x = state["feed"]
        for cell, before in zip(self.cells, state["layers"], strict=True):
            if layers:
                x = self.dropout(x)
            layers.append(cell(x, before, ahead))
            x, ahead = layers[-1][0], None
        context, found, attention = self.attention(x, memory, state["attention"])
        x = self.dropout(torch.tanh(self.output_state(torch.cat((x, context), dim=1))))
        return x, found, {"layers": layers, "feed": x, "attention": attention}


@register_model("nmt_lstm")
class RecurrentModel(HubModel, FairseqEncoderDecoderModel):
    """Attentional recurrent encoder-decoder (Luong et al. 2015; Tran & Bisk 2018, Sec. 2), the baseline of SA-NMT.

    Systems that attend otherwise subclass it: they override `build_attention`, and `options` if they have their own.
    """

    options = RecurrentOptions
    takes_syntax = True
    syntax_inputs: tuple[str, ...] = ()
    training_syntax_inputs: tuple[str, ...] = ()
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

        Raises:
            ValueError: options that contradict each other or are out of range.
        """
        args = as_namespace(args)
        fill_defaults(args, cls.options)
        cls.check_options(args, task)
        for side in ("source", "target"):
            name = f"max_{side}_positions"
            # the task has these options, too, and fairseq puts them into the same namespace
            setattr(args, name, getattr(args, name, None) or 1024)
        return args

    @classmethod
    def build_model(cls, args, task):
        """Build the model.

        Raises:
            ValueError: options that contradict each other or are out of range.
        """
        given, args = args, cls.complete_options(args, task)
        memory, attention = cls.build_attention(args, task)
        source_table = _embeddings(task.source_dictionary, args.encoder_embed_dim)
        target_table = source_table
        if not args.share_all_embeddings:
            target_table = _embeddings(task.target_dictionary, args.decoder_embed_dim)
        model = cls(
            cls.build_encoder(args, task, source_table, memory),
            cls.build_decoder(args, task, target_table, attention, memory.context_size),
        )
        if model.syntax_inputs:
            require_trees(cls, task)
        cls.initialize(model, args)
        _load_embeddings(source_table, args.encoder_embed_path, task.source_dictionary, "--encoder-embed-path")
        if not args.share_all_embeddings:
            _load_embeddings(target_table, args.decoder_embed_path, task.target_dictionary, "--decoder-embed-path")
        # the vectors are in the model from now on: its checkpoints must load without the files
        args.encoder_embed_path = args.decoder_embed_path = None
        keep_for_checkpoints(given, args)
        for table in (source_table, target_table):
            nn.init.zeros_(table.weight[table.padding_idx])
        return model

    @classmethod
    def initialize(cls, model, args) -> None:
        """Give all parameters their first values; rows of padding and pre-trained embeddings are filled in later."""
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
            if args.decoder_embed_path:
                raise ValueError("--share-all-embeddings: give --encoder-embed-path only")

    def forward(self, src_tokens, src_lengths, prev_output_tokens, src_syntax=None, features_only=False):
        """Scores (B, S, V) and a dict of extras, see `RecurrentDecoder.extract_features`."""
        encoder_out = self.encoder(src_tokens, src_lengths, src_syntax=src_syntax)
        return self.decoder(prev_output_tokens, encoder_out=encoder_out, features_only=features_only)


def _embeddings(dictionary, size: int) -> nn.Embedding:
    return nn.Embedding(len(dictionary), size, padding_idx=dictionary.pad())


def _load_embeddings(table: nn.Embedding, path: Optional[str], dictionary, option: str) -> None:
    """Fill rows of the table from a text file of vectors, as fairseq does.

    Raises:
        ValueError: there is no such file, or its vectors have another size than the table's.
    """
    if not path:
        return
    if not Path(path).is_file() or not Path(path).stat().st_size:
        raise ValueError(f"{option} {path}: no such file of vectors, or it is empty")
    vectors = utils.parse_embedding(path)
    size = len(next(iter(vectors.values()), ()))
    if size != table.embedding_dim:
        raise ValueError(f"{option} {path}: vectors of size {size}, but the embeddings have {table.embedding_dim}")
    utils.print_embed_overlap(vectors, dictionary)
    utils.load_embedding(vectors, dictionary, table)


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
    "encoder_layers": 2,
    "decoder_embed_dim": 384,
    "decoder_hidden_size": 384,
    "decoder_layers": 2,
    "dropout": 0.1,
    "untied_output": True,
    "output_bias": True,
    "init_range": 0.1,
}

register_presets("nmt_lstm", {"nmt_lstm": {}, "nmt_lstm_tiny": TINY, "char_lstm": CHAR})

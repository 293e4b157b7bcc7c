"""LGP-NMT: translation with a latent graph parser of the source (Hashimoto & Tsuruoka, EMNLP 2017), and its rivals."""

import logging
from dataclasses import dataclass
from enum import StrEnum
from typing import Optional

import torch
from fairseq.models import register_model
from torch import Tensor, nn

from ...options import keep_for_checkpoints, option, register_presets, require_trees
from ..parser.model import GraphParserOptions, LatentGraphParserModel, WordCase, is_lowercase, token_heads
from ..parser.network import Graph, GraphKind, LatentGraphParser, word_mask, word_states
from ..parser.words import WordRepresentation, fill_rows, load_vectors
from ..recurrent.cells import LSTMCell
from ..recurrent.decoder import RecurrentDecoder
from ..recurrent.encoder import RecurrentEncoder
from ..recurrent.model import RecurrentModel
from ..recurrent.rotation import Rotation
from ..recurrent.source_attention import Memory, SourceAttention, SourceBatch

logger = logging.getLogger(__name__)


class ParserParts(StrEnum):
    """Parts of a trained parser that a translator starts from."""

    all = "all"
    tables = "tables"  # vectors of words and n-grams
    lstms = "lstms"  # both two-way LSTMs


@dataclass
class LatentGraphOptions(GraphParserOptions):
    """Options of LGP-NMT; defaults are those of the paper's medium size."""

    lgp_graph: GraphKind = option(
        GraphKind.latent,
        "heads and labels of source words: latent (LGP), seq (none), dep (given), uni (all heads equal)",
    )
    lgp_size: int = option(256, "d3, size of the translator's embeddings and states", "[1, inf)")
    lgp_num_pos: int = option(45, "classes of parts of speech", "[1, inf)")
    lgp_num_labels: int = option(46, "dependency labels; with --lgp-graph dep, the data say how many", "[1, inf)")
    lgp_parser_path: Optional[str] = option(
        None,
        "checkpoint of --arch lgp_parser to start parser, word and n-gram vectors from (LGP-NMT+); "
        "it sets the numbers of parts of speech and labels, and is needed to resume training, too",
    )
    lgp_parser_parts: ParserParts = option(
        ParserParts.all,
        "what to take from --lgp-parser-path: all, word and n-gram vectors alone (tables), or LSTMs alone; "
        "with any --lgp-graph",
    )
    dropout: float = option(0.2, "dropout of the state that predicts a word (eq. 8)", "[0, 1)")


class LatentGraphEncoder(RecurrentEncoder):
    """Word representations, latent graph parser and LSTM of the source (Sec. 2, eqs. 2 and 3).

    Sentences may be padded on either side; inside, they are padded on the right.
    """

    def __init__(self, dictionary, args, words: WordRepresentation, parser: LatentGraphParser):
        size = args.lgp_size
        table = nn.Embedding(len(words.row_symbols), size, padding_idx=dictionary.pad())
        super().__init__(dictionary, args, table, None, input_size=size + 2 * parser.size)
        self.words = words
        self.parser = parser
        self.graph_projection = None  # W_dep
        if parser.graph != GraphKind.seq:
            self.graph_projection = nn.Linear(2 * size + parser.num_labels, size)

    def build_layers(self, args, input_size):
        return nn.LSTM(input_size, args.lgp_size, batch_first=True)

    def parse(self, source: SourceBatch) -> tuple[Graph, Tensor, Tensor]:
        """Graphs of a batch, its tokens and its lengths; all padded on the right."""
        tokens, rotation = source.rotation.right(source.tokens), source.rotation
        lengths = (~source.padding_mask).sum(dim=1)
        heads = labels = clamped = None
        if self.parser.graph == GraphKind.dep:
            heads, labels = self._parsed(source, lengths)
        elif self.parser.graph == GraphKind.latent and "piece_heads" in source.syntax:
            clamped = _columns_right(source.syntax["piece_heads"], rotation)
        graph = self.parser(self.words(tokens), lengths, heads, labels, clamped_heads=clamped)
        return graph, tokens, lengths

    def _parsed(self, source: SourceBatch, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Columns of given heads, EOS for roots, and numbers of labels (B, T)."""
        heads = _columns_right(source.syntax["parent_pieces"], source.rotation)
        own = torch.arange(heads.shape[1], device=heads.device)
        # a root is stored as its own head
        labels = source.rotation.right(source.syntax["deprels"].long())
        return torch.where(heads == own, lengths.unsqueeze(1) - 1, heads), labels

    def remember(self, source):
        rotation = source.rotation
        graph, tokens, lengths = self.parse(source)
        x = torch.cat((self.embed_tokens(self.words.word_row[tokens]), graph.states), dim=2)
        states, (hidden, cell) = rotation.run(self.rnn, x)
        dep = words = None
        if self.graph_projection is not None:
            hbar = word_states(graph.heads, states)
            dep = torch.cat((states, hbar, graph.labels.to(states)), dim=2)
            dep = rotation.back(torch.tanh(self.graph_projection(dep)))
            words = rotation.back(word_mask(lengths, tokens.shape[1]))
        memory = graph_memory(rotation.back(states), source.padding_mask, dep, words)
        return {"memory": memory, "final": [hidden.transpose(0, 1), cell.transpose(0, 1)]}


def _columns_right(heads: Tensor, rotation: Rotation) -> Tensor:
    """Columns (B, T) of heads after the rotation; negative ones stay."""
    heads = rotation.right(heads.long())
    return torch.where(heads < 0, heads, rotation.columns_right(heads))


def graph_memory(states: Tensor, padding_mask: Tensor, graph: Optional[Tensor] = None, words: Optional[Tensor] = None):
    """Memory for `GraphAttention`.

    Args:
        states: (B, T, D) of the encoder; all of a sentence is attended to, EOS too.
        padding_mask: (B, T), True at padding.
        graph: (B, T, D) dep of eq. 3, if there is a graph; only words are attended to.
        words: (B, T), True at words.

    Returns "values" (B, K, T, D) and "bias" (B, 1, K T) of scores, K = 2 with a graph, else 1.
    """
    values, attended = [states], [~padding_mask]
    if graph is not None:
        values.append(graph.masked_fill(~words.unsqueeze(2), 0.0))
        # without words, all weights go to zero vectors: the context is 0, not NaN
        attended.append(words | ~words.any(dim=1, keepdim=True))
    bias = torch.zeros(states.shape[0], len(values), states.shape[1], dtype=states.dtype, device=states.device)
    bias = bias.masked_fill_(~torch.stack(attended, dim=1), float("-inf"))
    return {"values": torch.stack(values, dim=1), "bias": bias.flatten(1).unsqueeze(1)}


class GraphAttention(SourceAttention):
    """Weights exp(h . value), normalised over each of the K sequences (eqs. 4 to 7); no parameters."""

    def forward(self, query, memory: Memory, state):
        """As in `SourceAttention`: the context is [a_t; a'_t] (B, K D), "attn" the weights of the first sequence."""
        values = memory["values"]  # (B, K, T, D)
        scores = torch.baddbmm(memory["bias"], query.unsqueeze(1), values.flatten(1, 2).transpose(1, 2))
        scores = scores.view(values.shape[:3])
        wide = torch.promote_types(scores.dtype, torch.float32)
        weights = torch.softmax(scores, dim=2, dtype=wide).to(values.dtype)
        context = torch.bmm(weights.flatten(0, 1).unsqueeze(1), values.flatten(0, 1))  # (B K, 1, D)
        return context.view(len(query), -1), {"attn": weights[:, 0]}, state


class LatentGraphDecoder(RecurrentDecoder):
    """LSTM with input feeding, which predicts the first word from the encoder's last state (eqs. 4 to 9).

    `contexts` is the number of vectors that the attention returns.
    """

    def __init__(self, dictionary, args, embed_tokens, contexts: int):
        size = args.lgp_size
        super().__init__(dictionary, args, embed_tokens, GraphAttention(), size)
        self.cell = LSTMCell(size, size, ahead_size=size)
        self.output_state = nn.Linear((1 + contexts) * size, size)

    def embed(self, tokens):
        return self.embed_tokens(tokens)

    def initial_state(self, encoder_out):
        hidden, cell = (state[:, 0] for state in encoder_out["final"])
        return {"lstm": (hidden, cell), "feed": torch.zeros_like(hidden), "begun": False}

    def project_ahead(self, embedded):
        return self.cell.project_ahead(embedded)

    def step(self, ahead, state, memory):
        lstm = self.cell(state["feed"], state["lstm"], ahead) if state["begun"] else state["lstm"]
        context, extra, _ = self.attention(lstm[0], memory, {})
        x = self.dropout(torch.tanh(self.output_state(torch.cat((lstm[0], context), dim=1))))
        return x, extra, {"lstm": lstm, "feed": x, "begun": True}


@register_model("lgp_nmt")
class LatentGraphModel(RecurrentModel):
    """LGP-NMT, and with --lgp-graph its rivals SEQ, DEP and UNI."""

    options = LatentGraphOptions
    reads_spelling = True

    @property
    def has_latent_trees(self):
        """True if the graph is learned."""
        return self.encoder.parser.graph == GraphKind.latent

    @property
    def clamped_by(self):
        """The input that can replace a learned graph."""
        return ("piece_heads",) if self.has_latent_trees else ()

    @property
    def syntax_inputs(self):
        """Heads and labels, for `--lgp-graph dep`."""
        return ("parent_pieces", "deprels") if self.encoder.parser.graph == GraphKind.dep else ()

    @classmethod
    def check_options(cls, args, task):
        if args.lgp_parser_parts != ParserParts.all and not args.lgp_parser_path:
            raise ValueError(f"--lgp-parser-parts {args.lgp_parser_parts}: needs a parser; give --lgp-parser-path")

    @classmethod
    def build_model(cls, args, task):
        """Build the model; ValueError or FileNotFoundError where options, vectors or the parser do not fit."""
        original, args = args, cls.complete_options(args, task)
        # options read by `RecurrentDecoder`
        args.untied_output, args.output_bias = False, True
        trained = None
        if args.lgp_parser_path:
            try:
                trained, _ = LatentGraphParserModel.load(args.lgp_parser_path)
            except FileNotFoundError:
                raise FileNotFoundError(
                    f"--lgp-parser-path {args.lgp_parser_path}: no such file; a training needs the parser's checkpoint "
                    "when it begins and when it is resumed, put it there"
                ) from None
            adapt_options(args, trained)
        args.lgp_word_case = str(WordCase.lower if is_lowercase(args) else WordCase.written)
        dictionary = task.source_dictionary
        words = WordRepresentation(
            dictionary,
            size=args.lgp_parser_size,
            minimum=args.lgp_src_min_freq,
            lowercase=args.lgp_word_case == WordCase.lower,
        )
        labels = args.lgp_num_labels
        if args.lgp_graph == GraphKind.dep:
            require_trees(cls, task)
            labels = len(task.syntax_dictionary("deprels"))
        parser = LatentGraphParser(args.lgp_parser_size, args.lgp_pos_size, args.lgp_num_pos, labels, args.lgp_graph)
        target = task.target_dictionary
        table = nn.Embedding(len(target), args.lgp_size, padding_idx=target.pad())
        encoder = LatentGraphEncoder(dictionary, args, words, parser)
        contexts = 1 if encoder.graph_projection is None else 2
        model = cls(encoder, LatentGraphDecoder(target, args, table, contexts))
        initialize(model)
        load_vectors(words, args.lgp_word_vectors, args.lgp_ngram_vectors)
        if trained is not None:
            take_over(encoder, trained, args.lgp_parser_path, args.lgp_parser_parts)
        # the model now holds all of this: its checkpoints must load without the files
        args.lgp_word_vectors = args.lgp_ngram_vectors = args.lgp_parser_path = None
        args.lgp_parser_parts = str(ParserParts.all)
        keep_for_checkpoints(original, args)
        return model

    @torch.no_grad()
    def latent_heads(self, src_tokens, src_lengths=None):
        """Log p and p of the heads of the source tokens, in their columns; see `token_heads`."""
        source = self.encoder.source(src_tokens)
        graph, _, lengths = self.encoder.parse(source)
        return token_heads(graph.heads, lengths, source.rotation, source.word_mask)


def adapt_options(args, trained: LatentGraphParserModel) -> None:
    """Set the options that a trained parser determines. Raises ValueError: an option contradicts it."""
    fixed = {"lgp_parser_size": trained.parser.size, "lgp_pos_size": trained.parser.pos_input.out_features}
    case = str(WordCase.lower if trained.words.lowercase else WordCase.written)
    if args.lgp_word_case != WordCase.auto:
        fixed["lgp_word_case"] = case
    for name, value in fixed.items():
        if getattr(args, name) != value:
            raise ValueError(
                f"--{name.replace('_', '-')} {getattr(args, name)}: the parser {args.lgp_parser_path} has {value}; use "
                "the same, or train a parser with the other"
            )
    args.lgp_word_case = case
    args.lgp_num_pos, args.lgp_num_labels = len(trained.pos), len(trained.labels)


def take_over(encoder: LatentGraphEncoder, trained: LatentGraphParserModel, path: str, parts: ParserParts) -> None:
    """Copy a trained parser: its weights as they are, rows of words and n-grams by their strings (Sec. 4.3)."""
    if parts != ParserParts.tables:
        weights = trained.parser.state_dict()
        # kinds of graphs without learned heads or labels lack the layers that predict them
        taken = {
            name: weights[name]
            for name in encoder.parser.state_dict()
            if parts == ParserParts.all or name.startswith(("layer1.", "layer2."))
        }
        encoder.parser.load_state_dict(taken, strict=parts == ParserParts.all)
        logger.info(f"{path}: {len(taken)} tensors of the parser taken over")
    if parts == ParserParts.lstms:
        return
    own, source = encoder.words, trained.words
    word_vectors = dict(zip(source.row_symbols, source.words.weight.detach(), strict=True))
    ngram_vectors = dict(zip(source.ngram_keys, source.ngrams.weight.detach()[1:], strict=True))
    fill_rows(own.words.weight, own.row_symbols, word_vectors, path)
    fill_rows(own.ngrams.weight, [None, *own.ngram_keys], ngram_vectors, path)


def initialize(model: LatentGraphModel) -> None:
    """Initialise the translator; words and parser have been initialised."""
    encoder, decoder = model.encoder, model.decoder
    modules = [encoder.embed_tokens, encoder.rnn, decoder.embed_tokens, decoder.cell, decoder.output_state]
    if encoder.graph_projection is not None:
        modules.append(encoder.graph_projection)
    for module in modules:
        for parameter in module.parameters():
            if parameter.dim() > 1:
                nn.init.uniform_(parameter, -0.1, 0.1)
            else:
                nn.init.zeros_(parameter)
    nn.init.zeros_(decoder.output_projection.bias)
    # forget gates, the second of four in torch's LSTM and in ours; torch has two biases, which it adds
    size = encoder.rnn.hidden_size
    for bias in (encoder.rnn.bias_ih_l0, decoder.cell.recurrent.bias):
        nn.init.ones_(bias[size : 2 * size])
    for table in (encoder.embed_tokens, decoder.embed_tokens):
        nn.init.zeros_(table.weight[table.padding_idx])


# the paper's sizes, by the number of sentence pairs; n-grams and words have the same threshold
SIZES = {
    "lgp_nmt": {},
    "lgp_small": {"lgp_size": 128, "lgp_src_min_freq": 2},
    "lgp_medium": {"lgp_size": 256, "lgp_src_min_freq": 2},
    "lgp_large": {"lgp_size": 512, "lgp_src_min_freq": 3},
    "lgp_tiny": {"lgp_size": 32, "lgp_parser_size": 16, "lgp_pos_size": 8},
}

register_presets("lgp_nmt", SIZES)

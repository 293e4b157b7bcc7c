"""The latent graph parser as a model of its own: trained on a treebank, before translation or to parse any text.

Pre-training is that of Hashimoto & Tsuruoka (EMNLP 2017, Sec. 4.3), after Hashimoto et al. (EMNLP 2017, JMT).
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Dict, List, Optional, Tuple

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel, register_model
from torch import Tensor

from ...checkpoints import architecture_of, build, load_state
from ...options import as_namespace, fill_defaults, option, register_presets
from ..recurrent.rotation import Rotation
from .char_ngrams import NgramVocabulary
from .decoding import TINY
from .latent_graph_parser import Graph, HeadInit, LatentGraphParser
from .layers import reversal, reverse
from .word_representation import WordRepresentation
from .word_vectors import load_vectors

logger = logging.getLogger(__name__)


class Embeddings(StrEnum):
    """What becomes of word and n-gram vectors in the training."""

    auto = "auto"  # those that come from a file stay as they are, as in the paper; others are trained
    train = "train"
    freeze = "freeze"


class WordCase(StrEnum):
    """How words are looked up; n-grams are always of the word as it is written."""

    auto = "auto"  # in lower case with pre-trained vectors, as they are written without
    lower = "lower"
    written = "written"


@dataclass
class GraphParserOptions(FairseqDataclass):
    """Options of the parser and of what it reads, by itself as in a translator; defaults are those of the paper."""

    lgp_parser_size: int = option(100, "d1, size of word vectors, n-gram vectors and states of the parser", "[1, inf)")
    lgp_pos_size: int = option(50, "d2, size of the vector of a part of speech", "[1, inf)")
    lgp_src_min_freq: int = option(2, "source words and n-grams that are rarer have no vector of their own", "[1, inf)")
    lgp_max_ngrams: int = option(96, "maximum number of n-grams to read per word", "[1, inf)")
    lgp_unk_ngram: bool = option(
        False, "give words without any known n-gram a common vector instead of zeros", reading=True
    )
    lgp_word_vectors: Optional[str] = option(None, "file of pre-trained word vectors")
    lgp_ngram_vectors: Optional[str] = option(None, "file of pre-trained n-gram vectors")
    lgp_word_case: WordCase = option(
        WordCase.auto, "look words up in lower case, as written, or (auto) in lower case with --lgp-word-vectors"
    )
    lgp_wdp_init: HeadInit = option(HeadInit.xavier, "initial values of W_dp, which scores heads", reading=True)
    lgp_classifier_hidden: int = option(
        0,
        "size of a ReLU layer before the classifiers of parts of speech and labels; 0: none",
        "[0, inf)",
        reading=True,
    )


@dataclass
class LatentGraphParserOptions(GraphParserOptions):
    """Options of `lgp_parser`. With --lgp-mt-dict, a word that is frequent there or in the treebank has a vector."""

    lgp_embeddings: Embeddings = option(
        Embeddings.auto,
        "train word and n-gram vectors, freeze them, or (auto) freeze those that a file was given for, as "
        "in the paper, and train others, without which little is learned",
    )
    lgp_lstm_decay: float = option(1e-6, "weight decay of LSTM matrices, with --optimizer lgp_sgd", "[0, inf)")
    lgp_classifier_decay: float = option(
        1e-5, "weight decay of the other matrices, embeddings excepted, likewise", "[0, inf)"
    )


@dataclass(frozen=True)
class ParserCheckpoint:
    """What another model can take over from a trained parser; everything is on the CPU."""

    parser: Dict[str, Tensor]  # state of its `LatentGraphParser`
    row_symbols: List[str]  # R strings of the table of words, special symbols first
    word_vectors: Tensor  # (R, d1)
    ngram_keys: List[str]  # G strings, such as `3gram-cat`
    ngram_vectors: Tensor  # (G, d1)
    pos: List[str]  # in the order of the classifier of tags
    labels: List[str]  # in the order of that of labels
    size: int  # d1
    pos_size: int  # d2
    classifier_hidden: int  # size of the ReLU layer in the classifiers, 0 for none
    lowercase: bool  # whether words are looked up by their lower-cased spelling
    max_ngrams: int  # maximum number of n-grams to read per word
    unk_ngram: bool  # whether words without a known n-gram have a common one, which is in `ngram_keys`


@register_model("lgp_parser")
class LatentGraphParserModel(BaseFairseqModel):
    """Word representations and the latent graph parser, of kind `latent`.

    Args:
        dictionary: of the words.
        pos, labels: names of the classes, in their order.
        longest: tokens of a sentence, EOS included, that it reads.
    """

    options = LatentGraphParserOptions
    has_latent_trees = True

    def __init__(self, words, parser, dictionary, pos, labels, longest=1024):
        super().__init__()
        self.words = words
        self.parser = parser
        self.pad, self.eos = dictionary.pad(), dictionary.eos()
        self.pos, self.labels = list(pos), list(labels)
        self.longest = longest

    @classmethod
    def add_args(cls, parser):
        """The options of `LatentGraphParserOptions`."""
        from fairseq.dataclass.utils import gen_parser_from_dataclass

        gen_parser_from_dataclass(parser, cls.options(), delete_default=True)

    @classmethod
    def build_model(cls, args, task):
        """Build the model for the words, tags and labels of the task's treebank.

        Raises ValueError: options are out of range, another task, or files of vectors do not fit.
        """
        args = as_namespace(args)
        fill_defaults(args, cls.options)
        vocabulary = getattr(task, "vocabulary", None)
        if vocabulary is None:
            raise ValueError("--arch lgp_parser: parses, and does not translate; use --task dependency_parsing")
        dictionary = task.source_dictionary
        words = build_words(args, dictionary, vocabulary)
        parser = LatentGraphParser(
            args.lgp_parser_size,
            args.lgp_pos_size,
            len(vocabulary["pos"]),
            len(vocabulary["labels"]),
            classifier_hidden=args.lgp_classifier_hidden,
            wdp_init=args.lgp_wdp_init,
        )
        # a checkpoint has the vectors; their files may be gone
        if not getattr(task, "from_checkpoint", False):
            load_vectors(words, args.lgp_word_vectors, args.lgp_ngram_vectors)
            _freeze(words, args)
        _set_decay(parser, args.lgp_lstm_decay, args.lgp_classifier_decay)
        longest = getattr(getattr(task, "cfg", None), "max_source_positions", 1024)
        return cls(words, parser, dictionary, vocabulary["pos"], vocabulary["labels"], longest)

    def max_positions(self):
        """Tokens of a sentence, EOS included."""
        return self.longest

    def add_symbols(self, words):
        """Make words known by their spelling, as the task's dictionary grows; see `WordRepresentation`."""
        self.words.add_symbols(words)

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor, teacher_heads: Optional[Tensor] = None, tags_only: bool = False
    ) -> Graph:
        """Graphs of (B, S) words and EOS, padded on the right; lengths (B,) count EOS.

        Args:
            teacher_heads: (B, S), see `LatentGraphParser`.
            tags_only: stop after layer 1; everything but `pos_log_probs` is then None, and `states` are h1.
        """
        x = self.words(src_tokens)
        if not tags_only:
            return self.parser(x, src_lengths, teacher_heads=teacher_heads)
        turn = reversal(src_lengths, src_tokens.shape[1])
        ahead, back = self.parser.layer1(x, reverse(x, turn))
        states = torch.cat((ahead, reverse(back, turn)), dim=2)
        return Graph(self.parser.pos_classifier(states), None, None, None, None, states)

    @torch.no_grad()
    def latent_heads(self, src_tokens, src_lengths=None):
        """Log p and p of the heads of the tokens, in their columns, padded on either side; see `token_heads`."""
        padding = src_tokens.eq(self.pad)
        rotation = Rotation(padding)
        lengths = (~padding).sum(1)
        arcs = self(rotation.right(src_tokens), lengths).heads
        return token_heads(arcs, lengths, rotation, ~padding & src_tokens.ne(self.eos))

    def anchored(self) -> Iterator[Tuple[str, Tensor, float]]:
        """Parameters that successive regularisation keeps near a snapshot while trees are learned: name, itself, δ."""
        for name, parameter in self.named_parameters():
            if name.startswith("parser.pos_classifier."):
                yield name, parameter, 1e-2
            elif name.startswith("parser.layer1."):
                yield name, parameter, 1e-3

    def anchored_embeddings(self) -> Iterator[Tuple[str, Tensor, float]]:
        """The same while tags are learned: vectors that are trained."""
        for name, parameter in self.named_parameters():
            if name.startswith("words.") and parameter.requires_grad:
                yield name, parameter, 1e-3

    @classmethod
    def load(cls, path: str) -> tuple:
        """A trained parser and its task, in evaluation mode, from the checkpoint alone.

        Raises FileNotFoundError: no such file; ValueError: not a checkpoint of `lgp_parser`.
        """
        advice = "give one that fairseq-train wrote with --task dependency_parsing --arch lgp_parser"
        try:
            state = load_state(path)
        except ValueError as error:
            raise ValueError(f"{error}; {advice}") from None
        if "vocabulary" not in (state.get("task_state") or {}):
            raise ValueError(f"{path}: a checkpoint of {architecture_of(state)}, not of a parser; {advice}")
        return build(path, state)


def token_heads(heads: Tensor, lengths: Tensor, rotation: Rotation, word_mask: Tensor) -> Dict[str, Tensor]:
    """Heads as `HeadSelection.heads` has them, for the programs that look into models.

    Args:
        heads: (B, T, T) probabilities, sentences padded on the right, EOS the head of roots.
        lengths: (B,), counting EOS.
        rotation: by which the sentences came to be padded on the right.
        word_mask: (B, T), True at words, in the columns before that.

    Returns "arc_scores", log p, and "arc_marginals", p, (B, T, T), [dependent, head]; "root_scores" and
    "root_marginals" (B, T); "word_mask". In the columns before the rotation.
    """
    roots = heads.gather(2, (lengths - 1)[:, None, None].expand(-1, heads.shape[1], 1)).squeeze(2)
    # columns, then rows, as they were
    arcs = rotation.back(rotation.back(heads.transpose(1, 2)).transpose(1, 2))
    roots = rotation.back(roots)
    return {
        "arc_scores": arcs.clamp(min=TINY).log(),
        "root_scores": roots.clamp(min=TINY).log(),
        "arc_marginals": arcs,
        "root_marginals": roots,
        "word_mask": word_mask,
    }


def build_words(args, dictionary, vocabulary) -> WordRepresentation:
    """The word representation of a treebank, and of the words of a translator.

    A word or n-gram has a row if it is frequent enough in either. So the rows of the translator, which sees the same
    counts, are among them.
    """
    counts = [max(pair) for pair in zip(vocabulary["counts"], vocabulary["translator_counts"], strict=True)]
    minimum = args.lgp_src_min_freq
    of_each = [
        NgramVocabulary.build(zip(vocabulary["words"], vocabulary[name], strict=True), minimum)
        for name in ("counts", "translator_counts")
    ]
    # words of evaluation data may follow those of the vocabulary
    unseen = len(dictionary) - dictionary.nspecial - len(counts)
    return WordRepresentation(
        dictionary.symbols,
        [1] * dictionary.nspecial + counts + [0] * unseen,
        set(range(dictionary.nspecial)),
        pad=dictionary.pad(),
        unk=dictionary.unk(),
        size=args.lgp_parser_size,
        minimum=minimum,
        max_ngrams=args.lgp_max_ngrams,
        unk_ngram=args.lgp_unk_ngram,
        lowercase=_lowercase(args),
        vocabulary=of_each[0].extended(of_each[1].keys),
    )


def read_parser(path: str) -> ParserCheckpoint:
    """What a translator takes over from a trained parser.

    Raises FileNotFoundError, ValueError: see `LatentGraphParserModel.load`.
    """
    model, _ = LatentGraphParserModel.load(path)
    words, parser = model.words, model.parser
    hidden = parser.pos_classifier.hidden
    return ParserCheckpoint(
        parser.state_dict(),
        list(words.row_symbols),
        words.words.weight.detach(),
        list(words.vocabulary.keys),
        words.ngrams.weight.detach()[1:],
        model.pos,
        model.labels,
        parser.size,
        parser.pos_input.out_features,
        0 if hidden is None else hidden.out_features,
        words.lowercase,
        words.max_ngrams,
        words.unk_ngram,
    )


def _lowercase(args) -> bool:
    if args.lgp_word_case == WordCase.auto:
        return bool(args.lgp_word_vectors)
    return args.lgp_word_case == WordCase.lower


def _freeze(words: WordRepresentation, args) -> None:
    for what, table, path in (
        ("word", words.words, args.lgp_word_vectors),
        ("n-gram", words.ngrams, args.lgp_ngram_vectors),
    ):
        frozen = bool(path) if args.lgp_embeddings == Embeddings.auto else args.lgp_embeddings == Embeddings.freeze
        table.weight.requires_grad_(not frozen)
        if frozen and not path:
            logger.warning(
                f"the {what} vectors are random and stay so, with which a parser learns slowly; give a file of "
                "vectors, or --lgp-embeddings train"
            )
        else:
            logger.info(f"the {what} vectors {'stay as they are in the file' if frozen else 'are trained'}")


def _set_decay(parser: LatentGraphParser, of_lstms: float, of_others: float) -> None:
    """Say what the optimizer `lgp_sgd` reads; it spares biases by itself."""
    for name, parameter in parser.named_parameters():
        parameter.weight_decay = of_lstms if name.startswith("layer") else of_others


register_presets("lgp_parser", {"lgp_parser": {}, "lgp_parser_tiny": {"lgp_parser_size": 16, "lgp_pos_size": 8}})

"""The latent graph parser as a model of its own: trained on a treebank, before translation or to parse any text.

Pre-training is that of Hashimoto & Tsuruoka (EMNLP 2017, Sec. 4.3), after Hashimoto et al. (EMNLP 2017, JMT).
"""

import logging
from dataclasses import dataclass
from enum import StrEnum
from typing import Optional

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import BaseFairseqModel, register_model
from torch import Tensor

from ...checkpoints import architecture_of, build, load_state
from ...options import as_namespace, fill_defaults, option, register_presets
from ..recurrent.rotation import Rotation
from .network import TINY, Graph, LatentGraphParser
from .words import WordRepresentation, frequent_ngrams, load_vectors

logger = logging.getLogger(__name__)


class WordCase(StrEnum):
    """Letter case for looking up words; n-grams always keep that of the text."""

    auto = "auto"  # lower case with pre-trained vectors, else as written
    lower = "lower"
    written = "written"


@dataclass
class GraphParserOptions(FairseqDataclass):
    """Options of the parser and of its words, alone or in a translator; defaults are those of the paper."""

    lgp_parser_size: int = option(100, "d1, size of word vectors, n-gram vectors and states of the parser", "[1, inf)")
    lgp_pos_size: int = option(50, "d2, size of the vector of a part of speech", "[1, inf)")
    lgp_src_min_freq: int = option(2, "source words and n-grams that are rarer have no vector of their own", "[1, inf)")
    lgp_word_vectors: Optional[str] = option(None, "file of pre-trained word vectors")
    lgp_ngram_vectors: Optional[str] = option(None, "file of pre-trained n-gram vectors")
    lgp_word_case: WordCase = option(
        WordCase.auto, "look words up in lower case, as written, or (auto) in lower case with --lgp-word-vectors"
    )


@dataclass
class LatentGraphParserOptions(GraphParserOptions):
    """Options of `lgp_parser`. With --lgp-mt-dict, a word that is frequent there or in the treebank has a vector."""

    lgp_lstm_decay: float = option(1e-6, "weight decay of LSTM matrices, with --optimizer lgp_sgd", "[0, inf)")
    lgp_classifier_decay: float = option(
        1e-5, "weight decay of the other matrices, embeddings excepted, likewise", "[0, inf)"
    )


@register_model("lgp_parser")
class LatentGraphParserModel(BaseFairseqModel):
    """Word representations and the latent graph parser, of kind `latent`.

    Args:
        dictionary: of the words.
        pos, labels: names of the classes, in their order.
        longest: maximum tokens of a sentence, EOS included.
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
        pos, labels = vocabulary["pos"], vocabulary["labels"]
        parser = LatentGraphParser(args.lgp_parser_size, args.lgp_pos_size, len(pos), len(labels))
        # a checkpoint has the vectors; their files may be gone
        if not task.from_checkpoint:
            load_vectors(words, args.lgp_word_vectors, args.lgp_ngram_vectors)
            for table, path in ((words.words, args.lgp_word_vectors), (words.ngrams, args.lgp_ngram_vectors)):
                table.weight.requires_grad_(not path)
        # read by the optimizer `lgp_sgd`, which spares biases by itself
        for name, parameter in parser.named_parameters():
            parameter.weight_decay = args.lgp_lstm_decay if name.startswith("layer") else args.lgp_classifier_decay
        return cls(words, parser, dictionary, pos, labels, task.cfg.max_source_positions)

    def max_positions(self):
        """Tokens of a sentence, EOS included."""
        return self.longest

    def forward(self, src_tokens: Tensor, src_lengths: Tensor, tags_only: bool = False) -> Graph:
        """Graphs of (B, S) words and EOS, padded on the right; lengths (B,) count EOS. See `LatentGraphParser`."""
        return self.parser(self.words(src_tokens), src_lengths, tags_only=tags_only)

    @torch.no_grad()
    def latent_heads(self, src_tokens, src_lengths=None):
        """Log p and p of the heads of the tokens, in their columns, padded on either side; see `token_heads`."""
        padding = src_tokens.eq(self.pad)
        rotation = Rotation(padding)
        lengths = (~padding).sum(1)
        arcs = self(rotation.right(src_tokens), lengths).heads
        return token_heads(arcs, lengths, rotation, ~padding & src_tokens.ne(self.eos))

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


def token_heads(heads: Tensor, lengths: Tensor, rotation: Rotation, word_mask: Tensor) -> dict[str, Tensor]:
    """Heads in the format of `HeadSelection.heads`, for programs that inspect models.

    Args:
        heads: (B, T, T) probabilities, sentences padded on the right, EOS the head of roots.
        lengths: (B,), counting EOS.
        rotation: that moved the padding to the right.
        word_mask: (B, T), True at words, in the columns before that.

    Returns "arc_scores", log p, and "arc_marginals", p, (B, T, T), [dependent, head]; "root_scores" and
    "root_marginals" (B, T); "word_mask". In the columns before the rotation.
    """
    roots = heads.gather(2, (lengths - 1)[:, None, None].expand(-1, heads.shape[1], 1)).squeeze(2)
    # undo the rotation in columns, then in rows
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
    ngrams = [
        frequent_ngrams(zip(vocabulary["words"], vocabulary[name], strict=True), args.lgp_src_min_freq)
        for name in ("counts", "translator_counts")
    ]
    # words of evaluation data may follow those of the vocabulary
    unseen = len(dictionary) - dictionary.nspecial - len(counts)
    return WordRepresentation(
        dictionary,
        [0] * dictionary.nspecial + counts + [0] * unseen,
        size=args.lgp_parser_size,
        minimum=args.lgp_src_min_freq,
        lowercase=is_lowercase(args),
        ngram_keys=dict.fromkeys(ngrams[0] + ngrams[1]),
    )


def is_lowercase(args) -> bool:
    """True if options ask for words in lower case."""
    if args.lgp_word_case == WordCase.auto:
        return bool(args.lgp_word_vectors)
    return args.lgp_word_case == WordCase.lower


register_presets("lgp_parser", {"lgp_parser": {}, "lgp_parser_tiny": {"lgp_parser_size": 16, "lgp_pos_size": 8}})

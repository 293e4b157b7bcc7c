"""Trees that a model has found by itself: from words to pieces, through the model, and back to trees over words."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import torch
from fairseq import utils
from fairseq.data import data_utils
from tqdm import tqdm

from ..data.arrays import ArrayReader, split_prefix
from ..trees import word_scores
from ..trees.conllu import Sentence, read_conllu, without_parse
from ..trees.spanning import DECODERS
from ..trees.subwords import split_words
from .models import Loaded, NothingToShow, architectures, encode_line
from .preparation import Preparation
from .verb import input_lines, input_name, is_conllu

Evidence = StrEnum("Evidence", "scores marginals")
"""What the tree is made of."""


# what `latent_heads` calls the arcs and the roots
_NAMES: dict[str, tuple[str, str]] = {
    Evidence.scores: ("arc_scores", "root_scores"),
    Evidence.marginals: ("arc_marginals", "root_marginals"),
}


@dataclass(frozen=True)
class CutSentence:
    """A sentence as the model reads it."""

    pieces: list[str]  # T pieces, without EOS
    word_of_token: list[int]  # T words they belong to, 0-based
    words: int  # number of words
    place: str  # file and line, for messages


@dataclass(frozen=True)
class WordGraph:
    """What a model makes of a sentence of J words."""

    heads: list[int]  # of the tree, one a word, 0-based, -1 for roots
    # (J, J + 1), [dependent, head]; column 0 is ROOT, column h is word h - 1. Rows add up to 1.
    probabilities: np.ndarray


# --- text ---------------------------------------------------------------------------------------------------------


class Cutter:
    """Cuts words into the pieces that a model knows.

    A parser that was trained with `--lgp-lowercase` is shown words in lower case in any case. Raises ValueError,
    OSError: the codes or the model cannot be loaded.

    Args:
        preparation: of words; pieces of text that is cut already are joined as `subword_type` says.
        subword_type: None for that of the model's data.
    """

    def __init__(self, loaded: Loaded, preparation: Preparation, subword_type: str | None = None):
        self.lowercase = preparation.lowercase or getattr(loaded.task.cfg, "lgp_lowercase", False)
        self.subword_type = loaded.subword_type(subword_type)
        self.bpe = preparation.build_bpe()
        # the words of a treebank, spaces included; the dictionary of a translation model has none
        self.whole = loaded.task.target_dictionary is None

    def of_words(self, words: list[str], place: str) -> CutSentence:
        """Cut each word; without --bpe it is one piece."""
        pieces: list[str] = []
        word_of_token: list[int] = []
        for number, word in enumerate(words):
            word = word.lower() if self.lowercase else word
            # a word may hold spaces (10 000), or nothing that is left after normalisation
            cut = [word] if self.whole else (self.bpe.encode(word) if self.bpe else word).split() or [word]
            pieces += cut
            word_of_token += [number] * len(cut)
        return CutSentence(pieces, word_of_token, len(words), place)

    def of_sentence(self, sentence: str | Sentence, place: str = "the sentence") -> tuple[Sentence, CutSentence]:
        """Text as `of_tokens` reads it, or words with their tree; with what is shown to the model."""
        if isinstance(sentence, Sentence):
            return sentence, self.of_words(sentence.forms, place)
        words, source = self.of_tokens(sentence.split(), place)
        return without_parse(words), source

    def of_tokens(self, tokens: list[str], place: str) -> tuple[list[str], CutSentence]:
        """The words of a line of text, and the line as the model reads it; TreeFormatError if it ends inside a word.

        Tokens are words if there is --bpe, otherwise pieces, of which the words are joined.
        """
        if self.bpe:
            return tokens, self.of_words(tokens, place)
        words, word_of_token = split_words(tokens, self.subword_type, place)
        pieces = [token.lower() for token in tokens] if self.lowercase else tokens
        return words, CutSentence(pieces, word_of_token, len(words), place)


def nth(items: Iterable, number: int):
    """The item of this number, from 0; ValueError if there are not so many."""
    count = 0
    for count, item in enumerate(items, 1):
        if count == number + 1:
            return item
    raise ValueError(f"--sentence {number}: there are {count} sentences, numbered from 0")


def read_sentences(path: str, cutter: Cutter, collapse_ranges: bool = False) -> Iterator[tuple[Sentence, CutSentence]]:
    """Sentences of a text, or of CoNLL-U (by its name), with what is shown to the model."""
    if is_conllu(path):
        for sentence in read_conllu(path):
            sentence = sentence.collapse_ranges() if collapse_ranges else sentence
            yield sentence, cutter.of_words(sentence.forms, f"{path}:{sentence.line}")
    else:
        for number, line in enumerate(input_lines(path), 1):
            words, source = cutter.of_tokens(line.split(), f"{input_name(path)}:{number}")
            yield without_parse(words), source


def read_split(loaded: Loaded, subset: str, cutter: Cutter) -> Iterator[tuple[Sentence, CutSentence]]:
    """The source side of a split. Its unknown pieces are written as `<unk>`.

    Where words end is taken from the stored syntax, if the split has it: a piece that is unknown hides that.
    """
    split = loaded.load_split(subset)
    cfg = loaded.task.cfg
    prefix = split_prefix(utils.split_paths(cfg.data)[0], subset, cfg.source_lang, cfg.target_lang)
    stored = None if prefix is None else ArrayReader(f"{prefix}.words")
    dictionary = loaded.task.source_dictionary
    for i in range(len(split)):
        ids = [token for token in split.src[i].tolist() if token not in (dictionary.eos(), dictionary.bos())]
        pieces = [dictionary[token] for token in ids]
        place = f"{subset}, sentence {i}"
        row = [] if stored is None else stored[i]
        if len(row) == len(pieces) + 1:
            of_token = row[:-1].tolist()
            words = _words_of_pieces(pieces, of_token, int(row[-1]))
            yield without_parse(words), CutSentence(pieces, of_token, len(words), place)
        else:
            words, source = cutter.of_tokens(pieces, place)
            yield without_parse(words), source


def _words_of_pieces(pieces: Sequence[str], word_of_piece: Sequence[int], count: int) -> list[str]:
    """`count` words from their pieces, without the marks of either way to cut; further numbers of words are EOS's."""
    forms = [""] * count
    for piece, word in zip(pieces, word_of_piece, strict=False):
        forms[word] += piece.removesuffix("@@").removeprefix("▁")
    return forms


# --- through the model --------------------------------------------------------------------------------------------


def check_latent(loaded: Loaded) -> None:
    """Raise NothingToShow if a model finds no trees."""
    model = loaded.model
    has_heads = getattr(model, "latent_heads", None) is not None
    if has_heads and not getattr(model, "has_latent_trees", True):
        raise NothingToShow(
            f"{loaded.path}: --lgp-graph {model.encoder.parser.graph} learns no heads of words; only latent does"
        )
    if not has_heads:
        raise NothingToShow(
            f"{loaded.path}: the architecture {loaded.architecture} has no latent trees; "
            f"those that have are {architectures('latent_heads')}"
        )


class TreeInducer:
    """Trees over words from the head selection of a model with `latent_heads`, by a `TreeDecoder` and `Evidence`.

    It raises ValueError for a sentence that is longer than the model can read, and at once for a model that finds no
    trees.
    """

    def __init__(self, loaded: Loaded, decoder: str = "mst", evidence: str = "scores", batch_size: int = 64):
        check_latent(loaded)
        self.loaded = loaded
        self.decode = DECODERS[decoder]
        self.names = _NAMES[evidence]
        self.batch_size = batch_size
        self.tokens = self.unknown = 0
        # words that are learned from the text to be read follow those of the training
        self.known = len(loaded.task.source_dictionary)

    def __call__(self, sources: list[CutSentence], bar: tqdm | None = None) -> list[list[int]]:
        """Heads of every sentence: one a word, 0-based, -1 for roots; no heads for a sentence without words."""
        trees: list[list[int]] = [[] for _ in sources]
        for chosen, found in self._through_model(sources, bar):
            for i, tree in zip(chosen, self._trees(found, [sources[i] for i in chosen]), strict=True):
                trees[i] = tree
        return trees

    def graphs(self, sources: list[CutSentence], bar: tqdm | None = None) -> list[WordGraph]:
        """The tree of every sentence, and the probabilities of all arcs.

        Those of a word in pieces are the mean over its pieces, and of a head in pieces the sum; an arc inside the word
        counts as ROOT, as `collapse_to_words` has it.
        """
        graphs = [WordGraph([], np.zeros((0, 1)))] * len(sources)
        for chosen, found in self._through_model(sources, bar):
            batch = [sources[i] for i in chosen]
            marginals = _of_words(found, _NAMES[Evidence.marginals], batch)
            for i, heads, (arcs, roots) in zip(chosen, self._trees(found, batch), marginals, strict=True):
                pieces = np.bincount(sources[i].word_of_token, minlength=sources[i].words)
                graphs[i] = WordGraph(heads, np.column_stack((roots, arcs)) / pieces[:, None])
        return graphs

    def _through_model(self, sources: list[CutSentence], bar: tqdm | None) -> Iterator[tuple[list[int], dict]]:
        """Batches: which sentences, and the model's `latent_heads` of them as arrays."""
        dictionary = self.loaded.task.source_dictionary
        self.loaded.check_lengths([(len(s.pieces) + 1, 0) for s in sources], [s.place for s in sources])
        # models that read words by their spelling should read unseen ones, too
        learn = getattr(self.loaded.task, "learn_source_words", None)
        if learn is not None:
            learn(source.pieces for source in sources)
        order = sorted((i for i, s in enumerate(sources) if s.pieces), key=lambda i: -len(sources[i].pieces))
        for start in range(0, len(order), self.batch_size):
            chosen = order[start : start + self.batch_size]
            ids = [encode_line(dictionary, sources[i].pieces) for i in chosen]
            self.tokens += sum(map(len, ids)) - len(ids)
            self.unknown += sum(int(((row == dictionary.unk()) | (row >= self.known)).sum()) for row in ids)
            yield chosen, self._latent_heads(ids)
            if bar is not None:
                bar.update(len(chosen))
        if bar is not None:
            bar.update(len(sources) - len(order))

    def _latent_heads(self, ids: list[torch.Tensor]) -> dict[str, np.ndarray]:
        loaded = self.loaded
        tokens = data_utils.collate_tokens(
            ids, loaded.task.source_dictionary.pad(), left_pad=bool(loaded.task.cfg.left_pad_source)
        )
        lengths = torch.tensor([len(row) for row in ids])
        found = loaded.model.latent_heads(tokens.to(loaded.device), lengths.to(loaded.device))
        return {name: values.cpu().numpy() for name, values in found.items()}

    def _trees(self, found: dict[str, np.ndarray], sources: list[CutSentence]) -> list[list[int]]:
        of_words = _of_words(found, self.names, sources)
        try:
            return self.decode([arc for arc, _ in of_words], [root for _, root in of_words])
        except ValueError as error:
            raise ValueError(
                f"{self.loaded.path}: no tree can be made of the scores for {sources[0].place} and what is batched "
                f"with it ({error})"
            ) from None

    def note(self, preparation: Preparation) -> str:
        """What the user should know about the text: nothing, or how much of it the model does not know."""
        if not self.unknown:
            return ""
        share = 100 * self.unknown / self.tokens
        lowercase = preparation.lowercase or getattr(self.loaded.task.cfg, "lgp_lowercase", False)
        left = [option for option, given in (("--bpe", preparation.bpe), ("--lowercase", lowercase)) if not given]
        return (
            f"{self.unknown} of {self.tokens} tokens ({share:.1f} %) are unknown to the model; the text must be cut "
            f"and cased as in training" + (f" ({', '.join(left)})" if left else "")
        )


def _of_words(
    found: dict[str, np.ndarray], names: tuple[str, str], sources: list[CutSentence]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Arcs (J, J) and roots (J,) of each sentence of a batch, summed over the pieces of words."""
    arcs, roots, mask = (found[name] for name in (*names, "word_mask"))
    return [
        word_scores.collapse_to_words(arcs[b][np.ix_(mask[b], mask[b])], roots[b][mask[b]], source.word_of_token)
        for b, source in enumerate(sources)
    ]

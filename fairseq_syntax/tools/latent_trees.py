"""Latent trees of models: from words to pieces, through the model, and back to trees over words."""
# ruff: noqa: E402

from ..registration import register

register()  # before fairseq is imported, whose modules make the root logger print

# isort: split
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from fairseq import utils
from fairseq.data import data_utils
from tqdm import tqdm

from ..data.arrays import ArrayReader, split_prefix
from ..data.text.recipe import Side
from ..data.text.tokenizers import add_joiners, normalize
from ..files import checksum
from ..trees import word_scores
from ..trees.conllu import UNPARSED, Sentence, read_conllu, without_parse
from ..trees.spanning import DECODERS
from ..trees.subwords import split_words, without_joiners
from .loaded_model import LoadedModel, NothingToShow, encode_line, to_pieces
from .verb import input_lines, input_name, is_conllu

EVIDENCE = {"scores": ("arc_scores", "root_scores"), "marginals": ("arc_marginals", "root_marginals")}
"""Evidence for decoding trees -> keys of arcs and roots in the output of `latent_heads`."""


@dataclass(frozen=True)
class CutSentence:
    """A sentence in the pieces that the model reads."""

    pieces: list[str]  # T pieces, without EOS
    token_words: list[int]  # word of each piece, 0-based
    words: int  # number of words
    place: str  # file and line, for messages


@dataclass(frozen=True)
class WordGraph:
    """The latent tree and graph of a sentence of J words."""

    heads: list[int]  # J heads of the tree, 0-based, -1 for roots
    # (J, J + 1), [dependent, head]; column 0 is ROOT, column h is word h - 1. Rows add up to 1.
    probabilities: np.ndarray


# --- text ---------------------------------------------------------------------------------------------------------


class Cutter:
    """Segmentation of words into the pieces of a model; a parser with `--lgp-lowercase` gets lower case.

    Args:
        subword_type: type of pieces in the text, if it comes in pieces; None for that of the model's data.
    """

    def __init__(self, loaded: LoadedModel, subword_type: str | None = None):
        task = loaded.task
        self.recipe = getattr(task, "text", None)
        self.side = self.recipe.source if self.recipe else side_without_recipe(task)
        self.lowercase = self.side.lowercase or getattr(task.cfg, "lgp_lowercase", False)
        self.subword_type = loaded.subword_type(subword_type)
        # for a parser, words of a treebank are pieces, even with spaces; other dictionaries have no such words
        self.whole = task.target_dictionary is None

    def cut_words(self, words: list[str], place: str) -> CutSentence:
        """Segment words."""
        pieces: list[str] = []
        token_words: list[int] = []
        for number, word in enumerate(words):
            word = word.lower() if self.lowercase else word
            # a word may contain spaces (10 000), or disappear in normalisation
            cut = [word] if self.whole else self.side.cut(word.split()).split() or [word]
            pieces += cut
            token_words += [number] * len(cut)
        return CutSentence(pieces, token_words, len(words), place)

    def cut_sentence(self, sentence: str | Sentence, place: str = "the sentence") -> tuple[Sentence, CutSentence]:
        """Segment a text, or words with their tree; returns the sentence and its pieces."""
        if isinstance(sentence, Sentence):
            return sentence, self.cut_words(self.with_joiners(sentence), place)
        words, source = self.cut_line(sentence, place)
        return without_parse(words), source

    def cut_line(self, line: str, place: str) -> tuple[list[str], CutSentence]:
        """Segment a line: raw text if the data have a recipe, otherwise pieces, see `cut_tokens`."""
        if self.recipe is None:
            return self.cut_tokens(line.split(), place)
        [words] = self.recipe.source.words([line])
        return without_joiners(words), self.cut_words(words, place)

    def with_joiners(self, sentence: Sentence) -> list[str]:
        """The words of a tree, with the joiners of the model's data if a comment of the tree has its text."""
        text = [comment.partition("=")[2] for comment in sentence.comments if comment.startswith("# text =")]
        joined = add_joiners(normalize(text[0]), sentence.forms) if text and self.recipe else None
        return joined if joined and len(joined) == len(sentence) else sentence.forms

    def cut_tokens(self, tokens: list[str], place: str) -> tuple[list[str], CutSentence]:
        """Join a line of pieces into words; returns the words, and the pieces as the model reads them.

        Raises TreeFormatError: the line ends inside a word.
        """
        words, token_words = split_words(tokens, self.subword_type, place)
        pieces = [token.lower() for token in tokens] if self.lowercase else tokens
        return words, CutSentence(pieces, token_words, len(words), place)


def side_without_recipe(task) -> Side:
    """Settings of the source side for data without a recipe: subword-nmt codes of their folder, or whole words.

    Files of codes are codes.LANGUAGE or codes. Words are lower-cased if the dictionary has no capitals.
    """
    dictionary, folder = task.source_dictionary, Path(utils.split_paths(task.cfg.data)[0])
    words = dictionary.symbols[dictionary.nspecial :]
    side = Side("", "none", all(word == word.lower() for word in words), folder=folder)
    for name in (f"codes.{task.cfg.source_lang}", "codes"):
        if (folder / name).is_file():
            return replace(side, subwords="subword_nmt", codes=name, sha256=checksum(folder / name))
    return side


def nth(items: Iterable, number: int):
    """The item with an index, from 0. Raises ValueError: there are fewer items."""
    count = 0
    for count, item in enumerate(items, 1):
        if count == number + 1:
            return item
    raise ValueError(f"--sentence {number}: there are {count} sentences, numbered from 0")


def read_sentences(path: str, cutter: Cutter, collapse_ranges: bool = False) -> Iterator[tuple[Sentence, CutSentence]]:
    """Read the sentences of a text, or of CoNLL-U if the file is so named, each with its pieces."""
    if is_conllu(path):
        for sentence in read_conllu(path):
            sentence = sentence.collapse_ranges() if collapse_ranges else sentence
            yield cutter.cut_sentence(sentence, f"{path}:{sentence.line}")
    else:
        for number, line in enumerate(input_lines(path), 1):
            words, source = cutter.cut_line(line, f"{input_name(path)}:{number}")
            yield without_parse(words), source


def read_split(loaded: LoadedModel, subset: str, cutter: Cutter) -> Iterator[tuple[Sentence, CutSentence]]:
    """Read the source side of a split, with `<unk>` for unknown pieces, and with its trees.

    Ends of words come from the stored syntax, if there is any, because unknown pieces hide them.
    """
    split, task, dictionary = loaded.load_split(subset), loaded.task, loaded.task.source_dictionary
    folder, pair = utils.split_paths(task.cfg.data)[0], (task.cfg.source_lang, task.cfg.target_lang)
    prefix = split_prefix(folder, subset, *pair) if hasattr(task, "syntax_dictionary") else None
    tags = {name: task.syntax_dictionary(name) for name in ("deprels", "upos")} if prefix else {}
    stored = {name: ArrayReader(f"{prefix}.{name}") for name in ("words", "heads", *tags)} if prefix else {}
    for i in range(len(split)):
        pieces = to_pieces(dictionary, split.src[i])
        place = f"{subset}, sentence {i}"
        row = stored["words"][i] if stored else []
        if len(row) != len(pieces) + 1:
            words, source = cutter.cut_tokens(pieces, place)
            yield without_parse(words), source
            continue
        token_words, heads = row[:-1].tolist(), stored["heads"][i].astype("int64").tolist()
        words = _join_forms(pieces, token_words, int(row[-1]))
        named = [[tags[name][number] for number in stored[name][i].tolist()] for name in tags]
        tree = without_parse(words) if UNPARSED in heads else Sentence(words, heads, *named)
        yield tree, CutSentence(pieces, token_words, len(words), place)


def read_input(loaded: LoadedModel, cutter: Cutter, args) -> Iterator[tuple[Sentence, CutSentence]]:
    """Read the sentences of --text, --input or --subset, see `verb.add_sentences`."""
    if args.text is not None:
        return iter([cutter.cut_sentence(args.text, "--text")])
    if args.subset:
        return read_split(loaded, args.subset, cutter)
    return read_sentences(args.input, cutter, args.collapse_ranges)


def _join_forms(pieces: Sequence[str], token_words: Sequence[int], count: int) -> list[str]:
    """Join `count` words from their pieces, without the marks of subword_nmt and sentencepiece."""
    forms = [""] * count
    for piece, word in zip(pieces, token_words, strict=False):
        forms[word] += piece.removesuffix("@@").removeprefix("▁")
    return without_joiners(forms)


# --- through the model --------------------------------------------------------------------------------------------


class TreeInducer:
    """Decoder of trees over words from the scores or marginals of a model's `latent_heads`.

    Raises NothingToShow: the model has no latent trees. Its methods raise ValueError: a sentence is too long for the
    model, or there is no tree.
    """

    def __init__(self, loaded: LoadedModel, decoder: str = "mst", evidence: str = "scores", batch_size: int = 64):
        if not getattr(loaded.model, "has_latent_trees", False):
            raise NothingToShow(f"{loaded.path}: the architecture {loaded.architecture} has no latent trees")
        self.loaded = loaded
        self.decode = DECODERS[decoder]
        self.names = EVIDENCE[evidence]
        self.batch_size = batch_size
        self.tokens = self.unknown = 0
        # words learned from the input text have indices after those of training
        self.known = len(loaded.task.source_dictionary)

    def __call__(self, sources: list[CutSentence], bar: tqdm | None = None) -> list[list[int]]:
        """Heads (J,) of every sentence, 0-based, -1 for roots."""
        trees: list[list[int]] = [[] for _ in sources]
        for numbers, batch in self._through_model(sources, bar):
            for i, tree in zip(numbers, self._trees(batch, [sources[i] for i in numbers]), strict=True):
                trees[i] = tree
        return trees

    def graphs(self, sources: list[CutSentence], bar: tqdm | None = None) -> list[WordGraph]:
        """The tree of every sentence, and the probabilities of all arcs.

        Probabilities are averaged over the pieces of a dependent, and summed over those of a head. Arcs between the
        pieces of a word count as ROOT, as in `collapse_to_words`.
        """
        graphs = [WordGraph([], np.zeros((0, 1)))] * len(sources)
        for numbers, arrays in self._through_model(sources, bar):
            batch = [sources[i] for i in numbers]
            marginals = _word_arcs(arrays, EVIDENCE["marginals"], batch)
            for i, heads, (arcs, roots) in zip(numbers, self._trees(arrays, batch), marginals, strict=True):
                pieces = np.bincount(sources[i].token_words, minlength=sources[i].words)
                graphs[i] = WordGraph(heads, np.column_stack((roots, arcs)) / pieces[:, None])
        return graphs

    def _through_model(self, sources: list[CutSentence], bar: tqdm | None) -> Iterator[tuple[list[int], dict]]:
        """Yield batches: the indices of their sentences, and the arrays of the model's `latent_heads`."""
        dictionary = self.loaded.task.source_dictionary
        self.loaded.check_lengths([(len(s.pieces) + 1, 0) for s in sources], [s.place for s in sources])
        # models that read characters can read unseen words
        learn = getattr(self.loaded.task, "learn_source_words", None)
        if learn is not None:
            learn(source.pieces for source in sources)
        order = sorted((i for i, s in enumerate(sources) if s.pieces), key=lambda i: -len(sources[i].pieces))
        for start in range(0, len(order), self.batch_size):
            numbers = order[start : start + self.batch_size]
            ids = [encode_line(dictionary, sources[i].pieces) for i in numbers]
            self.tokens += sum(map(len, ids)) - len(ids)
            self.unknown += sum(int(((row == dictionary.unk()) | (row >= self.known)).sum()) for row in ids)
            yield numbers, self._latent_heads(ids)
            if bar is not None:
                bar.update(len(numbers))
        if bar is not None:
            bar.update(len(sources) - len(order))

    def _latent_heads(self, ids: list[torch.Tensor]) -> dict[str, np.ndarray]:
        loaded = self.loaded
        tokens = data_utils.collate_tokens(
            ids, loaded.task.source_dictionary.pad(), left_pad=bool(loaded.task.cfg.left_pad_source)
        )
        lengths = torch.tensor([len(row) for row in ids])
        heads = loaded.model.latent_heads(tokens.to(loaded.device), lengths.to(loaded.device))
        return {name: values.cpu().numpy() for name, values in heads.items()}

    def _trees(self, arrays: dict[str, np.ndarray], sources: list[CutSentence]) -> list[list[int]]:
        scores = _word_arcs(arrays, self.names, sources)
        try:
            return self.decode([arcs for arcs, _ in scores], [roots for _, roots in scores])
        except ValueError as error:
            raise ValueError(
                f"{self.loaded.path}: the scores allow no tree for {sources[0].place} and its batch ({error})"
            ) from None

    def note(self) -> str:
        """A message about the share of unknown tokens, empty if there are none."""
        if not self.unknown:
            return ""
        return (
            f"{self.unknown} of {self.tokens} tokens ({100 * self.unknown / self.tokens:.1f} %) are unknown to the "
            "model; the text must be segmented and cased as in training"
        )


def _word_arcs(
    arrays: dict[str, np.ndarray], names: tuple[str, str], sources: list[CutSentence]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Arcs (J, J) and roots (J,) of each sentence of a batch, summed over the pieces of words."""
    arcs, roots, mask = (arrays[name] for name in (*names, "word_mask"))
    return [
        word_scores.collapse_to_words(arcs[b][np.ix_(mask[b], mask[b])], roots[b][mask[b]], source.token_words)
        for b, source in enumerate(sources)
    ]

"""Words as a vector of their own beside the mean vector of their character n-grams.

This is x(w) of Hashimoto & Tsuruoka (EMNLP 2017), Sec. 2.1. A word that is too rare for a vector of its own, or unseen,
still has its n-grams: so the dictionary has to be open, with all words of the training text and, counted 0, others.
"""

import logging
import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import List, Optional

import torch
from torch import Tensor, nn

from .char_ngrams import NgramVocabulary, bag_table

logger = logging.getLogger(__name__)

UNK_NGRAM = "<UNK>"
"""Key of the n-gram of words that have no known one; other keys begin with a number."""

INIT_RANGE = 0.1
"""Tables start uniformly distributed between minus and plus this, where no vectors are given."""

# what fairseq fills a dictionary up with, to a multiple of 8
_FILLER = re.compile(r"madeupword\d{4,}")


def initialise(table: nn.Module, bound: float = INIT_RANGE) -> None:
    """Draw a table of embeddings from U[-bound, bound], the row of padding excepted, which is 0."""
    nn.init.uniform_(table.weight, -bound, bound)
    with torch.no_grad():
        table.weight[table.padding_idx].zero_()


class WordRepresentation(nn.Module):
    """x(w) = [v(w); c(w)]: a vector of the word, and the mean of those of its known n-grams, each counted once.

    Rows of the table of words belong to special symbols and to words that occur often enough, in the order of the
    dictionary; all other words share that of `unk`. Special symbols have no n-grams: their c is 0, as is that of a word
    without any known one.

    Neither rows nor n-grams depend on words of count 0, so a dictionary can grow at its end and weights stay valid.

    Args:
        symbols, counts: V symbols of the dictionary, and how often each occurs in the training text.
        specials: numbers of the symbols that are not words; `pad` and `unk` are among them.
        size: d1, of both vectors.
        minimum: occurrences that a word must have for a row of its own, and an n-gram.
        max_ngrams: n-grams of a word to use, the first ones.
        unk_ngram: give words without a known n-gram, and `unk`, one n-gram of their own.
        lowercase: look words up by their lower-cased spelling; n-grams are those of the word as written. Spellings of a
            word count together.
        vocabulary: n-grams in the order of the table; None takes those of the dictionary.

    Attributes:
        row_symbols: string of each row of the table of words.
        words, ngrams: tables (R, d1) and (G + 1, d1), row 0 for no n-gram.
        word_row: (V,) row of each symbol, int64; not in the state.
        bag: (V, W) n-grams of each symbol, int32, 0 after the last; not in the state.

    Raises ValueError: `max_ngrams` is below 1.
    """

    def __init__(
        self,
        symbols: Sequence[str],
        counts: Sequence[int],
        specials: Collection[int],
        *,
        pad: int,
        unk: int,
        size: int,
        minimum: int,
        max_ngrams: int = 96,
        unk_ngram: bool = False,
        lowercase: bool = False,
        vocabulary: Optional[NgramVocabulary] = None,
    ):
        super().__init__()
        self.size = size
        self.max_ngrams = max_ngrams
        self.unk_ngram = unk_ngram
        self.lowercase = lowercase
        specials = sorted(specials)
        is_special = set(specials)
        words = [
            ("" if i in is_special else symbol, count)
            for i, (symbol, count) in enumerate(zip(symbols, counts, strict=True))
        ]
        special_rows = {i: row for row, i in enumerate(specials)}
        frequent = self._frequent(words, minimum)
        self.row_symbols: List[str] = [symbols[i] for i in specials] + frequent
        # a word may be spelled like a special symbol, lower-cased at least
        self._rows = {word: row for row, word in enumerate(frequent, len(specials))}
        self._unk_row = special_rows[unk]
        word_row = [special_rows[i] if i in is_special else self._find_row(word) for i, (word, _) in enumerate(words)]

        if vocabulary is None:
            vocabulary = NgramVocabulary.build(words, minimum)
        self.vocabulary = vocabulary.extended([UNK_NGRAM]) if unk_ngram else vocabulary
        bag = self._bags(["" if not count and _FILLER.fullmatch(word) else word for word, count in words])
        if unk_ngram:
            bag[unk, 0] = self.vocabulary.index(UNK_NGRAM)

        self.words = nn.Embedding(len(self.row_symbols), size, padding_idx=special_rows[pad])
        self.ngrams = nn.EmbeddingBag(len(self.vocabulary) + 1, size, mode="mean", padding_idx=0)
        # they follow from the dictionary; a state of floating point only can be averaged
        self.register_buffer("word_row", torch.tensor(word_row), persistent=False)
        self.register_buffer("bag", bag, persistent=False)
        self._means: Optional[Tensor] = None
        self._stamp = None
        initialise(self.words)
        initialise(self.ngrams)

    @property
    def num_rows(self) -> int:
        """R."""
        return len(self.row_symbols)

    def rows(self, tokens: Tensor) -> Tensor:
        """Rows of the table of words, or of another one with the same R rows; int64, in the shape of `tokens`."""
        return self.word_row[tokens]

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T) numbers of symbols -> (B, T, 2 d1): [word vectors; means of n-gram vectors]."""
        return torch.cat((self.words(self.rows(tokens)), self.ngram_means(tokens)), dim=-1)

    def ngram_means(self, tokens: Tensor) -> Tensor:
        """c(w), (B, T, d1). In evaluation without gradients, those of the whole dictionary are computed only once."""
        if self.training or torch.is_grad_enabled():
            if tokens.is_cuda:  # the host would wait to hear how many words differ
                return self.ngrams(self.bag[tokens.flatten()]).view(*tokens.shape, -1)
            distinct, inverse = torch.unique(tokens, return_inverse=True)
            return nn.functional.embedding(inverse, self.ngrams(self.bag[distinct]))
        return nn.functional.embedding(tokens, self._all_means())

    def add_symbols(self, words: Sequence[str]) -> None:
        """Append new words to the dictionary, in the order in which they are appended elsewhere."""
        if not words:
            return
        rows = [self._find_row(word) for word in words]
        bag = self._bags(words).to(self.bag.device)
        if self._means_are_valid():
            with torch.no_grad():
                self._means = _append(self._means, self.ngrams(bag))
        else:
            self._means = None
        self.word_row = _append(self.word_row, self.word_row.new_tensor(rows))
        width = max(self.bag.shape[1], bag.shape[1])
        self.bag = _append(*(_widen(part, width) for part in (self.bag, bag)))

    def train(self, mode: bool = True):
        """As in nn.Module."""
        # not in `eval()`, which fairseq calls before every batch of a validation
        if mode:
            self._means = None
        return super().train(mode)

    def _all_means(self) -> Tensor:
        """(V, d1)."""
        if not self._means_are_valid():
            self._means = self.ngrams(self.bag)
            self._stamp = self._weight_stamp()
        return self._means

    def _means_are_valid(self) -> bool:
        return self._means is not None and self._stamp == self._weight_stamp()

    def _weight_stamp(self) -> tuple:
        """What changes when the weights change: loaded, updated, filled with vectors, cast, or moved."""
        weight = self.ngrams.weight
        return weight.data_ptr(), weight._version, weight.dtype, weight.device

    def _frequent(self, words, minimum: int) -> List[str]:
        """Words that get rows of their own, in the order of the dictionary."""
        counts = Counter()
        for word, count in words:
            if word and count > 0:
                counts[word.lower() if self.lowercase else word] += count
        return [word for word, count in counts.items() if count >= minimum]

    def _find_row(self, word: str) -> int:
        return self._rows.get(word.lower() if self.lowercase else word, self._unk_row)

    def _bags(self, words: Sequence[str]) -> Tensor:
        """(V, W); see `bag_table`."""
        bag, cut = bag_table(words, self.vocabulary, self.max_ngrams)
        if cut:
            logger.info(f"{cut} words have more than {self.max_ngrams} known n-grams; the first ones are used")
        if self.unk_ngram:
            unknown = (bag[:, 0] == 0) & torch.tensor([bool(word) for word in words])
            bag[unknown, 0] = self.vocabulary.index(UNK_NGRAM)
        return bag


def _widen(table: Tensor, width: int) -> Tensor:
    """A table with columns of zeros up to a width; the same one if it is as wide."""
    return nn.functional.pad(table, (0, width - table.shape[1])) if table.shape[1] < width else table


def _append(table: Tensor, rows: Tensor) -> Tensor:
    """The rows of both. They are written behind `table` in its memory, which is made greater by a quarter when it ends.

    So the cost of adding words does not depend on how many there are. `table` itself stays as it is.
    """
    start, end = len(table), len(table) + len(rows)
    stride = table[:1].numel()
    room = table.untyped_storage().nbytes() // table.element_size() - table.storage_offset()
    # tensors of inference mode cannot be written outside it
    if table.is_inference() or not table.is_contiguous() or room < end * stride:
        larger = table.new_empty(end + end // 4, *table.shape[1:])
        larger[:start] = table
    else:
        larger = table.as_strided((end, *table.shape[1:]), table.stride())
    larger[start:end] = rows
    return larger[:end]

"""Representations of words: a vector of the word and the mean of its character n-grams; both may start from files.

This is x(w) of Hashimoto & Tsuruoka (EMNLP 2017), Sec. 2.1. A word that is too rare for a vector of its own, or unseen,
still has its n-grams, so the dictionary needs all words of the training text, and may grow by words of count 0.
"""

import gzip
import logging
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Optional

import numpy as np
import torch
from fairseq.data import Dictionary
from torch import Tensor, nn

from ...data.raw_text_task import DICTIONARY_LOCK

logger = logging.getLogger(__name__)

SIZES = (2, 3, 4)
"""Lengths of the paper's n-grams; either end of a word counts as one character."""

BEGIN, END = "#BEGIN#", "#END#"

MAX_NGRAMS = 96
"""Maximum n-grams read of a word, the first ones; words of up to 33 characters have no more."""

INIT_RANGE = 0.1
"""Bound x of the uniform distribution U[-x, x] of initial tables without given vectors."""


# --- n-grams ------------------------------------------------------------------------------------------------------


def character_ngrams(word: str) -> list[str]:
    """The n-grams of a word, the shortest first, each length from left to right, repeated ones repeated.

    Keys are those of charNgram2vec, whose vectors the paper starts from:

        a  ->  2gram-#BEGIN#a  2gram-a#END#  3gram-#BEGIN#a#END#
    """
    if not word:
        return []
    characters = [BEGIN, *word, END]
    return [
        f"{size}gram-{''.join(characters[start : start + size])}"
        for size in SIZES
        for start in range(len(characters) - size + 1)
    ]


def frequent_ngrams(words: Iterable[tuple[str, int]], minimum: int) -> list[str]:
    """The n-grams of counted words that occur `minimum` times, frequent ones first, ties by code points.

    Words of count 0 have no effect, so numbers stay valid when they are added to a dictionary.
    """
    counts = Counter()
    for word, count in words:
        if count > 0:
            for key in character_ngrams(word):
                counts[key] += count
    return [key for _, key in sorted((-count, key) for key, count in counts.items() if count >= minimum)]


def bag_table(words: Sequence[str], numbers: Mapping[str, int]) -> Tensor:
    """Numbers of the n-grams of V words: distinct, in order of appearance, the first `MAX_NGRAMS` of a word.

    Returns (V, W) int32, 0 after the last n-gram. W is the size of the largest bag, and 1 if all are empty. N-grams
    without a number are left out.
    """
    bags = [list(dict.fromkeys(filter(None, map(numbers.get, character_ngrams(word)))))[:MAX_NGRAMS] for word in words]
    sizes = np.array([len(bag) for bag in bags], dtype=np.int64)
    table = np.zeros((len(bags), max(1, sizes.max(initial=0))), dtype=np.int32)
    # rows are filled from the left, so the bags one after the other are the filled cells in their order
    table[np.arange(table.shape[1]) < sizes[:, None]] = [number for bag in bags for number in bag]
    return torch.from_numpy(table)


# --- representations ----------------------------------------------------------------------------------------------


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

    Neither rows nor n-grams depend on words of count 0, so a dictionary can grow at its end and weights stay valid: the
    new words are read by their spelling.

    Args:
        dictionary: of V symbols, which may grow at its end.
        counts: of each symbol in the training text; None for those of the dictionary.
        size: d1, of both vectors.
        minimum: occurrences that a word must have for a row of its own, and an n-gram.
        lowercase: look words up by their lower-cased spelling; n-grams are those of the word as written. Spellings of a
            word count together.
        ngram_keys: n-grams in the order of the table; None for those of the dictionary.

    Attributes:
        row_symbols: string of each row of the table of words.
        words, ngrams: tables (R, d1) and (G + 1, d1), row 0 for no n-gram.
        word_row: (V,) row of each symbol, int64; not in the state.
        bag: (V, W) n-grams of each symbol, int32, 0 after the last; not in the state.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        counts: Optional[Sequence[int]] = None,
        *,
        size: int,
        minimum: int,
        lowercase: bool = False,
        ngram_keys: Optional[Sequence[str]] = None,
    ):
        super().__init__()
        self.size = size
        self.lowercase = lowercase
        symbols, num_special = dictionary.symbols, dictionary.nspecial
        words = list(zip(symbols, dictionary.count if counts is None else counts, strict=True))[num_special:]
        totals = Counter()
        for word, count in words:
            if count > 0:
                totals[self._spelling(word)] += count
        frequent = [word for word, count in totals.items() if count >= minimum]
        self.row_symbols = [*symbols[:num_special], *frequent]
        # a word may be spelled like a special symbol, lower-cased at least
        self._rows = {word: row for row, word in enumerate(frequent, num_special)}
        self._unk = dictionary.unk()
        self.ngram_keys = frequent_ngrams(words, minimum) if ngram_keys is None else list(ngram_keys)
        self._ngram_numbers = {key: number for number, key in enumerate(self.ngram_keys, 1)}

        self.words = nn.Embedding(len(self.row_symbols), size, padding_idx=dictionary.pad())
        self.ngrams = nn.EmbeddingBag(len(self.ngram_keys) + 1, size, mode="mean", padding_idx=0)
        # they follow from the dictionary; a state of floating point only can be averaged
        word_row = [*range(num_special), *(self._row(word) for word, _ in words)]
        bag = bag_table([""] * num_special + [word for word, _ in words], self._ngram_numbers)
        self.register_buffer("word_row", torch.tensor(word_row), persistent=False)
        self.register_buffer("bag", bag, persistent=False)
        self._symbols = symbols
        initialise(self.words)
        initialise(self.ngrams)

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T) numbers of symbols -> (B, T, 2 d1): [word vectors; means of n-gram vectors]."""
        self.follow()
        return torch.cat((self.words(self.word_row[tokens]), self.ngram_means(tokens)), dim=-1)

    def ngram_means(self, tokens: Tensor) -> Tensor:
        """c(w), (B, T, d1)."""
        if tokens.is_cuda:  # the host would wait for the number of different words
            return self.ngrams(self.bag[tokens.flatten()]).view(*tokens.shape, -1)
        distinct, inverse = torch.unique(tokens, return_inverse=True)
        return nn.functional.embedding(inverse, self.ngrams(self.bag[distinct]))

    def follow(self) -> None:
        """Bring rows and n-grams up to date with the dictionary, which has grown at its end."""
        if len(self._symbols) == len(self.word_row):
            return
        with DICTIONARY_LOCK:
            words = self._symbols[len(self.word_row) :]
            bag = bag_table(words, self._ngram_numbers).to(self.bag.device)
            rows = self.word_row.new_tensor([self._row(word) for word in words])
            width = max(self.bag.shape[1], bag.shape[1])
            tables = (nn.functional.pad(table, (0, width - table.shape[1])) for table in (self.bag, bag))
            self.bag = torch.cat(list(tables))
            self.word_row = torch.cat((self.word_row, rows))

    def _spelling(self, word: str) -> str:
        return word.lower() if self.lowercase else word

    def _row(self, word: str) -> int:
        return self._rows.get(self._spelling(word), self._unk)


# --- files of vectors ---------------------------------------------------------------------------------------------


def read_vectors(path: str, size: int, wanted: Optional[Collection[str]] = None) -> dict[str, np.ndarray]:
    """token -> (d,) float32 from a file of word2vec, GloVe or charNgram2vec: lines `token v1 … vd`, perhaps gzipped.

    Fields are separated by single blanks. Tokens may contain blanks, and bytes that are not UTF-8 do no harm. A first
    line of two integers, as word2vec writes it, is not an entry. A token that comes again keeps its first vector. Lines
    that do not end in d finite numbers are skipped, and counted in the log. Only vectors of `wanted` tokens are
    kept, preferably a set.
    """
    vectors: dict[str, np.ndarray] = {}
    wrong = []  # numbers of lines
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip(" \r\n")
            if not line or (number == 1 and re.fullmatch(r"\d+ \d+", line, re.ASCII)):
                continue
            token, *fields = line.rsplit(" ", size)
            if token in vectors or (wanted is not None and token not in wanted):
                continue
            vector = _numbers(fields)
            if vector is None or len(vector) != size:
                wrong.append(number)
            else:
                vectors[token] = vector
    if wrong:
        logger.warning(
            f"{path}: {len(wrong)} lines do not end in {size} numbers, the first of them line {wrong[0]}; passed over"
        )
    return vectors


def _numbers(fields: Sequence[str]) -> Optional[np.ndarray]:
    """Finite numbers, or None."""
    try:
        numbers = np.array(fields, dtype=np.float32)
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None


def fill_rows(weight: Tensor, strings: Sequence[Optional[str]], vectors: Mapping, name: str = "vectors") -> int:
    """Copy vectors, string -> (d,), into the rows of a table (R, d) of R strings, without a gradient; log how many.

    Rows of strings without a vector stay, as do those of None. Returns how many rows were filled.
    """
    rows = [row for row, string in enumerate(strings) if string is not None and string in vectors]
    if rows:
        values = torch.stack([torch.as_tensor(vectors[strings[row]]) for row in rows])
        with torch.no_grad():
            weight[torch.tensor(rows, device=weight.device)] = values.to(weight)
    total = sum(string is not None for string in strings)
    logger.info(f"{name}: {len(rows)} of {total} rows have a vector ({100 * len(rows) / max(1, total):.1f} %)")
    return len(rows)


def load_vectors(
    representation: WordRepresentation, word_vectors: Optional[str] = None, ngram_vectors: Optional[str] = None
) -> None:
    """Start the tables of a word representation from files.

    A table with a file starts at U[-1/d1, 1/d1] where the file has no vector, as in the authors' code. A table without
    a file is not changed. N-grams have keys such as `3gram-cat`; words are in lower case if they are looked up in lower
    case.

    Raises OSError: a file cannot be read; ValueError: it has no vector of a known word or n-gram.
    """
    words = representation.words
    row_symbols = [None if row == words.padding_idx else s for row, s in enumerate(representation.row_symbols)]
    for option, what, path, table, strings in (
        ("--lgp-word-vectors", "word", word_vectors, words, row_symbols),
        ("--lgp-ngram-vectors", "n-gram", ngram_vectors, representation.ngrams, [None, *representation.ngram_keys]),
    ):
        if not path:
            continue
        vectors = read_vectors(path, representation.size, {string for string in strings if string is not None})
        initialise(table, 1 / representation.size)
        # they would stay random: by default, vectors loaded from a file are not trained
        if not fill_rows(table.weight, strings, vectors, path):
            raise ValueError(
                f"{option} {path}: has a vector of no {what} of the data with {representation.size} numbers; give "
                "vectors of this language and size, in the case of --lgp-word-case"
            )

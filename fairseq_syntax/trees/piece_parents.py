"""Parents of subwords, from trees over words.

A sentence of J words has T tokens: its subwords and the end-of-sentence symbol (EOS), which counts as word J.
Everywhere, `heads` (J,) are 0-based as in `conllu.Sentence`, and `words` (T,) is the word of each token, EOS
last.
"""

import numpy as np

from .conllu import ROOT, UNPARSED

NO_PARENT = np.iinfo(np.uint16).max
"""Doubled parent position of a token without a parse, whose attention stays unchanged."""


def word_spans(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and last token of every word, EOS included: two arrays (J+1,), int64."""
    words = np.asarray(words, dtype=np.int64)
    starts = np.flatnonzero(np.diff(words, prepend=-1))
    ends = np.append(starts[1:], len(words)) - 1
    return starts, ends


def parent_words(heads: np.ndarray) -> np.ndarray:
    """The parent of every word, EOS included: (J+1,), int64. Roots and EOS are their own parents.

    Without a parse, all are `UNPARSED`.
    """
    heads = np.asarray(heads, dtype=np.int64)
    own = np.arange(len(heads) + 1)
    # without a parse, EOS has no parent either, and the whole sentence stays unchanged
    parents = np.append(heads, UNPARSED if (heads == UNPARSED).any() else ROOT)
    return np.where(parents == ROOT, own, parents)


def parent_positions(heads: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Twice the middle position of every token's parent: (T,), uint16 (Bugliarello & Okazaki 2020, Sec. 2).

    The middle of a word is the mean position of its pieces, counted from the sentence's first token: 7.0 for pieces 6,
    7 and 8, and 6.5 for pieces 6 and 7. It is doubled to be an integer. Roots and EOS are their own parents; without a
    parse, the value is `NO_PARENT`.
    """
    first, last = word_spans(words)
    parents = parent_words(heads)
    doubled_middle = (first + last)[np.maximum(parents, 0)]
    doubled_middle[parents == UNPARSED] = NO_PARENT
    return doubled_middle[words].astype(np.uint16)


def parent_first_pieces(heads: np.ndarray, words: np.ndarray) -> np.ndarray:
    """The first piece of every token's head word, which LISA predicts: (T,), int64; -1 without a parse."""
    first, _ = word_spans(words)
    parents = parent_words(heads)
    pieces = first[np.maximum(parents, 0)]
    pieces[parents == UNPARSED] = -1
    return pieces[words]


def piece_heads(heads: np.ndarray, words: np.ndarray) -> np.ndarray:
    """The head of every token in a tree over tokens: (T,), int64; -1 without a parse.

    The head of a word's first piece is the first piece of its head word, or EOS, the last token, for a root. The word's
    other pieces depend on its first one. EOS is its own head.
    """
    heads = np.asarray(heads, dtype=np.int64)
    if (heads == UNPARSED).any():
        return np.full(len(words), -1)
    first, _ = word_spans(words)
    token_heads = first[words]
    # word J is EOS, and so is index -1
    token_heads[first] = first[np.append(heads, ROOT)]
    return token_heads

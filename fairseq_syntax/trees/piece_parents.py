"""Parents of subwords, from trees over words: positions, first pieces, heads of pieces.

A sentence of J words is cut into T-1 subwords plus the end-of-sentence symbol (EOS), which counts as word J.
"""

import numpy as np

from .conllu import ROOT, UNPARSED

NO_PARENT = np.iinfo(np.uint16).max
"""Doubled parent position of a token without a parse: its attention row is left alone."""


def word_spans(word_of_token: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and last token (J+1,), int64, of every word, EOS included, of words (T,) 0, 0, 1, …, J with EOS last."""
    words = np.asarray(word_of_token, dtype=np.int64)
    starts = np.flatnonzero(np.diff(words, prepend=-1))
    ends = np.append(starts[1:], len(words)) - 1
    return starts, ends


def parent_words(heads: np.ndarray) -> np.ndarray:
    """(J+1,) int64, the word that each word looks at, EOS included: its head; a root and EOS look at themselves.

    Words without a parse, and the EOS after them, keep `UNPARSED`.
    """
    heads = np.asarray(heads, dtype=np.int64)
    own = np.arange(len(heads) + 1)
    # without a parse, EOS has no parent either: the whole sentence is left alone
    parents = np.append(heads, UNPARSED if (heads == UNPARSED).any() else ROOT)
    return np.where(parents == ROOT, own, parents)


def parent_positions(heads: np.ndarray, word_of_token: np.ndarray) -> np.ndarray:
    """(T,) uint16, twice the middle position of every token's parent (Bugliarello & Okazaki 2020, Sec. 2).

    The middle of a word is the mean position of its pieces: pieces 6, 7, 8 -> 7.0, pieces 6, 7 -> 6.5. Positions
    are multiples of one half, hence stored doubled, and counted from the sentence's first token. A root's parent is the
    root itself; EOS is its own parent; without a parse, it is `NO_PARENT`.

    Args:
        heads: (J,) heads, 0-based, see `conllu.Sentence`.
        word_of_token: (T,) word of each token, EOS (word J) last.
    """
    words = np.asarray(word_of_token, dtype=np.int64)
    first, last = word_spans(words)
    parents = parent_words(heads)
    doubled_middle = (first + last)[np.maximum(parents, 0)]
    doubled_middle[parents == UNPARSED] = NO_PARENT
    return doubled_middle[words].astype(np.uint16)


def parent_first_pieces(heads: np.ndarray, word_of_token: np.ndarray) -> np.ndarray:
    """(T,) int64, the first piece of every token's head word (LISA's target), -1 without a parse."""
    words = np.asarray(word_of_token, dtype=np.int64)
    first, _ = word_spans(words)
    parents = parent_words(heads)
    pieces = first[np.maximum(parents, 0)]
    pieces[parents == UNPARSED] = -1
    return pieces[words]


def piece_heads(heads: np.ndarray, word_of_token: np.ndarray) -> np.ndarray:
    """The tree over the pieces: position of the head of every token.

    The first piece of a word hangs on the first piece of its head word, or on EOS, the last token, for a root; the
    other pieces hang on the first one. So a tree of words with one root is a tree of pieces with one root.

    Args and conventions as in `parent_positions`.

    Returns:
        (T,) int64; EOS is its own head; -1 without a parse.
    """
    heads, words = np.asarray(heads, dtype=np.int64), np.asarray(word_of_token, dtype=np.int64)
    if (heads == UNPARSED).any():
        return np.full(len(words), -1)
    first, _ = word_spans(words)
    found = first[words]
    # word J is EOS, as is that of index -1
    found[first] = first[np.append(heads, ROOT)]
    return found

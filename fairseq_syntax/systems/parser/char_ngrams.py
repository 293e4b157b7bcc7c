"""Character n-grams of words, and tables of them (Hashimoto & Tsuruoka, EMNLP 2017, Sec. 2.1).

The form of the keys is that of charNgram2vec, whose vectors the paper starts from:

    a  ->  2gram-#BEGIN#a  2gram-a#END#  3gram-#BEGIN#a#END#
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import List, Tuple

import numpy as np
import torch
from torch import Tensor

SIZES = (2, 3, 4)
"""Lengths of the n-grams of the paper; either end of a word counts as one character."""

BEGIN, END = "#BEGIN#", "#END#"


def character_ngrams(word: str, sizes: Sequence[int] = SIZES) -> List[str]:
    """The n-grams of a word, the shortest first, each kind from left to right; one that comes twice is there twice."""
    if not word:
        return []
    characters = [BEGIN, *word, END]
    return [
        f"{size}gram-{''.join(characters[start : start + size])}"
        for size in sizes
        for start in range(len(characters) - size + 1)
    ]


class NgramVocabulary:
    """n-grams and their numbers, from 1, as 0 stands for none: that of `keys[i]`, such as `3gram-cat`, is i + 1."""

    def __init__(self, keys: Iterable[str]):
        """Args: keys in the order of their numbers. Raises ValueError: a key comes twice."""
        self.keys = list(keys)
        self._numbers = {key: number for number, key in enumerate(self.keys, 1)}
        if len(self._numbers) < len(self.keys):
            twice = next(key for key, count in Counter(self.keys).items() if count > 1)
            raise ValueError(f"n-gram {twice!r} is in the list more than once; give every n-gram one number")

    @classmethod
    def build(cls, words: Iterable[Tuple[str, int]], minimum: int) -> "NgramVocabulary":
        """The n-grams of counted words that occur `minimum` times, frequent ones first, else by code points.

        A word of count 0 changes nothing, so numbers stay when such words join a dictionary.
        """
        counts = Counter()
        for word, count in words:
            if count > 0:
                for key in character_ngrams(word):
                    counts[key] += count
        frequent = [(-count, key) for key, count in counts.items() if count >= minimum]
        return cls(key for _, key in sorted(frequent))

    def extended(self, keys: Iterable[str]) -> "NgramVocabulary":
        """A vocabulary that has these keys, too, new ones after the others."""
        return NgramVocabulary(dict.fromkeys((*self.keys, *keys)))

    def index(self, key: str) -> int:
        """Number of an n-gram; 0 if it is not in the vocabulary."""
        return self._numbers.get(key, 0)

    def __len__(self) -> int:
        """How many n-grams there are; the greatest number."""
        return len(self.keys)

    def __contains__(self, key: str) -> bool:
        return key in self._numbers


def bag_table(words: Sequence[str], vocabulary: NgramVocabulary, width: int) -> Tuple[Tensor, int]:
    """The known n-grams of V words, each once, in the order in which they first appear; the first `width` of a word.

    Returns (numbers (V, W) int32, 0 after the last n-gram; how many words lost n-grams). W is the size of the largest
    bag, and 1 if all are empty. Raises ValueError: a width below 1.
    """
    if width < 1:
        raise ValueError(f"at most {width} n-grams of a word; allow at least 1")
    bags = [list(dict.fromkeys(filter(None, map(vocabulary.index, character_ngrams(word))))) for word in words]
    sizes = np.array([len(bag) for bag in bags], dtype=np.int64)
    kept = np.minimum(sizes, width)
    table = np.zeros((len(bags), max(1, kept.max(initial=0))), dtype=np.int32)
    # rows are filled from the left, so the bags one after the other are the filled cells in their order
    table[np.arange(table.shape[1]) < kept[:, None]] = [number for bag in bags for number in bag[:width]]
    return torch.from_numpy(table), int((sizes > width).sum())

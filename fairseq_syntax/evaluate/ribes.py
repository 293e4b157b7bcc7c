"""RIBES, a metric of word order (Isozaki et al., EMNLP 2010).

    RIBES = NKT · P^α · BP^β,  α = 0.25, β = 0.10

Words of the hypothesis are aligned with words of the reference. NKT is the share of pairs of aligned words that are in
the same order in both (Kendall's tau, scaled to 0..1), P the share of aligned words, and BP the sentence's brevity
penalty as in BLEU. The score of a corpus is the mean over sentences.

The alignment is that of the authors' program, version 1.03: an ambiguous word is identified by more and more of its
context, on the left first. (The paper looks right first; in its longest example, 21 of 55 pairs are in order, here 17.)
NLTK's RIBES (3.10.4) looks right first, skips the longest contexts on the left, and gives 0 to a correct translation of
one word; before 3.10.4 it only counted runs of adjacent words as ordered.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np

ALPHA = 0.25
BETA = 0.10


def align(hypothesis: Sequence[str], reference: Sequence[str]) -> list[int]:
    """The positions in the reference of the words of the hypothesis, 0-based; unaligned words are left out.

    A word is aligned by the first n-gram that occurs exactly once in both sentences: the word alone, with the word
    before it, with the word after it, with two words before it, and so on. Two words may have the same position.

    (the dog saw the cat, the cat saw the dog) -> 3, 4, 2, 3, 1
    """

    @cache
    def in_both(order: int) -> dict[tuple[str, ...], int]:
        hyp_ngrams, ref_ngrams = _unique_ngrams(hypothesis, order), _unique_ngrams(reference, order)
        return {ngram: ref_ngrams[ngram] for ngram in hyp_ngrams if ngram in ref_ngrams}

    vocabulary = set(reference)
    longest = min(len(hypothesis), len(reference))
    places = []
    for i, word in enumerate(hypothesis):
        for more in range(longest if word in vocabulary else 0):
            ngrams = in_both(more + 1)
            left = ngrams.get(tuple(hypothesis[i - more : i + 1])) if more <= i else None
            if left is not None:
                places.append(left + more)
                break
            right = ngrams.get(tuple(hypothesis[i : i + more + 1]))
            if right is not None:
                places.append(right)
                break
    return places


def _unique_ngrams(words: Sequence[str], order: int) -> dict[tuple[str, ...], int]:
    """The starts of the n-grams that occur exactly once."""
    starts: dict[tuple[str, ...], int | None] = {}
    for i in range(len(words) - order + 1):
        ngram = tuple(words[i : i + order])
        starts[ngram] = None if ngram in starts else i
    return {ngram: start for ngram, start in starts.items() if start is not None}


def sentence_ribes(hypothesis: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """The RIBES score of a sentence, 0 to 1, with the best of its references.

    With fewer than two aligned words, which have no order, the score is 0, unless a reference of one word is in the
    hypothesis. Lower-case the words first, as the authors' program does.
    """
    return max(_against(hypothesis, reference) for reference in references)


def _against(hypothesis: Sequence[str], reference: Sequence[str]) -> float:
    places = np.array(align(hypothesis, reference))
    aligned = len(places)
    if aligned < 2:
        in_order = float(aligned == len(reference) == 1)
    else:
        ascending = np.triu(places[:, None] < places[None, :], k=1).sum()
        in_order = ascending / (aligned * (aligned - 1) / 2)
    if not in_order:
        return 0.0
    precision = aligned / len(hypothesis)
    brevity = min(1.0, np.exp(1 - len(reference) / len(hypothesis)))
    return float(in_order * precision**ALPHA * brevity**BETA)

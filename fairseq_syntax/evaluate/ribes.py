"""RIBES: whether a translation has its words in the order of the reference (Isozaki et al., EMNLP 2010).

    RIBES = NKT · P^α · BP^β,  α = 0.25, β = 0.10

Words of the hypothesis are aligned with words of the reference; NKT is the share of pairs of aligned words that stand
in the same order in both (Kendall's tau, scaled to 0..1), P the share of words that are aligned, BP the brevity penalty
of BLEU for the one sentence. The score of a corpus is the mean over sentences.

The alignment is that of the authors' program, version 1.03: a word that is ambiguous is told by more and more of its
context, on the left first. (The paper looks right first; its longest example has 21 of 55 pairs in order, here 17.)
NLTK's RIBES (3.10.4) is close to it, but looks right first, passes over the longest contexts on the left, and gives a
right translation of one word 0; before 3.10.4 it counted only runs of adjacent words as ordered.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np

ALPHA = 0.25
BETA = 0.10


def align(hypothesis: Sequence[str], reference: Sequence[str]) -> list[int]:
    """Places in the reference of the words of the hypothesis that can be told.

    A word is told by the first n-gram that occurs exactly once in both sentences: the word alone, with the word before
    it, with the word after it, with two words before it, and so on. Words that none tells are left out.

    (the dog saw the cat, the cat saw the dog) -> 3, 4, 2, 3, 1

    Args:
        hypothesis: J words.
        reference: K words.

    Returns:
        At most J numbers, 0-based, in the order of the hypothesis; one may come twice.
    """

    @cache
    def in_both(order: int) -> dict[tuple[str, ...], int]:
        of_hypothesis, of_reference = _unique_ngrams(hypothesis, order), _unique_ngrams(reference, order)
        return {ngram: of_reference[ngram] for ngram in of_hypothesis if ngram in of_reference}

    known = set(reference)
    longest = min(len(hypothesis), len(reference))
    places = []
    for i, word in enumerate(hypothesis):
        for more in range(longest if word in known else 0):
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
    """Where the n-grams begin that occur once."""
    starts: dict[tuple[str, ...], int | None] = {}
    for i in range(len(words) - order + 1):
        ngram = tuple(words[i : i + order])
        starts[ngram] = None if ngram in starts else i
    return {ngram: start for ngram, start in starts.items() if start is not None}


def sentence_ribes(hypothesis: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """RIBES of a sentence, 0 to 1: the best over its references.

    Fewer than two aligned words have no order: the score is 0, unless a reference of one word is in the hypothesis.
    Letters count as they are; lower-case them first, as the authors' program does.

    Args:
        hypothesis: words.
        references: words of each reference.
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

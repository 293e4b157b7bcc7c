"""RIBES: values by hand, and the definition written out."""

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_syntax.evaluate.ribes import align, sentence_ribes

WORDS = st.lists(st.sampled_from("abcde"), max_size=8)


def occurrences(part, words):
    return [i for i in range(len(words)) if list(words[i : i + len(part)]) == list(part)]


def aligned_by_definition(hypothesis, reference):
    """Every n-gram around every word in the order in which it may tell the word, one by one."""
    found = []
    for i, word in enumerate(hypothesis):
        if word not in reference:
            continue
        spans = [(i, i)]
        for size in range(1, len(hypothesis)):
            spans += [(i - size, i), (i, i + size)]
        for first, last in spans:
            if first < 0 or last >= len(hypothesis):
                continue
            ngram = hypothesis[first : last + 1]
            there = occurrences(ngram, reference)
            if len(there) == 1 and len(occurrences(ngram, hypothesis)) == 1:
                found.append(there[0] + i - first)
                break
    return found


def by_definition(hypothesis, reference):
    places = aligned_by_definition(hypothesis, reference)
    if not places or (len(places) == 1 and len(reference) > 1):
        return 0.0
    pairs = list(combinations(places, 2))
    order = sum(a < b for a, b in pairs) / len(pairs) if pairs else 1.0
    penalty = min(1.0, math.exp(1 - len(reference) / len(hypothesis)))
    return order * (len(places) / len(hypothesis)) ** 0.25 * penalty**0.10


@pytest.mark.parametrize(
    ("reference", "hypothesis", "expected"),
    [
        ("a b c d", "a c b d", 5 / 6),
        ("a b c d", "d c b a", 0.0),
        ("a b c d", "a b", math.exp(1 - 4 / 2) ** 0.1),
        ("a b", "a b c d", (2 / 4) ** 0.25),  # too long: precision alone
        ("the cat saw the dog", "the dog saw the cat", 2 / 10),  # 3 4 2 3 1
        ("x a y a z", "x a z", math.exp(1 - 5 / 3) ** 0.1),  # a is told by x before it
        # examples of Isozaki et al. 2010; of the first, see below
        (
            "he was interested in world history because he read the book",
            "he read the book because he was interested in world history",
            17 / 55,
        ),
        ("the boy read the book", "the book was read by the boy", 2 / 10 * (5 / 7) ** 0.25),  # 3 4 2 0 1
        ("yes", "yes sir", 0.5**0.25),
        ("yes sir", "yes", 0.0),  # one word has no order
        ("a a", "a a", 1.0),  # 0 1: told by each other
        ("a b", "", 0.0),
        ("", "", 0.0),
    ],
)
def test_by_hand(reference, hypothesis, expected):
    assert sentence_ribes(hypothesis.split(), [reference.split()]) == pytest.approx(expected, abs=1e-9)


@given(WORDS, WORDS)
def test_definition(hypothesis, reference):
    assert align(hypothesis, reference) == aligned_by_definition(hypothesis, reference)
    assert sentence_ribes(hypothesis, [reference]) == pytest.approx(by_definition(hypothesis, reference))


@given(WORDS, st.lists(WORDS, min_size=1, max_size=3))
def test_best_reference_counts(hypothesis, references):
    expected = max(sentence_ribes(hypothesis, [reference]) for reference in references)
    assert sentence_ribes(hypothesis, references) == expected
    assert 0 <= expected <= 1


def test_letter_case_counts():
    assert sentence_ribes(["A", "b"], [["a", "b"]]) == 0.0

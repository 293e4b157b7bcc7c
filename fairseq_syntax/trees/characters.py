"""Text as a sequence of characters: separated by spaces, with a visible sign for the space itself."""

from collections.abc import Sequence
from enum import StrEnum
from itertools import groupby, pairwise

SPACE = "▁"
SPACE_IN_TEXT = "_"  # replaces the sign if a text contains it


class Dedup(StrEnum):
    """Which repeated bigrams are removed from a translation."""

    none = "none"
    adjacent = "adjacent"  # directly after the same bigram: a b a b -> a b
    seen = "seen"  # anywhere after the same bigram


def to_characters(line: str) -> str:
    """`Eine  Gruppe` -> `E i n e ▁ G r u p p e`.

    Runs of whitespace of any kind count as one space, and those at the ends are dropped, because fairseq splits at all
    of them. A `▁` in the text becomes `_`.
    """
    return " ".join(SPACE.join(line.replace(SPACE, SPACE_IN_TEXT).split()))


def to_text(line: str) -> str:
    """`E i n e ▁ G r u p p e` -> `Eine Gruppe`; repeated and trailing spaces, which a model may write, are dropped."""
    return " ".join(line.replace(" ", "").replace(SPACE, " ").split())


def without_repeats(words: Sequence[str], rule: str) -> list[int]:
    """Indices of the words that remain when repeated bigrams are removed by a rule, a `Dedup`.

    Words are read from left to right. The last two kept words are dropped if the rule finds the same bigram among the
    kept words before them. Bradbury & Socher (2017, Sec. 3) report BLEU "after removing repeated bigrams"; they give
    no rule.
    """
    kept: list[int] = []
    for index in range(len(words)):
        kept.append(index)
        *before, first, second = [words[i] for i in kept] if len(kept) > 3 else [None, None]
        if rule == Dedup.adjacent:
            before = before[-2:]
        if rule != Dedup.none and (first, second) in pairwise(before):
            del kept[-2:]
    return kept


def remove_repeats(text: str, rule: str) -> str:
    """A text without its repeated bigrams (see `without_repeats`)."""
    words = text.split()
    return " ".join(words[i] for i in without_repeats(words, rule))


def symbols_without_repeats(symbols: Sequence[str], rule: str) -> list[int]:
    """Indices of the symbols that remain when `without_repeats` is applied to words separated by `SPACE`."""
    if rule == Dedup.none:
        return list(range(len(symbols)))
    runs = [list(run) for _, run in groupby(range(len(symbols)), key=lambda i: symbols[i] == SPACE)]
    runs = [run for run in runs if symbols[run[0]] != SPACE]
    ends = [run[-1] + 1 for run in runs]
    words = ["".join(symbols[i] for i in run) for run in runs]
    kept = without_repeats(words, rule)
    # a word is dropped together with the spaces before it; spaces after the last word always stay
    ends = [0, *ends]
    return [i for word in kept for i in range(ends[word], ends[word + 1])] + list(range(ends[-1], len(symbols)))

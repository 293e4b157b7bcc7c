"""Text as characters, for models that read and write no words: separated by spaces, the space itself a visible sign."""

from collections.abc import Sequence
from enum import StrEnum
from itertools import groupby, pairwise

SPACE = "▁"
SPACE_IN_TEXT = "_"  # what stands for the sign where a text has it


class Dedup(StrEnum):
    """Which repeated pairs of words are removed from a translation."""

    none = "none"
    adjacent = "adjacent"  # those right behind the same pair: a b a b -> a b
    seen = "seen"  # those that stand anywhere before


def to_characters(line: str) -> str:
    """`Eine  Gruppe` -> `E i n e ▁ G r u p p e`.

    Whitespace of every kind and length becomes one space first, and none is left at the ends: fairseq splits at every
    kind, and would lose characters that it takes for blanks. A `▁` of the text becomes `_`.
    """
    return " ".join(SPACE.join(line.replace(SPACE, SPACE_IN_TEXT).split()))


def to_text(line: str) -> str:
    """`E i n e ▁ G r u p p e` -> `Eine Gruppe`.

    Symbols of several letters, such as that of an unknown character, stay whole. Spaces are as `to_characters` leaves
    them, whatever a model has written.
    """
    return " ".join(line.replace(" ", "").replace(SPACE, " ").split())


def without_repeats(words: Sequence[str], rule: str) -> list[int]:
    """Places of the words that are left when repeated pairs of words are removed, and pairs that this makes repeated.

    From left to right, the last two of the words kept so far go when the rule, a `Dedup`, finds the same two among
    those before them (Bradbury & Socher 2017, Sec. 3, report BLEU "after removing repeated bigrams"; the rules are
    ours).
    """
    kept: list[int] = []
    for place in range(len(words)):
        kept.append(place)
        *before, first, second = [words[i] for i in kept] if len(kept) > 3 else [None, None]
        if rule == Dedup.adjacent:
            before = before[-2:]
        if rule != Dedup.none and (first, second) in pairwise(before):
            del kept[-2:]
    return kept


def remove_repeats(text: str, rule: str) -> str:
    """A text without the repeated pairs of words (see `without_repeats`)."""
    words = text.split()
    return " ".join(words[i] for i in without_repeats(words, rule))


def symbols_without_repeats(symbols: Sequence[str], rule: str) -> list[int]:
    """The same for symbols, with `SPACE` between words: places of those that stay, and of the spaces between them."""
    if rule == Dedup.none:
        return list(range(len(symbols)))
    runs = [list(run) for _, run in groupby(range(len(symbols)), key=lambda i: symbols[i] == SPACE)]
    runs = [run for run in runs if symbols[run[0]] != SPACE]
    ends = [run[-1] + 1 for run in runs]
    words = ["".join(symbols[i] for i in run) for run in runs]
    kept = without_repeats(words, rule)
    # a word goes with the spaces before it; those behind the last word are nobody's
    ends = [0, *ends]
    return [i for word in kept for i in range(ends[word], ends[word + 1])] + list(range(ends[-1], len(symbols)))

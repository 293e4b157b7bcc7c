"""Text as a sequence of characters: separated by spaces, with a visible sign for the space itself."""

from enum import StrEnum
from itertools import pairwise

from .subwords import SPACE

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


def remove_repeats(text: str, rule: str) -> str:
    """A text without its repeated bigrams of words, as a rule, a `Dedup`, finds them.

    Words are read from left to right. The last two kept words are dropped if the rule finds the same bigram among the
    kept words before them. Bradbury & Socher (2017, Sec. 3) report BLEU "after removing repeated bigrams"; they give
    no rule.
    """
    kept: list[str] = []
    for word in text.split():
        kept.append(word)
        before = kept[-4:-2] if rule == Dedup.adjacent else kept[:-2]
        if rule != Dedup.none and kept[-2:] in map(list, pairwise(before)):
            del kept[-2:]
    return " ".join(kept)

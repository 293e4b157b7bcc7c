"""How hard the source of a sentence is to translate, as far as its tree tells: one number a sentence."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..trees.conllu import ROOT, Sentence, parse_block, read_blocks
from ..trees.text import open_text, quoted
from .generated import check_count
from .number_pairs import is_plural

_NOUNS = ("NOUN", "PROPN")
_RELATIVE = ("who", "which", "that")
_CONFIDENCE = ("confidence", "score", "prob")


@dataclass
class Parse:
    """The tree of a sentence, and what a CoNLL-U file says besides.

    Attributes:
        sentence: the tree.
        features: FEATS of each word, `_` where unknown.
        confidence: of the parser: of the sentence, or the mean of its words; NaN where it is not known.
    """

    sentence: Sentence
    features: list[str]
    confidence: float = float("nan")


def read_parses(path: str | Path, numbers: Sequence[int], sources: Sequence[str] | None) -> list[Parse]:
    """The trees of some sentences of a CoNLL-U file.

    Number is read from FEATS (`Number=Plur`), confidence from a comment `# confidence = 0.9`, or from `Confidence=0.9`
    of the words in MISC; `score` and `prob` are other names of it.

    Args:
        path: of the file, plain or .gz.
        numbers: of N sentences, from 0.
        sources: their N texts, of which the words must be those of the trees; None does without.

    Raises:
        ValueError: there are other than one tree for each sentence, or of other words; see also `parse_block`.
    """
    with open_text(path) as lines:
        blocks = list(read_blocks(lines, str(path)))
    check_count(len(blocks), numbers, str(path), "trees", "give each one")
    parses = []
    for place, number in enumerate(numbers):
        line, block = blocks[number]
        sentence = parse_block(block, str(path), line)
        if sources is not None:
            check_words(sentence, sources[place].split(), f"{path}:{line}: sentence {number + 1}")
        parses.append(Parse(sentence, [columns[5] for columns in _rows(block)], _confidence(block)))
    return parses


def check_words(sentence: Sentence, words: list[str], place: str) -> None:
    """Raise ValueError if the words of a tree are not those of the source; unknown ones (<unk>) may be any."""
    for forms in (sentence.forms, sentence.collapse_ranges().forms):
        pairs = zip(words, forms, strict=False)
        same = all(word.lower() == form.lower() or "<unk>" in word + form for word, form in pairs)
        if same and len(words) == len(forms):
            return
    if "<unk>" in "".join(words) and len(words) < len(sentence):
        return  # in the output of fairseq, an unknown piece of sentencepiece sticks to the word before it
    raise ValueError(
        f"{place} is {quoted(' '.join(sentence.forms))} in the tree, but {quoted(' '.join(words))} in the source; give "
        "the trees of the source, and see --remove-bpe"
    )


def _rows(block: Iterable[str]) -> list[list[str]]:
    rows = (line.split("\t") for line in block if line[0] != "#")
    return [columns for columns in rows if columns[0].isdecimal()]


def _confidence(block: list[str]) -> float:
    fields = (line[1:].partition("=") for line in block if line[0] == "#")
    found = [_number(value) for name, _, value in fields if name.strip().lower() in _CONFIDENCE]
    if not found:
        fields = (part.partition("=") for columns in _rows(block) for part in columns[9].split("|"))
        found = [_number(value) for name, _, value in fields if name.lower() in _CONFIDENCE]
    return float(np.mean(found)) if found else float("nan")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


# --- measures of one tree -----------------------------------------------------------------------------------------


def depth(parse: Parse) -> int:
    """Words on the longest way down from a root."""
    return max(parse.sentence.depths(), default=0)


def dependency_lengths(parse: Parse) -> list[int]:
    """Words from each word to its head; roots and punctuation, which hangs anywhere, are left out."""
    sentence = parse.sentence
    return [
        abs(head - word)
        for word, (head, deprel) in enumerate(zip(sentence.heads, sentence.deprels, strict=True))
        if head != ROOT and deprel.split(":")[0] != "punct"
    ]


def longest_dependency(parse: Parse) -> int:
    """The longest of `dependency_lengths`, 0 of none."""
    return max(dependency_lengths(parse), default=0)


def mean_dependency(parse: Parse) -> float:
    """The mean of `dependency_lengths` (Liu 2008), NaN of none."""
    return float(np.mean(dependency_lengths(parse) or np.nan))


def crossings(parse: Parse) -> int:
    """Pairs of arcs that cross, 0 of a projective tree; the arc to the root word comes from before the sentence."""
    heads = np.array(parse.sentence.heads, dtype=np.int64)
    words = np.arange(len(heads))
    left, right = np.minimum(heads, words), np.maximum(heads, words)
    inside = (left[:, None] < left) & (left < right[:, None]) & (right[:, None] < right)
    return int(inside.sum())


def has_relation(parse: Parse, relation: str) -> int:
    """1 if a word has this label, or a subtype of it (`acl` is also `acl:relcl`); else 0."""
    return int(any(deprel == relation or deprel.startswith(f"{relation}:") for deprel in parse.sentence.deprels))


def attractors(parse: Parse) -> float:
    """Nouns between a subject and its verb that have another number than the subject (Linzen et al. 2016).

    The verb is the first auxiliary or copula, if there is one; instead of a relative pronoun (PronType Rel, or who,
    which, that) stands the noun that it is about. Of several pairs the one with most counts; NaN without one. Number is
    that of FEATS, or, in a sentence without, read off English words.
    """
    counts = [attractors_between(parse, *pair) for pair in subjects_and_verbs(parse)]
    known = [count for count in counts if count is not None]
    return max(known, default=float("nan"))


def subjects_and_verbs(parse: Parse) -> list[tuple[int, int]]:
    """Pairs of (subject, verb), 0-based positions; see `attractors`."""
    sentence, pairs = parse.sentence, []
    for word, (head, deprel) in enumerate(zip(sentence.heads, sentence.deprels, strict=True)):
        if deprel.split(":")[0] != "nsubj" or head < 0:
            continue
        helpers = [
            i
            for i, (above, label) in enumerate(zip(sentence.heads, sentence.deprels, strict=True))
            if above == head and label.split(":")[0] in ("aux", "cop")
        ]
        relative = "Rel" in _values(parse.features[word], "PronType") or sentence.forms[word].lower() in _RELATIVE
        relative = relative and sentence.deprels[head] == "acl:relcl" and sentence.heads[head] >= 0
        pairs.append((sentence.heads[head] if relative else word, min(helpers, default=head)))
    return pairs


def _values(features: str, name: str) -> tuple[str, ...]:
    """What FEATS says of one feature; several where it cannot tell, as in `PronType=Dem,Rel`."""
    found = dict(feature.partition("=")[::2] for feature in features.split("|"))
    return tuple(found[name].split(",")) if name in found else ()


def attractors_between(parse: Parse, subject: int, verb: int) -> int | None:
    """Attractors of a pair; None if the number of the subject is not known."""
    sentence, by_form = parse.sentence, not any("Number=" in features for features in parse.features)

    def plural(word: int) -> bool | None:
        if by_form:
            return is_plural(sentence, word)
        number = _values(parse.features[word], "Number")
        return number == ("Plur",) if number in (("Plur",), ("Sing",)) else None

    of_subject = plural(subject)
    if of_subject is None:
        return None
    between = range(min(subject, verb) + 1, max(subject, verb))
    return sum(plural(word) == (not of_subject) for word in between if sentence.upos[word] in _NOUNS)

"""All trees of a sentence by an ambiguous grammar, to tell whether they have one translation.

The grammar has all that ``grammar.py`` draws, and more: a noun takes any number of phrases and relative clauses, a verb
any number of adverbs, phrases and adverbial clauses after its objects, and kinds of nouns are ignored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product

from lexicon import DETERMINER_BY_FORM, NOUN_BY_FORM, NUMBERS, PLURAL, SINGULAR, VERB_BY_FORM
from transfer import TransferError, translate
from trees import Word

# Whole, left and right part, relation of the part that is not the head: * marks the head's. # is s or p, a number.
# NP and PP: phrases; V, W: finite and other verbs by frame; P: predicate; C: one that lacks its complement clause;
# G: one that lacks its object; R: clause that lacks an object; Q: relative clause on a subject; S: clause; T: sentence.
_GRAMMAR = """
    NOUN# ADJ *NOUN# amod | NP# DET# *NOUN# det | NP# NUM# *NOUN# nummod | PP ADP *NP# case | NP# *NP# PP nmod
    NP# *NP# R acl:relcl | NP# *NP# Q# acl:relcl | Q# that *P# nsubj | R that *r obj | r NP# *G# nsubj
    W$ ADV *W$ advmod | V$# ADV *V$# advmod | V$# AUX# *W$ aux | P# *Vt# NP? obj | X# *Vd# NP? iobj | P# *X# NP? obj
    C# *C# ADV advmod | C# *C# PP obl | P# *C# THAT ccomp | THAT that *S mark | A CONJ *S mark | S NP# *P# nsubj
    P# *P# ADV advmod | P# *P# PP obl | P# *P# A advcl | G# *G# ADV advmod | G# *G# PP obl | G# *G# A advcl
    t *S . punct | T ADV *t advmod | T PP *t obl | F *A , punct | T F *t advcl
"""
_ALSO = {"r": "R", "t": "T"} | {
    a + n: b + n for n in "sp" for a, b in zip(("Vi", "Vc", "Vt", "X"), "PCGG", strict=True)
}
_NUMBERS = {SINGULAR: "s", PLURAL: "p", None: "sp"}
_RULES: dict[str, set] = defaultdict(set)
for _rule, *_values in product(_GRAMMAR.strip().replace("\n", "|").split("|"), "sp", "sp", "itdc"):
    _whole, _left, _right, _relation = _rule.translate(str.maketrans(dict(zip("#?$", _values, strict=True)))).split()
    _RULES[_left.strip("*")].add((_right.strip("*"), _whole, _relation, "*" in _right))


def trees(words: Sequence[Word]) -> Iterator[list[Word]]:
    """Every tree that the grammar has for the words, whose own heads and relations are ignored."""
    chart: dict[tuple[int, int], dict[str, list]] = {}
    for end in range(1, len(words) + 1):
        for start in reversed(range(end)):
            cell: dict[str, list] = defaultdict(list)
            if end - start == 1:
                cell |= {kind: [(start, ())] for kind in _kinds(words[start])}
            for middle in range(start + 1, end):
                left, right = chart[start, middle], chart[middle, end]
                for kind, firsts in left.items():
                    for other, whole, relation, head_is_right in _RULES[kind] if right else ():
                        for (a, of_a), (b, of_b) in product(firsts, right.get(other, ())):
                            arc = (a, b, relation) if head_is_right else (b, a, relation)
                            cell[whole].append((arc[1], (*of_a, *of_b, arc)))
            for kind in [kind for kind in cell if kind in _ALSO]:
                cell[_ALSO[kind]] += cell[kind]
            chart[start, end] = cell
    for root, arcs in chart[0, len(words)].get("T", ()):
        heads = {i: (head + 1, relation) for i, head, relation in arcs} | {root: (0, "root")}
        tree = [replace(word, head=heads[i][0], deprel=heads[i][1]) for i, word in enumerate(words)]
        that = {True: "SCONJ", False: "PRON"}  # by its relation
        yield [replace(w, upos=that[w.deprel == "mark"]) if w.form == "that" else w for w in tree]


def _kinds(word: Word) -> set[str]:
    """Categories of a word; "that" and punctuation are their own."""
    form, tag, more = word.form, word.upos, set[str]()
    if tag in ("DET", "NUM"):
        numbers = _NUMBERS[DETERMINER_BY_FORM[form].number]
    elif tag == "NOUN":
        numbers = "".join(_NUMBERS[number] for number in NUMBERS if NOUN_BY_FORM[form].english(number) == form)
    elif tag == "AUX":
        numbers = _NUMBERS[{"has": SINGULAR, "have": PLURAL}.get(form)]
    elif tag == "VERB":
        verb = VERB_BY_FORM[form]
        finite = {verb.third: "s", verb.base: "p"} | {verb.past: "sp"}
        tag, numbers = f"V{verb.frame[0]}", finite.get(form, "")
        more = {f"W{verb.frame[0]}"} if form in (verb.base, verb.participle) else set()
    else:
        return {form if form == "that" or tag == "PUNCT" else tag.replace("SCONJ", "CONJ")}
    return more | {tag + number for number in numbers}


def has_one_reading(words: Sequence[Word]) -> bool:
    """Whether all trees of the words that have a translation have the same."""
    found = set()
    for tree in trees(words):
        with suppress(TransferError):
            found.add(tuple(translate(tree)))
    return len(found) == 1

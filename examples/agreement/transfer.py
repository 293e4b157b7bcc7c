"""Translate English dependency trees of the corpus into German, by rule.

The German sentence is a function of the English tree and of nothing else: number is read off the
noun (or, for "sheep" and "fish", off its determiner), gender and case government off the lexicon,
and the order of the words off the relations. Two trees over the same words can therefore have two
translations. A prepositional phrase of the verb stands before the German object and one of the
object behind it; a relative pronoun agrees with whichever noun the clause hangs on.

Run as a script it translates any CoNLL-U file over the lexicon::

    python examples/agreement/transfer.py test.en.conllu > test.de
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from lexicon import (
    ADJECTIVE_BY_FORM,
    ADVERB_BY_FORM,
    AUXILIARIES,
    CONJUNCTIONS,
    DETERMINER_BY_FORM,
    NOUN_BY_FORM,
    PLURAL,
    PREPOSITION_BY_FORM,
    SINGULAR,
    VERB_BY_FORM,
    Determiner,
    Noun,
    Verb,
)
from trees import Word, from_conllu

# Rows are cases, columns masculine, feminine, neuter, plural.
_COLUMN = {"m": 0, "f": 1, "n": 2, PLURAL: 3}
_ENDINGS = {
    "der": {
        "nom": ("er", "e", "es", "e"),
        "acc": ("en", "e", "es", "e"),
        "dat": ("em", "er", "em", "en"),
    },
    "ein": {
        "nom": ("", "e", "", "e"),
        "acc": ("en", "e", "", "e"),
        "dat": ("em", "er", "em", "en"),
    },
}
_DEFINITE = {
    "nom": ("der", "die", "das", "die"),
    "acc": ("den", "die", "das", "die"),
    "dat": ("dem", "der", "dem", "den"),
}
_WEAK = {
    "nom": ("e", "e", "e", "en"),
    "acc": ("en", "e", "e", "en"),
    "dat": ("en", "en", "en", "en"),
}
_MIXED = {
    "nom": ("er", "e", "es", "en"),
    "acc": ("en", "e", "es", "en"),
    "dat": ("en", "en", "en", "en"),
}
# Only plurals occur without an inflecting determiner, so one ending per case is enough.
_STRONG_PLURAL = {"nom": "e", "acc": "e", "dat": "en"}
_CONTRACTIONS = {("in", "dem"): "im", ("bei", "dem"): "beim"}
_FORM_INDEX = {SINGULAR: 0, PLURAL: 1}
_RELATIONS = frozenset(
    "root det nummod amod nmod case acl:relcl nsubj obj iobj obl advmod aux mark ccomp advcl punct".split()
)


class TransferError(ValueError):
    """A tree that the rules do not cover."""


def _determiner_form(determiner: Determiner, case: str, column: int) -> str:
    if determiner.german == "d":
        return _DEFINITE[case][column]
    if determiner.paradigm == "numeral":
        return determiner.german
    paradigm = "ein" if determiner.paradigm == "ein" else "der"
    return determiner.german + _ENDINGS[paradigm][case][column]


def _adjective_ending(determiner: Determiner, case: str, column: int) -> str:
    if determiner.paradigm in ("einige", "numeral"):
        return _STRONG_PLURAL[case]
    return (_MIXED if determiner.paradigm == "ein" else _WEAK)[case][column]


def _noun_form(noun: Noun, number: str, case: str) -> str:
    if number == SINGULAR:
        return noun.german_singular if case == "nom" else noun.german_oblique
    plural = noun.german_plural
    return plural + "n" if case == "dat" and not plural.endswith(("n", "s")) else plural


def _check(words: Sequence[Word]) -> None:
    """Raise TransferError unless the words form one tree with relations that the rules know.

    Without this, words outside the tree or under unknown relations would vanish silently.
    """
    roots = [word for word in words if word.head == 0]
    if len(roots) != 1:
        raise TransferError(
            f"transfer: {len(roots)} roots; expected exactly one word with head 0; give one tree per sentence"
        )
    for word in words:
        if word.deprel not in _RELATIONS:
            raise TransferError(
                f"transfer, word {word.id}: relation {word.deprel!r}; expected one of "
                f"{', '.join(sorted(_RELATIONS))}; leave the sentence out"
            )


class Transfer:
    """The translation of one English tree; ``words`` are its words in order."""

    def __init__(self, words: Sequence[Word]) -> None:
        _check(words)
        self._words = words
        self._children: dict[int, list[Word]] = {word.id: [] for word in words}
        for word in words:
            if word.head:
                self._children[word.head].append(word)
        self.root = next(word for word in words if word.head == 0)

    def _all(self, head: Word, *relations: str) -> list[Word]:
        return [child for child in self._children[head.id] if child.deprel in relations]

    def _one(self, head: Word, relation: str) -> Word | None:
        found = self._all(head, relation)
        return found[0] if found else None

    def _look_up(self, table: dict, word: Word, what: str):
        if word.form not in table:
            raise TransferError(
                f"transfer, word {word.id}: {word.form!r} is no {what} of the lexicon; expected "
                f"one that lexicon.py lists; add it there or leave the sentence out"
            )
        return table[word.form]

    def _determiner(self, word: Word) -> Determiner:
        marker = self._one(word, "det") or self._one(word, "nummod")
        if marker is None:
            raise TransferError(
                f"transfer, word {word.id}: {word.form!r} has no determiner; expected a det or "
                "nummod dependent; give the noun one"
            )
        return self._look_up(DETERMINER_BY_FORM, marker, "determiner")

    def noun_number(self, word: Word) -> str:
        """The number of the noun ``word``: from its form, or from its determiner if that hides it.

        Raises TransferError where neither tells.
        """
        noun = self._look_up(NOUN_BY_FORM, word, "noun")
        if not noun.invariant:
            return SINGULAR if word.form == noun.singular else PLURAL
        number = self._determiner(word).number
        if number is None:
            raise TransferError(
                f"transfer, word {word.id}: the number of {word.form!r} cannot be told; expected "
                "a determiner such as this, these, a or some; change the determiner"
            )
        return number

    def subject(self, verb: Word) -> Word:
        """The noun that ``verb`` agrees with: its subject, or the head of its relative clause."""
        subject = self._one(verb, "nsubj")
        if subject is None:
            raise TransferError(
                f"transfer, word {verb.id}: {verb.form!r} has no subject; expected an nsubj "
                "dependent; give the clause one"
            )
        if subject.upos != "PRON":
            return subject
        if verb.deprel != "acl:relcl":
            raise TransferError(
                f"transfer, word {subject.id}: {subject.form!r} is the subject of a clause that "
                "is not relative; expected a noun; leave the sentence out"
            )
        return self._words[verb.head - 1]

    def _noun_phrase(self, word: Word, case: str) -> list[str]:
        noun = self._look_up(NOUN_BY_FORM, word, "noun")
        number = self.noun_number(word)
        column = _COLUMN[PLURAL if number == PLURAL else noun.gender]
        determiner = self._determiner(word)
        out = [_determiner_form(determiner, case, column)]
        for adjective in self._all(word, "amod"):
            stem = self._look_up(ADJECTIVE_BY_FORM, adjective, "adjective").german_stem
            out.append(stem + _adjective_ending(determiner, case, column))
        out.append(_noun_form(noun, number, case))
        for modifier in self._all(word, "nmod", "acl:relcl"):
            if modifier.deprel == "nmod":
                out += self._prepositional_phrase(modifier)
            else:
                out += [",", *self._relative_clause(modifier, noun, number), ","]
        return out

    def _prepositional_phrase(self, word: Word) -> list[str]:
        case_marker = self._one(word, "case")
        if case_marker is None:
            raise TransferError(
                f"transfer, word {word.id}: {word.form!r} has no preposition; expected a case "
                "dependent; give the phrase one"
            )
        preposition = self._look_up(PREPOSITION_BY_FORM, case_marker, "preposition").german
        article, *rest = self._noun_phrase(word, "dat")
        contracted = _CONTRACTIONS.get((preposition, article))
        return [contracted, *rest] if contracted else [preposition, article, *rest]

    def lemma(self, verb: Word) -> str:
        """The English base form of ``verb``."""
        return self._look_up(VERB_BY_FORM, verb, "verb").base

    def finite_forms(self, verb: Word) -> tuple[str, str]:
        """The singular and plural of the finite German verb in the clause of ``verb``."""
        entry: Verb = self._look_up(VERB_BY_FORM, verb, "verb")
        auxiliary = self._one(verb, "aux")
        if auxiliary is not None:
            forms = self._look_up(AUXILIARIES, auxiliary, "auxiliary")
            if forms.with_sein and entry.auxiliary == "sein":
                return forms.with_sein
            return forms.german
        return entry.preterite if verb.form == entry.past else entry.present

    def _verb_parts(self, verb: Word) -> tuple[str, str]:
        """The finite form, and the rest that ends the clause: a particle or a non-finite verb."""
        entry: Verb = self._look_up(VERB_BY_FORM, verb, "verb")
        finite = self.finite_forms(verb)[_FORM_INDEX[self.noun_number(self.subject(verb))]]
        auxiliary = self._one(verb, "aux")
        if auxiliary is None:
            return finite, entry.particle
        takes = AUXILIARIES[auxiliary.form].takes
        rest = entry.infinitive if takes == "infinitive" else entry.german_participle
        return finite, entry.particle + rest

    def _middle_field(self, verb: Word, without: Word | None) -> list[str]:
        """Everything between the verb's two halves but the subject: adverbs, phrases, objects."""
        entry: Verb = self._look_up(VERB_BY_FORM, verb, "verb")
        out: list[str] = []
        for adverb in self._all(verb, "advmod"):
            if adverb is not without:
                out.append(self._look_up(ADVERB_BY_FORM, adverb, "adverb").german)
        for phrase in self._all(verb, "obl"):
            if phrase is not without:
                out += self._prepositional_phrase(phrase)
        for thing in self._all(verb, "iobj"):
            out += self._noun_phrase(thing, "dat")
        for thing in self._all(verb, "obj"):
            if thing.upos != "PRON":
                out += self._noun_phrase(thing, entry.case)
        return out

    def _final_clauses(self, verb: Word, without: Word | None) -> list[str]:
        out: list[str] = []
        for clause in self._all(verb, "ccomp", "advcl"):
            if clause is not without:
                out += [",", *self._subordinate_clause(clause), ","]
        return out

    def _verb_final(self, verb: Word) -> list[str]:
        finite, rest = self._verb_parts(verb)
        if self._one(verb, "aux") is None:
            return [rest + finite]
        return [rest, finite]

    def _subordinate_clause(self, verb: Word) -> list[str]:
        marker = self._one(verb, "mark")
        if marker is None:
            raise TransferError(
                f"transfer, word {verb.id}: the clause of {verb.form!r} has no conjunction; "
                "expected a mark dependent; give the clause one"
            )
        return [
            self._look_up(CONJUNCTIONS, marker, "conjunction"),
            *self._noun_phrase(self.subject(verb), "nom"),
            *self._middle_field(verb, None),
            *self._verb_final(verb),
            *self._final_clauses(verb, None),
        ]

    def _relative_clause(self, verb: Word, antecedent: Noun, number: str) -> list[str]:
        subject = self._one(verb, "nsubj")
        subject_relative = subject is not None and subject.upos == "PRON"
        # A clause with neither "that" nor an object of its own is a reduced object relative.
        case = "nom" if subject_relative else self._look_up(VERB_BY_FORM, verb, "verb").case
        column = _COLUMN[PLURAL if number == PLURAL else antecedent.gender]
        pronoun = _DEFINITE[case][column]
        if case == "dat" and number == PLURAL:
            pronoun = "denen"
        return [
            pronoun,
            *([] if subject_relative else self._noun_phrase(self.subject(verb), "nom")),
            *self._middle_field(verb, None),
            *self._verb_final(verb),
            *self._final_clauses(verb, None),
        ]

    def translate(self) -> list[str]:
        """The German words of the sentence."""
        verb = self.root
        subject = self.subject(verb)
        early = [word for word in self._all(verb, "advmod", "obl", "advcl") if word.id < subject.id]
        # "often" between subject phrase and verb follows the subject, so `early` means fronted.
        front = early[0] if early else None
        nominative = self._noun_phrase(subject, "nom")
        finite, rest = self._verb_parts(verb)
        if front is None:
            out = [*nominative, finite]
        else:
            if front.deprel == "advmod":
                opening = [self._look_up(ADVERB_BY_FORM, front, "adverb").german]
            elif front.deprel == "obl":
                opening = self._prepositional_phrase(front)
            else:
                opening = [*self._subordinate_clause(front), ","]
            out = [*opening, finite, *nominative]
        out += self._middle_field(verb, front)
        if rest:
            out.append(rest)
        out += self._final_clauses(verb, front)
        return _settle_commas([*out, "."])


def _settle_commas(words: Sequence[str]) -> list[str]:
    """Drop commas that double each other or meet the full stop; clauses put one on either side."""
    out: list[str] = []
    for word in words:
        if out and out[-1] == "," and word in (",", "."):
            out.pop()
        out.append(word)
    return out


def translate(words: Sequence[Word]) -> list[str]:
    """The German words for one English tree. Raises TransferError for trees out of the grammar."""
    return Transfer(words).translate()


def main(arguments: Sequence[str] | None = None) -> None:
    """Translate a CoNLL-U file to standard output, one sentence a line."""
    parser = argparse.ArgumentParser(description="Translate English trees of the corpus by rule.")
    parser.add_argument("conllu", help="CoNLL-U file with English trees over the lexicon")
    options = parser.parse_args(arguments)
    number = 0
    try:
        for number, words in enumerate(from_conllu(options.conllu), start=1):  # noqa: B007
            print(" ".join(translate(words)))
    except TransferError as error:
        sys.exit(f"transfer.py: {options.conllu}, sentence {number}: {error}")
    except (ValueError, OSError) as error:
        sys.exit(f"transfer.py: {error}")


if __name__ == "__main__":
    # German needs more than ASCII, whatever the locale says.
    sys.stdout.reconfigure(encoding="utf-8")
    main()

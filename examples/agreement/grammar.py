"""Sample English sentences with their dependency trees.

The grammar draws a subject, lets it take exactly as many nouns between itself and its verb as
asked for (the attractors), and adds objects, adverbs, phrases and clauses around it. Labels follow
Universal Dependencies. All randomness comes from the generator that the caller hands over, through
``random()`` alone, the one method that Python promises to keep the same between versions.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from lexicon import (
    ADJECTIVES,
    ADVERBS,
    AMBIGUOUS_TENSES,
    ANIMATE,
    AUXILIARIES,
    CONJUNCTIONS,
    DETERMINERS,
    NOUN_BY_FORM,
    NOUNS,
    NUMBERS,
    PREPOSITIONS,
    SINGULAR,
    VERBS,
    Adverb,
    Noun,
    Verb,
)
from trees import Node, Word

Item = TypeVar("Item")

_TENSES = {
    "past": 0.42,
    "had": 0.13,
    "will": 0.13,
    "could": 0.08,
    "must": 0.07,
    "should": 0.05,
    "present": 0.08,
    "have": 0.04,
}
_MAIN_FRAMES = {"transitive": 0.55, "intransitive": 0.2, "ditransitive": 0.1, "clausal": 0.15}
_EMBEDDED_FRAMES = {"transitive": 0.6, "intransitive": 0.3, "ditransitive": 0.1}
_ADVERBIAL_CONJUNCTIONS = tuple(word for word in CONJUNCTIONS if word != "that")
# Deeper nesting makes sentences that nobody says, and passes 40 words too often.
_MAX_RELATIVE_DEPTH = 2
_ANY = ("object-relative", "pp", "subject-relative")
NESTED = {
    "phrases": (("pp",), ("pp",)),
    "relative": (_ANY[:1], ("pp",)),
    "nested": (_ANY[:1], _ANY[:1]),
    "in-object": (_ANY[:1], _ANY),
    "mixed": (_ANY[:1], _ANY),
}
"""Constructions that may be deep and have one reading: modifiers of the first noun, and of those below it."""


@dataclass(frozen=True)
class Plan:
    """What a sentence must be like.

    ``attractors`` nouns stand between subject and verb. ``subject_number`` fixes the subject's
    number, ``attractor_number`` that of every attractor (None: drawn freely). ``ambiguous`` keeps
    to English verb forms that do not show number, and puts no noun before the subject. With a
    ``construction`` of NESTED, each of the ``attractors`` modifies the noun before it, and no other
    noun has any; those of "in-object" are in the object, and ``subject_number`` is of the first one.
    """

    attractors: int
    subject_number: str | None = None
    attractor_number: str | None = None
    ambiguous: bool = False
    construction: str = ""


class Sampler:
    """Draws sentences by a plan, using ``generator`` for every choice."""

    def __init__(self, generator: random.Random) -> None:
        self._generator = generator
        self._ambiguous = self._bare = False

    def sentence(self, plan: Plan) -> Node:
        """The root verb of a new sentence that follows ``plan``."""
        self._ambiguous, self._bare = plan.ambiguous, bool(plan.construction)
        root = self._nesting_clause(plan) if self._bare else self._clause("root", _MAIN_FRAMES, plan, main=True)
        root.right.append(Node(".", "PUNCT", "punct"))
        return root

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self._generator.random() < probability

    def pick(self, items: Sequence[Item]) -> Item:
        """One of ``items``, all equally likely."""
        return items[int(self._generator.random() * len(items))]

    def weighted(self, weights: dict[Item, float]) -> Item:
        """One key of ``weights``, as likely as its weight says."""
        point = self._generator.random() * sum(weights.values())
        for item, weight in weights.items():
            point -= weight
            if point < 0:
                return item
        return item

    # Noun phrases

    def _noun(self, kinds: Sequence[str]) -> Noun:
        return self.pick([noun for noun in NOUNS if noun.kind in kinds])

    def _noun_phrase(
        self,
        deprel: str,
        noun: Noun,
        number: str,
        nouns_within: int = 0,
        inner_number: str | None = None,
        depth: int = 0,
        relatives: bool = True,
    ) -> Node:
        """A noun phrase with exactly ``nouns_within`` nouns in what modifies its head."""
        head = Node(noun.english(number), "NOUN", deprel)
        determiner = self.weighted(
            {
                determiner: determiner.weight
                for determiner in DETERMINERS
                if determiner.number == number or (determiner.number is None and not noun.invariant)
            }
        )
        numeral = determiner.upos == "NUM"
        marker = Node(determiner.english, determiner.upos, "nummod" if numeral else "det")
        head.left.append(marker)
        if self.chance(0.22):
            adjective = self.pick([word for word in ADJECTIVES if noun.kind in word.kinds])
            head.left.append(Node(adjective.english, "ADJ", "amod"))
        following = head.left[1].form if len(head.left) > 1 else head.form
        if marker.form == "a" and following[0] in "aeiou":
            marker.form = "an"
        if not self._bare:
            self._modify(head, noun, number, nouns_within, inner_number, depth, relatives)
        return head

    def _nesting_clause(self, plan: Plan) -> Node:
        """A main clause of bare nouns, but for the one that the plan's construction modifies.

        One without attractors may have many adverbial clauses, which make it as long as deep ones.
        """
        plan = replace(plan, subject_number=plan.subject_number or self.pick(NUMBERS))
        numbers = [plan.attractor_number] * plan.attractors
        if plan.construction == "in-object":
            numbers[:1] = [plan.subject_number] * bool(numbers)
            root = self._clause("root", {"transitive": 1.0}, replace(plan, subject_number=None), main=True)
        else:
            root = self._clause("root", _MAIN_FRAMES, plan, main=True)
        relation = "obj" if plan.construction == "in-object" else "nsubj"
        self._nest(next(node for node in root.left + root.right if node.deprel == relation), plan, numbers)
        while not numbers and self.chance(0.5):
            root.right.append(self._embedded("advcl", self.pick(_ADVERBIAL_CONJUNCTIONS)))
        return root

    def _nest(self, head: Node, plan: Plan, numbers: Sequence[str | None]) -> None:
        """Hang a modifier on ``head``, another on the noun of that, and so on: nouns of ``numbers``."""
        (kinds, below), number = NESTED[plan.construction], plan.subject_number
        for left, inner_number in zip(reversed(range(len(numbers))), numbers, strict=True):
            kind = self.pick([kind for kind in kinds if not left or kind != "subject-relative"])
            noun, inner_number = NOUN_BY_FORM[head.form], inner_number or self.pick(NUMBERS)
            if kind == "pp":
                node = inner = self._phrase("nmod", number=inner_number)
                below = ("pp",)
            elif kind == "subject-relative":
                node = inner = self._subject_relative(noun, number, 1, inner_number, depth=1)
            else:
                node = self._relative(noun, number, 1, inner_number, depth=1, on_subject=False)
                inner = next(child for child in node.left if child.upos == "NOUN")
            head.right.append(node)
            head, number, kinds = inner, inner_number, below

    def _modify(
        self,
        head: Node,
        noun: Noun,
        number: str,
        nouns_within: int,
        inner_number: str | None,
        depth: int,
        relatives: bool,
    ) -> None:
        relatives = relatives and depth < _MAX_RELATIVE_DEPTH
        if nouns_within == 0:
            if relatives and noun.kind in ANIMATE and self.chance(0.07):
                head.right.append(self._relative(noun, number, 0, inner_number, depth + 1))
            return
        remaining, phrases = nouns_within, 0
        while remaining:
            if relatives and self.chance(0.45):
                head.right.append(self._relative(noun, number, remaining, inner_number, depth + 1))
                return
            # A third phrase on one noun, or one after a relative clause within the first, leaves
            # readers guessing what it belongs to: the last phrase takes all that remains.
            share = remaining if phrases else 1 + int(self._generator.random() * remaining)
            head.right.append(
                self._phrase(
                    "nmod",
                    share - 1,
                    inner_number,
                    depth,
                    relatives=relatives and share == remaining,
                )
            )
            remaining -= share
            phrases += 1

    def _phrase(
        self,
        deprel: str,
        nouns_within: int = 0,
        number: str | None = None,
        depth: int = 0,
        relatives: bool = False,
    ) -> Node:
        preposition = self.pick(PREPOSITIONS)
        phrase = self._noun_phrase(
            deprel,
            self._noun(preposition.kinds),
            number or self.pick(NUMBERS),
            nouns_within,
            number,
            depth,
            relatives,
        )
        phrase.left.insert(0, Node(preposition.english, "ADP", "case"))
        return phrase

    # Verbs

    def _verb(self, frames: Sequence[str], subject: str | None = None, thing: str | None = None) -> Verb | None:
        """A verb of one of ``frames`` for a subject and an object of those kinds, if any fits."""
        fitting = [
            verb
            for verb in VERBS
            if verb.frame in frames
            and (subject is None or subject in verb.subjects)
            and (thing is None or thing in verb.objects)
        ]
        return self.pick(fitting) if fitting else None

    def _verb_node(self, deprel: str, verb: Verb, subject_number: str, adverb: Adverb | None = None) -> Node:
        """The verb with its auxiliary, if any, in a tense that the adverb goes with."""
        tenses = {
            tense: weight
            for tense, weight in _TENSES.items()
            if (not self._ambiguous or tense in AMBIGUOUS_TENSES)
            and (adverb is None or adverb.tenses is None or tense in adverb.tenses)
        }
        tense = self.weighted(tenses)
        if tense == "past":
            return Node(verb.past, "VERB", deprel)
        if tense == "present":
            return Node(verb.third if subject_number == SINGULAR else verb.base, "VERB", deprel)
        auxiliary = "has" if tense == "have" and subject_number == SINGULAR else tense
        takes = AUXILIARIES[auxiliary].takes
        node = Node(verb.base if takes == "infinitive" else verb.participle, "VERB", deprel)
        node.left.append(Node(auxiliary, "AUX", "aux"))
        return node

    # Clauses

    def _relative(
        self,
        noun: Noun,
        number: str,
        nouns_within: int,
        inner_number: str | None,
        depth: int,
        on_subject: bool | None = None,
    ) -> Node:
        """A relative clause on ``noun`` that holds exactly ``nouns_within`` nouns."""
        if on_subject is None:
            on_subject = noun.kind in ANIMATE and (nouns_within == 0 or self.chance(0.5))
        if on_subject:
            return self._subject_relative(noun, number, nouns_within, inner_number, depth)
        verb = self._verb(("transitive",), thing=noun.kind)
        subject_number = inner_number or self.pick(NUMBERS)
        # No relative clause inside: that would embed one clause in the centre of another.
        subject = self._noun_phrase(
            "nsubj",
            self._noun(verb.subjects),
            subject_number,
            nouns_within - 1,
            inner_number,
            depth,
            relatives=False,
        )
        node = self._verb_node("acl:relcl", verb, subject_number)
        pronoun = [] if self.chance(0.15) else [Node("that", "PRON", "obj")]
        node.left[:0] = [*pronoun, subject]
        return node

    def _subject_relative(
        self,
        noun: Noun,
        number: str,
        nouns_within: int,
        inner_number: str | None,
        depth: int,
    ) -> Node:
        frames = {"transitive": 0.6, "intransitive": 0.3}
        if nouns_within == 0:
            frames = {"intransitive": 1.0}
        elif nouns_within > 1:
            frames["ditransitive"] = 0.15
        verb = self._verb((self.weighted(frames),), subject=noun.kind)
        node = self._verb_node("acl:relcl", verb, number)
        node.left.insert(0, Node("that", "PRON", "nsubj"))
        if verb.frame == "intransitive":
            if nouns_within:
                node.right.append(self._phrase("obl", nouns_within - 1, inner_number, depth, relatives=True))
            return node
        within = nouns_within - 1
        if verb.frame == "ditransitive":
            within -= 1
            node.right.append(self._object("iobj", ANIMATE, 0, inner_number, depth, False))
        node.right.append(self._object("obj", verb.objects, within, inner_number, depth, True))
        return node

    def _object(
        self,
        deprel: str,
        kinds: Sequence[str],
        nouns_within: int,
        number: str | None,
        depth: int,
        relatives: bool,
    ) -> Node:
        return self._noun_phrase(
            deprel,
            self._noun(kinds),
            number or self.pick(NUMBERS),
            nouns_within,
            number,
            depth,
            relatives,
        )

    def _clause(self, deprel: str, frames: dict[str, float], plan: Plan, main: bool = False) -> Node:
        """A full clause with a subject; only a main clause may front something."""
        noun = self._noun(ANIMATE)
        verb = None
        while verb is None:
            verb = self._verb((self.weighted(frames),), subject=noun.kind)
        number = plan.subject_number or self.pick(NUMBERS)
        subject = self._noun_phrase("nsubj", noun, number, plan.attractors, plan.attractor_number, relatives=True)
        adverb = self.pick(ADVERBS) if self.chance(0.4 if main else 0.15) else None
        node = self._verb_node(deprel, verb, number, adverb)
        node.left.insert(0, subject)
        self._add_objects(node, verb, main)

        # At most one thing stands before the subject, since German has one place for it.
        front_free = main
        if adverb is not None:
            places = [place for place in adverb.positions if place != "front" or main]
            front_free = self._place_adverb(node, adverb, self.pick(places)) and front_free
        if self.chance(0.45 if verb.frame == "intransitive" else 0.18):
            phrase = self._phrase("obl", number=None)
            if front_free and not self._ambiguous and self.chance(0.4):
                node.left.insert(0, phrase)
                front_free = False
            else:
                node.right.append(phrase)
        if verb.frame == "clausal":
            node.right.append(self._embedded("ccomp", "that"))
        elif main and self.chance(0.18):
            clause = self._embedded("advcl", self.pick(_ADVERBIAL_CONJUNCTIONS))
            if front_free and not self._ambiguous and self.chance(0.5):
                clause.right.append(Node(",", "PUNCT", "punct"))
                node.left.insert(0, clause)
            else:
                node.right.append(clause)
        return node

    def _add_objects(self, node: Node, verb: Verb, main: bool) -> None:
        sizes = {0: 0.7, 1: 0.24, 2: 0.06} if main else {0: 0.85, 1: 0.15}
        if verb.frame == "ditransitive":
            node.right.append(self._object("iobj", ANIMATE, 0, None, 0, False))
            node.right.append(self._object("obj", verb.objects, 0, None, 0, False))
        elif verb.frame == "transitive":
            within = self.weighted(sizes)
            node.right.append(self._object("obj", verb.objects, within, None, 0, True))

    def _place_adverb(self, node: Node, adverb: Adverb, place: str) -> bool:
        """Put the adverb into the clause; False if it took the place before the subject."""
        word = Node(adverb.english, "ADV", "advmod")
        if place == "front":
            node.left.insert(0, word)
            return False
        if place == "mid":
            node.left.append(word)
        else:
            node.right.append(word)
        return True

    def _embedded(self, deprel: str, conjunction: str) -> Node:
        attractors = self.weighted({0: 0.7, 1: 0.25, 2: 0.05})
        clause = self._clause(deprel, _EMBEDDED_FRAMES, Plan(attractors))
        clause.left.insert(0, Node(conjunction, "SCONJ", "mark"))
        return clause


# Reading trees back


def subject_and_verb(words: Sequence[Word], verb: Word | None = None) -> tuple[Word, Word]:
    """The subject noun of a clause, the main one unless ``verb`` is given, and its finite verb or auxiliary."""
    root = verb or next(word for word in words if word.head == 0)
    subject = next(word for word in words if word.head == root.id and word.deprel == "nsubj")
    auxiliaries = [word for word in words if word.head == root.id and word.deprel == "aux"]
    return subject, auxiliaries[0] if auxiliaries else root


def attractors(words: Sequence[Word], verb: Word | None = None) -> list[Word]:
    """The nouns between the subject noun of such a clause and its finite verb, in order."""
    subject, verb = subject_and_verb(words, verb)
    return [word for word in words if subject.id < word.id < verb.id and word.upos == "NOUN"]


def construction(words: Sequence[Word]) -> str:
    """What stands between subject noun and verb, as a name.

    ``none``, ``pp``, ``subject-relative``, ``object-relative`` or ``mixed`` (several of them),
    with ``fronted-`` before it where something precedes the subject phrase.
    """
    subject, verb = subject_and_verb(words)
    found = set()
    for word in words:
        if not subject.id < word.id < verb.id:
            continue
        if word.deprel == "nmod":
            found.add("pp")
        elif word.deprel == "acl:relcl":
            pronoun_subject = any(
                other.head == word.id and other.deprel == "nsubj" and other.upos == "PRON" for other in words
            )
            found.add("subject-relative" if pronoun_subject else "object-relative")
    name = "mixed" if len(found) > 1 else next(iter(found), "none")
    root = next(word for word in words if word.head == 0)
    fronted = any(
        word.head == root.id and word.deprel in ("advmod", "obl", "advcl") and word.id < subject.id for word in words
    )
    return "fronted-" + name if fronted else name

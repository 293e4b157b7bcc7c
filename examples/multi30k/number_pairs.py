"""Minimal pairs of English number: is/are, was/were, this/these, with the number that the parse says.

Of a sentence and its tree, every such word whose subject, or noun, has the number of the word itself makes a pair: in
the wrong member it has the other one. Where the parse says another number than the word ("a group of men are"), or
none, nothing is made. With universal parts of speech alone, the number of a noun is read off its form.
"""

from collections.abc import Iterator
from typing import NamedTuple

from fairseq_syntax.trees.conllu import Sentence

_VERBS = {"is": "are", "are": "is", "was": "were", "were": "was"}
_DETERMINERS = {"this": "these", "these": "this"}
_PLURAL_FORMS = {"are", "were", "these"}
_PLURALS = set(
    "men women children people feet teeth mice geese firemen policemen fishermen gentlemen businessmen workmen "
    "snowmen salesmen cattle police they these those we both many others several few".split()
)
_SINGULARS = set(
    "glass grass dress bus gas lens canvas christmas tennis news series species mathematics gymnastics athletics texas "
    "chess mess boss bass class cross circus cactus octopus campus chorus virus focus harness princess fitness "
    "business wilderness darkness mattress actress waitress hostess goddess compass brass moss press process access "
    "address success stress express he she it this that one someone somebody everyone everybody nobody nothing "
    "something everything anyone each another".split()
)
_ANY_NUMBER = set("you who which what sheep fish deer some all none any most half rest lot couple pair number".split())


class NumberPair(NamedTuple):
    """A word whose number is wrong in the other member.

    Attributes:
        word: its position, 0-based.
        other: the wrong form.
        kind: `is/are`, `was/were` or `this/these`.
        distance: words from the noun or subject to it, either way.
        attractors: nouns between, of the other number.
    """

    word: int
    other: str
    kind: str
    distance: int
    attractors: int


def number_pairs(sentence: Sentence) -> Iterator[NumberPair]:
    """The pairs of a sentence with a tree, lower-case or not."""
    forms = [form.lower() for form in sentence.forms]
    for word, form in enumerate(forms):
        if form in _VERBS and sentence.upos[word] in ("AUX", "VERB"):
            noun, other = _subject(sentence, word), _VERBS[form]
        elif form in _DETERMINERS and sentence.deprels[word] == "det":
            noun, other = sentence.heads[word], _DETERMINERS[form]
        else:
            continue
        plural = form in _PLURAL_FORMS
        if noun is None or noun < 0 or is_plural(sentence, noun) != plural:
            continue
        between = range(min(word, noun) + 1, max(word, noun))
        attractors = sum(
            sentence.upos[i] in ("NOUN", "PROPN") and form_is_plural(forms[i]) == (not plural) for i in between
        )
        kind = "/".join(sorted((form, other), key=_PLURAL_FORMS.__contains__))
        yield NumberPair(word, other, kind, abs(word - noun), attractors)


def _children(sentence: Sentence, head: int, *deprels: str) -> list[int]:
    return [
        word
        for word in range(len(sentence))
        if sentence.heads[word] == head and sentence.deprels[word].split(":")[0] in deprels
    ]


def _subject(sentence: Sentence, verb: int) -> int | None:
    """The subject with which a verb agrees; None if there is not exactly one."""
    # copulas and auxiliaries hang on the predicate, whose subject is theirs
    with_it = sentence.deprels[verb].split(":")[0] in ("cop", "aux")
    clause = sentence.heads[verb] if with_it else verb
    subjects = _children(sentence, clause, "nsubj")
    if len(subjects) != 1 or clause < 0:
        return None
    (subject,) = subjects
    # a relative pronoun has the number of the noun that the clause is about
    if sentence.forms[subject].lower() in ("who", "which", "that") and sentence.deprels[clause] == "acl:relcl":
        return sentence.heads[clause]
    return subject


def is_plural(sentence: Sentence, noun: int) -> bool | None:
    """Whether a noun or pronoun is plural, by what hangs on it and its form; None if that is not known."""
    conjuncts = _children(sentence, noun, "conj")
    if conjuncts:
        links = {sentence.forms[c].lower() for word in conjuncts for c in _children(sentence, word, "cc")}
        return True if links == {"and"} else None
    determiners = {sentence.forms[d].lower() for d in _children(sentence, noun, "det", "nummod")}
    if determiners & {"a", "an", "one", "each", "every", "another", "this", "that"}:
        singular = True
    elif determiners & {"these", "those", "both", "several", "many", "few"} or _children(sentence, noun, "nummod"):
        singular = False
    else:
        singular = None
    plural = form_is_plural(sentence.forms[noun].lower())
    if singular is None or plural is None:
        return plural if singular is None else not singular
    return plural if plural != singular else None  # the two do not agree


def form_is_plural(form: str) -> bool | None:
    """Whether an English noun or pronoun in lower case is plural; None if the form is of either number."""
    if form in _ANY_NUMBER:
        return None
    if form in _PLURALS:
        return True
    return form.endswith("s") and form not in _SINGULARS and not form.endswith(("ss", "us", "is"))

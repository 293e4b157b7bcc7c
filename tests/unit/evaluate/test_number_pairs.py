"""Pairs of English number: made where the parse says the number of the word, and nowhere else."""

import gzip

import pytest

from fairseq_syntax.evaluate.number_pairs import form_is_plural, number_pairs
from fairseq_syntax.trees.conllu import Sentence, read_conllu


def sentence(*rows):
    """(word, UPOS, head from 1, label) of each word."""
    forms, upos, heads, deprels = zip(*rows, strict=True)
    return Sentence(list(forms), [head - 1 for head in heads], list(deprels), list(upos))


def noun_phrase(noun, head, label, determiner="the", start=1):
    return [(determiner, "DET", start + 1, "det"), (noun, "NOUN", head, label)]


DOGS_NEAR_CAT = [
    *noun_phrase("dogs", 7, "nsubj"),
    ("near", "ADP", 5, "case"),
    *noun_phrase("cat", 2, "nmod", start=4),
    ("are", "AUX", 7, "aux"),
    ("running", "VERB", 0, "root"),
]


def test_a_subject_with_an_attractor():
    (pair,) = number_pairs(sentence(*DOGS_NEAR_CAT))
    assert pair == (5, "is", "is/are", 4, 1)


@pytest.mark.parametrize(
    "noun, verb, expected",
    [
        ("dog", "Was", "were"),
        ("dogs", "were", "was"),
        ("women", "are", "is"),
        ("glass", "is", "are"),
        ("glasses", "are", "is"),
        ("sheep", "are", None),  # of either number
        ("dogs", "is", None),  # the reference is wrong
        ("group", "are", None),
        ("dog", "runs", None),
    ],
)
def test_the_number_of_the_noun_is_that_of_the_verb(noun, verb, expected):
    rows = [*noun_phrase(noun, 4, "nsubj"), (verb, "AUX", 4, "cop"), ("big", "ADJ", 0, "root")]
    assert [pair.other for pair in number_pairs(sentence(*rows))] == ([expected] if expected else [])


@pytest.mark.parametrize(
    "determiner, verb, made", [("a", "is", 1), ("a", "are", 0), ("both", "are", 1), ("the", "are", 0)]
)
def test_what_stands_before_the_noun_counts(determiner, verb, made):
    rows = [*noun_phrase("sheep", 4, "nsubj", determiner), (verb, "AUX", 4, "cop"), ("big", "ADJ", 0, "root")]
    assert len(list(number_pairs(sentence(*rows)))) == made


def test_two_nouns_are_plural_but_one_or_the_other_is_not():
    def linked(link, verb):
        return sentence(
            ("man", "NOUN", 5, "nsubj"),
            (link, "CCONJ", 3, "cc"),
            ("woman", "NOUN", 1, "conj"),
            (verb, "AUX", 5, "aux"),
            ("running", "VERB", 0, "root"),
        )

    assert [pair.other for pair in number_pairs(linked("and", "are"))] == ["is"]
    assert not [
        *number_pairs(linked("and", "is")),
        *number_pairs(linked("or", "is")),
        *number_pairs(linked("or", "are")),
    ]


def test_a_relative_pronoun_has_the_number_of_its_noun():
    rows = [
        *noun_phrase("men", 0, "root"),
        ("that", "PRON", 5, "nsubj"),
        ("are", "AUX", 5, "aux"),
        ("running", "VERB", 2, "acl:relcl"),
    ]
    assert [(pair.other, pair.distance) for pair in number_pairs(sentence(*rows))] == [("is", 2)]


def test_there_are():
    rows = [
        ("there", "PRON", 2, "expl"),
        ("are", "VERB", 0, "root"),
        ("three", "NUM", 4, "nummod"),
        ("dogs", "NOUN", 2, "nsubj"),
    ]
    assert list(number_pairs(sentence(*rows))) == [(1, "is", "is/are", 2, 0)]


def test_determiners_and_pronouns():
    rows = [("this", "DET", 2, "det"), ("dog", "NOUN", 0, "root")]
    assert list(number_pairs(sentence(*rows))) == [(0, "these", "this/these", 1, 0)]
    assert not list(number_pairs(sentence(("these", "DET", 2, "det"), ("dog", "NOUN", 0, "root"))))
    assert not list(number_pairs(sentence(("this", "PRON", 0, "root"))))
    for pronoun, verb, made in [("they", "are", 1), ("she", "is", 1), ("they", "is", 0), ("you", "are", 0)]:
        rows = [(pronoun, "PRON", 3, "nsubj"), (verb, "AUX", 3, "aux"), ("running", "VERB", 0, "root")]
        assert len(list(number_pairs(sentence(*rows)))) == made


def test_a_verb_without_a_subject_makes_no_pair():
    assert not list(number_pairs(sentence(("is", "AUX", 0, "root"))))
    assert not list(number_pairs(sentence(("is", "AUX", 2, "aux"), ("running", "VERB", 0, "root"))))


def test_forms():
    plural = ["dogs", "children", "buses", "people", "glasses"]
    singular = ["dog", "bus", "grass", "tennis", "dress", "christmas"]
    assert [form_is_plural(form) for form in (*plural, *singular, "fish")] == [True] * 5 + [False] * 6 + [None]


def test_captions(real_data, tmp_path):
    """Of the verbs of Multi30k's captions that have a number, most agree with what the parse says."""
    path = tmp_path / "val.conllu"
    path.write_bytes(gzip.decompress((real_data / "multi30k" / "val.en.conllu.gz").read_bytes()))
    trees = list(read_conllu(path))
    made = [pair for tree in trees for pair in number_pairs(tree)]
    verbs = sum(form in ("is", "are", "was", "were") for tree in trees for form in tree.forms)
    assert sum(pair.kind != "this/these" for pair in made) > 0.8 * verbs
    assert any(pair.attractors for pair in made)

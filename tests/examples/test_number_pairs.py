"""Pairs of English number: made where the parse says the number of the word, and nowhere else."""

import importlib.util
import tomllib
from pathlib import Path

import pytest
from conftest import REPOSITORY

from fairseq_syntax.trees.conllu import Sentence

_SPEC = importlib.util.spec_from_file_location("number_pairs", REPOSITORY / "examples/multi30k/number_pairs.py")
_MODULE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_MODULE)
form_is_plural, number_pairs = _MODULE.form_is_plural, _MODULE.number_pairs
CASES = tomllib.loads(Path(__file__).with_name("number_pairs.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", CASES)
def test_pairs_of_a_sentence(name):
    words, expected = CASES[name]
    forms, upos, heads, deprels = map(list, zip(*(word.split("/") for word in words.split()), strict=True))
    found = number_pairs(Sentence(forms, [int(head) - 1 for head in heads], deprels, upos))
    whole = any(isinstance(pair, list) for pair in expected)
    assert [list(pair) if whole else pair.other for pair in found] == expected


def test_forms():
    plural = ["dogs", "children", "buses", "people", "glasses"]
    singular = ["dog", "bus", "grass", "tennis", "dress", "christmas"]
    assert [form_is_plural(form) for form in (*plural, *singular, "fish")] == [True] * 5 + [False] * 6 + [None]

"""Counting tags of heads and children."""

import math

import numpy as np
import pytest

from fairseq_syntax.evaluate.treebank import Grammar, Treebank
from fairseq_syntax.trees.conllu import read_conllu

# the dog saw a big cat
TAGS = ["DET", "NOUN", "VERB", "DET", "ADJ", "NOUN"]
HEADS = np.array([1, 2, -1, 5, 5, 2])


def test_shares():
    grammar = Grammar.of(HEADS, TAGS)
    assert grammar.tags == ["ADJ", "DET", "NOUN", "VERB"]
    assert grammar.counts.sum() == 5
    assert grammar.share("VERB", "NOUN") == 100
    assert grammar.share("NOUN", "DET") == pytest.approx(200 / 3)
    assert grammar.share("NOUN", "ADJ") == pytest.approx(100 / 3)
    assert grammar.share("VERB", "DET") == 0
    assert grammar.share("VERB", "ADV") == 0
    assert math.isnan(grammar.share("DET", "NOUN")), "has no dependents"
    assert math.isnan(grammar.share("ADV", "NOUN")), "does not occur"


def test_frequent_rules():
    grammar = Grammar.of(HEADS, TAGS)
    assert set(grammar.frequent(2)) == {("VERB", "NOUN"), ("NOUN", "DET")}
    assert grammar.frequent(100)[2:] == [("NOUN", "ADJ")], "only what occurs"


def test_only_roots():
    grammar = Grammar.of(np.array([-1, -1]), ["X", "Y"])
    assert grammar.frequent(3) == [] and math.isnan(grammar.share("X", "Y"))
    assert Grammar.of(np.array([], dtype=int), []).frequent(3) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    # the columns "gold" and "left" of Table 4, for another release of the treebanks
    [
        ("en_ewt", {("VERB", "NOUN"): (25.1, 9.5), ("VERB", "PRON"): (18.6, 24.9), ("NOUN", "ADP"): (17.2, 14.3)}),
        ("de_gsd", {("VERB", "NOUN"): (34.7, 41.7), ("NOUN", "ADP"): (17.3, 8.8), ("NOUN", "ADJ"): (13.9, 25.5)}),
    ],
)
def test_treebanks_have_the_grammar_of_the_paper(real_data, name, expected):
    path = real_data / "ud" / f"{name}.test.conllu.gz"
    if not path.is_file():
        pytest.skip(f"treebank not found at {path}")
    treebank = Treebank(list(read_conllu(path)))
    gold = Grammar.of(treebank.heads, treebank.upos)
    left = Grammar.of(treebank.baselines()["L"], treebank.upos)
    for rule, shares in expected.items():
        assert gold.share(*rule) == pytest.approx(shares[0], abs=2.5)
        assert left.share(*rule) == pytest.approx(shares[1], abs=7)

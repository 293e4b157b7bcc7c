"""Trees changed by hand: every result is a tree with one root, and every other change is refused by its words."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.forests import is_forest

from fairseq_syntax.trees.conllu import ROOT, UNPARSED, Sentence, TreeFormatError
from fairseq_syntax.trees.edits import edited
from fairseq_syntax.trees.random_trees import random_heads

WORDS = "the dog saw a bird".split()
TREE = Sentence(WORDS, [1, 2, ROOT, 4, 2], ["det", "nsubj", "root", "det", "obj"], ["_"] * 5)


def test_a_word_gets_another_head_and_label():
    new = edited(TREE, {5: 2}, {5: "nmod"})
    assert (new.heads, new.deprels) == ([1, 2, ROOT, 4, 1], ["det", "nsubj", "root", "det", "nmod"])
    # an old and a new root exchange their labels
    new = edited(TREE, {2: 0, 3: 2})
    assert (new.heads, new.deprels) == ([1, ROOT, 1, 4, 2], ["det", "root", "nsubj", "det", "obj"])
    assert TREE.heads == [1, 2, ROOT, 4, 2]


@pytest.mark.parametrize(
    ("heads", "labels", "message"),
    [
        ({9: 1}, {}, r"--head 9=1: words go from 1 'the' to 5 'bird'"),
        ({2: 6}, {}, r"--head 2=6: words go from .*; --head 2=0 makes a root"),
        ({2: 2}, {}, r"a cycle, 2 'dog' <- 2 'dog'"),
        ({2: 0}, {}, r"2 roots, 2 'dog' and 3 'saw'; give all but one of them a head"),
        ({3: 2}, {}, r"a cycle, 2 'dog' <- 3 'saw' <- 2 'dog'; give one of these words"),
        ({}, {7: "obj"}, r"--label 7=obj: words go from"),
    ],
)
def test_what_makes_no_tree_is_refused_by_its_words(heads, labels, message):
    with pytest.raises(TreeFormatError, match=message):
        edited(TREE, heads, labels)


@pytest.mark.parametrize("words", [WORDS, []])
def test_a_sentence_without_a_tree_is_refused(words):
    nothing = ["_"] * len(words)
    with pytest.raises(TreeFormatError, match="the sentence has no tree"):
        edited(Sentence(words, [UNPARSED] * len(words), nothing, nothing), {})


@given(st.integers(0, 10**6), st.dictionaries(st.integers(1, 5), st.integers(0, 5), max_size=3))
def test_exactly_the_edits_that_make_trees_are_made(seed, edits):
    heads = random_heads(5, random.Random(seed))
    sentence = Sentence(WORDS, heads, [f"l{i}" for i in range(5)], ["_"] * 5)
    expected = [edits.get(word + 1, head + 1) - 1 for word, head in enumerate(heads)]
    if is_forest(expected) and expected.count(ROOT) == 1:
        new = edited(sentence, edits)
        assert new.heads == expected and sorted(new.deprels) == sentence.deprels
    else:
        with pytest.raises(TreeFormatError):
            edited(sentence, edits)

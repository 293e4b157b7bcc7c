"""Trees and the words of a text: which words belong to which word of the tree, and the message where they differ."""

import pytest

from fairseq_syntax.trees.alignment import align_tree, fit_tree
from fairseq_syntax.trees.conllu import Sentence, TreeFormatError

# "vom 13 819 ." with "vom" = "von" + "dem"
TREE = Sentence(
    ["von", "dem", "13 819", "."], [2, 2, -1, 2], ["case", "det", "root", "punct"], ["_"] * 4, [(0, 1, "vom")]
)


@pytest.mark.parametrize(
    "text, owners, forms",
    [("von dem 13 819 .", [0, 1, 2, 2, 3], TREE.forms), ("vom 13 819 .", [0, 1, 1, 2], ["vom", "13 819", "."])],
)
def test_words_of_the_text_belong_to_words_of_the_tree(text, owners, forms):
    tree, found = fit_tree(TREE, text.split(), "x:1")
    assert tree.forms == forms and found == owners


def test_a_tree_over_its_own_words_stays_as_it_is():
    assert fit_tree(TREE, TREE.forms, "x:1") == (TREE, [0, 1, 2, 3])


@pytest.mark.parametrize(
    "text, message",
    [
        # the difference is that from the surface tokens, which fit further than the words do
        ("vom 13 820 .", "x:1: word 3 is '820' but the parse has '819' (4 and 4 words); parse exactly this text"),
        ("von dem 13 819", "x:1: word 5 is the end but the parse has '.' (4 and 5 words)"),
        ("vom 13 819 . .", "x:1: word 5 is '.' but the parse has the end (5 and 4 words)"),
    ],
)
def test_the_first_difference_is_that_of_the_reading_that_fits_best(text, message):
    with pytest.raises(TreeFormatError) as caught:
        fit_tree(TREE, text.split(), "x:1")
    assert str(caught.value).startswith(message)


def test_a_word_with_a_space_is_named_where_trees_have_to_be_over_exactly_these_words():
    assert align_tree(TREE, TREE.forms, "x:1") is TREE
    with pytest.raises(TreeFormatError, match="x:1: '13 819' is one word of the parse but several of the text"):
        align_tree(TREE, "von dem 13 819 .".split(), "x:1")


def test_normal_forms_that_look_the_same():
    """Are told apart by their characters."""
    tree = Sentence(["cafe\u0301"], [-1], ["root"], ["_"])
    with pytest.raises(TreeFormatError, match=r"normal form .*'caf\\xe9' and 'cafe\\u0301'\); write both in NFC"):
        fit_tree(tree, ["caf\u00e9"], "x:1")

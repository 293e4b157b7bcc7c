"""Trees as brackets."""

from hypothesis import given
from hypothesis import strategies as st
from oracles import brackets
from strategies import forests

from fairseq_syntax.trees.conllu import Sentence
from fairseq_syntax.trees.linearization import linearize


def sentence(heads, deprels):
    return Sentence([f"w{i}" for i in range(len(heads))], heads, deprels, ["X"] * len(heads))


def shape(tree, head=-1):
    """The nested pairs by definition: recursion over the heads."""
    return [(tree.deprels[i], shape(tree, i)) for i in range(len(tree)) if tree.heads[i] == head]


@st.composite
def labelled(draw):
    heads = draw(forests(min_words=0))
    labels = st.sampled_from(["root", "nsubj:pass", "_", "(", ")", "x)"])
    return sentence(heads, draw(st.lists(labels, min_size=len(heads), max_size=len(heads))))


@given(labelled())
def test_brackets_are_the_shape_of_the_tree(tree):
    tokens = linearize(tree)
    assert len(tokens) == 2 * len(tree)
    assert brackets.read(tokens) == shape(tree)
    # tokens survive being written on a line
    assert " ".join(tokens).split() == tokens


def test_long_chain_needs_no_recursion():
    length = 20_000
    tokens = linearize(sentence(list(range(-1, length - 1)), ["x"] * length))
    assert tokens == ["(x"] * length + [")"] * length

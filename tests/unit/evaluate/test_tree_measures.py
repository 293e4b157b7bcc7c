"""What is measured of trees, against definitions that look at every word."""

import pytest
from hypothesis import given
from strategies import trees

from fairseq_syntax.evaluate import buckets as measures
from fairseq_syntax.evaluate.buckets import read_parses
from fairseq_syntax.trees.conllu import Sentence


def parse(heads, deprels=None):
    size = len(heads)
    return Sentence(["w"] * size, heads, deprels or ["dep"] * size, ["X"] * size)


def ancestors(heads, word):
    found = []
    while heads[word] >= 0:
        word = heads[word]
        found.append(word)
    return found


@given(trees(max_words=9))
def test_definitions(heads):
    found = parse(heads)
    assert measures.depth(found) == 1 + max(len(ancestors(heads, word)) for word in range(len(heads)))
    arcs = [(word, head) for word, head in enumerate(heads)]
    lengths = [abs(word - head) for word, head in arcs if head >= 0]
    assert measures.longest_dependency(found) == max(lengths, default=0)


def test_punctuation_and_subtypes():
    found = parse([1, -1, 1, 1], ["nsubj:pass", "root", "obj", "punct"])
    assert measures.longest_dependency(found) == 1
    assert [measures.has_relation(found, name) for name in ("nsubj", "nsubj:pass", "ns", "pass")] == [1, 1, 0, 0]


def test_words(tmp_path):
    path = tmp_path / "x.conllu"
    one = "1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
    path.write_text(one + "1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n2\tb\t_\tX\t_\t_\t1\tdep\t_\t_\n\n" + one)
    assert [tree.forms for tree in read_parses(path, [1, 0, 2], ["A <unk>", "a", "a"])] == [["a", "b"], ["a"], ["a"]]
    with pytest.raises(ValueError, match=r"x\.conllu:3: sentence 2 is 'a b' in the tree, but 'a' in the source"):
        read_parses(path, [1], ["a"])
    for numbers in ([3], [0, 1]):
        with pytest.raises(ValueError, match=rf"x\.conllu: 3 trees for {max(numbers) + 1} sentences; give each one"):
            read_parses(path, numbers, None)
    # fairseq joins what sentencepiece has cut, and an unknown piece with the word before it
    assert read_parses(path, [1], ["a<unk>"])[0].forms == ["a", "b"]


def test_multi_word_tokens_may_be_one_word(tmp_path):
    path = tmp_path / "x.conllu"
    path.write_text(
        "1-2\tim\t_\t_\t_\t_\t_\t_\t_\t_\n1\tin\t_\tX\t_\t_\t2\tcase\t_\t_\n2\tdem\t_\tX\t_\t_\t0\troot\t_\t_\n"
    )
    for text in ("in dem", "im"):
        (found,) = read_parses(path, [0], [text])
        assert found.forms == ["in", "dem"]

"""What is measured of trees, against definitions that look at every word, and against the agreement corpus."""

import csv
import math
import subprocess
import sys

import pytest
from hypothesis import given
from strategies import trees

from fairseq_syntax.evaluate import tree_measures as measures
from fairseq_syntax.evaluate.number_pairs import is_plural
from fairseq_syntax.evaluate.tree_measures import Parse, read_parses
from fairseq_syntax.trees.conllu import Sentence


def parse(heads, deprels=None, upos=None, forms=None, features=None):
    size = len(heads)
    sentence = Sentence(forms or ["w"] * size, heads, deprels or ["dep"] * size, upos or ["X"] * size)
    return Parse(sentence, features or ["_"] * size)


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
    crossing = sum(
        min(a) < min(b) < max(a) < max(b) or min(b) < min(a) < max(b) < max(a)
        for i, a in enumerate(arcs)
        for b in arcs[:i]
    )
    assert measures.crossings(found) == crossing
    # projective: a head stands above every word between it and its dependent; the root stands before the sentence
    inside = all(
        head == -1 or head in ancestors(heads, between)
        for word, head in arcs
        for between in range(min(word, head) + 1, max(word, head))
    )
    assert (crossing == 0) == inside
    lengths = [abs(word - head) for word, head in arcs if head >= 0]
    assert measures.longest_dependency(found) == max(lengths, default=0)
    mean = measures.mean_dependency(found)
    assert mean == pytest.approx(sum(lengths) / len(lengths)) if lengths else math.isnan(mean)


def test_punctuation_and_subtypes():
    found = parse([1, -1, 1, 1], ["nsubj:pass", "root", "obj", "punct"])
    assert measures.dependency_lengths(found) == [1, 1]
    assert [measures.has_relation(found, name) for name in ("nsubj", "nsubj:pass", "ns", "pass")] == [1, 1, 0, 0]


#        the keys on the table that they see are  old
HEADS = [1, 8, 4, 4, 1, 7, 7, 4, -1, 8]
WORDS = "the keys on the table which they see old are".split()


@pytest.mark.parametrize("features", [False, True])
def test_attractors(features):
    deprels = ["det", "nsubj", "case", "det", "nmod", "obj", "nsubj", "acl:relcl", "root", "cop"]
    upos = ["DET", "NOUN", "ADP", "DET", "NOUN", "PRON", "PRON", "VERB", "ADJ", "AUX"]
    numbers = ["_", "Number=Plur", "_", "_", "Case=Nom|Number=Sing", "_", "Number=Plur", "_", "_", "_"]
    found = parse(HEADS, deprels, upos, WORDS, numbers if features else None)
    assert measures.subjects_and_verbs(found) == [(1, 9), (6, 7)]
    assert measures.attractors(found) == 1
    assert math.isnan(measures.attractors(parse([-1, 0], upos=["NOUN", "NOUN"])))


def test_a_relative_clause_has_the_number_of_its_noun():
    deprels, upos = ["root", "nmod", "nsubj", "acl:relcl"], ["NOUN", "NOUN", "PRON", "VERB"]
    found = parse([-1, 0, 3, 0], deprels, upos, ["man", "dogs", "who", "sleeps"])
    assert measures.subjects_and_verbs(found) == [(0, 3)] and measures.attractors(found) == 1
    # German pronouns may be demonstrative or relative
    number = ["Number=Sing", "Number=Plur", "Number=Sing|PronType=Dem,Rel", "_"]
    found = parse([-1, 0, 3, 0], deprels, upos, ["mann", "hunde", "der", "schläft"], number)
    assert measures.subjects_and_verbs(found) == [(0, 3)] and measures.attractors(found) == 1
    found = parse([-1, 0, 3, 0], deprels, upos, ["mann", "hunde", "der", "schläft"], ["Number=Plur,Sing", *number[1:]])
    assert math.isnan(measures.attractors(found))


def test_agreement_corpus(repository, tmp_path):
    """The main verb has as many attractors as the grammar gave it; that "sheep" may be either, no parse tells."""
    command = [sys.executable, repository / "examples" / "agreement" / "generate.py", "--output", tmp_path]
    sizes = ["--train", "10", "--valid", "2", "--test", "2", "--challenge", "20"]
    subprocess.run([*command, *sizes], check=True, capture_output=True)
    sources = (tmp_path / "challenge.en").read_text().splitlines()
    parses = read_parses(tmp_path / "challenge.en.conllu", range(len(sources)), sources)
    with open(tmp_path / "challenge.tsv", encoding="utf8") as file:
        expected = [int(row["attractors"]) for row in csv.DictReader(file, delimiter="\t")]
    assert len(parses) == len(expected) == 100 and set(expected) == {0, 1, 2, 3, 4}
    known = 0
    for each, count in zip(parses, expected, strict=True):
        tree, pairs = each.sentence, measures.subjects_and_verbs(each)
        subject = [*zip(tree.heads, tree.deprels, strict=True)].index((tree.heads.index(-1), "nsubj"))
        (main,) = [pair for pair in pairs if pair[0] == subject and tree.heads[pair[1]] in (-1, tree.heads.index(-1))]
        found = measures.attractors_between(each, *main)
        nouns = [i for i in range(main[0], main[1]) if tree.upos[i] == "NOUN"]
        if all(is_plural(tree, noun) is not None for noun in nouns):
            assert found == count, tree.forms
            known += 1
        assert math.isnan(measures.attractors(each)) or found is None or measures.attractors(each) >= found
    assert known >= 70


CONFIDENT = "# confidence = 0.25\n1\ta\t_\tX\t_\t_\t0\troot\t_\tScore=0.9\n\n"
BY_WORD = "1\ta\t_\tX\t_\t_\t0\troot\t_\tSpaceAfter=No|Score=0.5\n2\tb\t_\tX\t_\t_\t1\tdep\t_\tProb=1\n\n"


def test_confidence_and_words(tmp_path):
    path = tmp_path / "x.conllu"
    path.write_text(CONFIDENT + BY_WORD + CONFIDENT.replace("0.25", "high"))
    found = read_parses(path, [1, 0, 2], ["A <unk>", "a", "a"])
    assert [each.confidence for each in found[:2]] == [0.75, 0.25] and math.isnan(found[2].confidence)
    with pytest.raises(ValueError, match=r"x\.conllu:4: sentence 2 is 'a b' in the tree, but 'a' in the source"):
        read_parses(path, [1], ["a"])
    for numbers in ([3], [0, 1]):
        with pytest.raises(ValueError, match=rf"x\.conllu: 3 trees for {max(numbers) + 1} sentences; give each one"):
            read_parses(path, numbers, None)
    # fairseq joins what sentencepiece has cut, and an unknown piece with the word before it
    assert read_parses(path, [1], ["a<unk>"])[0].sentence.forms == ["a", "b"]


def test_multi_word_tokens_may_be_one_word(tmp_path):
    path = tmp_path / "x.conllu"
    path.write_text(
        "1-2\tim\t_\t_\t_\t_\t_\t_\t_\t_\n1\tin\t_\tX\t_\t_\t2\tcase\t_\t_\n2\tdem\t_\tX\t_\t_\t0\troot\t_\t_\n"
    )
    for text in ("in dem", "im"):
        (found,) = read_parses(path, [0], [text])
        assert found.sentence.forms == ["in", "dem"]

"""What is measured of trees; buckets hold every sentence once, none is too small, and what was put together says so."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import trees

from fairseq_syntax.evaluate.buckets import KINDS, Scale, Source, labelled, make_buckets, measure, read_parses, title
from fairseq_syntax.trees.conllu import Sentence


def as_lists(buckets):
    return {bucket.label: bucket.sentences.tolist() for bucket in buckets}


def test_edges():
    lengths = np.array([1, 10, 11, 20, 21, 40, 41, 50, 51, 300])
    assert as_lists(make_buckets(*measure("length", Source(lengths)), 1)) == {
        **{"1-10": [0, 1], "11-20": [2, 3], "21-30": [4], "31-40": [5], "41-50": [6, 7], ">50": [8, 9]}
    }
    few = measure("length", Source([3, 10, 11, 20, 21]), longest=20)
    assert as_lists(make_buckets(*few, 1)) == {"1-10": [0, 1], "11-20": [2, 3], ">20": [4]}
    trees = [parse(heads) for heads in ([-1, 0], [-1, 0, 0], [-1, 0, 1], [-2])]
    assert as_lists(make_buckets(*measure("depth", Source(parses=trees)), 1)) == {"2": [0, 1], "3": [2]}
    found = measure("relation:acl", Source(parses=[parse([-1], [label]) for label in ("acl", "root", "acl:x")]))
    assert as_lists(make_buckets(*found, 1)) == {"absent": [1], "present": [0, 2]}
    assert as_lists(make_buckets(*found, 2)) == {"all": [0, 1, 2]}


def test_labels(tmp_path):
    path = tmp_path / "number.test.txt"
    path.write_text("one\nseveral \none\n\nseveral\n", encoding="utf-8")
    values, scale = labelled(str(path), range(5))
    assert as_lists(make_buckets(values, scale, 1)) == {"none": [3], "one": [0, 2], "several": [1, 4]}
    assert as_lists(make_buckets(values, scale, 2)) == {"none, one": [0, 2, 3], "several": [1, 4]}
    assert as_lists(make_buckets(values, scale, 4)) == {"all": [0, 1, 2, 3, 4]}
    assert title(f"label:{path}") == "number"
    for numbers in (range(4), range(6)):
        with pytest.raises(ValueError, match=rf"number\.test\.txt: .* label .*; it has 5 for {len(numbers)} sentences"):
            labelled(str(path), numbers)


def test_small_ones_join_their_smaller_neighbour():
    values = np.repeat([1.0, 2, 3, 4, 9], [5, 3, 1, 2, 1])
    scale = Scale(tuple(range(11)))
    assert {label: len(part) for label, part in make_buckets(values, scale, 3)} == {"1": 5, "2": 3, "3-9": 4}
    assert as_lists(make_buckets(values, scale, 100)) == {"1-9": list(range(12))}


@given(
    st.lists(st.one_of(st.integers(0, 40), st.just(math.nan)), min_size=1).filter(lambda v: any(x == x for x in v)),
    st.integers(1, 12),
    st.sampled_from([None, 20]),
    st.integers(1, 30),
)
def test_every_sentence_is_in_its_bucket(values, width, longest, minimum):
    values = np.array(values, dtype=float)
    end = width * ((longest or 40) // width + 1)
    scale = Scale((*range(0, end + 1, width), *([math.inf] if end < 41 else [])))
    buckets = make_buckets(values, scale, minimum)
    known = np.flatnonzero(values == values)
    assert sorted(np.concatenate([bucket.sentences for bucket in buckets])) == known.tolist()
    assert len(buckets) == 1 or min(len(bucket.sentences) for bucket in buckets) >= minimum
    for bucket in buckets:
        low, _, high = bucket.label.removeprefix(">").partition("-")
        for sentence in bucket.sentences:
            if bucket.label == "all":
                assert len(buckets) == 1
            elif bucket.label.startswith(">"):
                assert values[sentence] > int(low)
            else:
                assert int(low) <= values[sentence] <= int(high or low)


def test_what_is_not_known():
    for kind in KINDS:
        with pytest.raises(ValueError, match=f"--by {kind}: "):
            measure(kind, Source())
    assert measure("length", Source(words=[0, 3]))[0].tolist() == [1, 3]


# --- what is measured of trees -------------------------------------------------------------------------------------


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
def test_depth(heads):
    longest = 1 + max(len(ancestors(heads, word)) for word in range(len(heads)))
    assert measure("depth", Source(parses=[parse(heads), parse([-2])]))[0].tolist() == pytest.approx(
        [longest, math.nan], nan_ok=True
    )


def test_relations_include_subtypes():
    source = Source(parses=[parse([1, -1, 1], ["nsubj:pass", "root", "obj"])])
    assert [measure(f"relation:{name}", source)[0].item() for name in ("nsubj", "nsubj:pass")] == [1, 1]
    for name in ("ns", "pass"):
        with pytest.raises(ValueError, match=f"--by relation:{name}: no tree has this relation"):
            measure(f"relation:{name}", source)


def test_words(tmp_path):
    path = tmp_path / "x.conllu"
    one = "1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
    path.write_text(one + "1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n2\tb\t_\tX\t_\t_\t1\tdep\t_\t_\n\n" + one)
    assert [tree.forms for tree in read_parses(path, [1, 0, 2], ["A <unk>", "a", "a"])] == [["a", "b"], ["a"], ["a"]]
    with pytest.raises(ValueError, match=r"x\.conllu:3: sentence 2: word 2 is the end but the parse has 'b'"):
        read_parses(path, range(3), ["a"] * 3)
    with pytest.raises(ValueError, match=r"x\.conllu: a tree too many, of sentence 2; it has 3 for 2 sentences; give"):
        read_parses(path, range(2), None)
    # fairseq joins what sentencepiece has cut, and an unknown piece with the word before it
    assert read_parses(path, range(3), ["a", "a<unk>", "a"])[1].forms == ["a", "b"]


def test_multi_word_tokens_may_be_one_word(tmp_path):
    path = tmp_path / "x.conllu"
    path.write_text(
        "1-2\tim\t_\t_\t_\t_\t_\t_\t_\t_\n1\tin\t_\tX\t_\t_\t2\tcase\t_\t_\n2\tdem\t_\tX\t_\t_\t0\troot\t_\t_\n"
    )
    for text in ("in dem", "im"):
        (found,) = read_parses(path, [0], [text])
        assert found.forms == ["in", "dem"]

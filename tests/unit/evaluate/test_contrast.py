"""Accuracies of minimal pairs: intervals and tests against scipy, groups, and records that are read again."""

import gzip
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from fairseq_syntax.evaluate.contrast import PairScores, mcnemar, pair_columns, pair_groups, read_record
from fairseq_syntax.evaluate.minimal_pairs import Pairs, read_pairs, write_pairs


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=60))
def test_mcnemar_is_a_binomial_test_of_the_pairs_on_which_two_differ(pairs):
    first, second = (np.array([pair[i] for pair in pairs], dtype=bool) for i in (0, 1))
    one, other, p = mcnemar(first, second)
    assert (one, other) == (sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs))
    assert p == pytest.approx(binomtest(one, one + other).pvalue if one + other else 1.0)
    assert mcnemar(second, first) == (other, one, p)


def record(correct, incorrect, name="a", **changed):
    values = {"name": name, "digest": "d", "measure": "sum", "details": {}} | changed
    return PairScores(correct=correct, incorrect=incorrect, **values)


def test_a_tie_is_wrong():
    found = record([-1.0, -2.0, -3.0], [-2.0, -2.0, -1.0])
    assert found.right.tolist() == [True, False, False] and found.ties == 1


def test_a_record_comes_back(tmp_path):
    path = tmp_path / "record.json"
    before = record([-1.5, -2.0], [-2.0, -1.0], details={"distance": ["1", "2"]})
    path.write_text(before.as_json())
    assert read_record(path) == before
    content = json.loads(path.read_text())
    assert (content["pairs"], content["right"], content["accuracy"]) == (2, 1, 0.5)
    # (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n), Wilson (1927)
    z = 1.959964
    half = z * math.sqrt(1 / 8 + z**2 / 16) / (1 + z**2 / 2)
    assert content["interval"] == pytest.approx([0.5 - half, 0.5 + half], rel=1e-5)
    packed = tmp_path / "record.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_record(packed) == before
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"not a record .*give a file of fairseq-syntax contrast"):
        read_record(packed)
    for broken in ("[]", "{}", path.read_text().replace("-1.5", '"x"')):
        path.write_text(broken)
        with pytest.raises(ValueError, match=r"not a record .*give a file of fairseq-syntax contrast"):
            read_record(path)


def test_groups():
    texts = ["x " * n for n in (1, 10, 11, 51, 20, 5, 6)]
    details = {
        "distance": ["0", "1", "3", "6", "9", "30", "11"],
        "attractors": ["2", "0", "0", "1", "10", "0", "0"],
        "kind": ["b", "a", "b", "a", "a", "a", "a"],
        "same": ["x"] * 7,
    }
    found = pair_groups(pair_columns(Pairs(texts, texts, texts, details)))
    as_lists = {name: [(label, part.tolist()) for label, part in parts] for name, parts in found.items()}
    assert as_lists == {
        "distance": [("0", [0]), ("1", [1]), ("2-4", [2]), ("5-7", [3]), ("8-10", [4]), (">10", [5, 6])],
        "attractors": [("0", [1, 2, 5, 6]), ("1", [3]), ("2", [0]), ("10", [4])],
        "kind": [("a", [1, 3, 4, 5, 6]), ("b", [0, 2])],
        "source words": [("1-10", [0, 1, 5, 6]), ("11-20", [2, 4]), (">50", [3])],
    }


def test_columns_that_make_no_table_are_left_out():
    columns = {
        "shift": ["-3", "0", "5", "", "2", "1", "-1", "12"] * 2,
        "change": ["-1", "", "1", "0", "-2", "1", "1", "1"] * 2,
        "word": [*"abcdefghijklmnop"],
        "far": [str(11 + i) for i in range(16)],
        "source words": ["3"] * 16,
    }
    found = pair_groups(columns)
    assert {name: [(label, len(part)) for label, part in parts] for name, parts in found.items()} == {
        "shift": [("<0", 4), ("0", 2), ("1", 2), ("2-4", 2), ("5-7", 2), (">10", 2), ("none", 2)],
        "change": [("-2", 2), ("-1", 2), ("0", 2), ("1", 8), ("none", 2)],
    }


def pair(number, **details):
    return {"source": f"s {number}", "correct": f"c {number}", "incorrect": f"i {number}", **details}


def test_pairs_come_back(tmp_path):
    write_pairs(tmp_path / "made", "en", "de", [pair(1, distance="3", kind="x"), pair(2, distance="4", kind="y")])
    names = sorted(path.name for path in (tmp_path / "made").iterdir())
    assert names == ["details.tsv", "src.en", "tgt.correct.de", "tgt.incorrect.de"]
    found = read_pairs(tmp_path / "made")
    assert (found.sources, found.correct, found.incorrect) == (["s 1", "s 2"], ["c 1", "c 2"], ["i 1", "i 2"])
    assert found.details == {"distance": ["3", "4"], "kind": ["x", "y"]}
    details = tmp_path / "made" / "details.tsv"
    details.write_text("kind\tkind\nx\t1\ny\t2\n")
    with pytest.raises(ValueError, match=r"details\.tsv: not a header of different names and 2 rows of 2 cells"):
        read_pairs(tmp_path / "made")
    details.unlink()
    assert read_pairs(tmp_path / "made").digest == found.digest
    (tmp_path / "made" / "src.en").write_text("s 2\ns 1\n")
    assert read_pairs(tmp_path / "made").digest != found.digest


def test_no_pairs(tmp_path):
    with pytest.raises(ValueError, match="this text has no pairs"):
        write_pairs(tmp_path / "none", "en", "de", [])

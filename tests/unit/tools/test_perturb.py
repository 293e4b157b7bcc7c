"""fairseq-syntax perturb: trees with one root, exact shares, the same bytes, and the UAS that it prints."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles.forests import is_forest
from strategies import trees

from fairseq_syntax.tools import perturb
from fairseq_syntax.trees.conllu import ROOT, Sentence, format_sentence, read_conllu

RANGES = """\
# sent_id = 1
# text = Im Haus schläft er.
1-2\tIm\t_\t_\t_\t_\t_\t_\t_\t_
1\tin\tin\tADP\tAPPR\t_\t3\tcase\t_\t_
2\tdem\tder\tDET\tART\t_\t3\tdet\t_\t_
3\tHaus\tHaus\tNOUN\tNN\t_\t4\tobl\t4:obl\t_
3.1\tleer\t_\t_\t_\t_\t_\t_\t_\t_
4\tschläft\tschlafen\tVERB\tVVFIN\t_\t0\troot\t_\t_
5\ter\ter\tPRON\tPPER\t_\t4\tnsubj\t_\tSpaceAfter=No
6\t.\t.\tPUNCT\t$.\t_\t4\tpunct\t_\t_

# an empty line

1\tkein\t_\tDET\t_\t_\t_\t_\t_\t_
2\tBaum\t_\tNOUN\t_\t_\t_\t_\t_\t_

"""


def tree(heads, deprels=None):
    """A sentence over so many words."""
    labels = deprels or ["root" if head == ROOT else f"l{i % 3}" for i, head in enumerate(heads)]
    return Sentence([f"w{i}" for i in range(len(heads))], list(heads), labels, ["X"] * len(heads))


@pytest.fixture
def run(tmp_path, capsys):
    """Function: sentences or text, options -> sentences that come out; keeps stderr (`said`) and the file (`bytes`)."""

    def call(given, *options, status=0):
        path, output = tmp_path / "given.conllu", tmp_path / "out.conllu"
        path.write_text(given if isinstance(given, str) else "".join(map(format_sentence, given)), encoding="utf-8")
        found = perturb.main(["--input", str(path), "--output", str(output), "--overwrite", *map(str, options)])
        call.said = capsys.readouterr().err
        assert found == status, call.said
        if not found:
            call.bytes = output.read_bytes()
            return list(read_conllu(output))

    return call


def changed(before, after):
    """Words of a corpus whose head is another."""
    pairs = zip(before, after, strict=True)
    return sum(a != b for x, y in pairs for a, b in zip(x.heads, y.heads, strict=True))


def arcs(sentence):
    """(head, label) of each word."""
    return list(zip(sentence.heads, sentence.deprels, strict=True))


def is_tree(heads):
    return heads.count(ROOT) == 1 and is_forest(heads)


corpora = st.lists(trees(min_words=1, max_words=9), min_size=1, max_size=8)
options = st.one_of(
    st.floats(0, 1).map(lambda p: ["--reattach", p]),
    st.sampled_from(["random", "left", "right"]).map(lambda kind: ["--trees", kind]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(corpora, options, st.integers(0, 99))
def test_always_trees_with_one_root_and_the_same_bytes(run, corpus, given_options, seed):
    before = [tree(heads) for heads in corpus]
    after = run(before, *given_options, "--seed", seed)
    assert all(is_tree(s.heads) for s in after)
    assert [s.forms for s in after] == [s.forms for s in before] and [s.upos for s in after] == [s.upos for s in before]
    assert Counter(x for s in after for x in s.deprels) == Counter(x for s in before for x in s.deprels)
    assert all((label == "root") == (head == ROOT) for s in after for head, label in arcs(s))
    # what it says is what came out
    words = sum(map(len, before))
    both = sum(
        arc == new for x, y in zip(before, after, strict=True) for arc, new in zip(arcs(x), arcs(y), strict=True)
    )
    uas, las = 100 - 100 * changed(before, after) / words, 100 * both / words
    assert f"UAS {uas:.2f}, LAS {las:.2f} of {words} words, {len(before)} sentences\n" in run.said
    first = run.bytes
    run(before, *given_options, "--seed", seed)
    assert run.bytes == first


def test_short_sentences_leave_their_share_to_others(run):
    before = [tree([ROOT]), tree([ROOT]), tree([ROOT, 0]), tree([ROOT, 0, 1, 1])]
    after = run(before, "--reattach", 0.75)
    assert changed(before, after) == 6 and changed(before[:2], after[:2]) == 0
    assert "only" not in run.said
    assert changed(before, run(before, "--reattach", 1)) == 6
    assert "--reattach 1: only 0.7500 of the words can be changed" in run.said


def test_the_tree_of_a_sentence_does_not_hang_on_those_before_it(run):
    before = [tree([ROOT, 0, 1, 2])] * 5
    first = [s.heads for s in run(before, "--trees", "random")]
    assert [s.heads for s in run([tree([ROOT]), *before[1:]], "--trees", "random")][1:] == first[1:]


def test_what_a_file_may_hold_is_treated_as_the_reader_does(run):
    before = run(RANGES, "--reattach", 0)
    assert run.said.endswith("UAS 100.00, LAS 100.00 of 6 words, 3 sentences; 1 of them have no parse\n")
    after = run(RANGES, "--reattach", 1)
    assert after[0].comments == ["# sent_id = 1", "# text = Im Haus schläft er."] and after[0].ranges == [(0, 1, "Im")]
    assert after[0].upos == before[0].upos and changed(before[:1], after[:1]) == 6
    # an empty line and a sentence without a parse stay
    assert after[1:] == before[1:] and after[1].forms == [] and not after[2].is_parsed
    assert b"1-2\tIm\t" in run.bytes and b"3.1" not in run.bytes

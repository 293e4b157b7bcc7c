"""fairseq-syntax perturb: trees with one root, exact shares, the same bytes, and the UAS that it prints."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles.forests import is_forest
from strategies import trees

from fairseq_syntax.tools import perturb
from fairseq_syntax.trees.conllu import ROOT, Sentence, format_sentence, read_conllu, without_parse


def tree(heads, deprels=None):
    """A sentence over so many words."""
    labels = deprels or ["root" if head == ROOT else f"l{i % 3}" for i, head in enumerate(heads)]
    return Sentence([f"w{i}" for i in range(len(heads))], list(heads), labels, ["X"] * len(heads))


@pytest.fixture
def run(tmp_path, capsys):
    """Function: sentences, options -> sentences that come out; keeps stderr (`said`) and the file (`bytes`)."""

    def call(given, *options, status=0):
        path, output = tmp_path / "given.conllu", tmp_path / "out.conllu"
        path.write_text("".join(map(format_sentence, given)), encoding="utf-8")
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


corpora = st.lists(trees(min_words=1, max_words=9), min_size=1, max_size=8)
options = st.one_of(
    st.floats(0, 1).map(lambda p: ["--reattach", p]),
    st.sampled_from(["random", "left", "right"]).map(lambda kind: ["--trees", kind]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(corpora, options, st.integers(0, 99))
def test_trees_stay_trees_and_what_it_says_is_what_came_out(run, corpus, given_options, seed):
    """Labels, tags and single trees: unit/trees/test_perturbation.py."""
    before = [tree(heads) for heads in corpus]
    after = run(before, *given_options, "--seed", seed)
    assert all(s.heads.count(ROOT) == 1 and is_forest(s.heads) for s in after)
    assert [s.forms for s in after] == [s.forms for s in before]
    words = sum(map(len, before))
    uas = 100 - 100 * changed(before, after) / words
    assert f"UAS {uas:.2f} of {words} words, {len(before)} sentences\n" in run.said
    first = run.bytes
    run(before, *given_options, "--seed", seed)
    assert run.bytes == first


def test_what_cannot_be_changed_is_told(run):
    before = [tree([ROOT]), tree([ROOT]), tree([ROOT, 0]), tree([ROOT, 0, 1, 1])]
    assert changed(before, run(before, "--reattach", 0.75)) == 6 and "only" not in run.said
    assert changed(before, run(before, "--reattach", 1)) == 6
    assert "--reattach 1: only 0.7500 of the words can be changed" in run.said


def test_the_tree_of_a_sentence_does_not_hang_on_those_before_it(run):
    before = [tree([ROOT, 0, 1, 2])] * 5
    first = [s.heads for s in run(before, "--trees", "random")]
    assert [s.heads for s in run([tree([ROOT]), *before[1:]], "--trees", "random")][1:] == first[1:]


def test_what_is_no_tree_stays(run):
    """An empty line, and a sentence without a parse; comments and multi-word tokens, too."""
    ranges = replace(tree([1, ROOT, 1]), comments=["# a"], ranges=[(0, 1, "w0w1")])
    before = [ranges, without_parse([]), without_parse(["kein", "Baum"])]
    after = run(before, "--reattach", 1)
    assert "of 3 words, 3 sentences\n" in run.said
    assert (after[0].comments, after[0].ranges) == (["# a"], [(0, 1, "w0w1")])
    assert changed(before[:1], after[:1]) == 3
    assert [(s.forms, s.is_parsed) for s in after[1:]] == [([], True), (["kein", "Baum"], False)]

"""fairseq-syntax attachment: the table of a model is that of its trees, and the baselines stand beside it."""

import json
from types import SimpleNamespace

import programs
import pytest

from fairseq_syntax.tools import attachment, trees
from fairseq_syntax.tools.latent_trees import TreeInducer
from fairseq_syntax.trees.conllu import read_conllu

PUNCTUATED = """\
1\tI\t_\tPRON\t_\t_\t2\tnsubj\t_\t_
2\tsaw\t_\tVERB\t_\t_\t0\troot\t_\t_
3\t,\t_\tPUNCT\t_\t_\t4\tpunct\t_\t_
4-5\ther'.\t_\t_\t_\t_\t_\t_\t_\t_
4\ther\t_\tPRON\t_\t_\t2\tobj\t_\t_
5\t.\t_\tPUNCT\t_\t_\t2\tpunct\t_\t_

1\t!\t_\tPUNCT\t_\t_\t0\troot\t_\t_

1\tNo\t_\tINTJ\t_\t_\t_\t_\t_\t_

"""


@pytest.fixture
def gold(tmp_path):
    path = tmp_path / "gold.conllu"
    path.write_text(PUNCTUATED)
    return path


run = programs.runner(attachment, "--format", "tsv", read=programs.tables)


def test_baselines_alone(gold, run):
    # I saw her: L is I<-saw<-her, root her; R is I root, I->saw->her
    assert run("--gold", gold) == [
        [["system", "DA", "UA", "UAS"], ["L", "33.3", "66.7", "40.0"], ["R", "33.3", "66.7", "0.0"]]
    ]
    left_out = "2 sentences left out (no tree, or no word but punctuation)"
    assert f"1 sentences, 5 words, 3 of them not punctuation; {left_out}" in run.said


def test_trees_of_a_file(gold, run, tmp_path):
    predicted = tmp_path / "predicted.conllu"
    text = PUNCTUATED.replace("I\t_\tPRON\t_\t_\t2", "i\t_\tX\t_\t_\t3")
    predicted.write_text(text)
    table = run("--gold", gold, "--predicted", predicted)[0]
    # I hangs on the comma, that on her
    assert table[1] == [str(predicted), "66.7", "66.7", "80.0"]


def test_relations(gold, run, tmp_path):
    _, table = run("--gold", gold, "--by", "deprel")
    assert table[0] == ["relation", "words", "DA L", "UA L", "DA R", "UA R"]
    assert sorted(table[1:]) == [
        ["nsubj", "1", "100.0", "100.0", "0.0", "100.0"],
        ["obj", "1", "0.0", "100.0", "100.0", "100.0"],
        ["root", "1", "0.0", "0.0", "0.0", "0.0"],
    ]


def test_record(gold, run, tmp_path, capsys):
    """Unrounded what the tables say; nothing that is there is replaced unasked."""
    predicted, output = tmp_path / "predicted.conllu", tmp_path / "record.json"
    predicted.write_text(PUNCTUATED.replace("I\t_\tPRON\t_\t_\t2", "I\t_\tX\t_\t_\t3"))
    shares, relations = run("--gold", gold, "--predicted", predicted, "--by", "deprel", "--output", output)
    found = json.loads(output.read_text())
    assert [found[key] for key in ("sentences", "words", "scored")] == [1, 5, 3]
    assert list(found["scores"]) == ["trees", "L", "R"]
    for row, scores in zip(shares[1:], found["scores"].values(), strict=True):
        assert row[1:] == [f"{scores[key]:.1f}" for key in ("DA", "UA", "UAS")]
    for relation, words, *shown in relations[1:]:
        of = [scores["relations"][relation] for scores in found["scores"].values()]
        assert shown == [f"{one[key]:.1f}" for one in of for key in ("DA", "UA")]
        assert {str(one["words"]) for one in of} == {words}
    run("--gold", gold, "--predicted", predicted, "--output", output, status=1)
    assert f"{output}: exists already; give --overwrite" in run.said
    gold.write_text(PUNCTUATED.replace("obj", "iobj"))
    run("--gold", gold, "--predicted", predicted, "--output", output, "--overwrite")
    assert json.loads(output.read_text())["digest"] != found["digest"]
    assert attachment.main(["--gold", str(gold), "--predicted", str(predicted), "--output", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["words"] == 5


@pytest.mark.parametrize("options", [[], ["--evidence", "marginals"], ["--decoder", "eisner"]])
def test_a_model_scores_as_its_trees(latent, trained, run, tmp_path, options, capsys):
    model = [latent.data, "--path", trained("sa_nmt_shared_tiny"), "--cpu", *options]
    bpe = ["--bpe", "subword_nmt", "--bpe-codes", latent.codes]
    gold = f"{latent.text}.en.conllu"
    output = tmp_path / "trees.conllu"
    assert trees.main([*map(str, [*model, *bpe, "--input", gold, "--output", output])]) == 0
    capsys.readouterr()
    (by_model,) = run(*model, *bpe, "--gold", gold)
    (by_file,) = run("--gold", gold, "--predicted", output)
    assert by_model[1][0] == "sa_nmt_shared_tiny"
    assert [row[1:] for row in by_model] == [row[1:] for row in by_file]
    # UAS once more, word by word
    pairs = [
        (a, b)
        for one, other in zip(read_conllu(gold), read_conllu(output), strict=True)
        if any(tag != "PUNCT" for tag in one.upos)
        for a, b in zip(one.heads, other.heads, strict=True)
    ]
    assert by_model[1][3] == f"{100 * sum(a == b for a, b in pairs) / len(pairs):.1f}"


def test_greedy_cycles_can_be_scored(latent, trained, run):
    model = [latent.data, "--path", trained("sa_nmt_shared_tiny"), "--cpu", "--decoder", "greedy"]
    (table,) = run(*model, "--gold", f"{latent.text}.en.conllu", "--bpe", "subword_nmt", "--bpe-codes", latent.codes)
    assert [row[0] for row in table] == ["system", "sa_nmt_shared_tiny", "L", "R"]


def test_text_that_is_cut_in_another_way_is_noticed(latent, trained, run):
    run(latent.data, "--path", trained("sa_nmt_shared_tiny"), "--cpu", "--gold", f"{latent.text}.en.conllu")
    hint = "are unknown to the model; the text must be cut and cased as in training"
    assert f"{hint} (--bpe, --lowercase)" in run.said
    # of options that were given, nothing is said
    model = [latent.data, "--path", trained("sa_nmt_shared_tiny"), "--cpu", "--gold", f"{latent.text}.en.conllu"]
    run(*model, "--lowercase")
    assert f"{hint} (--bpe)" in run.said


def test_the_hint_names_no_option_that_is_given():
    task = SimpleNamespace(cfg=SimpleNamespace(lowercase=False))
    inducer = SimpleNamespace(unknown=1, tokens=4, loaded=SimpleNamespace(task=task))
    note = TreeInducer.note(inducer, SimpleNamespace(bpe="subword_nmt", lowercase=True))
    assert note == "1 of 4 tokens (25.0 %) are unknown to the model; the text must be cut and cased as in training"
    task.cfg.lgp_lowercase = True  # a parser that was trained so reads everything in lower case
    assert TreeInducer.note(inducer, SimpleNamespace(bpe=None, lowercase=False)).endswith("as in training (--bpe)")


def test_collapsed_ranges(gold, run, tmp_path):
    collapsed = run("--gold", gold, "--collapse-ranges")
    assert "1 sentences, 4 words, 3 of them not punctuation" in run.said
    assert collapsed != run("--gold", gold)
    # the trees may be over either
    predicted = tmp_path / "predicted.conllu"
    predicted.write_text(PUNCTUATED)
    assert run("--gold", gold, "--collapse-ranges", "--predicted", predicted)[0][1][1:] == ["100.0"] * 3


def test_short_sentences_can_be_left_out(gold, run, tmp_path):
    gold.write_text(PUNCTUATED + "1\tYes\t_\tINTJ\t_\t_\t0\troot\t_\t_\n\n")
    run("--gold", gold)
    assert run.said.startswith("2 sentences")
    run("--gold", gold, "--min-words", "2")
    assert "(no tree, or fewer than 2 words)" in run.said
    assert run.said.startswith("1 sentences")

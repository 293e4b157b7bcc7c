"""fairseq-syntax attachment: the table of a model is that of its trees, and the baselines stand beside it."""

import json

import programs
import pytest

from fairseq_syntax.evaluate.treebank import sharpness
from fairseq_syntax.tools import attachment, look
from fairseq_syntax.tools.latent_trees import CutSentence, Cutter, TreeInducer
from fairseq_syntax.tools.models import load
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
    left_out = "2 sentences left out (no tree, or only punctuation)"
    assert f"1 sentences, 5 words, 3 of them not punctuation; {left_out}" in run.said
    gold.write_text(PUNCTUATED.replace("her\t_\tPRON", "her\t_\tNOUN"))
    header, *rows = run("--gold", gold, "--grammar")[-1]
    assert header == ["head", "child", "gold", "L", "R"]
    assert sorted(rows) == [["VERB", "NOUN", "50.0", "0.0", "100.0"], ["VERB", "PRON", "50.0", "100.0", "0.0"]]


def test_record(gold, run, tmp_path):
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


def test_a_model_scores_as_its_trees(latent, trained, run, tmp_path, capsys):
    options = ["--evidence", "marginals", "--decoder", "eisner"]
    model = [latent.data, "--path", trained("sa_nmt_shared_tiny"), "--cpu", *options]
    gold, output = f"{latent.text}.en.conllu", tmp_path / "trees.conllu"
    assert look.main([*map(str, [*model, "--input", gold, "--output", output])]) == 0
    capsys.readouterr()
    by_model, grammar = run(*model, "--gold", gold, "--grammar")
    by_file, grammar_of_file = run("--gold", gold, "--predicted", output, "--grammar")
    assert by_model[1][0] == "sa_nmt_shared_tiny"
    assert [row[1:] for row in by_model] == [row[1:] for row in by_file]
    assert grammar[0] == ["head", "child", "gold", "L", "R", "sa_nmt_shared_tiny"]
    assert len(grammar) > 10 and grammar[1:] == grammar_of_file[1:]


def test_collapsed_ranges(gold, run):
    """Predicted trees may be over either words."""
    shares = run("--gold", gold, "--collapse-ranges", "--predicted", gold)[0]
    assert "1 sentences, 4 words, 3 of them not punctuation" in run.said
    assert shares[1][1:] == ["100.0"] * 3


# --- grammar, and how sure a model is -------------------------------------------------------------------------------


def test_how_sure_a_model_is(treebank, trained_parser, run):
    gold = treebank / "valid.conllu"
    shown = run(treebank, "--path", trained_parser(), "--cpu", "--gold", gold, "--sharpness")[-1]
    assert shown[0] == ["system", "entropy", "% of log N", "max p", "% trees"]
    sentences = [s for s in read_conllu(gold) if any(tag != "PUNCT" for tag in s.upos)]
    inducer = TreeInducer(load(str(trained_parser()), str(treebank), True))
    graphs = inducer.graphs([CutSentence(s.forms, [*range(len(s))], len(s), "x") for s in sentences])
    expected = sharpness([graph.probabilities for graph in graphs])
    figures = f"{expected.entropy:.3f} {expected.share:.1f} {expected.top:.3f} {expected.trees:.1f}"
    assert shown[1][1:] == figures.split()


def test_words_are_cased_as_the_model_was_trained(treebank, trained_parser, run, tmp_path):
    """Lower-cased for a dictionary without capitals, or for a parser that was trained so."""
    gold, upper = treebank / "valid.conllu", tmp_path / "upper.conllu"
    rows = [line.split("\t") for line in gold.read_text().splitlines()]
    upper.write_text("".join("\t".join([*row[:1], *map(str.upper, row[1:2]), *row[2:]]) + "\n" for row in rows))
    model = treebank, "--path", trained_parser(), "--cpu"
    assert run(*model, "--gold", upper) == run(*model, "--gold", gold) and "unknown to the model" not in run.said
    upper.write_text(upper.read_text().replace("DOG", "DOGZ").replace("THE", "THEZ"))
    run(*model, "--gold", upper)
    assert "are unknown to the model; the text must be segmented and cased as in training" in run.said
    loaded = load(str(trained_parser()), str(treebank), cpu=True)
    loaded.task.source_dictionary.add_symbol("Dogs")
    for lowercase, expected in ((False, "The"), (True, "the")):
        loaded.task.cfg.lgp_lowercase = lowercase
        assert Cutter(loaded).of_words(["The"], "x").pieces == [expected]

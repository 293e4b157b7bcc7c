"""fairseq-syntax attachment: the table of a model is that of its trees, and the baselines stand beside it."""

import programs
import pytest

from fairseq_syntax.tools import attachment, look
from fairseq_syntax.tools.latent_trees import Cutter
from fairseq_syntax.tools.loaded_model import load_model

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


def test_a_model_scores_as_its_trees(latent, trained, run, tmp_path, capsys):
    options = ["--evidence", "marginals", "--decoder", "eisner"]
    model = [latent.data, "--path", trained("sa_nmt_shared_tiny"), "--cpu", *options]
    gold, output = f"{latent.text}.en.conllu", tmp_path / "trees.conllu"
    assert look.main([*map(str, [*model, "--input", gold, "--output", output])]) == 0
    capsys.readouterr()
    by_model, relations = run(*model, "--gold", gold, "--by", "deprel")
    by_file, relations_of_file = run("--gold", gold, "--predicted", output, "--by", "deprel")
    assert by_model[1][0] == "sa_nmt_shared_tiny"
    assert [row[1:] for row in by_model] == [row[1:] for row in by_file]
    assert relations[0][:4] == ["relation", "words", "DA sa_nmt_shared_tiny", "UA sa_nmt_shared_tiny"]
    assert len(relations) > 3 and relations[1:] == relations_of_file[1:]


def test_collapsed_ranges(gold, run):
    """Predicted trees may be over either words."""
    shares = run("--gold", gold, "--collapse-ranges", "--predicted", gold)[0]
    assert "1 sentences, 4 words, 3 of them not punctuation" in run.said
    assert shares[1][1:] == ["100.0"] * 3


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
    loaded = load_model(str(trained_parser()), str(treebank), cpu=True)
    loaded.task.source_dictionary.add_symbol("Dogs")
    for lowercase, expected in ((False, "The"), (True, "the")):
        loaded.task.cfg.lgp_lowercase = lowercase
        assert Cutter(loaded).cut_words(["The"], "x").pieces == [expected]

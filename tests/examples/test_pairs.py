"""Minimal pairs of the agreement corpus."""

import subprocess
import sys

import pytest
from conftest import REPOSITORY

from fairseq_syntax.evaluate.minimal_pairs import read_pairs
from fairseq_syntax.trees.conllu import read_conllu

AGREEMENT = REPOSITORY / "examples" / "agreement"


def run(script, *arguments, status=0):
    """Run a script; returns stderr."""
    done = subprocess.run([sys.executable, script, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("agreement") / "corpus"
    sizes = ["--train", 10, "--valid", 5, "--test", 80, "--challenge", 8]
    run(AGREEMENT / "generate.py", "--output", folder, *sizes)
    return folder


@pytest.fixture(scope="module")
def made(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    run(AGREEMENT / "pairs.py", "--corpus", corpus, "--output", folder)
    return folder


def test_agreement_differs_in_the_verb(made, corpus):
    pairs = read_pairs(made / "agreement")
    assert pairs.correct == (corpus / "challenge.de").read_text().splitlines() and len(pairs) == 40
    rows = [line.split("\t") for line in (corpus / "challenge.tsv").read_text().splitlines()[1:]]
    for correct, incorrect, row in zip(pairs.correct, pairs.incorrect, rows, strict=True):
        different = [(a, b) for a, b in zip(correct.split(), incorrect.split(), strict=True) if a != b]
        assert different == [tuple(row[5:7] if row[7] == "singular" else row[6:4:-1])]
    assert pairs.details["attractors"] == [row[1] for row in rows]
    assert pairs.details["distance"] == [row[2] for row in rows]
    trees = list(read_conllu(made / "agreement" / "trees.en.conllu"))
    assert [" ".join(tree.forms) for tree in trees] == pairs.sources


def test_attachment_is_what_the_rules_make_of_another_tree(made, corpus, tmp_path):
    pairs = read_pairs(made / "attachment")
    assert set(pairs.details["attachment"]) == {"phrase", "relative"} and len(pairs) > 5
    references = dict(
        zip((corpus / "test.en").read_text().splitlines(), (corpus / "test.de").read_text().splitlines(), strict=True)
    )
    assert [references[source] for source in pairs.sources] == pairs.correct
    # the trees beside the pairs are those of the members
    script = AGREEMENT / "transfer.py"
    for name, members in (("trees", pairs.correct), ("other", pairs.incorrect)):
        trees = made / "attachment" / f"{name}.en.conllu"
        done = subprocess.run([sys.executable, script, trees], capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.splitlines() == members
        assert [" ".join(tree.forms) for tree in read_conllu(trees)] == pairs.sources
    assert not (made / "agreement" / "other.en.conllu").exists()

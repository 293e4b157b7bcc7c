"""fairseq-syntax whatif: translations and scores under a changed tree are those of fairseq-interactive under it."""

import math
import re
from pathlib import Path
from types import SimpleNamespace

import programs
import pytest
from integration import commands

from fairseq_syntax.tools import whatif
from fairseq_syntax.trees.conllu import ROOT, format_sentence, read_conllu
from fairseq_syntax.trees.edits import edited

# architecture, with options of its training -> what fairseq-interactive needs besides
READERS = {"lisa_transformer_tiny": ["--lisa-gold-parses"], "tag_transformer_tiny": [], "lgp_tiny --lgp-graph dep": []}
TRAINING = {
    "lisa_transformer_tiny": ["--criterion", "label_smoothed_cross_entropy_with_heads"],
    "tag_transformer_tiny": ["--tag-embed-dim", "40"],  # a single label makes a difference
}
SEARCH = ["--beam", 3, "--max-len-b", 12]
SENTENCE = 4


verb = programs.runner(whatif)


@pytest.fixture
def run(verb, latent, trained):
    """Function: architecture, options -> stdout; stderr is in `verb.said`."""

    def call(arch, *options, status=0, training=()):
        given = [latent.data, "--path", trained(arch, *TRAINING.get(arch, ()), *training), "--cpu", *SEARCH]
        return verb(*given, *options, status=status)

    return call


def tables(output):
    """Rows of cells of each table, the header first."""
    return programs.tables(output.strip("\n"))


@pytest.fixture(scope="module")
def changed(latent, tmp_path_factory):
    """A sentence of the test split, an edit, and files of its tree and of the edited one."""
    tree = list(read_conllu(f"{latent.text}.en.conllu"))[SENTENCE]
    for word, head in ((w, h) for w in range(1, len(tree) + 1) for h in range(1, len(tree) + 1)):
        if tree.heads[word - 1] not in (ROOT, head - 1):
            try:
                new = edited(tree, {word: head}, {word: "rel2"})
            except ValueError:
                continue
            break
    folder = tmp_path_factory.mktemp("trees")
    for name, sentence in (("given", tree), ("new", new)):
        (folder / f"{name}.conllu").write_text(format_sentence(sentence))
    text = Path(f"{latent.text}.en").read_text().splitlines()[SENTENCE]
    (folder / "text").write_text(f"{text}\n")
    edits = ["--head", f"{word}={head}", "--label", f"{word}=rel2"]
    return SimpleNamespace(tree=tree, new=new, word=word, folder=folder, edits=edits)


def interactive(latent, checkpoint, changed, name, *options):
    """(translation, log-probability) of the sentence under one of its trees."""
    parser = ["--parser", "conllu", "--parser-model", changed.folder / f"{name}.conllu"]
    given = ["--input", changed.folder / "text", "--cpu", *SEARCH, *parser, "--remove-bpe", *options]
    output = commands.run("fairseq-interactive", latent.data, "--path", checkpoint, *given)
    text = re.search(r"^H-0\t\S+\t(.*)$", output, re.MULTILINE)[1]
    scores = re.search(r"^P-0\t(.*)$", output, re.MULTILINE)[1].split()
    return text, sum(map(float, scores)) * math.log(2)


@pytest.mark.parametrize("reader", READERS)
def test_readers_translate_as_under_the_other_tree(reader, latent, trained, run, changed):
    arch, *training = reader.split()
    trees, found, looks = tables(
        run(arch, "--subset", "test", "--sentence", SENTENCE, *changed.edits, "--format", "tsv", training=training)
    )
    checkpoint = trained(arch, *TRAINING.get(arch, ()), *training)
    text, score = interactive(latent, checkpoint, changed, "new", *READERS[reader])
    assert found[2][3] == text and float(found[2][2]) == pytest.approx(score, abs=0.02)
    assert found[1][1] != found[1][2], "the tree makes a difference"
    starred = [row for row in trees[1:] if row[3].endswith("*")]
    assert [row[0] for row in starred] == [str(changed.word)] and "(rel2)" in starred[0][3]
    assert [row[0] for row in looks[1:] if row[0]] == found[1][3].split()
    assert {row[1] for row in looks[1:]} <= {*changed.tree.forms, ""}


def test_a_tree_comes_from_a_file_a_parser_or_nowhere(run, changed):
    arch, form = "pascal_transformer_tiny", ["--format", "tsv"]
    expected = tables(run(arch, "--input", changed.folder / "given.conllu", *changed.edits, *form))
    given, new = changed.folder / "given.conllu", changed.folder / "new.conllu"
    found = tables(run(arch, "--input", given, "--trees", new, "--no-parse", *form))
    assert [row[:3] for row in found[1][1:3]] == [
        [name, *row[1:3]] for name, row in zip(("original", "line 1"), expected[1][1:], strict=True)
    ]
    assert found[1][3][0] == "no parse" and {row[4] for row in found[0][1:]} == {"-"}
    parsed = tables(run(arch, "--input", changed.folder / "text", "--parser", "conllu", "--parser-model", given, *form))
    assert parsed[1][1][1] == expected[1][1][1]


@pytest.mark.parametrize("arch", ["sa_nmt_shared_tiny", "lgp_tiny"])
def test_latent_heads_are_clamped(arch, latent, trained, run, verb, changed):
    given = "--input", changed.folder / "given.conllu", *changed.edits[:2], "--format", "tsv"
    _, found, _ = tables(run(arch, *given))
    assert [row[0] for row in found[1:3]] == ["its own", "original"] and len(found) == 4
    text, score = interactive(latent, trained(arch), changed, "given")
    assert found[1][4] == text and float(found[1][1]) == pytest.approx(score, abs=0.02)
    assert len(set(found[1][1:4])) == 3, "all three are different graphs"
    assert verb.said == ""
    _, found, _ = tables(run(arch, "--input", changed.folder / "text", "--format", "tsv"))
    assert [row[0] for row in found[1:]] == ["its own", "its own best"]


def test_models_that_read_no_heads_or_no_labels_say_so(run, verb, changed):
    given, other = ["--input", changed.folder / "given.conllu"], 1 + (changed.word == 1)
    scores = tables(run("tag_transformer_tiny", *given, *changed.edits[:2], "--format", "tsv"))[1]
    assert scores[1][1:] == scores[2][1:] and "only labels and tags, so changed heads have no effect" in verb.said
    run("tag_transformer_tiny", *given, "--label", f"{changed.word}=odd")
    assert "not seen in training: odd" in verb.said
    run("pascal_transformer_tiny", *given, *changed.edits)
    assert verb.said == "", "the label of a word that is attached elsewhere is for the picture"
    run("pascal_transformer_tiny", *given, *changed.edits, "--label", f"{other}=x")
    assert "reads no labels, so --label has no effect" in verb.said


def test_the_picture_has_both_trees(run, changed, tmp_path):
    """What marks the arc: unit/pictures/test_dependency_trees.py."""
    picture = tmp_path / "whatif.svg"
    run("pascal_transformer_tiny", "--input", changed.folder / "given.conllu", *changed.edits, "--draw", picture)
    arcs = re.findall(r'id="(arc-\d-\d+)"', picture.read_text())
    assert sorted(set(arcs)) == sorted(f"arc-{panel}-{word}" for panel in (0, 1) for word in range(len(changed.tree)))

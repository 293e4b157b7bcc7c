"""Bundled models: whole, loaded by name, with the bundled parser, and as directories."""

import json
import shutil

import pytest

from fairseq_syntax import pretrained
from fairseq_syntax.systems.parser.parse import OwnParser
from fairseq_syntax.systems.pascal import PascalTransformerModel
from fairseq_syntax.tools import dir as dir_verb
from fairseq_syntax.trees.conllu import TreeFormatError
from fairseq_syntax.trees.edits import edited

SENTENCE = "the child with the boys that some birds helped admires two fish ."
TRANSLATION = "das kind mit den jungen , dem einige vögel halfen , bewundert zwei fische ."
# The parser attaches "helped" to "boys", and three models follow it; SA-NMT, which reads no parse, errs, too.
FOLLOWING = ("agreement-pascal", "agreement-dasa", "agreement-lgp-dep", "agreement-sa-nmt")
OTHERS = dict.fromkeys(FOLLOWING, TRANSLATION.replace("dem", "denen"))


def test_the_manifest_names_every_file():
    found = {
        folder.name: sorted(path.name for path in folder.iterdir())
        for folder in pretrained.FOLDER.iterdir()
        if folder.is_dir() and folder.name != "__pycache__"
    }
    manifest = json.loads(pretrained.MANIFEST.read_text(encoding="utf8"))
    assert {name: sorted(files) for name, files in manifest.items()} == found
    assert sorted(found) == pretrained.names() and all(pretrained.folder(name).is_dir() for name in found)


@pytest.mark.parametrize("name", [name for name in pretrained.names() if not name.endswith("-parser")])
def test_by_name_raw_text_is_translated(name):
    model = PascalTransformerModel.from_pretrained(name)
    assert model.translate([SENTENCE]) == [OTHERS.get(name, TRANSLATION)]


@pytest.fixture(scope="module")
def model():
    return PascalTransformerModel.from_pretrained("agreement-pascal")


def test_names_of_options_are_checked():
    """fairseq ignores those that it does not know."""
    for name in ("parsr", "sa_root_score"):
        with pytest.raises(TypeError, match=f"{name}: no such option"):
            PascalTransformerModel.from_pretrained("agreement-pascal", **{name: "none"})
    model = PascalTransformerModel.from_pretrained("agreement-sa-nmt", max_tokens=400, sa_scaled_heads=True)
    for options, said in (
        ({"max_len": 1}, "max_len: no such option"),
        ({"replace_unk": ""}, "replace_unk: no such option"),
        ({"beam": "5"}, "beam=.*: must be at least 1"),
        ({"constraints": "ordered"}, "--constraints: none are given; only fairseq-interactive reads them"),
    ):
        with pytest.raises((TypeError, ValueError), match=said):
            model.translate(SENTENCE, **options)
    assert model.translate(SENTENCE, max_len_b=30, nbest=2) == OTHERS["agreement-sa-nmt"]
    assert PascalTransformerModel.from_pretrained("agreement-pascal", beam=7).cfg.generation.beam == 7
    assert model.translate("the " * 500, max_len_b=3), "may be longer than a batch of the training"


def test_a_tree_that_is_given_takes_the_place_of_the_parsers(model):
    text = "this fish under the bridges that the kings must forget must suddenly fetch the aunts ."
    tree = model.parse(text)
    assert tree.forms == text.split() and tree.is_parsed and model.parse([text, SENTENCE])[0] == tree
    bridges, fish = (edited(tree, {10: head}) for head in (5, 2))
    start, end = "dieser fisch unter den brücken ,", "die könige vergessen müssen , muss plötzlich die tanten abholen ."
    expected = [f"{start} {which} {end}" for which in ("die", "den")]
    assert model.translate([text, text], trees=[bridges, fish]) == expected
    assert model.translate(text, trees=fish) == expected[1]
    assert model.translate(text, trees=tree) == model.translate(text)
    assert model.encode(text, fish).syntax.heads[9] == 1 and model.encode(text).syntax.heads[9] == tree.heads[9]
    for trees, what in (([fish], "1 trees are given for 2 sentences"), ([fish] * 2, "words")):
        with pytest.raises(TreeFormatError, match=what):
            model.translate([text, SENTENCE], trees=trees)
    stock = PascalTransformerModel.from_pretrained("agreement-transformer")
    with pytest.raises(ValueError, match="the model reads none"):
        stock.translate(text, trees=tree)


def test_sentences_that_are_skipped_leave_their_place_empty(model):
    """Before a parser with a limit of its own, in one batch and in several."""
    long = " ".join(["the"] * 2000)
    found = model.translate([long, SENTENCE, long, "the dog sleeps .", long], skip_invalid_size_inputs=True)
    assert found == ["", model.translate(SENTENCE), "", model.translate("the dog sleeps ."), ""]
    assert model.translate([]) == []
    with pytest.raises(Exception, match="Size of sample #1 is invalid"):
        model.translate(["a", long])


def test_a_name_is_a_parser():
    words = SENTENCE.split()
    (tree,) = OwnParser("agreement-parser", device="cpu").parse([words])
    assert tree.forms == words and tree.heads[words.index("admires")] == -1
    assert tree.heads[words.index("child")] == words.index("admires")
    assert pretrained.checkpoint("elsewhere.pt") == "elsewhere.pt"


def test_what_is_damaged_or_not_there_is_named(tmp_path, monkeypatch, capsys):
    shutil.copytree(pretrained.FOLDER, tmp_path / "models")
    monkeypatch.setattr(pretrained, "FOLDER", tmp_path / "models")
    pretrained.folder.cache_clear()
    path = tmp_path / "models" / "agreement-pascal" / "dict.de.txt"
    path.write_text(path.read_text(encoding="utf8") + "word 1\n", encoding="utf8")
    with pytest.raises(ValueError, match=r"dict\.de\.txt: missing or damaged"):
        PascalTransformerModel.from_pretrained("agreement-pascal")
    pretrained.folder.cache_clear()
    monkeypatch.undo()
    for name in ("agreement-pascla", tmp_path / "nowhere"):
        with pytest.raises(FileNotFoundError, match=rf"{name}: no such folder or bundled model; choose from a"):
            PascalTransformerModel.from_pretrained(name)
    assert dir_verb.main(["agreement-nothing"]) == 1
    assert "no bundled model has this name; choose from agreement-dasa, " in capsys.readouterr().err
    assert dir_verb.main(["agreement-pascal"]) == 0
    assert capsys.readouterr().out.strip() == str(pretrained.FOLDER / "agreement-pascal")

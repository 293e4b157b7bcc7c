"""Odd treebanks by every verb that reads trees: those that are right are taken, wrong ones are told of with their line.

The reader itself against the strict one, of many damaged files: unit/trees/test_conllu.py.
"""

import functools
import logging
import re

import numpy as np
import pytest
from corpora import read_tags
from odd_treebanks import ODD, PLAIN, row
from oracles import conllu_format as strict

from fairseq_syntax.cli import program
from fairseq_syntax.data.arrays import ArrayReader, tag_dictionary_path
from fairseq_syntax.systems.parser.treebank import read_treebank
from fairseq_syntax.tools import loaded_model

VERBS = (
    "preprocess -s en -t de --trainpref {folder}/p --destdir {folder}/bin --allow-unparsed --only-syntax "
    "--subword-type none",
    "linearize --input {folder}/p --output {folder}/out --source-lang en --target-lang de --subword-type none",
    "attachment --gold {path} --predicted {path} --collapse-ranges",
    "attachment {model} --gold {path}",
    "look {model} --input {path} --output {folder}/out.conllu",
    "look {model} --input {path} --output {folder}/collapsed.conllu --collapse-ranges",
    "parse --input {folder}/p.en --output {folder}/parsed --parser conllu --parser-model {path}",
    "perturb --input {path} --output {folder}/random.conllu --trees random",
    "compare --system x {folder}/p.en --source {folder}/p.en --reference {folder}/p.en --metrics chrF --by depth "
    "--parse {path} --bootstrap 10",
)
KNOWN = ("and perturbed trees have one", "the model reads at most 1024")


@pytest.fixture(scope="module")
def loaded(latent, trained):
    """Arguments of a model, and a `loaded_model.load_model` that loads it once."""
    model = f"{latent.data} --path {trained('sa_nmt_shared_tiny')} --cpu"
    return model, functools.cache(loaded_model.load_model)


@pytest.fixture
def command(loaded, tmp_path, capsys, monkeypatch):
    """Function: command line -> what a verb says where it refuses trees.en.conllu, or "" where it takes it."""
    monkeypatch.setattr(loaded_model, "load_model", loaded[1])

    def call(line):
        # handlers of other tests write to what these have closed
        logging.basicConfig(level="WARNING", format="%(message)s", force=True)
        capsys.readouterr()
        given = line.format(folder=tmp_path, path=tmp_path / "p.en.conllu", model=loaded[0])
        verb, *options = given.split()
        status = program.verb_module(verb).main(options)
        said = [line for line in capsys.readouterr().err.splitlines() if line.startswith(f"fairseq-syntax {verb}: ")]
        assert len(said) == status if status else "Traceback" not in "".join(said)
        return said[0] if status else ""

    return call


def write(folder, content, sentences):
    """The treebank p.en.conllu, and the text of its sentences, binarized as far as a program that adds trees looks."""
    (folder / "p.en.conllu").write_bytes(content.encode())
    (folder / "bin").mkdir()
    text = "".join(" ".join(" ".join(words).split()) + "\n" for words in sentences)
    for name in ("p.en", "p.de", "bin/train.en-de.en"):
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


@pytest.mark.parametrize("name", ODD)
def test_odd_but_valid_files(name, command, tmp_path):
    """What is written of them is right, too: heads and tags, where a tag may be spelled like a symbol."""
    trees = strict.read(ODD[name].encode())
    write(tmp_path, ODD[name], [tree.forms for tree in trees])
    refusals = [said for line in VERBS if (said := command(line))]
    assert [said for said in refusals if not any(known in said for known in KNOWN)] == []
    assert [each.words for each in read_treebank(tmp_path / "p.en.conllu")] == [t.forms for t in trees if t.forms]
    heads = ArrayReader(tmp_path / "bin" / "train.en-de.en.heads")
    assert [np.array(heads[i]).tolist() for i in range(len(heads))] == [
        [-2 if head == "_" else int(head) - 1 for head in tree.heads] for tree in trees
    ]
    for kind in ("upos", "deprels"):
        stored = ArrayReader(tmp_path / "bin" / f"train.en-de.en.{kind}")
        numbers = read_tags(tag_dictionary_path(tmp_path / "bin", "en", kind))
        expected = [[numbers[tag] for tag in getattr(tree, kind)] for tree in trees]
        assert [np.array(stored[i]).tolist() for i in range(len(stored))] == expected
    for path in (tmp_path / "out.conllu", tmp_path / "random.conllu"):
        written = strict.read(path.read_bytes()) if path.exists() else []
        assert [tree.forms for tree in written] in ([], [tree.forms for tree in trees])
        for tree, given in zip(written, trees, strict=False):
            assert path.stem != "out" or not tree.forms or strict.check_universal(tree) is None
            assert (tree.comments, tree.ranges, tree.upos) == (given.comments, given.ranges, given.upos)
    if (tmp_path / "collapsed.conllu").exists():
        sizes = [len(tree.forms) - sum(last - first for first, last, _ in tree.ranges) for tree in trees]
        assert [len(t.forms) for t in strict.read((tmp_path / "collapsed.conllu").read_bytes())] == sizes


@pytest.mark.parametrize("line", VERBS)
def test_a_file_that_is_wrong_is_one_message_with_its_line(line, command, tmp_path):
    wrong = PLAIN + row(1, "a", 1) + "\n"
    write(tmp_path, wrong, [["dogs", "bark", "."], ["a"]])
    said = command(line)
    assert re.search(re.escape(str(tmp_path / "p.en.conllu")) + ":5: ", said) and len(said) < 300 + len(str(tmp_path))

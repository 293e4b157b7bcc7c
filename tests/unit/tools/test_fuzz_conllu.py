"""Damaged CoNLL-U files, and odd ones that are right, by every verb that reads trees: they are taken, or told of.

The reader itself against the strict one: unit/trees/test_conllu.py.
"""

import functools
import logging
import re
import shutil

import mutations
import numpy as np
import pytest
from corpora import read_tags
from odd_treebanks import ODD
from oracles import conllu_format as strict

from fairseq_syntax.cli import program
from fairseq_syntax.data.arrays import ArrayReader, tag_dictionary_path
from fairseq_syntax.data.parsers.conllu import ConlluParser
from fairseq_syntax.systems.parser.treebank import read_treebank
from fairseq_syntax.tools import models
from fairseq_syntax.trees.conllu import TreeFormatError

SEEDS = range(0, 3000, 30)
PARTS = 10
# they read a file to its end, so that a wrong one cannot be accepted
VERBS = (
    "preprocess -s en -t de --trainpref {folder}/p --destdir {folder}/bin --allow-unparsed --only-syntax "
    "--subword-type none",
    "linearize --input {folder}/p --output {folder}/out --source-lang en --target-lang de --subword-type none",
    "attachment --gold {path} --predicted {path} --collapse-ranges --grammar",
    "attachment --gold {gold} --predicted {path}",
    "attachment {model} --gold {path} --sharpness",
    "look {model} --input {path} --output {folder}/out.conllu",
)
# of files that are right; the second is the text itself
MORE = (
    "parse --input {folder}/p.en --output {folder}/parsed --parser conllu --parser-model {path}",
    "perturb --input {path} --output {folder}/random.conllu --trees random",
    "compare --system x {folder}/p.en --source {folder}/p.en --reference {folder}/p.en --metrics chrF --by depth "
    "--parse {path} --bootstrap 10",
)


@pytest.fixture(scope="module")
def loaded(latent, trained):
    """Arguments of a model, and a `models.load` that loads it once."""
    model = f"{latent.data} --path {trained('sa_nmt_shared_tiny')} --cpu"
    return model, functools.cache(models.load)


class Case:
    """A file in a folder, beside its text: two words where a sentence is broken."""

    def __init__(self, folder, data, packed, model, capsys):
        folder.mkdir()
        self.folder, self.capsys = folder, capsys
        self.path = folder / f"p.en.conllu{'.gz' * packed}"
        self.path.write_bytes(data)
        self.places = {"folder": folder, "path": self.path, "model": model, "gold": folder / "gold.conllu"}
        self.places["gold"].write_bytes(mutations.whole(7).encode())
        try:
            self.trees = strict.read(data, packed)
        except strict.Invalid:
            self.trees = None
        words = [["a", "b"]] if self.trees is None else [tree.forms for tree in self.trees]
        text = "".join(" ".join(" ".join(forms).split()) + "\n" for forms in words)
        (folder / "bin").mkdir()
        for name in ("p.en", "p.de", "bin/train.en-de.en"):
            (folder / name).write_text(text, encoding="utf-8", newline="\n")

    def judge(self, message):
        """A message names the file, and the line or sentence if the file is no CoNLL-U; it is one line and short."""
        assert str(self.folder) in message, message
        if self.trees is None:
            assert re.search(re.escape(str(self.folder)) + r"[^ ]*(:| .*(line|after|sentence) )\d+", message), message
        assert "\n" not in message and "\r" not in message and "Traceback" not in message
        assert len(message.replace(str(self.folder), "")) < 600, message

    def read(self):
        """Both readers of the package that read a file as a whole."""
        for reader in (ConlluParser, functools.partial(read_treebank, pos_column="xpos")):
            try:
                found = reader(self.path)
            except TreeFormatError as error:
                self.judge(str(error))
                found = None
            tags = [tag for tree in self.trees or () for tag in tree.xpos]
            good = bool(tags) and all(tag and tag.split() == [tag] for tag in tags)
            assert (found is not None) == (self.trees is not None and (reader is ConlluParser or good))

    def command(self, line):
        """What a verb says where it refuses; none accepts what is no CoNLL-U."""
        self.capsys.readouterr()
        # handlers of other tests write to what these have closed
        logging.basicConfig(level="WARNING", format="%(message)s", force=True)
        verb, *options = line.format(**self.places).split()
        status = program.load(verb).main(options)
        error = self.capsys.readouterr().err
        assert "Traceback" not in error and status in (0, 1), error
        if not status:
            assert self.trees is not None, line
            return ""
        said = [line for line in error.splitlines() if line.startswith(f"fairseq-syntax {verb}: ")]
        assert len(said) == 1, error
        self.judge(said[0])
        return said[0]


@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_files(part, loaded, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(models, "load", loaded[1])
    taken = 0
    for number, seed in enumerate(SEEDS[part::PARTS], part):
        case = Case(tmp_path / str(seed), *mutations.file(seed), loaded[0], capsys)
        case.read()
        taken += case.trees is not None
        for shift in (0, 1, 3):
            case.command(VERBS[(number + shift) % len(VERBS)])
        shutil.rmtree(case.folder)
    assert 0 < taken < len(SEEDS) / PARTS


def check_arrays(case):
    """Of preprocessed trees: heads and tags are those of the file, where a tag may be spelled like a symbol."""
    read = {name: ArrayReader(case.folder / "bin" / f"train.en-de.en.{name}") for name in ("heads", "upos", "deprels")}
    tags = {name: read_tags(tag_dictionary_path(case.folder / "bin", "en", name)) for name in ("upos", "deprels")}
    for i, tree in enumerate(case.trees):
        assert np.array(read["heads"][i]).tolist() == [-2 if head == "_" else int(head) - 1 for head in tree.heads]
        for name, of in tags.items():
            assert np.array(read[name][i]).tolist() == [of[tag] for tag in getattr(tree, name)]


@pytest.mark.parametrize("name", ODD)
def test_odd_but_valid_files(name, loaded, tmp_path, capsys, monkeypatch):
    """Every reader and every verb that reads trees takes them; what is written of them is right, too."""
    monkeypatch.setattr(models, "load", loaded[1])
    case = Case(tmp_path / "odd", ODD[name].encode(), False, loaded[0], capsys)
    case.read()
    refusals = [said for line in (*VERBS, *MORE) if (said := case.command(line))]
    known = ("but .*gold.conllu has 6", "and perturbed trees have one", "the model reads at most 1024")
    assert [said for said in refusals if not any(re.search(each, said) for each in known)] == []
    check_arrays(case)
    for path in (case.folder / "out.conllu", case.folder / "random.conllu"):
        if path.exists():
            written = strict.read(path.read_bytes())
            assert [tree.forms for tree in written] == [tree.forms for tree in case.trees]
            for tree in written:
                if tree.forms and path.stem == "out":
                    strict.check_universal(tree)

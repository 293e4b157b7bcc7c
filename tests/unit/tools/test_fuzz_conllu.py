"""200 damaged CoNLL-U files by all readers, and two commands each: what a strict reader says, or one short message."""

import functools
import importlib.util
import logging
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import mutations
import numpy as np
import pytest
from corpora import read_tags
from odd_treebanks import ODD
from oracles import conllu_format as strict

from fairseq_syntax.data.arrays import ArrayReader, tag_dictionary_path
from fairseq_syntax.data.parsers import stanza
from fairseq_syntax.data.parsers.conllu import ConlluParser
from fairseq_syntax.systems.parser.treebank import read_treebank
from fairseq_syntax.tools import (
    attachment,
    compare,
    linearize,
    look,
    models,
    parse,
    perturb,
    preprocess,
)
from fairseq_syntax.trees.conllu import Sentence, TreeFormatError, read_conllu

SEEDS = range(0, 3000, 15)
PARTS = 10
ROOT = Path(__file__).resolve().parents[3]


def heads_of(tree):
    return [-2 if head == "_" else int(head) - 1 for head in tree.heads]


def content(tree):
    ranges = [(first - 1, last - 1, form) for first, last, form in tree.ranges]
    return tree.forms, heads_of(tree), tree.deprels, tree.upos, ranges, tree.comments, tree.line


class Case:
    """One file, what it says, and a folder to work in."""

    def __init__(self, seed, data, packed, folder, capsys, world):
        self.packed, self.refusals = packed, []
        self.seed, self.folder, self.root, self.capsys, self.world = seed, folder, folder, capsys, world
        self.folder.mkdir()
        self.path = folder / ("x.conllu.gz" if self.packed else "x.conllu")
        self.path.write_bytes(data)
        self.data = data
        try:
            self.trees = strict.read(data, self.packed)
        except strict.Invalid:
            self.trees = None

    def judge(self, message):
        """A message names the file, and the line or sentence if the file is no CoNLL-U; it is one line and short."""
        assert str(self.root) in message, message
        if self.trees is None:
            assert re.search(re.escape(str(self.root)) + r"[^ ]*(:| .*(line|after|sentence) )\d+", message), message
        assert "\n" not in message and "\r" not in message and "Traceback" not in message
        assert len(message.replace(str(self.root), "")) < 600, message

    def refused(self, function, *arguments):
        """The result of a function of ours, or None after a message."""
        try:
            return function(*arguments)
        except TreeFormatError as error:
            self.judge(str(error))

    def command(self, main, *argv):
        """Whether a command accepts the file; it may refuse a good one only with a message."""
        self.capsys.readouterr()
        # handlers of other tests write to what these have closed
        logging.basicConfig(level="WARNING", format="%(message)s", force=True)
        try:
            status = main([str(part) for part in argv])
        except SystemExit as stopped:
            status = stopped.code
        error = self.capsys.readouterr().err
        assert "Traceback" not in error
        assert status in (0, 1, None), error
        said = re.findall(r"(?:^|[\r\n])((?:fairseq-syntax [a-z]+|subjects\.py): [^\n]*)", error)
        if status == 1:
            # a treebank may be told of before it is refused
            said = [line for line in said if "no word of the treebank has the UPOS PUNCT" not in line]
            assert len(said) == 1, error
            self.judge(said[0].rstrip())
            self.refusals.append(said[0])
        else:
            assert self.trees is not None, f"seed {self.seed}: accepted"
        return status != 1


# --- readers --------------------------------------------------------------------------------------------------------


def by_reader(case):
    found = case.refused(lambda: list(read_conllu(case.path)))
    assert (found is None) == (case.trees is None), case.seed
    if found is not None:
        ours = [(t.forms, t.heads, t.deprels, t.upos, t.ranges, t.comments, t.line) for t in found]
        assert ours == [content(tree) for tree in case.trees], case.seed


def by_treebank(case):
    found = case.refused(functools.partial(read_treebank, pos_column="xpos"), case.path)
    good = case.trees is not None and all(tag and tag.split() == [tag] for tree in case.trees for tag in tree.xpos)
    assert (found is not None) == (good and any(tree.forms for tree in case.trees)), case.seed
    if found is not None:
        expected = [(tree.forms, tree.xpos, heads_of(tree)) for tree in case.trees if tree.forms]
        assert [(s.words, s.tags, s.tree.heads) for s in found] == expected, case.seed


def by_lookup(case):
    found = case.refused(ConlluParser, case.path)
    assert (found is None) == (case.trees is None), case.seed
    if found is not None and len({tuple(tree.forms) for tree in case.trees}) == len(case.trees):
        plain = [tree for tree in case.trees if tree.forms and not any(t.ranges for t in case.trees)]
        assert [tree.heads for tree in found.parse([tree.forms for tree in plain])] == [heads_of(t) for t in plain]


READERS = [by_reader, by_treebank, by_lookup]

# --- commands -------------------------------------------------------------------------------------------------------


def sentences(case):
    """Each sentence of the file or, where it is broken, None; none if the file cannot be read."""
    found = []
    try:
        text = strict.text(case.data, case.packed)
    except strict.Invalid:
        return found
    for begin, block in strict.blocks(text):
        try:
            found.append(strict.sentence(block, begin))
        except strict.Invalid:
            found.append(None)
    return found


def corpus(case):
    """The text of a file that may be broken: two words where that is all that can be said."""
    found = sentences(case)
    words = [["a", "b"] if tree is None else tree.forms for tree in found]
    for language in ("en", "de"):
        lines = [" ".join(w for form in forms for w in form.split()) + "\n" for forms in words]
        (case.folder / f"p.{language}").write_text("".join(lines), encoding="utf-8", newline="\n")
    shutil.copy(case.path, case.folder / ("p.en." + case.path.name[2:]))
    return found


def by_preprocess(case):
    found = corpus(case)
    fits = [tree is not None and all(form.split() for form in tree.forms) for tree in found]
    data = case.folder / "bin"
    data.mkdir()
    shutil.copy(case.folder / "p.en", data / "train.en-de.en")
    accepted = case.command(
        preprocess.main,
        *("-s", "en", "-t", "de", "--trainpref", case.folder / "p", "--destdir", data, "--allow-unparsed"),
        *("--only-syntax", "--subword-type", "none"),
    )
    if not accepted:
        assert len(list(data.iterdir())) == 1 and not (case.trees is not None and all(fits)), case.seed
        return
    assert all(fits), case.seed
    read = {name: ArrayReader(f"{data}/train.en-de.en.{name}") for name in ("heads", "upos", "deprels")}
    tags = {name: read_tags(tag_dictionary_path(data, "en", name)) for name in ("upos", "deprels")}
    for i, tree in enumerate(found):
        assert np.array(read["heads"][i]).tolist() == heads_of(tree), case.seed
        for name, of in tags.items():
            # a tag may be spelled like a special symbol of fairseq
            assert np.array(read[name][i]).tolist() == [of[tag] for tag in getattr(tree, name)], case.seed


def by_linearize(case):
    found = corpus(case)
    accepted = case.command(
        *(linearize.main, "--input", case.folder / "p", "--output", case.folder / "out"),
        *("--source-lang", "en", "--target-lang", "de", "--subword-type", "none"),
    )
    if accepted:
        parsed = [tree for tree in found if tree.forms and tree.heads[0] != "_"]
        parses = [line for line in (case.folder / "out.de").read_text().split("\n") if line.startswith("(")]
        assert [sorted(re.findall(r"\((\S*)", line)) for line in parses] == [sorted(t.deprels) for t in parsed]


def by_attachment(case):
    case.command(attachment.main, "--gold", case.path)
    case.command(attachment.main, "--gold", case.path, "--predicted", case.path)
    case.command(attachment.main, "--gold", case.world.gold, "--predicted", case.path)


def by_grammar(case):
    case.command(attachment.main, "--gold", case.path, "--collapse-ranges", "--grammar")


def by_subjects(case):
    case.command(case.world.subjects.main, "--gold", case.path)


def by_trees(case):
    out = case.folder / "out.conllu"
    case.command(look.main, *case.world.model, "--input", case.path, "--output", out, "--decoder", "mst")
    if out.exists():
        written = strict.read(out.read_bytes())
        assert [tree.forms for tree in written] == [tree.forms for tree in case.trees], case.seed
        for tree in written:
            if tree.forms:
                strict.check_universal(tree)


def by_graph(case):
    case.command(attachment.main, *case.world.model, "--gold", case.path, "--sharpness")


COMMANDS = [
    *(by_preprocess, by_linearize, by_attachment, by_grammar, by_subjects),
    *(by_trees, by_graph),
]


class EveryWordIsARoot:
    """A parser for what is not there yet."""

    def __init__(self, *_):
        pass

    def parse(self, sentences):
        return [Sentence(words, [-1] * len(words), ["root"] * len(words), ["X"] * len(words)) for words in sentences]


@pytest.fixture
def world(latent_model, monkeypatch, tmp_path):
    """What the commands need beside the file; the model is loaded once."""
    monkeypatch.setattr(models, "load", latent_model.load)
    monkeypatch.setattr(stanza, "StanzaParser", EveryWordIsARoot)
    gold = tmp_path / "gold.conllu"
    gold.write_bytes(mutations.whole(7).encode())
    return SimpleNamespace(gold=gold, **vars(latent_model))


@pytest.fixture(scope="module")
def latent_model(request):
    data = request.getfixturevalue("latent").data
    checkpoint = request.getfixturevalue("trained")("sa_nmt_shared_tiny")
    spec = importlib.util.spec_from_file_location("subjects", ROOT / "examples" / "sa_nmt" / "subjects.py")
    subjects = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(subjects)
    model = [data, "--path", checkpoint, "--cpu"]
    return SimpleNamespace(model=model, subjects=subjects, load=functools.cache(models.load))


def test_the_files_are_of_all_sorts():
    cases = [mutations.file(seed) for seed in SEEDS]
    sorts = {True: 0, False: 0}
    for data, packed in cases:
        try:
            strict.read(data, packed)
            sorts[True] += 1
        except strict.Invalid:
            sorts[False] += 1
    assert min(sorts.values()) > len(cases) / 4
    assert len({data for data, _ in cases}) > 0.95 * len(cases)
    assert 5 < sum(packed for _, packed in cases) < len(cases) / 5


@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_files(part, world, tmp_path, capsys):
    for number, seed in enumerate(SEEDS[part::PARTS]):
        case = Case(seed, *mutations.file(seed), tmp_path / str(seed), capsys, world)
        commands = (COMMANDS[(number + part + shift) % len(COMMANDS)] for shift in (0, 4))
        for check in (*READERS, *commands):
            check(case)
        shutil.rmtree(case.folder)


def by_parse(case):
    """Words of the text, or the tokens of multi-word ranges."""
    for ranges in (False, True):
        trees = [tree.collapse_ranges() if ranges else tree for tree in read_conllu(case.path)]
        text, out = case.folder / f"text{ranges}", case.folder / f"parsed{ranges}"
        lines = (" ".join(" ".join(tree.forms).split()) + "\n" for tree in trees)
        text.write_text("".join(lines), encoding="utf-8", newline="\n")
        found = ["--parser", "conllu", "--parser-model", case.path]
        if case.command(parse.main, "--input", text, "--output", out, *found):
            expected = [" ".join(tree.forms).split() for tree in trees]
            assert [" ".join(tree.forms).split() for tree in strict.read(out.read_bytes())] == expected


def by_perturb(case):
    for trees in ("random", "right"):
        out = case.folder / f"{trees}.conllu"
        if case.command(perturb.main, "--input", case.path, "--output", out, "--trees", trees):
            assert [tree.forms for tree in strict.read(out.read_bytes())] == [tree.forms for tree in case.trees]


def by_compare(case):
    corpus(case)
    source = case.folder / "p.en"
    case.command(
        *(compare.main, "--system", "x", source, "--source", source, "--reference", source, "--metrics", "chrF"),
        *("--by", "depth", "--parse", case.path, "--bootstrap", 10),
    )


@pytest.mark.parametrize("name", ODD)
def test_odd_but_valid_files(name, world, tmp_path, capsys):
    """Every reader and every verb that reads trees takes them."""
    case = Case(name, ODD[name].encode(), False, tmp_path / "odd", capsys, world)
    assert case.trees is not None
    for check in (*READERS, *COMMANDS, by_parse, by_perturb, by_compare):
        check(case)
    known = ("but .*gold.conllu has 6", "no word has the relation nsubj", "and perturbed trees have one")
    known += ("has no tree", "but the model reads at most 1024")
    assert [said for said in case.refusals if not any(re.search(each, said) for each in known)] == []


def test_the_strict_reader_and_the_validator_find_what_is_wrong():
    good = mutations.whole(3)
    assert len(strict.read(good.encode())) == 6
    for tree in strict.read(b"1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n2\tb\t_\tX\t_\t_\t1\tamod\t_\t_\n"):
        strict.check_universal(tree)
    for head, deprel in (("0", "amod"), ("0", "root"), ("1", "root"), ("1", "_")):
        text = f"1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n2\tb\t_\tX\t_\t_\t{head}\t{deprel}\t_\t_\n"
        (tree,) = strict.read(text.encode())
        with pytest.raises(AssertionError):
            strict.check_universal(tree)

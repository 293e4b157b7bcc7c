"""Sentences without a parse: what is made of them, and that they are counted."""

import logging
import shutil

import pytest
from corpora import Item, expected_arrays, random_items, read_tags, write_split
from fairseq import tasks
from fairseq.data import Dictionary
from integration.commands import binarize as preprocess
from training_options import configuration

from fairseq_syntax.data.arrays import ArrayReader, read_manifest
from fairseq_syntax.data.live_parsing import LiveSyntax
from fairseq_syntax.data.parsers.none import NoParser
from fairseq_syntax.trees.conllu import Sentence, TreeFormatError, without_parse

ARRAYS = ["words", "heads", "parents", "distances", "deprels", "upos"]
MISSING = [0, 8, 12]
SIZE = 25


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Folder with train and valid, of which train has sentences without a parse; the items of train."""
    folder = tmp_path_factory.mktemp("text")
    items = [item if item.heads else Item([["a"], ["b", "c"]], [1, -1]) for item in random_items(SIZE, seed=1)]
    for number in MISSING:
        size = len(items[number].heads)
        items[number] = Item(items[number].pieces, [-2] * size, ["_"] * size, ["_"] * size)
    write_split(folder / "train", items)
    write_split(folder / "valid", random_items(4, seed=2))
    return folder, items


@pytest.fixture(scope="module")
def data(corpus, tmp_path_factory):
    """The corpus, binarized."""
    splits = {name: corpus[0] / name for name in ("train", "valid")}
    return preprocess(splits, tmp_path_factory.mktemp("data") / "bin", "--allow-unparsed")


def test_missing_parses_are_counted_and_stored(corpus, data):
    splits = read_manifest(data, "en", "de")["splits"]
    assert (splits["train"]["unparsed"], splits["valid"]["unparsed"]) == (len(MISSING), 0)
    tags = [read_tags(data / f"dict.en.{name}.txt") for name in ("deprel", "upos")]
    assert "_" in tags[0] and "_" in tags[1]
    expected = [expected_arrays(item, *tags) for item in corpus[1]]
    for name in ARRAYS:
        reader = ArrayReader(data / f"train.en-de.en.{name}")
        assert [reader[i].tolist() for i in range(SIZE)] == [arrays[name] for arrays in expected]


# --- policies, from data on disk ----------------------------------------------------------------------------------


def set_up(data, arch, *extra):
    """The task as fairseq-train makes it, with a model."""
    config = configuration(data, arch, *extra)
    task = tasks.setup_task(config.task)
    task.build_model(config.model)
    return task


def test_how_many_sentences_have_no_parse_is_logged(data, tmp_path, caplog):
    """fairseq's train1 was put there by hand, and the manifest knows nothing of it."""
    copy = shutil.copytree(data, tmp_path / "copy")
    for path in list(copy.glob("train.*")):
        shutil.copy(path, copy / path.name.replace("train.", "train1."))
    task = set_up(copy, "sdatt_tiny")
    with caplog.at_level(logging.INFO):
        task.load_dataset("train", combine=True)
        task.load_dataset("valid")
    assert "split 'train': 3 of 25 sentences have no parse (12.00%)" in caplog.text
    assert "split 'train1': 3 of 25 sentences have no parse" in caplog.text
    assert "split 'valid': 0 of 4 sentences have no parse (0.00%)" in caplog.text
    assert len(task.dataset("train")) == 2 * SIZE


# --- raw text -----------------------------------------------------------------------------------------------------


class Chains:
    """Makes chains, and of sentences that begin with "bad" something else."""

    def __init__(self, bad=None):
        self.bad = bad

    def parse(self, sentences):
        trees = [Sentence(w, [*range(-1, len(w) - 1)], ["dep"] * len(w), ["X"] * len(w)) for w in sentences]
        for tree in trees:
            if tree.forms[:1] == ["bad"]:
                self.bad(tree)
        return trees


@pytest.mark.parametrize("heads", [[1, 0, -1], [9, 0, -1], [-1, 0], [-1, -2, 0]])
def test_given_heads_that_are_no_tree_are_refused_before_ranges_are_read(heads):
    tree = Sentence(["in", "dem", "Haus"], heads, ["_"] * 3, ["_"] * 3, [(0, 1, "im")])
    with pytest.raises(TreeFormatError, match=r"'im Haus': the given heads .* do not form a tree; correct them"):
        LiveSyntax(Chains(), "none")(["im Haus"], [tree])
    tree.heads = [2, 0, -1]
    assert LiveSyntax(Chains(), "none")(["im Haus"], [tree])[0].heads.tolist() == [1, -1]


def test_sentences_without_a_parse(caplog):
    """They are told of, unless the parser withholds parses on purpose."""
    given = [without_parse(["a", "b"])]
    for parser, told in ((NoParser(), False), (Chains(), True)):
        (syntax,) = LiveSyntax(parser, "none")(["a b"], given)
        assert syntax.heads.tolist() == [-2, -2]
        assert ("translated without a parse: input 'a b'" in caplog.text) == told


def test_what_the_parser_makes_is_cut_to_the_tokens():
    live = LiveSyntax(Chains(lambda tree: setattr(tree, "forms", ["good", "x"])), "subword_nmt")
    syntax = live(["a@@ b c", "", "f"])
    assert [each.heads.tolist() for each in syntax] == [[-1, 0], [], [-1]]
    assert [each.words.tolist() for each in syntax] == [[0, 0, 1, 2], [0], [0, 1]]
    with pytest.raises(TreeFormatError, match="input 'bad x': word 1 is 'bad' but the parse has 'good'"):
        live(["bad x"])
    with pytest.raises(TreeFormatError, match="the text ends inside a word"):
        live(["a@@"])
    with pytest.raises(TreeFormatError, match="1 trees are given for 2 sentences; give one each"):
        live(["a", "b"], [without_parse(["a"])])


def test_tags_of_a_sentence_without_a_parse(corpus, data):
    """As preprocessing stores them: the tag `_`."""
    task = set_up(data, "tag_transformer_tiny", "--parser", "none")
    text = corpus[1][MISSING[1]].text()
    (syntax,) = task.live([text])
    for name in ("words", "heads", "deprels"):
        stored = ArrayReader(data / f"train.en-de.en.{name}")[MISSING[1]]
        assert getattr(syntax, name).tolist() == stored.tolist()


def test_labels_that_the_model_does_not_know_are_warned_of_once(caplog):
    dictionary = Dictionary()
    dictionary.add_symbol("known")
    live = LiveSyntax(Chains(lambda tree: setattr(tree, "deprels", ["known", "new"])), "none", {"deprels": dictionary})
    for _ in range(2):
        (syntax,) = live(["bad x"])
        assert syntax.deprels.tolist() == [dictionary.index("known"), dictionary.unk()]
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warning == "deprels that the model does not know: new; parse the text as the training data were parsed"

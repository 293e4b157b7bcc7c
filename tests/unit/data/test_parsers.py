"""Parsers: Stanza with the real models, and look-up in CoNLL-U."""

import logging
import pickle
import traceback
from itertools import islice
from pathlib import Path

import pytest
import torch
from contract.sessions import stanza_models

from fairseq_syntax.data.live_parsing import LiveSyntax
from fairseq_syntax.data.parsers import made_tree, stanza
from fairseq_syntax.data.parsers.conllu import ConlluParser
from fairseq_syntax.data.parsers.stanza import StanzaParser
from fairseq_syntax.trees.conllu import Sentence, TreeFormatError, find_cycle, read_conllu

COUNT = 30


@pytest.fixture(scope="module")
def models(real_data):
    return {name: real_data / "stanza_en" / f"{name}.pt" for name in ("tagger", "parser")}


@pytest.fixture(scope="module")
def stanza_parser(models):
    return StanzaParser("en", device="cpu", **models)


@pytest.fixture(scope="module")
def flickr(real_data):
    """(words, given trees) of some captions."""
    folder = real_data / "multi30k"
    with open(folder / "test_2016_flickr.en", encoding="utf-8") as lines:
        text = [line.split() for line in islice(lines, COUNT)]
    return text, list(islice(read_conllu(folder / "test_2016_flickr.en.conllu.gz"), COUNT))


def arrays(tree):
    return tree.forms, tree.heads, tree.deprels, tree.upos


# --- Stanza -----------------------------------------------------------------------------------


def test_stanza_agrees_with_the_given_parses(stanza_parser, flickr):
    text, given = flickr
    trees = stanza_parser.parse(text)
    assert [tree.forms for tree in trees] == text
    pairs = [
        (ours.heads[i], ours.deprels[i]) == (theirs.heads[i], theirs.deprels[i])
        for ours, theirs in zip(trees, given, strict=True)
        for i in range(len(theirs))
    ]
    agreement = sum(pairs) / len(pairs)
    # the same model made them; another machine may round a near tie the other way
    assert agreement > 0.995
    for tree in trees:
        assert tree.heads.count(-1) == 1 and find_cycle(tree.heads) is None
        assert tree.deprels[tree.heads.index(-1)] == "root" and "_" not in tree.upos


def test_stanza_keeps_the_order_whatever_the_chunk(stanza_parser, flickr, monkeypatch):
    text, _ = flickr
    expected = stanza_parser.parse(text)
    shuffled = text[::-1]
    assert stanza_parser.parse(shuffled) == expected[::-1]
    monkeypatch.setattr(stanza, "_CHUNK", 7)
    assert stanza_parser.parse(text) == expected


def test_stanza_splits_nothing(stanza_parser):
    text = [
        ["a\u00a0b", "don't", "U.S.A.", "."],
        [],
        ["one", "sentence", ".", "Still", "the", "same", "!"],
        ["two words", "in", "one"],
        ["\u2028", "\u200b", "\ufeff", "\u3000x", "\U0001f600", "|", "a=b|c", "#", "_"],
        ["<unk>", "@-@", "&apos;s", "-RRB-", "<UNK>", "1-2", "1.5"],
        ["x" * 3000, "y"],
        [],
        ["."],
    ]
    trees = stanza_parser.parse(text)
    assert [tree.forms for tree in trees] == text
    assert all(len(tree.heads) == len(tree.deprels) == len(tree.upos) == len(tree) for tree in trees)
    assert trees[1] == Sentence([], [], [], [])
    # and they can be written and read
    assert all(not tree.ranges for tree in trees)


def test_files_that_are_not_models_are_named_and_not_run(tmp_path):
    class Attack:
        def __reduce__(self):
            return (open, (str(tmp_path / "attacked"), "w"))

    torch.save({"model": Attack()}, tmp_path / "evil.pt")
    contents = [b"no model", b"", pickle.dumps({"model": Path("x")}), (tmp_path / "evil.pt").read_bytes()]
    for content in contents:
        for name in ("tagger.pt", "parser.pt"):
            (tmp_path / name).write_bytes(content)
        with pytest.raises(TreeFormatError, match=r"parser\.pt: Stanza .* cannot load") as caught:
            StanzaParser(tagger=tmp_path / "tagger.pt", parser=tmp_path / "parser.pt", device="cpu").parse([["a"]])
        # torch's advice to load it unsafely is not passed on
        told = "".join(traceback.format_exception(caught.value))
        assert "weights_only" not in told and "trusted" not in told
    assert not (tmp_path / "attacked").exists()


def test_a_failed_download_says_what_to_do_and_nothing_else(monkeypatch, tmp_path, caplog):
    pytest.importorskip("stanza")
    for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody listens: no network
    logging.getLogger("urllib3").setLevel(logging.NOTSET)
    with caplog.at_level(logging.DEBUG), pytest.raises(TreeFormatError) as caught:
        StanzaParser("en", model_dir=tmp_path).parse([["a"]])
    message = str(caught.value)
    assert f"stanza.download('en', model_dir={str(tmp_path)!r})" in message
    assert "\n" not in message and len(message) < 700
    assert not [record for record in caplog.records if record.name.startswith("urllib3")]


def test_words_stay_and_the_root_alone_is_labelled_root():
    words, heads, tags = ["a", "b", "c", "d"], [1, -1, 1, 1], ["X"] * 4
    tree = made_tree("Stanza", words, words, heads, ["root", "amod", "obj", "root:x"], tags)
    assert tree.deprels == ["dep", "root", "obj", "dep"]
    for others in (words[::-1], words[:3], [*words, "e"]):
        with pytest.raises(TreeFormatError, match="changed its words"):
            made_tree("Stanza", words, others, heads, ["x"] * 4, tags)


def test_downloaded_models_are_used(real_data, tmp_path, flickr, monkeypatch, capfd):
    """The folder that stanza.download makes, here with our models in it."""
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    folder = stanza_models(real_data / "stanza_en", tmp_path)
    text, given = flickr
    trees = StanzaParser("en", model_dir=folder, device="cpu").parse(text[:5])
    assert [arrays(tree) for tree in trees] == [arrays(tree) for tree in given[:5]]
    assert "INFO" not in capfd.readouterr().err
    assert logging.getLogger("stanza").level == logging.WARNING


# --- CoNLL-U ----------------------------------------------------------------------------------

CONLLU = """\
1\ta\t_\tDET\t_\t_\t2\tdet\t_\t_
2\tcat\t_\tNOUN\t_\t_\t0\troot\t_\t_

# text =

1\ta\t_\tDET\t_\t_\t0\tfirst\t_\t_
2\tcat\t_\tNOUN\t_\t_\t1\tsecond\t_\t_

1-2\tim\t_\t_\t_\t_\t_\t_\t_\t_
1\tin\t_\tADP\t_\t_\t3\tcase\t_\t_
2\tdem\t_\tDET\t_\t_\t3\tdet\t_\t_
3\tHaus\t_\tNOUN\t_\t_\t0\troot\t_\t_

"""


@pytest.fixture
def conllu(tmp_path):
    path = tmp_path / "trees.conllu"
    path.write_text(CONLLU)
    return ConlluParser(path)


def test_same_words_get_their_trees_in_order_and_the_last_again(conllu):
    cat = ["a", "cat"]
    found = [*conllu.parse([cat]), *conllu.parse([cat, cat]), *conllu.parse([cat])]
    assert [tree.deprels[0] for tree in found] == ["det", "first", "first", "first"]


def test_words_and_surface_tokens_are_found(conllu):
    by_words, by_surface, empty = conllu.parse([["in", "dem", "Haus"], ["im", "Haus"], []])
    assert arrays(by_words) == (
        ["in", "dem", "Haus"], [2, 2, -1], ["case", "det", "root"], ["ADP", "DET", "NOUN"],
    )  # fmt: skip
    assert by_words.ranges == []
    assert arrays(by_surface) == (["im", "Haus"], [1, -1], ["case", "root"], ["ADP", "NOUN"])
    assert by_surface.ranges == []
    assert empty == Sentence([], [], [], [])


def test_words_with_spaces_are_found_in_either_way(tmp_path):
    path = tmp_path / "trees.conllu"
    path.write_text("1\t10 000\t_\tNUM\t_\t_\t2\tnummod\t_\t_\n2\tcats\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n")
    parser = ConlluParser(path)
    for words in (["10 000", "cats"], ["10", "000", "cats"]):
        (tree,) = parser.parse([words])
        assert arrays(tree) == (["10 000", "cats"], [1, -1], ["nummod", "root"], ["NUM", "NOUN"])
    # tokens between the spaces are pieces of the word
    (syntax,) = LiveSyntax(parser, "subword_nmt")(["10 0@@ 00 cats"])
    assert syntax.words.tolist() == [0, 0, 0, 1, 2] and syntax.heads.tolist() == [1, -1]


@pytest.mark.parametrize("words", [["a"], ["A", "cat"], ["im", "dem", "Haus"]])
def test_sentence_without_tree(conllu, words):
    with pytest.raises(TreeFormatError, match=f"no tree for the sentence '{' '.join(words)}'"):
        conllu.parse([["a", "cat"], words])

"""Sentences whose parse is missing or broken: what is made of them, and that they are counted."""

import json
import logging
import re
import shutil
import sys

import pytest
from corpora import Item, expected_arrays, random_items, read_tags, write_split
from fairseq import tasks
from fairseq.data import Dictionary
from training_options import configuration

from fairseq_syntax.data import binarize
from fairseq_syntax.data.arrays import ArrayReader, manifest_path, read_manifest
from fairseq_syntax.data.live_parsing import LiveSyntax
from fairseq_syntax.data.parsers.conllu import ConlluParser
from fairseq_syntax.tools import preprocess
from fairseq_syntax.trees.conllu import Sentence, TreeFormatError, format_sentence, without_parse

ARRAYS = ["words", "heads", "parents", "distances", "deprels", "upos"]
# number of the sentence -> what its tree looks like instead, from its rows, and what the message says of it
BROKEN = {
    2: (lambda rows: [change(rows[0], 6, 2), change(rows[1], 6, 1), *rows[2:]], "the heads form a cycle"),
    8: (lambda rows: [change(rows[0], 6, 77), *rows[1:]], "head '77' of word"),
    9: (lambda rows: [*rows[:-1], change(rows[-1], 6, "x")], "head 'x' of word"),
    17: (lambda rows: [*rows[:-1], rows[-1].rsplit("\t", 1)[0]], "9 columns"),
    18: (lambda rows: [change(rows[0], 1, "other"), *rows[1:]], "but the parse has 'other'"),
    23: (lambda rows: rows[:-1], "but the parse has the end"),
    24: (lambda rows: ["# only a comment"], "but the parse has the end"),
}
MISSING = [0, 12]
SIZE = 25


def change(row, column, value):
    cells = row.split("\t")
    cells[column] = str(value)
    return "\t".join(cells)


def spoil(prefix, broken):
    """Break trees of a split on disk; returns line numbers at which the trees begin."""
    path = prefix.with_name(f"{prefix.name}.en.conllu")
    blocks = path.read_text(encoding="utf-8").split("\n\n")[:-1]
    for number, (breaks, _) in broken.items():
        blocks[number] = "\n".join(breaks(blocks[number].split("\n")))
    path.write_text("".join(f"{block}\n\n" for block in blocks), encoding="utf-8")


def two_or_more(items):
    return [item if len(item.heads) > 1 else Item([["a"], ["b", "c"]], [1, -1]) for item in items]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Folder with train and valid, of which train has missing and broken trees; the items of train as they come out."""
    folder = tmp_path_factory.mktemp("text")
    items = two_or_more(random_items(SIZE, seed=1))
    for number in MISSING:
        items[number] = Item(items[number].pieces, [-2] * len(items[number].heads))
    write_split(folder / "train", items)
    spoil(folder / "train", BROKEN)
    for number in BROKEN:
        size = len(items[number].heads)
        items[number] = Item(items[number].pieces, [-2] * size, ["_"] * size, ["_"] * size)
    write_split(folder / "valid", random_items(4, seed=2))
    return folder, items


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(binarize, "CHUNK", 4)


def run(folder, destination, *extra):
    prefixes = ["--trainpref", str(folder / "train"), "--validpref", str(folder / "valid")]
    argv = ["-s", "en", "-t", "de", *prefixes, "--destdir", str(destination), *map(str, extra)]
    if status := preprocess.main(argv):
        sys.exit(status)
    return destination


@pytest.fixture(scope="module")
def data(corpus, tmp_path_factory):
    """The corpus, binarized."""
    return run(corpus[0], tmp_path_factory.mktemp("data") / "bin", "--allow-unparsed", "--allow-broken", 30)


def fails(capsys, *arguments):
    """The one line that the program says; nothing is written."""
    destination = arguments[1]
    with pytest.raises(SystemExit) as caught:
        run(*arguments)
    assert caught.value.code == 1
    assert not list(destination.parent.glob("*bin*"))
    lines = capsys.readouterr().err.splitlines()
    (said,) = [line for line in lines if line.startswith("fairseq-syntax preprocess: ")]
    return said


# --- preprocessing ------------------------------------------------------------------------------------------------


def test_broken_trees_are_logged_counted_and_stored_as_missing(corpus, data, tmp_path, capsys):
    folder, items = corpus
    made = run(folder, tmp_path / "bin", "--allow-unparsed", "--allow-broken", 30, "--workers", 2)
    error = capsys.readouterr().err
    shown = re.findall(r"broken tree: (.*)", error)
    assert len(shown) == binarize.SHOWN < len(BROKEN)
    for message, (number, (_, what)) in zip(shown, BROKEN.items(), strict=False):
        assert what in message and re.search(r"train\.en\.conllu:\d+", message)
        assert number != 18 or "train.en:19 (" in message
    assert "train.en.conllu: 7 of 25 trees are broken (28.00%); these sentences have no parse" in error
    splits = read_manifest(made, "en", "de")["splits"]
    assert (splits["train"]["unparsed"], splits["train"]["broken"]) == (len(BROKEN) + len(MISSING), len(BROKEN))
    assert (splits["valid"]["unparsed"], splits["valid"]["broken"]) == (0, 0)
    assert splits["train"]["allow_broken"] == 30

    tags = [read_tags(made / f"dict.en.{name}.txt") for name in ("deprel", "upos")]
    assert "_" in tags[0] and "_" in tags[1]
    expected = [expected_arrays(item, *tags) for item in items]
    for name in ARRAYS:
        reader = ArrayReader(made / f"train.en-de.en.{name}")
        assert [reader[i].tolist() for i in range(SIZE)] == [arrays[name] for arrays in expected]

    # the number of workers changes nothing
    files = sorted(path.name for path in data.iterdir() if path.suffix != ".log")
    assert files == sorted(path.name for path in made.iterdir() if path.suffix != ".log")
    assert all((data / name).read_bytes() == (made / name).read_bytes() for name in files)


def test_too_many_broken_trees_are_an_error(corpus, tmp_path, capsys):
    error = fails(capsys, corpus[0], tmp_path / "bin", "--allow-unparsed", "--allow-broken", 27.9, "--workers", 2)
    assert "train.en.conllu: 7 of 25 trees are broken (28.00%), more than --allow-broken 27.9 permits" in error
    assert "fairseq-syntax parse" in error and re.search(r"the first: .*train\.en\.conllu:\d+: the heads form", error)
    run(corpus[0], tmp_path / "bin", "--allow-unparsed", "--allow-broken", 28)


def test_one_percent_is_what_is_allowed_without_a_number(tmp_path, capsys):
    breaks = BROKEN[8]
    for name, size in (("train", 100), ("valid", 3)):
        write_split(tmp_path / name, two_or_more(random_items(size, seed=3)))
    spoil(tmp_path / "train", {50: breaks})
    split = read_manifest(run(tmp_path, tmp_path / "first", "--allow-broken"), "en", "de")["splits"]["train"]
    assert (split["allow_broken"], split["broken"], split["unparsed"], split["sentences"]) == (1.0, 1, 1, 100)
    spoil(tmp_path / "train", {60: breaks})
    error = fails(capsys, tmp_path, tmp_path / "bin", "--allow-broken")
    assert "2 of 100 trees are broken (2.00%), more than --allow-broken 1 permits" in error


# --- policies, from data on disk ----------------------------------------------------------------------------------


def set_up(data, arch, *extra):
    """(task, model) as fairseq-train makes them."""
    config = configuration(data, arch, *extra)
    task = tasks.setup_task(config.task)
    return task, task.build_model(config.model)


def test_models_that_read_trees_may_refuse_to_do_without(data, arch="global_plus_sdatt_tiny"):
    for policy in ("error", "global"):
        task, model = set_up(data, arch, "--sdatt-missing", policy)
        assert model.refuses_unparsed == task.refuses_unparsed == (policy == "error")


def test_models_that_refuse_are_told_when_the_data_are_loaded(data):
    task, _ = set_up(data, "sdatt_tiny", "--sdatt-missing", "error")
    message = r"9 of 25 sentences of split 'train' have no parse, and the model refuses them; .* --sdatt-missing global"
    with pytest.raises(TreeFormatError, match=message):
        task.load_dataset("train")
    task.load_dataset("valid")  # has all its parses
    # nor is the training begun if a directory has them further on, or in a part that is read with the others
    path = manifest_path(data, "en", "de")
    manifest = json.loads(path.read_text())
    try:
        splits = manifest["splits"]
        changed = {**splits, "train": {**splits["train"], "unparsed": 0}, "train1": splits["train"]}
        path.write_text(json.dumps({**manifest, "splits": changed}))
        with pytest.raises(TreeFormatError, match="9 of 25 sentences of split 'train1' have no parse"):
            task.load_dataset("train")
    finally:
        path.write_text(json.dumps(manifest))


def test_an_ensemble_refuses_if_one_of_its_models_does(data):
    task, _ = set_up(data, "sdatt_tiny")
    for policy in ("error", "global"):
        task.build_model(configuration(data, "sdatt_tiny", "--sdatt-missing", policy).model, from_checkpoint=True)
    with pytest.raises(TreeFormatError, match="9 of 25 sentences of split 'train' have no parse"):
        task.load_dataset("train")


def test_directories_whose_turn_comes_later_are_looked_at_first(data, tmp_path):
    """Training must not fail in its second epoch."""
    for name in ("train", "valid"):
        write_split(tmp_path / name, random_items(6, seed=6))
    whole = run(tmp_path, tmp_path / "bin", "--srcdict", data / "dict.en.txt", "--tgtdict", data / "dict.de.txt")
    task, _ = set_up(f"{whole}:{data}", "sdatt_tiny", "--sdatt-missing", "error")
    with pytest.raises(TreeFormatError, match=f"{data}: 9 of 25 sentences of split 'train'"):
        task.load_dataset("train", epoch=1)
    task.load_dataset("valid")


def test_how_many_sentences_have_no_parse_is_logged(data, tmp_path, caplog):
    """fairseq's train1 was put there by hand, and the manifest knows nothing of it."""
    copy = shutil.copytree(data, tmp_path / "copy")
    for path in list(copy.glob("train.*")):
        shutil.copy(path, copy / path.name.replace("train.", "train1."))
    task, _ = set_up(copy, "sdatt_tiny")
    with caplog.at_level(logging.INFO):
        task.load_dataset("train", combine=True)
        task.load_dataset("valid")
    assert "split 'train': 9 of 25 sentences have no parse (36.00%)" in caplog.text
    assert "split 'train1': 9 of 25 sentences have no parse" in caplog.text
    assert "split 'valid': 0 of 4 sentences have no parse (0.00%)" in caplog.text
    assert len(task.dataset("train")) == 2 * SIZE


# --- raw text -----------------------------------------------------------------------------------------------------


def chain(words):
    return Sentence(words, [i - 1 for i in range(len(words))], ["dep"] * len(words), ["X"] * len(words))


class Picky:
    """Makes chains, and fails on some sentences; counts its calls."""

    def __init__(self, bad):
        self.bad = bad
        self.calls = 0

    def parse(self, sentences, progress=False):
        self.calls += 1
        trees = [chain(words) for words in sentences]
        for words, tree in zip(sentences, trees, strict=True):
            if words[:1] == ["bad"]:
                self.bad(tree)
        return trees


def fail(tree):
    raise RuntimeError("index out of range in self")


def cycle(tree):
    tree.heads[:2] = [1, 0]


def headless(tree):
    tree.heads[:] = [-2] * len(tree)


def half_headless(tree):
    tree.heads[-1] = -2


def other_words(tree):
    tree.forms = ["good", *tree.forms[1:]]


TEXTS = ["a@@ b c", "", "bad d@@ e", "f", "bad x"]


@pytest.mark.parametrize("heads", [[1, 0, -1], [9, 0, -1], [-1, 0], [-1, -2, 0]])
def test_given_heads_that_are_no_tree_are_refused_before_ranges_are_read(heads):
    tree = Sentence(["in", "dem", "Haus"], heads, ["_"] * 3, ["_"] * 3, [(0, 1, "im")])
    with pytest.raises(TreeFormatError, match=r"'im Haus': the given heads .* do not form a tree; correct them"):
        LiveSyntax(Picky(fail), "none", accept_unparsed=True)(["im Haus"], [tree])
    tree.heads = [2, 0, -1]
    assert LiveSyntax(Picky(fail), "none")(["im Haus"], [tree])[0].heads.tolist() == [1, -1]


def test_given_sentences_without_a_parse_need_leave():
    given = [without_parse(["a", "b"])]
    with pytest.raises(TreeFormatError, match="or give --parser-unparsed accept"):
        LiveSyntax(Picky(fail), "none")(["a b"], given)
    (found,) = LiveSyntax(Picky(fail), "none", accept_unparsed=True)(["a b"], given)
    assert found.heads.tolist() == [-2, -2]


@pytest.mark.parametrize("bad", [fail, cycle, headless, half_headless, other_words])
def test_sentences_that_cannot_be_parsed_go_without_a_parse(bad, caplog):
    parser = Picky(bad)
    live = LiveSyntax(parser, "subword_nmt", accept_unparsed=True)
    assert [s.heads.tolist() for s in live(TEXTS[:2])] == [[-1, 0], []] and parser.calls == 1
    found = live(TEXTS)
    assert parser.calls == 2 + len(TEXTS)
    assert [s.heads.tolist() for s in found] == [[-1, 0], [], [-2, -2], [-1], [-2, -2]]
    assert [s.words.tolist() for s in found] == [[0, 0, 1, 2], [0], [0, 1, 1, 2], [0, 1], [0, 1, 2]]
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [text for text in TEXTS if any(f"{text!r} (" in line for line in warnings)] == [TEXTS[2], TEXTS[4]]
    assert len(warnings) == 3 and warnings[-1] == "2 of 7 sentences had no parse"
    live(["good"])
    assert (live.unparsed, live.sentences) == (2, 8)

    with pytest.raises((TreeFormatError, RuntimeError)):
        LiveSyntax(Picky(bad), "subword_nmt")(TEXTS)


def test_tags_of_a_sentence_without_a_parse(corpus, data):
    """As preprocessing stores them: the tag `_`."""
    task, _ = set_up(data, "tag_transformer_tiny")
    dictionaries = {name: task.syntax_dictionary(name) for name in ("deprels", "upos")}
    number = next(iter(BROKEN))
    text = corpus[1][number].text()
    parser = Picky(fail)
    parser.parse = lambda sentences, progress=False: fail(None)
    (found,) = LiveSyntax(parser, "subword_nmt", dictionaries, accept_unparsed=True)([text])
    for name in ("words", "heads", "deprels", "upos"):
        stored = ArrayReader(data / f"train.en-de.en.{name}")[number]
        assert getattr(found, name).tolist() == stored.tolist()


def test_labels_that_the_model_does_not_know_are_warned_of_once(caplog):
    dictionary = Dictionary()
    dictionary.add_symbol("known")
    parser = Picky(lambda tree: setattr(tree, "deprels", ["new", "known"]))
    live = LiveSyntax(parser, "none", {"deprels": dictionary})
    for _ in range(2):
        (found,) = live(["bad x"])
        assert found.deprels.tolist() == [dictionary.unk(), dictionary.index("known")]
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warning == "deprels that the model does not know: new; parse the text as the training data were parsed"


def test_a_line_that_ends_inside_a_word_is_an_error_still():
    with pytest.raises(TreeFormatError, match="the text ends inside a word"):
        LiveSyntax(Picky(fail), "subword_nmt", accept_unparsed=True)(["a@@"])


def test_a_file_that_lacks_a_tree_and_has_a_broken_one(tmp_path, caplog):
    """Those of equal sentences are given out in their order, also around these two."""
    trees = [chain(["a", "b"]), chain(["c"]), chain(["a", "b"]), Sentence(["a", "b"], [1, -1], ["dep"] * 2, ["X"] * 2)]
    trees[2].heads[:] = [1, 0]
    path = tmp_path / "trees.conllu"
    path.write_text("".join(map(format_sentence, trees)), encoding="utf-8")
    texts = ["a b", "not there", "c", "a b", "a b"]
    live = LiveSyntax(ConlluParser(path, skip_broken=True), "subword_nmt", accept_unparsed=True)
    assert [s.heads.tolist() for s in live(texts)] == [[-1, 0], [-2, -2], [-1], [-2, -2], [1, -1]]
    assert "no tree for the sentence 'not there'" in caplog.text
    assert "2 of 5 sentences had no parse" in caplog.text and live.unparsed == 2
    with pytest.raises(TreeFormatError, match="no tree for the sentence 'not there'"):
        LiveSyntax(ConlluParser(path, skip_broken=True), "subword_nmt")(texts)


def test_a_file_with_broken_trees(corpus, data, caplog):
    folder, items = corpus
    extra = ["--parser", "conllu", "--parser-model", folder / "train.en.conllu", "--parser-unparsed", "accept"]
    task, _ = set_up(data, "sdatt_tiny", *extra)
    numbers = (1, 2, 3, *MISSING)
    live = task.live([items[number].text() for number in numbers])
    assert [syntax.heads.tolist() for syntax in live] == [items[number].heads for number in numbers]
    assert re.search(r"left out: .*train\.en\.conllu:\d+: the heads form a cycle", caplog.text)
    assert "3 of 5 sentences had no parse" in caplog.text


def test_accepting_does_not_hide_that_there_is_no_parser(data, tmp_path):
    missing = tmp_path / "none.pt"
    extra = ["--parser-unparsed", "accept", "--parser-tagger", missing, "--parser-model", missing]
    task, _ = set_up(data, "sdatt_tiny", *extra)
    with pytest.raises(TreeFormatError, match=r"none\.pt: Stanza .* cannot load tagger and parser"):
        task.get_interactive_tokens_and_lengths(["a b"], lambda line: line)


@pytest.mark.parametrize("extra", [[], ["--parser-unparsed", "accept"]])
def test_raw_text_that_is_too_long_is_not_parsed(data, tmp_path, caplog, extra):
    (tmp_path / "trees.conllu").write_text(format_sentence(chain(["a"])) + format_sentence(chain([*"abcd"])))
    parser = ["--parser", "conllu", "--parser-model", tmp_path / "trees.conllu", "--parser-max-words", 3]
    task, _ = set_up(data, "sdatt_tiny", *parser, *extra)
    message = "input 'a b c d': 4 words; a sentence has at most 3: split it, or give --parser-max-words 4"
    if extra:
        assert [syntax.heads.tolist() for syntax in task.live(["a", "a b c d"])] == [[-1], [-2] * 4]
        assert message in caplog.text
    else:
        with pytest.raises(TreeFormatError, match=message):
            task.live(["a", "a b c d"])

"""fairseq-syntax preprocess from end to end, on corpora of a few sentences."""

import hashlib
import itertools
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import fairseq_cli.preprocess as fairseq_preprocess
import numpy as np
import programs
import pytest
from corpora import Item, expected_arrays, random_items, read_tags, write_split
from fairseq import options
from fairseq.data import Dictionary

from fairseq_syntax import progress
from fairseq_syntax.data import binarize, preprocessing
from fairseq_syntax.data.arrays import ARRAY_TYPES, ArrayReader, read_manifest, split_prefix
from fairseq_syntax.data.checking import check_pair
from fairseq_syntax.tools import preprocess

ARRAYS = ["words", "heads", "parents", "distances", "deprels", "upos"]
DATA = (".bin", ".idx", ".txt")
SPLITS = {"train": 12, "valid": 5, "test": 4}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Several chunks a split, so that chunks are joined and tags renumbered."""
    monkeypatch.setattr(binarize, "CHUNK", 3)


@pytest.fixture
def corpus(tmp_path):
    """train, valid and test in a folder; the items of each."""
    items = {name: random_items(count, seed) for seed, (name, count) in enumerate(SPLITS.items())}
    for name, split in items.items():
        write_split(tmp_path / "text" / name, split)
    return items


def arguments(folder, *extra, splits=("train", "valid", "test"), destdir="bin"):
    prefixes = [part for s in splits for part in (f"--{s}pref", str(folder / "text" / s))]
    return ["-s", "en", "-t", "de", *prefixes, "--destdir", str(folder / destdir), *map(str, extra)]


def run(folder, *extra, **kwargs):
    assert preprocess.main(arguments(folder, *extra, **kwargs)) == 0
    return folder / kwargs.get("destdir", "bin")


def fails(capsys, folder, *extra, status=1, **kwargs):
    """What the program says when it refuses."""
    return programs.refused(preprocess, capsys, *arguments(folder, *extra, **kwargs), status=status)


def binarize_plainly(argv):
    """fairseq-preprocess, which leaves the handlers of its log file behind."""
    handlers = list(fairseq_preprocess.logger.handlers)
    fairseq_preprocess.main(options.get_preprocessing_parser().parse_args(argv))
    for handler in set(fairseq_preprocess.logger.handlers) - set(handlers):
        fairseq_preprocess.logger.removeHandler(handler)
        handler.close()


def contents(directory, suffixes=(*DATA, ".json")):
    """File name -> bytes, without the log."""
    return {path.name: path.read_bytes() for path in Path(directory).iterdir() if path.suffix in suffixes}


def check_split(directory, split, items, names=ARRAYS):
    """The arrays of a split are those of the oracle."""
    tags = [read_tags(directory / f"dict.en.{kind}.txt") for kind in ("deprel", "upos")]
    readers = {name: ArrayReader(directory / f"{split}.en-de.en.{name}") for name in names}
    assert {len(reader) for reader in readers.values()} == {len(items)}
    for i, item in enumerate(items):
        expected = expected_arrays(item, *tags)
        for name, reader in readers.items():
            assert reader[i].tolist() == expected[name], (split, i, name)


# --- what is written --------------------------------------------------------------------------------------------


def test_most_frequent_tag_comes_first_and_ties_are_in_alphabetical_order(tmp_path):
    items = [Item([["a"], ["b"], ["c"], ["d"]], [-1, 0, 0, 0], ["z", "z", "y", "x"])]
    for split in SPLITS:
        write_split(tmp_path / "text" / split, items)
    directory = run(tmp_path)
    assert (directory / "dict.en.deprel.txt").read_text() == "z 2\nx 1\ny 1\n"


def test_arrays_are_those_of_loops_and_tokens_those_of_fairseq_preprocess(tmp_path, corpus):
    directory = run(tmp_path)
    for split, items in corpus.items():
        check_split(directory, split, items)
    binarize_plainly(arguments(tmp_path, destdir="plain"))
    plain = contents(tmp_path / "plain")
    assert len(plain) == 14  # 3 splits, 2 languages, .bin and .idx; 2 dictionaries
    ours = contents(directory)
    assert {name: ours[name] for name in plain} == plain


def test_options_of_fairseq_preprocess_reach_it(tmp_path, corpus):
    directory = run(tmp_path, "--joined-dictionary", "--thresholdsrc", 2, "--nwordssrc", 12, "--padding-factor", 1)
    source, target = (Dictionary.load(str(directory / f"dict.{lang}.txt")) for lang in ("en", "de"))
    assert source.symbols == target.symbols and len(source) == 12


def test_two_workers_write_the_same_bytes_as_one(tmp_path, corpus):
    one, two = run(tmp_path, destdir="one"), run(tmp_path, "--workers", 2, destdir="two")
    assert contents(one) == contents(two)


def test_only_syntax_adds_what_the_whole_program_writes(tmp_path, corpus):
    whole = run(tmp_path, destdir="whole")
    binarize_plainly(arguments(tmp_path))
    before = contents(tmp_path / "bin")
    run(tmp_path, "--only-syntax")
    after = contents(tmp_path / "bin")
    assert {name: after[name] for name in before} == before
    assert contents(tmp_path / "bin", DATA) == contents(whole, DATA)
    ours, theirs = (read_manifest(tmp_path / folder, "en", "de") for folder in ("bin", "whole"))
    assert ours["splits"] == theirs["splits"]
    assert not list((tmp_path / "bin").glob(".*"))


def test_trees_of_the_target_go_beside_those_of_the_source(tmp_path, corpus):
    directory = run(tmp_path)
    before = contents(directory)
    turned = {}
    for split, items in corpus.items():
        words = [[[word] for word in reversed(item.words)] for item in items]
        turned[split] = [Item(each, range(-1, len(each) - 1)) for each in words]
        trees = "".join(item.tree() + "\n" for item in turned[split])
        (tmp_path / "text" / f"{split}.de.conllu").write_text(trees)
    for extra in ([], ["--overwrite"]):
        assert preprocess.main([*arguments(tmp_path, "--only-syntax", *extra), "-s", "de", "-t", "en"]) == 0
        assert before.items() < contents(directory).items()
        for split, items in turned.items():
            heads = ArrayReader(f"{split_prefix(directory, split, 'de', 'en')}.heads")
            assert [heads[i].tolist() for i in range(len(heads))] == [item.heads for item in items]
    for pair in (("en", "de"), ("de", "en")):
        assert not check_pair(directory, *pair)[1]


def test_another_recipe_is_refused_where_data_were_made_with_the_old_one(tmp_path, corpus, capsys):
    settings = "--subword-type none --source-tokenizer none --target-tokenizer none --parser none".split()
    directory = run(tmp_path, "--raw", tmp_path / "raw", *settings)
    before = contents(directory)
    others = [*settings, "--overwrite", "--lowercase", "source"]
    others = arguments(tmp_path, "--raw", tmp_path / "lower", *others, splits=("train", "valid"))
    assert preprocess.main(others) == 1
    assert re.search(r"would change, but test\.en-de\.\S* was made with it; give all", capsys.readouterr().err)
    assert contents(directory) == before


@pytest.mark.parametrize(
    "given, message, status",
    [
        ("--source-tokenizer spacy:./mypipe", "./mypipe is a folder, which may hold code; install it as a package", 1),
        ("--parser spacy", "--parser spacy: needs --parser-model", 2),
        (
            "-s zho_Hans --parser conllu --parser-model t",
            "zho_Hans: has no spaces between words; name the tokenizer",
            1,
        ),
    ],
)
def test_raw_text_is_not_touched_where_its_recipe_or_parser_is_wrong(tmp_path, corpus, capsys, given, message, status):
    assert message in fails(capsys, tmp_path, "--raw", tmp_path / "raw", *given.split(), status=status)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text"]


def test_no_distances_writes_none(tmp_path, corpus):
    directory = run(tmp_path, "--no-distances")
    assert not list(directory.glob("*.distances.*"))
    check_split(directory, "train", corpus["train"], [name for name in ARRAYS if name != "distances"])
    assert read_manifest(directory, "en", "de")["splits"]["train"]["distances"] is False


def test_gzipped_trees(tmp_path, corpus):
    plain = run(tmp_path)
    for split, items in corpus.items():
        (tmp_path / "text" / f"{split}.en.conllu").unlink()
        write_split(tmp_path / "text" / split, items, packed=True)
    packed = run(tmp_path, destdir="packed")
    assert read_manifest(packed, "en", "de")["splits"]["train"]["trees"].endswith("train.en.conllu.gz")
    assert contents(packed, DATA) == contents(plain, DATA)


def test_other_subwords(tmp_path):
    items = random_items(6, pieces=3)
    for split in SPLITS:
        write_split(tmp_path / "text" / split, items, "sentencepiece")
    directory = run(tmp_path, "--subword-type", "sentencepiece")
    check_split(directory, "train", items)
    assert read_manifest(directory, "en", "de")["subword_type"] == "sentencepiece"


# --- odd text ---------------------------------------------------------------------------------------------------


FULL, EMPTY = random_items(4), Item([], [])
CHAIN = Item([[f"w{i}", "x"] for i in range(300)], [*range(1, 300), -1])
ODD = {
    "empty lines": ([EMPTY, FULL[0], EMPTY, EMPTY, *FULL[1:], EMPTY], "subword_nmt"),
    "empty lines only": ([EMPTY] * 3, "subword_nmt"),
    "no line": ([], "subword_nmt"),
    "one word and 300": ([Item([["a"]], [-1]), CHAIN], "subword_nmt"),
    "a word that ends in at signs": ([Item([["a@@"], ["b"]], [1, -1])], "none"),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_text(tmp_path, name):
    items, subword_type = ODD[name]
    for split in SPLITS:
        write_split(tmp_path / "text" / split, items if split == "test" else random_items(3, pieces=1), subword_type)
    directory = run(tmp_path, "--subword-type", subword_type)
    check_split(directory, "test", items)
    # distances saturate: the first word is 300 arcs from the virtual root
    assert name != "one word and 300" or ArrayReader(directory / "test.en-de.en.distances")[1].max() == 254


def test_empty_lines_need_no_tree(tmp_path, corpus):
    write_split(tmp_path / "text" / "test", ODD["empty lines"][0])
    trees = "".join(item.tree() + "\n" for item in FULL)
    (tmp_path / "text" / "test.en.conllu").write_text(trees)
    check_split(run(tmp_path), "test", ODD["empty lines"][0])


def test_carriage_returns(tmp_path, corpus):
    plain = contents(run(tmp_path, destdir="plain"), (".bin", ".idx"))
    for split, items in corpus.items():
        write_split(tmp_path / "text" / split, items, newline="\r\n")
    assert contents(run(tmp_path), (".bin", ".idx")) == plain


def test_a_byte_order_mark_is_refused(tmp_path, corpus, capsys):
    """And the command of the message removes it."""
    path = tmp_path / "text" / "test.de"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    error = fails(capsys, tmp_path)
    assert f"{path}: begins with a byte order mark" in error
    subprocess.run(error.partition("remove it: ")[2], shell=True, check=True)
    check_split(run(tmp_path), "train", corpus["train"])


def test_a_carriage_return_inside_a_line_is_named(tmp_path, corpus, capsys):
    """Also in the target, where no trees fail to fit."""
    path = tmp_path / "text" / "train.de"
    text = path.read_bytes()
    path.write_bytes(text.replace(b" ", b"\r", 1))
    line = text[: text.index(b" ")].count(b"\n") + 1
    assert f"{path}:{line}: contains a carriage return" in fails(capsys, tmp_path)


@pytest.mark.parametrize("space", ["\xa0", "\u2028"])
def test_fairseq_cuts_at_every_kind_of_space_and_so_do_the_arrays(tmp_path, corpus, space):
    item = corpus["test"][0]
    path = tmp_path / "text" / "test.en"
    path.write_text(path.read_text().replace(" ", space), encoding="utf-8")
    assert item.text().replace(" ", space) in path.read_text()
    directory = run(tmp_path)
    check_split(directory, "test", corpus["test"])


def test_surface_forms_of_multi_word_ranges(tmp_path, corpus):
    (tmp_path / "text" / "test.en").write_text("ich bin im@@ mer im Haus\n")
    (tmp_path / "text" / "test.de").write_text("x\n")
    rows = [
        ("1", "ich", "6", "nsubj"), ("2", "bin", "6", "cop"), ("3", "immer", "6", "advmod"),
        ("4-5", "im", "_", "_"), ("4", "in", "6", "case"), ("5", "dem", "6", "det"), ("6", "Haus", "0", "root"),
    ]  # fmt: skip
    trees = "".join(f"{i}\t{form}\t_\tX\t_\t_\t{head}\t{label}\t_\t_\n" for i, form, head, label in rows)
    (tmp_path / "text" / "test.en.conllu").write_text(trees + "\n")
    directory = run(tmp_path)
    assert ArrayReader(directory / "test.en-de.en.words")[0].tolist() == [0, 1, 2, 2, 3, 4, 5]
    assert ArrayReader(directory / "test.en-de.en.heads")[0].tolist() == [4, 4, 4, 4, -1]
    assert ArrayReader(directory / "test.en-de.en.parents")[0].tolist() == [10, 10, 10, 10, 10, 10, 12]


def test_labels_that_training_does_not_have_are_unknown(tmp_path, corpus, capsys):
    item = Item([["w1"], ["w2"]], [1, -1], ["new", corpus["train"][0].deprels[0]])
    write_split(tmp_path / "text" / "valid", [item])
    directory = run(tmp_path)
    error = capsys.readouterr().err
    assert "[en] 50.0 % of the deprels of split 'valid' are unknown (new)\n" in error
    assert error.count("are unknown") == 1
    unknown, known = ArrayReader(directory / "valid.en-de.en.deprels")[0].tolist()
    assert unknown == Dictionary().unk() and known > unknown
    assert "new" not in read_tags(directory / "dict.en.deprel.txt")


def test_several_validation_and_test_sets(tmp_path, corpus):
    more = {"valid1": random_items(3, 7), "test1": random_items(2, 8)}
    for name, items in more.items():
        write_split(tmp_path / "text" / name, items)
    text = tmp_path / "text"
    argv = [*arguments(tmp_path, splits=["train"]), "--validpref", f"{text}/valid,{text}/valid1"]
    preprocess.main([*argv, "--testpref", f"{text}/test,{text}/test1"])
    for split, items in {**corpus, **more}.items():
        check_split(tmp_path / "bin", split, items)


def test_the_longest_sentence_fits_into_the_types_on_disk():
    last = binarize.MAX_TOKENS - 1
    assert 2 * last < np.iinfo(ARRAY_TYPES["parents"]).max  # the greatest value means "no parent"
    assert last <= np.iinfo(ARRAY_TYPES["words"]).max and last <= np.iinfo(ARRAY_TYPES["heads"]).max
    assert binarize.MAX_TAGS + 4 <= np.iinfo(ARRAY_TYPES["deprels"]).max


def test_text_copied_raw_has_arrays_beside_it(tmp_path, corpus):
    directory = run(tmp_path, "--dataset-impl", "raw")
    assert (directory / "train.en-de.en").read_bytes() == (tmp_path / "text" / "train.en").read_bytes()
    check_split(directory, "train", corpus["train"])


# --- dictionaries of tags ---------------------------------------------------------------------------------------


def test_tag_dictionaries_of_other_data(tmp_path, corpus):
    directory = run(tmp_path)
    new = [Item([["w1"], ["w2"]], [-1, 0], ["never-seen", corpus["train"][0].deprels[0]])]
    write_split(tmp_path / "text" / "train", new)
    other = run(tmp_path, "--syntax-dicts", directory, destdir="other")
    assert (other / "dict.en.deprel.txt").read_bytes() == (directory / "dict.en.deprel.txt").read_bytes()
    check_split(other, "train", new)
    check_split(other, "valid", corpus["valid"])


def test_adding_a_split_later_leaves_the_indices_of_tags_alone(tmp_path, corpus):
    directory = run(tmp_path, splits=("train", "valid"))
    argv = arguments(tmp_path, "--srcdict", directory / "dict.en.txt", "--tgtdict", directory / "dict.de.txt")
    binarize_plainly(argv)  # tokens of all three
    before = contents(directory)
    run(tmp_path, "--only-syntax", splits=["test"])
    after = contents(directory)
    changed = {name for name in before if after[name] != before[name]}
    assert changed == {"syntax-en-de.json"}
    for split, items in corpus.items():
        check_split(directory, split, items)
    manifest = read_manifest(directory, "en", "de")
    assert set(manifest["splits"]) == set(SPLITS)
    check_manifest(directory)


def test_training_trees_made_again_keep_the_indices_of_the_other_splits(tmp_path, corpus):
    directory = run(tmp_path)
    reversed_labels = [
        Item(item.pieces, item.heads, ["zz" if d == "d0" else d for d in item.deprels]) for item in corpus["train"]
    ]
    write_split(tmp_path / "text" / "train", reversed_labels)
    run(tmp_path, "--only-syntax", "--overwrite", splits=["train"])
    check_split(directory, "valid", corpus["valid"])
    check_split(directory, "train", reversed_labels)  # zz is unknown
    check_manifest(directory)


# --- sentences without a parse ----------------------------------------------------------------------------------


def test_unparsed_sentences_are_counted(tmp_path, corpus, capsys):
    items = [*corpus["test"], Item([["a", "b"], ["c"]], [-2, -2])]
    write_split(tmp_path / "text" / "test", items)
    directory = run(tmp_path, "--allow-unparsed")
    assert "test.en.conllu: 20.0 % of the sentences have no parse" in "".join(capsys.readouterr())
    check_split(directory, "test", items)
    assert ArrayReader(directory / "test.en-de.en.parents")[4].tolist() == [65535, 65535, 65535, 65535]
    splits = read_manifest(directory, "en", "de")["splits"]
    assert splits["test"]["unparsed"] == 1 and splits["train"]["unparsed"] == 0


# --- the manifest -----------------------------------------------------------------------------------------------


def check_manifest(directory):
    """Every file it names exists with that checksum, and every array on disk is named."""
    manifest = json.loads((directory / "syntax-en-de.json").read_text(encoding="utf-8"))
    for name, value in manifest["sha256"].items():
        assert hashlib.sha256((directory / name).read_bytes()).hexdigest() == value, name
    arrays = {p.name for name in ARRAYS for p in directory.glob(f"*.en.{name}.???")}
    assert arrays and arrays <= set(manifest["sha256"])
    return manifest


def test_manifest_says_what_is_there(tmp_path, corpus):
    manifest = check_manifest(run(tmp_path))
    assert manifest["format_version"] == 1
    assert (manifest["source_lang"], manifest["target_lang"]) == ("en", "de")
    for split, items in corpus.items():
        assert manifest["splits"][split] == {
            "text": str(tmp_path / "text" / f"{split}.en"),
            "trees": str(tmp_path / "text" / f"{split}.en.conllu"),
            "distances": True,
            "allow_unparsed": False,
            "sentences": len(items),
            "tokens": sum(len(item.word_of_token) for item in items),
            "words": sum(len(item.heads) for item in items),
            "unparsed": 0,
        }


def test_messages_name_the_directory_that_is_there_and_logging_is_left_as_it_was(tmp_path, corpus, capsys):
    loggers = [logging.getLogger(), fairseq_preprocess.logger]
    before = [(list(logger.handlers), logger.level) for logger in loggers]
    directory = run(tmp_path)
    assert [(list(logger.handlers), logger.level) for logger in loggers] == before
    printed, error = capsys.readouterr()
    assert printed == "" and "train.en.conllu: 12 sentences, " in error
    assert error.splitlines()[-1].endswith(f"Wrote preprocessed data to {directory}")
    assert error.count("Wrote preprocessed data") == 1
    assert ".partial" not in error + (directory / "preprocess.log").read_text()


# --- overwriting ------------------------------------------------------------------------------------------------


def test_overwrite_leaves_no_stale_file(tmp_path, corpus, capsys):
    directory = run(tmp_path)
    (directory / "notes.md").write_text("mine")
    fresh = random_items(8, seed=99)
    write_split(tmp_path / "text" / "train", fresh)
    write_split(tmp_path / "text" / "valid", corpus["valid"][:2])
    for name in ("train.align.en-de.bin", "length_prior.en-de.npz", "length_prior.de-en.npz"):  # made of the old text
        (directory / name).write_text("old")
    before = contents(directory)
    said = fails(capsys, tmp_path, "--overwrite", "--no-distances", splits=("train", "valid"))
    assert "dict.en.txt would change, but test.en-de.en.idx was made with it" in said and contents(directory) == before
    run(tmp_path, "--overwrite", "--no-distances")
    assert not list(directory.glob("length_prior.*"))
    clean, after = contents(run(tmp_path, "--no-distances", destdir="clean")), contents(directory)
    assert after == clean
    assert (directory / "notes.md").read_text() == "mine"


def test_overwriting_one_split_with_the_same_dictionaries_keeps_the_others(tmp_path, corpus):
    directory = run(tmp_path)
    fresh = random_items(3, seed=99)
    write_split(tmp_path / "text" / "test", fresh)
    dicts = ["--srcdict", directory / "dict.en.txt", "--tgtdict", directory / "dict.de.txt"]
    run(tmp_path, "--overwrite", *dicts, splits=["test"])
    for split, items in {**corpus, "test": fresh}.items():
        check_split(directory, split, items)
    assert set(check_manifest(directory)["splits"]) == set(SPLITS)


def test_only_syntax_without_distances_removes_the_old_ones(tmp_path, corpus):
    directory = run(tmp_path)
    run(tmp_path, "--only-syntax", "--overwrite", "--no-distances", splits=["valid"])
    assert sorted(p.name.split(".")[0] for p in directory.glob("*.distances.bin")) == ["test", "train"]
    check_manifest(directory)


def test_destinations_of_all_shapes(tmp_path, corpus, capsys, monkeypatch):
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    check_split(run(tmp_path, destdir="link"), "train", corpus["train"])
    assert (tmp_path / "link").is_symlink()
    check_split(run(tmp_path, destdir="a/b/c"), "train", corpus["train"])
    (tmp_path / "bin" / "below").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "bin" / "below")
    assert "bin: the current folder and mount points cannot be replaced" in fails(capsys, tmp_path)
    assert not list(tmp_path.glob(".*.partial"))


def test_data_can_be_moved(tmp_path, corpus):
    os.rename(run(tmp_path), tmp_path / "moved")
    shutil.rmtree(tmp_path / "text")
    check_split(tmp_path / "moved", "train", corpus["train"])


# --- errors leave nothing behind --------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_a_bad_tree_in_the_last_split_leaves_nothing(tmp_path, corpus, capsys, workers):
    path = tmp_path / "text" / "test.en.conllu"
    path.write_text(path.read_text().replace("\t0\t", "\t99\t", 1))
    assert "head '99'" in fails(capsys, tmp_path, "--workers", workers)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["text"]


def test_trees_that_do_not_fit_are_found_before_the_text_is_binarized(tmp_path, corpus, capsys, monkeypatch):
    (tmp_path / "text" / "train.en").write_text("other words\n" * SPLITS["train"])
    monkeypatch.setattr(fairseq_preprocess, "main", lambda _: pytest.fail("the text was binarized"))
    assert "train.en:1 (" in fails(capsys, tmp_path)


def test_empty_and_repeated_texts_are_told(tmp_path, corpus, capsys):
    text = tmp_path / "text"
    targets = (text / "train.de").read_text().splitlines()
    (text / "train.de").write_text("\n".join(["", "", *targets[2:]]) + "\n")
    (text / "valid.de").write_bytes((text / "valid.en").read_bytes())
    for end in ("en", "en.conllu"):
        (text / f"test.{end}").write_bytes((text / f"valid.{end}").read_bytes())
    (text / "test.de").write_text("x\n" * SPLITS["valid"])
    run(tmp_path)
    said = capsys.readouterr().err
    assert f"train.de: 2 of {SPLITS['train']} lines are empty" in said
    assert said.count("are the same text") == 2  # valid.de and test.en are valid.en
    assert f"{text / 'valid.en'} and {text / 'test.en'} are the same text" in said


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_of_the_text_counts_the_lines_of_all_processes(tmp_path, corpus, capsys, monkeypatch, workers):
    monkeypatch.setattr(progress, "FIRST", 0)
    monkeypatch.setattr(progress, "SECONDS", 0)
    count = fairseq_preprocess._make_all

    def slowly(*args):
        count(*args)
        time.sleep(1.5)

    monkeypatch.setattr(fairseq_preprocess, "_make_all", slowly)
    run(tmp_path, "--workers", workers)
    total = 2 * sum(SPLITS.values()) + 2 * SPLITS["train"]  # words of the training text are counted first
    assert f" {total // 2 + SPLITS['train']}/{total} [" in capsys.readouterr().err


def test_long_sentences_come_in_smaller_chunks(monkeypatch):
    monkeypatch.setattr(binarize, "CHUNK", 5)
    monkeypatch.setattr(binarize, "CHUNK_ENTRIES", 250)
    examples = [binarize.Example(i, "", i, ["w"] * size) for i, size in enumerate([10, 10, 10, 100, 1, 1, 1, 1, 1, 1])]
    chunks = list(binarize._chunked(iter(examples)))
    assert [len(chunk) for chunk in chunks] == [3, 1, 5, 1]
    assert [example for chunk in chunks for example in chunk] == examples


# --- killed and interrupted -------------------------------------------------------------------------------------

MODULES = {"preprocessing": preprocessing, "binarize": binarize}


def stop(where, after, argv, number):
    """Run the program in a process of its own until a function is called for the n-th time, then send a signal.

    Returns:
        its exit status and stderr.
    """
    module, name = where.split(".")
    original, calls = getattr(MODULES[module], name), itertools.count()
    reading, writing = os.pipe()

    def stalled(*args, **kwargs):
        if next(calls) >= after:
            os.write(writing, b"!")
            time.sleep(60)
        return original(*args, **kwargs)

    with tempfile.TemporaryFile("w+") as error:
        child = os.fork()
        if child == 0:
            os.setsid()
            sys.stdout = sys.stderr = error
            signal.signal(signal.SIGINT, signal.default_int_handler)
            setattr(MODULES[module], name, stalled)
            try:
                sys.exit(preprocess.main(argv))
            except SystemExit as end:
                error.flush()
                os._exit(end.code)
            finally:
                os._exit(1)
        os.close(writing)
        stopped = os.read(reading, 1)
        os.close(reading)
        time.sleep(0.1)
        os.killpg(child, number)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        error.seek(0)
        assert stopped, error.read()
        return status, error.read()


@pytest.mark.parametrize("where, after", [("binarize.convert", 3), ("preprocessing.checksum", 11)])
def test_killed_before_the_end_leaves_what_was_there_and_the_next_run_works(tmp_path, corpus, where, after):
    directory = run(tmp_path)
    before = contents(directory)
    write_split(tmp_path / "text" / "train", random_items(9, 50))
    status, _ = stop(where, after, arguments(tmp_path, "--overwrite"), signal.SIGKILL)
    assert status == -signal.SIGKILL and contents(directory) == before
    check_manifest(directory)
    run(tmp_path, "--overwrite")
    run(tmp_path, destdir="undisturbed")
    assert contents(directory) == contents(tmp_path / "undisturbed")
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("workers", [1, 2])
def test_control_c_exits_130_and_leaves_nothing(tmp_path, corpus, workers):
    argv = arguments(tmp_path, "--workers", workers)
    where = ("preprocessing.checksum", 6) if workers == 2 else ("binarize.convert", 0)
    status, error = stop(*where, argv, signal.SIGINT)
    assert status == 130
    assert "interrupted; nothing was written" in error and "Traceback" not in error
    assert sorted(p.name for p in tmp_path.iterdir()) == ["text"]


# --- its help ---------------------------------------------------------------------------------------------------


def test_the_example_in_its_help(tmp_path, corpus, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        preprocess.main(["--help"])
    shown = capsys.readouterr().out
    example = shown[shown.index("examples:") + len("examples:") :].replace("\\\n", " ")
    commands = [line.split() for line in example.strip().splitlines()]
    assert [command[:2] for command in commands] == [["fairseq-syntax", "preprocess"]] * 4
    os.rename(tmp_path / "text", tmp_path / "bpe")
    # raw text: integration/test_text_recipe.py
    first, second, third, _ = (command[2:] for command in commands)
    monkeypatch.chdir(tmp_path)
    preprocess.main(first)
    check_split(Path("data-bin"), "train", corpus["train"])
    preprocess.main([*second, "--overwrite"])
    check_split(Path("data-bin"), "test", corpus["test"])
    assert preprocess.main(third) == 0

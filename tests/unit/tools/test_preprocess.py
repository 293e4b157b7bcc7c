"""fairseq-syntax preprocess from end to end, on corpora of a few sentences.

What a killed run leaves: unit/data/test_replacing_data.py; missing parses: unit/data/test_missing_parses.py.
"""

import logging
import re
import shutil
import time
from collections import Counter

import fairseq_cli.preprocess as fairseq_preprocess
import numpy as np
import programs
import pytest
from corpora import Item, expected_arrays, random_items, read_tags, write_split
from fairseq import options
from fairseq.data import Dictionary

from fairseq_syntax import progress
from fairseq_syntax.data import binarize
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


def fails(capsys, folder, *extra, **kwargs):
    """What the program says when it refuses."""
    return programs.refused(preprocess, capsys, *arguments(folder, *extra, **kwargs))


def binarize_plainly(argv):
    """fairseq-preprocess, which leaves the handlers of its log file behind."""
    handlers = list(fairseq_preprocess.logger.handlers)
    fairseq_preprocess.main(options.get_preprocessing_parser().parse_args(argv))
    for handler in set(fairseq_preprocess.logger.handlers) - set(handlers):
        fairseq_preprocess.logger.removeHandler(handler)
        handler.close()


def contents(directory, suffixes=(*DATA, ".json")):
    """File name -> bytes, without the log."""
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.suffix in suffixes}


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


def test_most_frequent_tag_comes_first_and_ties_are_in_alphabetical_order():
    assert binarize.tag_dictionary(Counter("zzyx")).symbols[4:] == ["z", "x", "y"]


def test_arrays_are_those_of_loops_and_tokens_those_of_fairseq_preprocess(tmp_path, corpus, capsys):
    loggers = [logging.getLogger(), fairseq_preprocess.logger]
    before = [(list(logger.handlers), logger.level) for logger in loggers]
    directory = run(tmp_path)
    assert [(list(logger.handlers), logger.level) for logger in loggers] == before
    printed, error = capsys.readouterr()
    assert printed == "" and "train.en.conllu: 12 sentences, " in error
    assert error.splitlines()[-1].endswith(f"Wrote preprocessed data to {directory}")
    assert error.count("Wrote preprocessed data") == 1
    assert ".partial" not in error + (directory / "preprocess.log").read_text()

    assert check_pair(directory, "en", "de")[1] == []
    manifest = read_manifest(directory, "en", "de")
    assert (manifest["source_lang"], manifest["target_lang"]) == ("en", "de")
    for split, items in corpus.items():
        check_split(directory, split, items)
        counts = manifest["splits"][split]
        assert counts["tokens"] == sum(len(item.word_of_token) for item in items)
        assert counts["words"] == sum(len(item.heads) for item in items)
        assert (counts["sentences"], counts["unparsed"]) == (len(items), 0)
    binarize_plainly(arguments(tmp_path, destdir="plain"))
    plain = contents(tmp_path / "plain")
    assert len(plain) == 14  # 3 splits, 2 languages, .bin and .idx; 2 dictionaries
    ours = contents(directory)
    assert {name: ours[name] for name in plain} == plain


def test_options_of_fairseq_preprocess_reach_it(tmp_path, corpus):
    directory = run(tmp_path, "--joined-dictionary", "--thresholdsrc", 2, "--nwordssrc", 12, "--padding-factor", 1)
    source, target = (Dictionary.load(str(directory / f"dict.{lang}.txt")) for lang in ("en", "de"))
    assert source.symbols == target.symbols and len(source) == 12


def test_two_workers_write_the_same_bytes_as_one_and_so_do_gzipped_trees(tmp_path, corpus):
    one, two = run(tmp_path, destdir="one"), run(tmp_path, "--workers", 2, destdir="two")
    assert contents(one) == contents(two)
    for split, items in corpus.items():
        (tmp_path / "text" / f"{split}.en.conllu").unlink()
        write_split(tmp_path / "text" / split, items, packed=True)
    assert contents(run(tmp_path, destdir="packed"), DATA) == contents(one, DATA)


def test_only_syntax_adds_what_the_whole_program_writes(tmp_path, corpus):
    whole = run(tmp_path, destdir="whole")
    binarize_plainly(arguments(tmp_path))
    before = contents(tmp_path / "bin")
    run(tmp_path, "--only-syntax")
    assert before.items() < contents(tmp_path / "bin").items()
    assert contents(tmp_path / "bin", DATA) == contents(whole, DATA)
    ours, theirs = (read_manifest(tmp_path / folder, "en", "de") for folder in ("bin", "whole"))
    assert ours["splits"] == theirs["splits"] and ours["sha256"].keys() == theirs["sha256"].keys()


def test_trees_of_the_target_go_beside_those_of_the_source(tmp_path, corpus):
    directory = run(tmp_path)
    before = contents(directory)
    for split, items in corpus.items():
        chains = [Item([[word] for word in reversed(item.words)], range(-1, len(item.words) - 1)) for item in items]
        trees = "".join(item.tree() + "\n" for item in chains)
        (tmp_path / "text" / f"{split}.de.conllu").write_text(trees)
    for extra in ([], ["--overwrite"]):
        assert preprocess.main([*arguments(tmp_path, "--only-syntax", *extra), "-s", "de", "-t", "en"]) == 0
        assert before.items() < contents(directory).items()
        for split, items in corpus.items():
            heads = ArrayReader(f"{split_prefix(directory, split, 'de', 'en')}.heads")
            assert [list(heads[i]) for i in range(len(heads))] == [[*range(-1, len(i.words) - 1)] for i in items]
    assert not [fault for pair in (("en", "de"), ("de", "en")) for fault in check_pair(directory, *pair)[1]]


def test_another_recipe_is_refused_where_data_were_made_with_the_old_one(tmp_path, corpus, capsys):
    settings = "--subword-type none --source-tokenizer none --target-tokenizer none --parser none".split()
    directory = run(tmp_path, "--raw", tmp_path / "raw", *settings)
    before = contents(directory)
    others = [*settings, "--overwrite", "--lowercase", "source"]
    others = arguments(tmp_path, "--raw", tmp_path / "lower", *others, splits=("train", "valid"))
    assert preprocess.main(others) == 1
    assert re.search(r"would change, but test\.en-de\.\S* was made with it; give all", capsys.readouterr().err)
    assert contents(directory) == before


# --- odd text ---------------------------------------------------------------------------------------------------


FULL, EMPTY = random_items(4), Item([], [])
CHAIN = Item([[f"w{i}", "x"] for i in range(300)], [*range(1, 300), -1])
ODD = {
    "empty lines": ([EMPTY, FULL[0], EMPTY, EMPTY, *FULL[1:], EMPTY], "subword_nmt"),
    "empty lines only": ([EMPTY] * 3, "subword_nmt"),
    "no line": ([], "subword_nmt"),
    "one word and 300": ([Item([["a"]], [-1]), CHAIN], "subword_nmt"),
    "a word that ends in at signs": ([Item([["a@@"], ["b"]], [1, -1])], "none"),
    "pieces of sentencepiece": (FULL, "sentencepiece"),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_text(tmp_path, name):
    items, subword_type = ODD[name]
    for split in SPLITS:
        write_split(tmp_path / "text" / split, items if split == "test" else random_items(3, pieces=1), subword_type)
    directory = run(tmp_path, "--subword-type", subword_type)
    check_split(directory, "test", items)
    assert read_manifest(directory, "en", "de")["subword_type"] == subword_type
    # distances saturate: the first word is 300 arcs from the virtual root
    assert name != "one word and 300" or ArrayReader(directory / "test.en-de.en.distances")[1].max() == 254


def test_empty_lines_need_no_tree_and_spaces_and_line_ends_are_those_of_fairseq(tmp_path, corpus):
    items = ODD["empty lines"][0]
    write_split(tmp_path / "text" / "test", items, newline="\r\n")
    text = tmp_path / "text" / "test.en"
    text.write_bytes(text.read_bytes().replace(b" ", "\u2028".encode(), 2).replace(b" ", "\xa0".encode(), 2))
    trees = "".join(item.tree() + "\n" for item in FULL)
    (tmp_path / "text" / "test.en.conllu").write_text(trees)
    check_split(run(tmp_path), "test", items)


def test_labels_that_training_does_not_have_are_unknown(tmp_path, corpus, capsys):
    item = Item([["w1"], ["w2"]], [1, -1], ["new", corpus["train"][0].deprels[0]])
    write_split(tmp_path / "text" / "valid", [item])
    directory = run(tmp_path)
    error = capsys.readouterr().err
    assert "[en] 50.0 % of the deprels of split 'valid' are unknown (new)\n" in error
    assert error.count("are unknown") == 1
    check_split(directory, "valid", [item])
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


def test_text_copied_raw_has_arrays_beside_it(tmp_path, corpus):
    directory = run(tmp_path, "--dataset-impl", "raw")
    assert (directory / "train.en-de.en").read_bytes() == (tmp_path / "text" / "train.en").read_bytes()
    check_split(directory, "train", corpus["train"])


def test_the_longest_sentence_fits_into_the_types_on_disk():
    last = binarize.MAX_TOKENS - 1
    assert 2 * last < np.iinfo(ARRAY_TYPES["parents"]).max  # the greatest value means "no parent"
    assert last <= np.iinfo(ARRAY_TYPES["words"]).max and last <= np.iinfo(ARRAY_TYPES["heads"]).max
    assert binarize.MAX_TAGS + 4 <= np.iinfo(ARRAY_TYPES["deprels"]).max


def test_long_sentences_come_in_smaller_chunks(monkeypatch):
    monkeypatch.setattr(binarize, "CHUNK", 5)
    monkeypatch.setattr(binarize, "CHUNK_ENTRIES", 250)
    examples = [binarize.Example(i, "", i, ["w"] * size) for i, size in enumerate([10, 10, 10, 100, 1, 1, 1, 1, 1, 1])]
    chunks = list(binarize._chunked(iter(examples)))
    assert [len(chunk) for chunk in chunks] == [3, 1, 5, 1]
    assert [example for chunk in chunks for example in chunk] == examples


# --- what is there already --------------------------------------------------------------------------------------


def test_tag_dictionaries_of_other_data(tmp_path, corpus):
    directory = run(tmp_path)
    new = [Item([["w1"], ["w2"]], [-1, 0], ["never-seen", corpus["train"][0].deprels[0]])]
    write_split(tmp_path / "text" / "train", new)
    other = run(tmp_path, "--syntax-dicts", directory, destdir="other")
    assert (other / "dict.en.deprel.txt").read_bytes() == (directory / "dict.en.deprel.txt").read_bytes()
    check_split(other, "train", new)


def test_adding_a_split_later_leaves_the_indices_of_tags_alone(tmp_path, corpus):
    directory = run(tmp_path, splits=("train", "valid"))
    dicts = ["--srcdict", directory / "dict.en.txt", "--tgtdict", directory / "dict.de.txt"]
    binarize_plainly(arguments(tmp_path, *dicts))  # tokens of all three
    before = contents(directory)
    run(tmp_path, "--only-syntax", splits=["test"])
    after = contents(directory)
    assert [name for name in before if after[name] != before[name]] == ["syntax-en-de.json"]
    fresh = random_items(3, seed=99)  # and then another one, with the same dictionaries
    write_split(tmp_path / "text" / "test", fresh)
    run(tmp_path, "--overwrite", *dicts, splits=["test"])
    for split, items in {**corpus, "test": fresh}.items():
        check_split(directory, split, items)
    assert set(read_manifest(directory, "en", "de")["splits"]) == set(SPLITS)


def test_training_trees_made_again_keep_the_indices_of_the_other_splits(tmp_path, corpus):
    directory = run(tmp_path)
    for item in corpus["train"]:
        item.deprels = ["zz" if label == "d0" else label for label in item.deprels]
    write_split(tmp_path / "text" / "train", corpus["train"])
    run(tmp_path, "--only-syntax", "--overwrite", "--no-distances", splits=["train"])
    assert sorted(path.name.split(".")[0] for path in directory.glob("*.distances.bin")) == ["test", "valid"]
    check_split(directory, "valid", corpus["valid"])
    check_split(directory, "train", corpus["train"], [name for name in ARRAYS if name != "distances"])  # zz is unknown
    assert read_manifest(directory, "en", "de")["splits"]["train"]["distances"] is False


def test_overwrite_leaves_no_stale_file(tmp_path, corpus, capsys):
    directory = run(tmp_path)
    (directory / "notes.md").write_text("mine")
    write_split(tmp_path / "text" / "train", random_items(8, seed=99))
    for name in ("train.align.en-de.bin", "length_prior.en-de.npz", "length_prior.de-en.npz"):  # made of the old text
        (directory / name).write_text("old")
    before = contents(directory)
    said = fails(capsys, tmp_path, "--overwrite", splits=("train", "valid"))
    assert "dict.en.txt would change, but test.en-de.en.idx was made with it" in said and contents(directory) == before
    run(tmp_path, "--overwrite")
    assert not list(directory.glob("length_prior.*"))
    assert contents(directory) == contents(run(tmp_path, destdir="clean"))
    assert (directory / "notes.md").read_text() == "mine"


def test_destinations_of_all_shapes(tmp_path, corpus, capsys, monkeypatch):
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    check_split(run(tmp_path, destdir="link"), "train", corpus["train"])
    assert (tmp_path / "link").is_symlink()
    shutil.move(run(tmp_path, destdir="a/b/c"), tmp_path / "moved")
    check_split(tmp_path / "moved", "train", corpus["train"])
    (tmp_path / "bin" / "below").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "bin" / "below")
    assert "bin: the current folder and mount points cannot be replaced" in fails(capsys, tmp_path)
    assert not list(tmp_path.glob(".*.partial"))


# --- errors leave nothing behind --------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_a_bad_tree_in_the_last_split_leaves_nothing(tmp_path, corpus, capsys, workers):
    path = tmp_path / "text" / "test.en.conllu"
    path.write_text(path.read_text().replace("\t0\t", "\t99\t", 1))
    assert "head '99'" in fails(capsys, tmp_path, "--workers", workers)
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


def test_control_c_exits_130_and_leaves_nothing(tmp_path, corpus, capsys, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(fairseq_preprocess, "main", interrupt)
    assert preprocess.main(arguments(tmp_path)) == 130
    assert "interrupted; nothing was written" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


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


def test_progress_of_the_text_counts_the_lines_of_all_processes(tmp_path, corpus, capsys, monkeypatch):
    monkeypatch.setattr(progress, "FIRST", 0)
    monkeypatch.setattr(progress, "SECONDS", 0)
    make_all = fairseq_preprocess._make_all

    def slowly(language, *more):
        make_all(language, *more)
        time.sleep(1.5 if language == "en" else 0)

    monkeypatch.setattr(fairseq_preprocess, "_make_all", slowly)
    run(tmp_path, "--workers", 2)
    total = 2 * sum(SPLITS.values()) + 2 * SPLITS["train"]  # words of the training text are counted first
    assert f" {total // 2 + SPLITS['train']}/{total} [" in capsys.readouterr().err

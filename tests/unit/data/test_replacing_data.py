"""Whatever moment a run is killed at, nothing can be trained on that is half old, half new."""

import itertools
import os
import shutil

import pytest
from corpora import random_items, write_split
from fairseq.tasks.translation import TranslationTask
from training_options import configuration

from fairseq_syntax.task import SyntaxTranslationTask
from fairseq_syntax.tools import preprocess
from fairseq_syntax.trees.conllu import TreeFormatError

SPLITS = ("train", "valid")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """old/ and new/: texts of one length, so that nothing but the words tells the one from the other; flat/: the words
    of old/ with other trees."""
    folder = tmp_path_factory.mktemp("texts")
    for name, first in (("old", 0), ("new", 2), ("flat", 0)):
        for seed, split in enumerate(SPLITS, first):
            items = random_items(4, seed)
            for item in items if name == "flat" else ():
                item.heads = [-1] + [0] * (len(item.heads) - 1)
            write_split(folder / name / split, items)
    return folder


def binarize(texts, name, destination, *more):
    prefixes = [part for split in SPLITS for part in (f"--{split}pref", str(texts / name / split))]
    return preprocess.main(["-s", "en", "-t", "de", *prefixes, "--destdir", str(destination), *more])


def read(data, kind=SyntaxTranslationTask, *inputs):
    """Words of both sides of all splits as a task reads them, and the trees for a model that asks for inputs."""
    task = kind.setup_task(configuration(data).task)
    task.required_inputs = set(inputs)
    found = []
    for split in SPLITS:
        task.load_dataset(split)
        pairs = task.datasets[split]
        sides = ((task.src_dict, pairs.src), (task.tgt_dict, pairs.tgt))
        found += [words.string(side[i]) for i in range(len(pairs)) for words, side in sides]
        trees = getattr(pairs, "syntax", None) or ()
        found += [trees[i].heads.tolist() for i in range(len(trees))]
    return found


# fairseq alone, a stock model and PASCAL
READERS = [(TranslationTask,), (SyntaxTranslationTask,), (SyntaxTranslationTask, "parents")]


@pytest.mark.parametrize("extra", [(), ("--only-syntax",)], ids=["everything", "only trees"])
def test_no_state_that_a_kill_leaves_can_be_trained_on(texts, tmp_path, monkeypatch, extra):
    """The state before every single operation on the file system, loaded by everything that loads data."""
    work, states = tmp_path / "work", tmp_path / "states"
    binarize(texts, "old", work / "bin")
    other = "flat" if extra else "new"
    binarize(texts, other, tmp_path / "new")
    whole = [[read(folder, *reader) for folder in (work / "bin", tmp_path / "new")] for reader in READERS]

    numbers = itertools.count()
    for name in ("link", "rename", "unlink", "rmdir"):
        original = getattr(os, name)

        def watched(*args, original=original, **kwargs):
            shutil.copytree(work, states / f"{next(numbers):03}")
            return original(*args, **kwargs)

        monkeypatch.setattr(os, name, watched)
    binarize(texts, other, work / "bin", "--overwrite", *extra)
    monkeypatch.undo()

    without = []
    for state in sorted(states.iterdir()):
        if not (state / "bin").exists():
            without.append(state)
            # the next run, even one that fails, restores what was there
            assert binarize(texts, "new", state / "bin") == 1
        for reader, either in zip(READERS, whole, strict=True):
            assert read(state / "bin", *reader) in either, (state.name, reader)
        assert binarize(texts, "old", state / "bin", "--overwrite") == 0
        assert [path.name for path in state.iterdir()] == ["bin"]
    assert len(without) == 1 and len(list(states.iterdir())) > 20
    assert all(read(work / "bin", *reader) == new for reader, (_, new) in zip(READERS, whole, strict=True))


def test_data_of_other_languages_keep_their_dictionaries(texts, tmp_path, capsys):
    """Otherwise their token ids, or tags, would mean others now."""
    data, text = tmp_path / "bin", shutil.copytree(texts / "new", tmp_path / "text")
    for split in SPLITS:
        (text / f"{split}.de").rename(text / f"{split}.fr")
    binarize(texts, "old", data)
    before = read(data, SyntaxTranslationTask, "deprels")
    argv = ["-s", "en", "-t", "fr", "--trainpref", str(text / "train"), "--destdir", str(data), "--overwrite"]
    argv += ["--srcdict", str(data / "dict.en.txt")]
    assert preprocess.main(argv) == 1
    assert f"{data}: dict.en.deprel.txt would change, but train.en-de.en.deprels.idx" in capsys.readouterr().err
    assert preprocess.main([*argv, "--syntax-dicts", str(data)]) == 0
    assert read(data, SyntaxTranslationTask, "deprels") == before
    for path in (texts / "old").glob("train*"):  # other counts of the same words and tags
        (text / path.name.replace(".de", ".fr")).write_text(path.read_text() * 2)
    assert preprocess.main(argv[:-2]) == 0
    assert preprocess.check_data(str(data))[1] == []


def test_a_split_that_is_read_with_another_may_not_be_missing(texts, tmp_path):
    """fairseq reads valid1 with valid (`--combine-valid-subsets`), and stops where there is none."""
    valid = f"{texts / 'old' / 'valid'},{texts / 'new' / 'valid'}"
    prefixes = ["--trainpref", str(texts / "old" / "train"), "--validpref", valid]
    preprocess.main(["-s", "en", "-t", "de", *prefixes, "--destdir", str(tmp_path)])
    task = SyntaxTranslationTask.setup_task(configuration(tmp_path).task)
    task.load_dataset("valid", combine=True)
    assert len(task.datasets["valid"]) == 8
    for path in tmp_path.glob("valid1.*"):
        path.unlink()
    with pytest.raises(TreeFormatError, match=r"valid1\.en-de\.de\.bin: not found, though syntax-en-de\.json lists it"):
        task.load_dataset("valid", combine=True)
    task.load_dataset("valid")
    assert len(task.datasets["valid"]) == 4

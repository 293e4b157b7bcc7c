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
    """old/ and new/: texts of one length, so that nothing but the words tells the one from the other."""
    folder = tmp_path_factory.mktemp("texts")
    for seed, (name, split) in enumerate(itertools.product(("old", "new"), SPLITS)):
        write_split(folder / name / split, random_items(4, seed))
    return folder


def binarize(texts, name, destination, *more):
    prefixes = [part for split in SPLITS for part in (f"--{split}pref", str(texts / name / split))]
    return preprocess.main(["-s", "en", "-t", "de", *prefixes, "--destdir", str(destination), *more])


def words_of(task, split):
    """Words of both sides of a split, sentence by sentence, as fairseq reads them."""
    pairs = task.datasets[split]
    sides = ((task.src_dict, pairs.src), (task.tgt_dict, pairs.tgt))
    return [words.string(side[i]) for i in range(len(pairs)) for words, side in sides]


def read_by_fairseq(data):
    """Words of all splits as fairseq reads them without the plug-in."""
    task = TranslationTask.setup_task(configuration(data).task)
    found = []
    for split in SPLITS:
        task.load_dataset(split)
        found += words_of(task, split)
    return found


def read_by_us(data, *inputs):
    """The same with the plug-in, and the trees for a model that asks for inputs."""
    task = SyntaxTranslationTask.setup_task(configuration(data).task)
    task.required_inputs = set(inputs)
    found = []
    for split in SPLITS:
        task.load_dataset(split)
        found += words_of(task, split)
        trees = task.datasets[split].syntax
        found += [trees[i].heads.tolist() for i in range(len(trees))] if trees is not None else []
    return found


READERS = {
    "fairseq alone": read_by_fairseq,
    "stock model": lambda data: read_by_us(data),
    "pascal": lambda data: read_by_us(data, "parents"),
}


@pytest.mark.parametrize("extra", [(), ("--only-syntax",)], ids=["everything", "only trees"])
def test_no_state_that_a_kill_leaves_can_be_trained_on(texts, tmp_path, monkeypatch, extra):
    """The state before every single operation on the file system, loaded by everything that loads data."""
    work, states = tmp_path / "work", tmp_path / "states"
    binarize(texts, "old", work / "bin")
    binarize(texts, "new", tmp_path / "new")
    if extra:
        # the same text with other trees
        for split in SPLITS:
            mirrored = random_items(4, seed=SPLITS.index(split))
            for item in mirrored:
                item.heads = [-1] + [0] * (len(item.heads) - 1)
            write_split(texts / "mirrored" / split, mirrored)
        shutil.rmtree(tmp_path / "new")
        binarize(texts, "mirrored", tmp_path / "new")
    whole = {name: [read(work / "bin"), read(tmp_path / "new")] for name, read in READERS.items()}

    numbers = itertools.count()
    for name in ("link", "rename", "unlink", "rmdir"):
        original = getattr(os, name)

        def watched(*args, original=original, **kwargs):
            shutil.copytree(work, states / f"{next(numbers):03}")
            return original(*args, **kwargs)

        monkeypatch.setattr(os, name, watched)
    binarize(texts, "mirrored" if extra else "new", work / "bin", "--overwrite", *extra)
    monkeypatch.undo()

    without = []
    for state in sorted(states.iterdir()):
        if not (state / "bin").exists():
            without.append(state)
            # the next run, even one that fails, restores what was there
            assert binarize(texts, "new", state / "bin") == 1
        for name, read in READERS.items():
            assert read(state / "bin") in whole[name], (state.name, name)
        assert binarize(texts, "old", state / "bin", "--overwrite") == 0
        assert [path.name for path in state.iterdir()] == ["bin"]
    assert len(without) == 1 and len(list(states.iterdir())) > 20
    assert all(read(work / "bin") == whole[name][1] for name, read in READERS.items())


def test_data_of_other_languages_keep_their_dictionaries(texts, tmp_path, capsys):
    """Otherwise their token ids, or tags, would mean others now."""
    data, text = tmp_path / "bin", shutil.copytree(texts / "new", tmp_path / "text")
    for split in SPLITS:
        (text / f"{split}.de").rename(text / f"{split}.fr")
    binarize(texts, "old", data)
    before = read_by_us(data, "deprels")
    argv = ["-s", "en", "-t", "fr", "--trainpref", str(text / "train"), "--destdir", str(data), "--overwrite"]
    argv += ["--srcdict", str(data / "dict.en.txt")]
    assert preprocess.main(argv) == 1
    assert f"{data}: dict.en.deprel.txt would change, but train.en-de.en.deprels.idx" in capsys.readouterr().err
    assert preprocess.main([*argv, "--syntax-dicts", str(data)]) == 0
    assert read_by_us(data, "deprels") == before


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

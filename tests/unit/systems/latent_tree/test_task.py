"""The task of latent trees: forced trees."""

from pathlib import Path

import pytest
from fairseq import options
from fairseq_cli import preprocess
from oracles.characters import actions_of_words

from fairseq_syntax.systems.latent_tree.task import TreeTranslationConfig, TreeTranslationTask
from fairseq_syntax.systems.latent_tree.transitions import Action
from fairseq_syntax.trees.characters import SPACE, to_characters

TEXT = {
    "train": [("ein Hund", "a dog"), ("", "no bark"), ("zwei Hunde bellen", ""), ("ein Hund", "one dog")],
    "valid": [("ein Hund", "a dog"), ("bellen", "bark"), ("zwei", "two")],
}


def binarize(folder: Path, *more) -> Path:
    """The text, as fairseq-preprocess makes it."""
    for split, pairs in TEXT.items():
        for language, lines in zip(("de", "en"), zip(*pairs, strict=True), strict=True):
            text = "".join(f"{to_characters(line)}\n" for line in lines)
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")
    given = ["-s", "de", "-t", "en", "--trainpref", folder / "train", "--validpref", folder / "valid", *more]
    parser = options.get_preprocessing_parser()
    preprocess.main(parser.parse_args([*map(str, given), "--destdir", str(folder / "bin")]))
    return folder / "bin"


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return binarize(tmp_path_factory.mktemp("text"), "--padding-factor", "1")


def task_of(data, **options) -> TreeTranslationTask:
    # what the parts of the configuration take from each other
    options = {"train_subset": "train", "dataset_impl": "mmap", "required_seq_len_multiple": 1, **options}
    return TreeTranslationTask.setup_task(TreeTranslationConfig(data=str(data), **options))


@pytest.mark.parametrize("left", [True, False])
def test_forced_trees_are_those_of_the_text(data, left):
    task = task_of(data, rnng_forced_trees="words", left_pad_source=left)
    task.load_dataset("train")
    iterator = task.get_batch_iterator(
        task.dataset("train"), max_sentences=3, required_batch_size_multiple=8
    ).next_epoch_itr(shuffle=True)
    seen = []
    for batch in iterator:
        for side, number in (("src", 0), ("tgt", 1)):
            actions = batch["net_input"][f"{side}_actions"].tolist()
            for i, row in zip(batch["id"].tolist(), actions, strict=True):
                text = to_characters(TEXT["train"][i][number]).split()
                assert [Action(a).name for a in row if a != Action.NOP] == actions_of_words(text, SPACE)
        seen += batch["id"].tolist()
    assert sorted(seen) == [0, 1, 2, 3], "no sentence is lost, empty ones neither"

"""The task of latent trees: forced trees, and the numbers of sentences whose trees are printed."""

from argparse import Namespace
from pathlib import Path

import pytest
from fairseq import options
from fairseq_cli import preprocess
from oracles.characters import actions_of_words

from fairseq_syntax.systems.latent_tree.model import LatentTreeOptions, LatentTreeRNNG
from fairseq_syntax.systems.latent_tree.task import TreeTranslationConfig, TreeTranslationTask
from fairseq_syntax.systems.latent_tree.transitions import Action
from fairseq_syntax.systems.latent_tree.tree_files import from_brackets
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


# --- data -------------------------------------------------------------------------------------------------------------


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


# --- translation ------------------------------------------------------------------------------------------------------


def translator(task):
    """What fairseq's programs have of a task: a generator and its model, of no training."""
    model = LatentTreeRNNG.build_model(LatentTreeOptions(rnng_size=4), task).eval()
    return task.build_generator([model], Namespace(beam=1, max_len_a=0, max_len_b=5)), [model]


def sources(output: str) -> dict[int, str]:
    """Number of a sentence -> its characters, as they stand in its tree."""
    fields = [line.split("\t") for line in output.splitlines()]
    return {int(name[3:]): " ".join(from_brackets(tree)[1]) for name, tree in fields if name.startswith("TS-")}


def interactive(task, lines, translating):
    """What fairseq-interactive does with a buffer: its batches have no numbers."""
    tokens, lengths = task.get_interactive_tokens_and_lengths(lines, to_characters)
    dataset = task.build_dataset_for_inference(tokens, lengths)
    batches = task.get_batch_iterator(dataset, max_sentences=2).next_epoch_itr(shuffle=False)
    for batch in batches:
        sample = {"net_input": {name: batch["net_input"][name] for name in ("src_tokens", "src_lengths")}}
        task.inference_step(*translating, sample)


def test_numbers_of_lines_that_are_typed(data, capsys):
    task = task_of(data, rnng_tree_output=True, left_pad_source=True)
    translating, buffers = translator(task), [["Hund", "", "zwei Hunde", "Hund"], ["ein", "zwei Hunde"]]
    for lines in buffers:
        interactive(task, lines, translating)
    typed = [to_characters(line) for lines in buffers for line in lines]
    assert sources(capsys.readouterr().out) == dict(enumerate(typed))

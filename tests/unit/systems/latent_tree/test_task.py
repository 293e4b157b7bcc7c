"""The task of latent trees: data, forced trees, the file of trees, repeated words, options that cannot be."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_cli import preprocess
from oracles.characters import actions_of_words

from fairseq_syntax.systems.latent_tree.task import TreeTranslationConfig, TreeTranslationTask
from fairseq_syntax.systems.latent_tree.transitions import Action
from fairseq_syntax.systems.latent_tree.tree_files import TreeFile
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


def ids(dictionary, text: str) -> torch.Tensor:
    return dictionary.encode_line(text, add_if_not_exist=False).long()


# --- data -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("trees", "space"), [("words", SPACE), ("flat", None)])
@pytest.mark.parametrize("left", [False, True])
def test_forced_trees_are_those_of_the_text(data, trees, space, left):
    task = task_of(data, rnng_forced_trees=trees, left_pad_source=left)
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
                assert [Action(a).name for a in row if a != Action.NOP] == actions_of_words(text, space)
        seen += batch["id"].tolist()
    assert sorted(seen) == [0, 1, 2, 3], "no sentence is lost, empty ones neither"


# --- translation ------------------------------------------------------------------------------------------------------


def hypothesis(dictionary, text: str, nodes=(2, 3)) -> dict:
    """One that says which source it is of, in its tree."""
    tokens = ids(dictionary, text)
    return {
        "tokens": tokens,
        "score": -1.0,
        "positional_scores": -torch.arange(len(tokens), dtype=torch.float),
        "alignment": torch.empty(0),
        "src_tree": "(X a )",
        "tgt_tree": f"(X {text} )",
        "node_attention": torch.full(nodes, 1 / 3),
        "src_spans": [(0, 4), (1, 2), (2, 4)][: nodes[1]],
        "tgt_spans": [(0, 1), (1, 3)][: nodes[0]],
        "src_capped": False,
        "tgt_capped": False,
    }


class Echo:
    """A generator that translates every sentence to itself, as far as the target has its characters."""

    def __init__(self, task):
        self.task = task
        self.seen = []

    def generate(self, models, sample, prefix_tokens=None, constraints=None):
        self.seen.append(sample["net_input"])
        rows = sample["net_input"]["src_tokens"]
        texts = [self.task.src_dict.string(row[row != self.task.src_dict.pad()]) for row in rows]
        return [[hypothesis(self.task.tgt_dict, text)] for text in texts]


def translate(task, generator, split="valid", stop=None):
    """What fairseq-generate does: batches of a split; number -> tokens."""
    task.load_dataset(split)
    iterator = task.get_batch_iterator(task.dataset(split), max_sentences=2).next_epoch_itr(shuffle=False)
    found = {}
    for count, sample in enumerate(iterator):
        if count == stop:
            break
        for number, nbest in zip(sample["id"].tolist(), task.inference_step(generator, [], sample), strict=True):
            found[number] = nbest[0]["tokens"]
    return found


def numbered(path: Path, label: str = "TT") -> dict[int, str]:
    fields = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return {int(name.split("-")[1]): value for name, value in fields if name.startswith(label)}


def test_file_of_trees_has_its_name_when_it_is_whole(data, tmp_path):
    path = tmp_path / "new" / "trees"
    task = task_of(data, rnng_tree_output=str(path))
    translate(task, Echo(task), stop=1)
    assert not path.exists() and len(numbered(Path(f"{path}.part"))) == 2
    task = task_of(data, rnng_tree_output=str(path))
    translate(task, Echo(task))
    assert [file.name for file in path.parent.iterdir()] == ["trees"]
    assert numbered(path) == {i: f"(X {to_characters(TEXT['valid'][i][0])} )" for i in range(3)}
    # an older file stays until the new one is whole
    task = task_of(data, rnng_tree_output=str(path))
    translate(task, Echo(task), split="train", stop=1)
    assert len(numbered(path)) == 3
    task = task_of(data, rnng_tree_output=str(path))
    translate(task, Echo(task), split="train")
    assert len(numbered(path)) == 4


def test_a_part_of_the_sentences_is_whole_if_it_is_all_that_comes(data, tmp_path):
    """Of two processes, or with sentences that are too long."""
    path = tmp_path / "trees"
    task = task_of(data, rnng_tree_output=str(path))
    task.load_dataset("valid")
    iterator = task.get_batch_iterator(
        task.dataset("valid"),
        max_sentences=1,
        max_positions=(8, 8),
        ignore_invalid_inputs=True,
        num_shards=2,
        shard_id=1,
    ).next_epoch_itr(shuffle=False)
    generator = Echo(task)
    for sample in iterator:
        if sample:
            task.inference_step(generator, [], sample)
    assert len(numbered(path)) == 1 and 0 not in numbered(path)


def test_trees_on_the_standard_output(data, capsys):
    task = task_of(data, rnng_tree_output="-")
    translate(task, Echo(task))
    printed = capsys.readouterr().out.splitlines()
    assert sorted(line.split("\t")[0] for line in printed if line.startswith("T")) == sorted(
        f"{name}-{i}" for name in ("TA", "TS", "TT") for i in range(3)
    )


def interactive(task, lines, generator):
    """What fairseq-interactive does with a buffer: its batches have no numbers."""
    tokens, lengths = task.get_interactive_tokens_and_lengths(lines, to_characters)
    dataset = task.build_dataset_for_inference(tokens, lengths)
    batches = task.get_batch_iterator(dataset, max_sentences=2).next_epoch_itr(shuffle=False)
    for batch in batches:
        sample = {"net_input": {name: batch["net_input"][name] for name in ("src_tokens", "src_lengths")}}
        yield task.inference_step(generator, [], sample)


def test_numbers_of_lines_that_are_typed(data, tmp_path):
    path = tmp_path / "trees"
    task = task_of(data, rnng_tree_output=str(path), left_pad_source=True)
    generator = Echo(task)
    first, second = ["Hund", "", "zwei Hunde", "Hund"], ["ein", "zwei Hunde"]
    list(interactive(task, first, generator))
    expected = {i: f"(X {to_characters(line)} )" for i, line in enumerate(first)}
    # unknown characters of the target are not of interest
    assert numbered(path).keys() == expected.keys()
    assert [value.count(" ") for _, value in sorted(numbered(path).items())] == [
        value.count(" ") for value in expected.values()
    ]
    steps = interactive(task, second, generator)
    next(steps)
    assert path.exists() and len(numbered(path)) == 6
    third = interactive(task, ["ein", "Hund", "zwei"], generator)
    next(third)
    assert not path.exists(), "a line that has been read is missing"
    list(third)
    assert sorted(numbered(path)) == list(range(9))


# --- training steps ---------------------------------------------------------------------------------------------------


def ready(data, *given):
    """Task, model, criterion and the one batch of a training with latent trees."""
    from fairseq import tasks

    given = ["--task", "tree_translation", "--arch", "latent_tree_rnng_tiny", "--criterion", "reinforce_tree", *given]
    args = options.parse_args_and_arch(options.get_training_parser(), [str(data), *given])
    cfg = convert_namespace_to_omegaconf(args)
    torch.manual_seed(1)
    task = tasks.setup_task(cfg.task)
    model, criterion = task.build_model(cfg.model), task.build_criterion(cfg.criterion)
    task.load_dataset("train")
    (batch,) = task.get_batch_iterator(task.dataset("train"), max_sentences=9).next_epoch_itr(shuffle=False)
    return task, model, criterion, batch


OPTIMIZER = SimpleNamespace(backward=lambda loss: loss.backward())


@pytest.mark.parametrize(
    ("more", "flat"),
    [
        ([], True),
        (["--rnng-forced-trees", "words", "--rnng-action-xent", "0"], False),
    ],
)
def test_distributed_training_misses_no_parameter(data, more, flat):
    """--find-unused-parameters is not needed, even in a batch without constituents."""
    task, model, criterion, batch = ready(data, *more)
    for grammar in (model.encoder, model.decoder):
        if flat:
            grammar.policy.bias.data[Action.GEN] = 1e4
    _, _, log = task.train_step(batch, model, criterion, OPTIMIZER, 0)
    assert not flat or log["flat_src"] == log["flat_tgt"] == 4
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_a_batch_that_stands_in_moves_no_average(data):
    task, model, criterion, batch = ready(data)
    for stand_in in (False, True):
        averages = model.baselines.source.fill_(9).clone()
        task.train_step(batch, model, criterion, OPTIMIZER, 0, ignore_grad=stand_in)
        assert torch.equal(averages, model.baselines.source) == stand_in


def test_file_of_no_sentences(tmp_path):
    file = TreeFile(str(tmp_path / "trees"))
    file.expect(0)
    assert not list(tmp_path.iterdir())

"""Training a parser with fairseq's commands: it learns, resumes, and its checkpoint needs nothing else."""

import shutil

import pytest
import torch
import treebanks
from fairseq import checkpoint_utils
from integration import commands

from fairseq_syntax.systems.parser.parse import OwnParser
from fairseq_syntax.trees.spanning import chu_liu_edmonds

# three updates of tags and four of trees an epoch of the paper
OPTIONS = [*treebanks.TRAINING, *("--cpu", "--num-workers", "0", "--log-format", "json", "--log-interval", "1")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return treebanks.make(tmp_path_factory.mktemp("treebank"))


def train(folder, directory, *options) -> list[dict]:
    return commands.records(commands.run("fairseq-train", folder, *OPTIONS, "--save-dir", directory, *options))


@pytest.fixture(scope="module")
def trained(folder, tmp_path_factory):
    """(directory, records) of 40 passes."""
    directory = tmp_path_factory.mktemp("run")
    return directory, train(folder, directory, "--max-epoch", "40")


def values(records, key):
    return [float(record[key]) for record in records if key in record]


def test_it_learns(trained):
    """The grammar is regular: a parser of a few updates knows nearly all of it."""
    _, records = trained
    assert values(records, "valid_pos")[-1] > 95
    assert values(records, "valid_uas")[-1] > 90 and values(records, "valid_las")[-1] > 85
    assert max(values(records, "valid_las")) == values(records, "valid_best_las")[-1]


def test_a_checkpoint_needs_nothing_else(trained, tmp_path, monkeypatch):
    directory, _ = trained
    path = tmp_path / "parser.pt"
    text = "the dog runs .".split()
    (expected,) = OwnParser(shutil.copy(directory / "checkpoint_best.pt", path), "cpu").parse([text])
    monkeypatch.chdir(tmp_path)
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(path)], arg_overrides={"data": "nowhere"})
    tokens = torch.tensor([[*map(task.source_dictionary.index, text), 2]])
    graph = model.eval()(tokens, torch.tensor([5]))
    scores = graph.head_log_probs[0].detach().numpy()
    assert chu_liu_edmonds([scores[:4, :4]], [scores[:4, 4]]) == [expected.heads]
    assert [model.pos[i] for i in graph.pos_log_probs.argmax(2)[0, :4]] == expected.upos

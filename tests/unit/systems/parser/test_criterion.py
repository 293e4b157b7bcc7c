"""The loss of tags, heads and labels: against loops, successive regularisation, figures."""

import math

import pytest
import torch
import treebanks
from fairseq.logging import metrics
from oracles.joint_parsing import losses, scores

from fairseq_syntax.systems.parser.criterion import JointParsingCriterion

GAPS = """\
1\tAch\t_\t_\tUH\t_\t_\t_\t_\t_
2\t,\t_\tPUNCT\t,\t_\t_\t_\t_\t_

1\tthe\t_\tX\tFW\t_\t0\troot\t_\t_
2\tdog\t_\tNOUN\tNN\t_\t1\tdislocated\t_\t_
3\tseeing\t_\t_\tVV\t_\t2\t_\t_\t_

"""


def build(folder):
    """(task, model in double precision with parameters far from zero)."""
    task, model = treebanks.parser(folder)
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.8, 0.8)
    return task, model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = treebanks.make(tmp_path_factory.mktemp("treebank"), train=30, valid=7)
    with open(folder / "valid.conllu", "a", encoding="utf-8") as file:
        file.write(GAPS)
    return folder


def batch_of(task, split="valid", epoch=1):
    task.load_dataset(split, epoch=epoch)
    dataset = task.dataset(split)
    return dataset.collater([dataset[i] for i in range(len(dataset))])


def one_by_one(model, sample):
    """Probabilities and gold numbers of each sentence alone, as lists."""
    graphs, gold = [], []
    for row, length in enumerate(sample["net_input"]["src_lengths"].tolist()):
        tokens = sample["net_input"]["src_tokens"][row : row + 1, :length]
        graph = model(tokens, torch.tensor([length]))
        size = length - 1
        parts = {"pos": graph.pos_log_probs, "heads": graph.head_log_probs, "labels": graph.label_log_probs}
        graphs.append({key: value[0, :size].exp().tolist() for key, value in parts.items()})
        gold.append({key: sample[key][row, :size].tolist() for key in parts})
    return graphs, gold


def test_validation_against_loops(folder):
    task, model = build(folder)
    sample = batch_of(task)
    model.eval()
    loss, size, log = JointParsingCriterion(task, sentence_avg=True)(model, sample)
    graphs, gold = one_by_one(model, sample)
    expected = losses(graphs, gold)
    assert all(math.isclose(float(log[name]), value) and value > 1 for name, value in expected.items())
    assert math.isclose(float(loss), sum(expected.values()))
    assert size == log["nsentences"] == 9 and log["ntokens"] == sum(len(sentence["pos"]) for sentence in gold)
    counts = scores(graphs, gold)
    # neither words without annotation nor unseen labels make it through unnoticed
    assert counts["head_words"] == log["ntokens"] - 2 and counts["pos_words"] == log["ntokens"] - 2
    assert counts["label_words"] == log["ntokens"] - 3
    assert {name: int(log[name]) for name in counts} == counts


@pytest.mark.parametrize(("epoch", "names"), [(1, {"pos_loss"}), (2, {"head_loss", "label_loss"})])
def test_passes(folder, epoch, names):
    """What a pass teaches (Hashimoto et al. 2017), whom it changes, what it is divided by."""
    task, model = build(folder)
    sample = batch_of(task, "train", epoch)
    model.train()
    task.begin_epoch(epoch, model)
    loss, size, log = JointParsingCriterion(task, sentence_avg=False)(model, sample)
    assert size == log["ntokens"]
    graphs, gold = one_by_one(model, sample)
    expected = losses(graphs, gold)
    assert math.isclose(float(loss), sum(expected[name] for name in names))
    assert all((float(log[name]) > 0) == (name in names) for name in expected)
    loss.backward()
    # parameters that a pass does not change have no gradient at all, and so no decay
    changed = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    of_tags = {
        name for name, _ in model.named_parameters() if name.startswith(("words", "parser.layer1", "parser.pos_c"))
    }
    assert changed == (of_tags if epoch == 1 else {name for name, _ in model.named_parameters()})
    assert all(model.get_parameter(name).grad.abs().sum() > 0 for name in changed)


@pytest.mark.parametrize("sentence_avg", [True, False])
def test_regularisation_is_not_divided(folder, sentence_avg):
    """The trainer divides by the sample size, which the term must not notice."""
    task, model = build(folder)
    sample = batch_of(task, "train", 2)
    criterion = JointParsingCriterion(task, sentence_avg)
    model.train()
    task.begin_epoch(2, model)
    weight, bias = model.parser.pos_classifier.output.weight, model.parser.pos_classifier.output.bias
    with torch.no_grad():
        weight += 0.1
    task_before = float(task.penalty())
    assert math.isclose(task_before, 1e-2 * 0.1**2 * weight.numel(), rel_tol=1e-9)
    with torch.no_grad():
        bias += 0.2
        model.parser.layer1.left_to_right.weight_hh_l0 += 0.3
    expected = task_before + 1e-2 * 0.2**2 * bias.numel() + 1e-3 * 0.3**2 * 4 * 5 * 5
    assert math.isclose(float(task.penalty()), expected, rel_tol=1e-9)
    loss, size, _ = criterion(model, sample)
    task._anchors = []
    assert math.isclose(float(loss - criterion(model, sample)[0]), expected * size, rel_tol=1e-6)
    # nothing is added in validation
    assert float(criterion(model.eval(), sample)[0]) == float(criterion(model.train(), sample)[0])


def test_metrics():
    """In a validation all are logged, even of nothing: checkpoints are chosen by one of them."""
    tags = {"loss": 4.0, "sample_size": 2, "pos_loss": 4.0, "pos_words": 8, "pos_hits": 6}
    with metrics.aggregate(new_root=True) as found:
        JointParsingCriterion.reduce_metrics([tags, {"loss": 2.0, "sample_size": 1, "validating": 1}])
    losses = {"loss": round(2 / math.log(2), 3), "pos_loss": round(0.5 / math.log(2), 3)}
    assert found.get_smoothed_values() == {**losses, "pos": 75.0, "uas": 0.0, "las": 0.0}

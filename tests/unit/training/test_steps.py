"""Criterions, terms of the loss and learning rates that a model asks the task for, with those of fairseq."""

from argparse import Namespace
from functools import partial
from types import SimpleNamespace

import pytest
import small_models
import torch
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.criterions.label_smoothed_cross_entropy_with_rdrop import RdropLabelSmoothedCrossEntropyCriterion
from fairseq.logging import metrics
from fairseq.models import BaseFairseqModel
from fairseq.tasks.translation import TranslationTask
from omegaconf import OmegaConf

from fairseq_syntax.training.steps import TrainingSteps

CRITERIONS = {
    "cross_entropy": lambda task: CrossEntropyCriterion(task, False),
    "label_smoothed_cross_entropy": lambda task: LabelSmoothedCrossEntropyCriterion(task, False, 0.1),
}


build = partial(small_models.build, "sdatt_tiny")


def sample():
    target = torch.tensor(small_models.TARGETS).roll(-1, 1)
    return {"net_input": small_models.batch(build()), "target": target, "ntokens": 25}


class Task(TrainingSteps, TranslationTask):
    """With a target dictionary and nothing else; trees come with the batch."""

    def __init__(self):
        self.cfg = SimpleNamespace(eval_bleu=False, lisa_gold_parses=False)
        self.src_dict = self.tgt_dict = small_models.WORDS
        self.attach_syntax = None


@pytest.fixture
def task():
    return Task()


class Optimizer:
    """Backward and a step, as fairseq's optimizers have them."""

    def __init__(self, parameters=(), step=torch.optim.SGD, **options):
        self.optimizer = step([torch.zeros(0), *parameters], **{"lr": 0.5, **options})
        self.step = self.optimizer.step

    def backward(self, loss):
        loss.backward()


@pytest.mark.parametrize("arch", ["lisa_transformer_tiny", "dasa_transformer_tiny"])
@pytest.mark.parametrize("from_checkpoint", [False, True])
@pytest.mark.parametrize("suffix", ["", "_with_heads"])
def test_a_criterion_that_teaches_a_new_model_no_trees_is_named(task, arch, from_checkpoint, suffix, caplog):
    task.build_model(Namespace(**small_models.SIZES, arch=arch), from_checkpoint)
    criterion = {"_name": f"label_smoothed_cross_entropy{suffix}", "label_smoothing": 0.1, "sentence_avg": False}
    task.build_criterion(OmegaConf.create(criterion), from_checkpoint)
    warned = "label_smoothed_cross_entropy learns nothing from the trees; give" in caplog.text
    assert warned == ("lisa" in arch and not from_checkpoint and not suffix)


TREES = ["pascal_transformer_tiny", "lisa_transformer_tiny", "tag_transformer_tiny", "dasa_transformer_tiny"]
TREES += ["sdatt_transformer_tiny", "sdatt_tiny", "chen17_tiny"]


@pytest.mark.parametrize("arch", TREES)
def test_r_drop_shows_each_sentence_twice_with_its_tree(task, arch):
    """Without dropout, both passes are the same, and the loss is twice that of one."""
    model, once = small_models.build(arch), LabelSmoothedCrossEntropyCriterion(task, False, 0.1)
    twice = RdropLabelSmoothedCrossEntropyCriterion(task, False, 0.1, rdrop_alpha=5.0)
    given = {**sample(), "net_input": small_models.batch(model)}
    expected = once(model, given)[0]
    torch.testing.assert_close(twice(model, given)[0].sum(), 2 * expected)


@pytest.mark.parametrize("criterion", CRITERIONS)
def test_a_term_of_the_model_joins_the_loss_of_any_criterion(task, criterion):
    model, criterion = build(sdatt_guide="loss", sdatt_guide_weight=0.5), CRITERIONS[criterion](task)
    own, size, log = criterion(model.train(), sample())
    term = model(**sample()["net_input"])[1]["auxiliary_loss"]
    expected = torch.autograd.grad(own + term, list(model.parameters()))
    loss, found_size, found_log = task.train_step(sample(), model, criterion, Optimizer(), 0)
    assert float(term) > 0.1 and found_size == size == 25
    torch.testing.assert_close(loss, own + term)
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
    # what is printed as the loss can be compared with that of other systems
    assert found_log.pop("auxiliary_loss") == term and found_log == log
    with metrics.aggregate(new_root=True) as logged:
        task.reduce_metrics([{**found_log, "auxiliary_loss": term.data, "nsentences": 2}] * 2, criterion)
    assert logged.get_smoothed_values()["auxiliary_loss"] == round(float(term) / 25, 3)


def test_other_models_are_trained_as_ever(task):
    model, criterion = build(), CRITERIONS["cross_entropy"](task)
    own, _, log = criterion(model.train(), sample())
    loss, _, found = task.train_step(sample(), model, criterion, Optimizer(), 0)
    assert torch.equal(loss, own) and found == log and not model._forward_hooks
    with metrics.aggregate(new_root=True) as logged:
        task.reduce_metrics([{**log, "nsentences": 2}], criterion)
    assert "auxiliary_loss" not in logged.get_smoothed_values()


@pytest.mark.parametrize("given", [torch.tensor([3.0]), {"loss": torch.tensor(3.0)}, (torch.tensor(3.0),)])
def test_models_may_return_anything(task, given):
    """As fairseq's non-autoregressive ones do."""

    class Model(BaseFairseqModel):
        def forward(self):
            return given

    def criterion(model, sample):
        assert model() is given
        return torch.zeros((), requires_grad=True), 1, {}

    assert task.train_step(sample(), Model(), criterion, Optimizer(), 0)[1:] == (1, {})


@pytest.mark.parametrize("step", [torch.optim.SGD, torch.optim.Adam])
def test_some_parameters_take_a_share_of_the_step(task, step):
    steps = {}
    for share in (1.0, 0.25, 0.0, 2.0):
        model = build(sdatt_position_lr=share)
        before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
        optimizer = Optimizer(model.parameters(), step)
        task.train_step(sample(), model, CRITERIONS["cross_entropy"](task), optimizer, 0)
        task.optimizer_step(optimizer, model=model, update_num=0)
        steps[share] = {name: parameter.detach() - before[name] for name, parameter in model.named_parameters()}
    for share, found in steps.items():
        for name, moved in found.items():
            factor = share if ".position." in name else 1.0
            torch.testing.assert_close(moved, factor * steps[1.0][name], atol=1e-12, rtol=1e-9)
            assert moved.any() or not factor or name.endswith("score.bias"), name

"""The schedules `halve_on_drop` and `inverse_epoch`, against loops."""

import math

import pytest
import torch
from fairseq.optim import build_optimizer
from fairseq.optim.lr_scheduler import build_lr_scheduler
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from fairseq_syntax.systems.lgp.decayed_sgd import DecayedSGDConfig
from fairseq_syntax.systems.lgp.halve_on_drop import HalveOnDropConfig
from fairseq_syntax.systems.parser.task import InverseEpochConfig

CONFIGS = {"halve_on_drop": HalveOnDropConfig, "inverse_epoch": InverseEpochConfig, "lgp_sgd": DecayedSGDConfig}


def build(name, *, lr=(1.0,), maximize=True, task=None, optimizer="lgp_sgd", **options):
    """A schedule as the trainer builds it, from a whole configuration."""

    def group(of, **given):
        return {**OmegaConf.to_container(OmegaConf.structured(CONFIGS[of]()), resolve=False), **given, "_name": of}

    cfg = OmegaConf.create(
        {
            "optimization": {"lr": list(lr)},
            "common": {"fp16": False, "bf16": False},
            "checkpoint": {"maximize_best_checkpoint_metric": maximize},
            "task": task or {},
            "optimizer": group("lgp_sgd") if optimizer == "lgp_sgd" else {"_name": "nag", "momentum": 0, "lr": [1.0]},
            "lr_scheduler": group(name, **options),
        }
    )
    # what the trainer writes into a checkpoint
    OmegaConf.to_container(cfg, resolve=True)
    return build_lr_scheduler(cfg.lr_scheduler, build_optimizer(cfg.optimizer, [torch.nn.Parameter(torch.ones(2, 2))]))


def halvings(values, factor, spared, maximize):
    """Learning rate after every check, from 1."""
    rates = []
    for i in range(len(values)):
        rate = rates[-1] if rates else 1.0
        if i > 0 and i + 1 > spared:
            worse = values[i] < values[i - 1] if maximize else values[i] > values[i - 1]
            if worse:
                rate = rate * factor
        rates.append(rate)
    return rates


@given(
    values=st.lists(st.integers(0, 4).map(float), min_size=1, max_size=12),
    after=st.integers(0, 3),
    parts=st.integers(1, 3),
    factor=st.sampled_from([0.5, 0.7]),
    maximize=st.booleans(),
    stop=st.integers(0, 12),
)
def test_a_drop_shrinks_the_learning_rate_and_a_restart_changes_nothing(values, after, parts, factor, maximize, stop):
    options = {"lgp_halve_after": after, "lr_shrink": factor, "maximize": maximize, "task": {"epoch_parts": parts}}
    schedule = build("halve_on_drop", **options)
    found = []
    for epoch, value in enumerate(values, 1):
        if epoch == stop:
            state = schedule.state_dict()
            schedule = build("halve_on_drop", **options)
            schedule.load_state_dict(state)
        schedule.step(epoch, value)
        found.append(schedule.step_update(epoch))
        assert schedule.optimizer.get_lr() == found[-1]
    assert found == halvings(values, factor, after * parts, maximize)


def test_an_epoch_without_validation_changes_nothing():
    schedule = build("halve_on_drop", lgp_halve_after=0)
    rates = [schedule.step(i, value) for i, value in enumerate([5.0, None, None, 4.0], 1)]
    assert rates == [1, 1, 1, 0.5] and schedule.state_dict() == {"lr": 0.5, "prev": 4.0}


@given(rho=st.floats(0, 2), lr=st.floats(0.01, 2), start=st.integers(1, 9))
def test_epochs_of_two_passes(rho, lr, start):
    """A run that resumes, at any epoch, has the learning rate of that epoch."""
    schedule = build("inverse_epoch", lr=[lr], lgp_lr_rho=rho)
    for epoch in range(start, start + 5):
        schedule.step_begin_epoch(epoch)
        k = math.ceil(epoch / 2)
        assert schedule.step_update(epoch) == pytest.approx(lr / (1 + rho * (k - 1)), rel=1e-12)
        assert schedule.optimizer.get_lr() == schedule.lr
        schedule.step(epoch, 1.0)
        assert schedule.optimizer.get_lr() == schedule.lr
    assert schedule.optimizer.clip_value is None


def test_every_pass_has_its_norm():
    schedule = build("inverse_epoch", lgp_pass_clip_norms=[1.0, 2.0])
    found = []
    for epoch in range(1, 5):
        schedule.step_begin_epoch(epoch)
        found.append((schedule.optimizer.clip_value, round(schedule.optimizer.get_lr(), 6)))
    assert found == [(1, 1), (2, 1), (1, 0.769231), (2, 0.769231)]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("halve_on_drop", {"lr": [1.0, 0.5]}, r"--lr \[1.0, 0.5\]: halve_on_drop starts with one learning rate"),
        ("inverse_epoch", {"lr": [1.0, 0.5]}, r"--lr \[1.0, 0.5\]: inverse_epoch starts with one learning rate"),
        ("inverse_epoch", {"lgp_pass_clip_norms": [1.0]}, r"--lgp-pass-clip-norms \[1.0\]: give 2 numbers"),
        ("inverse_epoch", {"lgp_pass_clip_norms": [1.0, -1.0]}, "none negative"),
        ("inverse_epoch", {"lgp_pass_clip_norms": [1.0, 2.0], "optimizer": "nag"}, "needs --optimizer lgp_sgd"),
    ],
)
def test_wrong_options(name, options, message):
    with pytest.raises(ValueError, match=message):
        build(name, **options)

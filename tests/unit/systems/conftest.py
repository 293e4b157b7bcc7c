"""Small recurrent models in double precision, built in this process from their presets."""

import argparse
from types import SimpleNamespace

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from small_models import dictionary

import fairseq_syntax

fairseq_syntax.register()

SIZES = {
    "encoder_embed_dim": 5,
    "encoder_hidden_size": 3,
    "decoder_embed_dim": 4,
    "decoder_hidden_size": 6,
    "dropout": 0.0,
    "init_range": 0.8,
}


@pytest.fixture(scope="session")
def task() -> SimpleNamespace:
    """What of a task models are built from: words 4-11, and of punctuation 12 and 13."""
    source, target = dictionary([*(f"w{i}" for i in range(8)), ".", ",@@"]), dictionary(f"v{i}" for i in range(7))
    return SimpleNamespace(source_dictionary=source, target_dictionary=target, attach_syntax=None)


@pytest.fixture
def build(task):
    """Function: architecture, options -> the model in double precision, in eval mode, always the same."""

    def get(arch, *, of=None, **options):
        args = argparse.Namespace(**{**SIZES, **options})
        ARCH_CONFIG_REGISTRY[arch](args)
        torch.manual_seed(7)
        model = ARCH_MODEL_REGISTRY[arch].build_model(args, of or task)
        return model.double().eval()

    return get

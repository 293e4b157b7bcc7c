"""Transformers that use tree distances: layers and heads that do, alignment, options, what is logged."""

import argparse
from functools import partial

import pytest
import small_models
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY
from small_models import PAD, batch

from fairseq_syntax.systems.transformer.model import SIZES

DASA = "dasa_transformer"
build = partial(small_models.build, encoder_layers=3, decoder_layers=3)


def own_names(model):
    return set(model.state_dict()) - set(build("transformer").state_dict())


def test_alignment():
    """Mean attention of the last layer, or of the first heads of a layer; 0 at padding, where fairseq asks for it."""
    model = build(DASA, encoder_normalize_before=True)
    given = batch(model)
    for where in ({}, {"alignment_layer": 0}, {"alignment_layer": 1, "alignment_heads": 1}):
        (attention,) = model(**given, **where)[1]["attn"]
        assert attention.shape == (5, 5, 7)
        torch.testing.assert_close(attention.sum(-1).double(), torch.ones(5, 5).double())
        assert not attention.masked_select(given["src_tokens"].eq(PAD).unsqueeze(1)).any()
    model.make_generation_fast_(need_attn=False)
    torch.testing.assert_close(model(**given)[1]["attn"][0], model(**given, alignment_layer=2)[1]["attn"][0])


@pytest.mark.parametrize("size", SIZES)
def test_presets(size):
    """Those of fairseq, in all its sizes."""
    args, stock = argparse.Namespace(), argparse.Namespace()
    ARCH_CONFIG_REGISTRY[f"{DASA}{size}"](args)
    ARCH_CONFIG_REGISTRY[f"transformer{size}"](stock)
    assert vars(args) == vars(stock)


def test_all_layers_have_the_parameters():
    model = build(DASA, dasa_init=0.5)
    assert own_names(model) == {f"encoder.layers.{i}.self_attn.distance_weight" for i in range(3)}
    assert model.encoder.layers[1].self_attn.distance_weight.tolist() == [0.5] * 4

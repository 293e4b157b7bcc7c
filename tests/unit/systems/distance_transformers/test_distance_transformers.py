"""Transformers that use tree distances: layers and heads that do, alignment, options, what is logged."""

import argparse
from functools import partial

import numpy as np
import pytest
import small_models
import torch
from fairseq.logging import metrics
from fairseq.models import ARCH_CONFIG_REGISTRY
from fairseq.models.transformer import TransformerModel
from small_models import PAD, batch

from fairseq_syntax.systems.transformer.model import SIZES

SDATT, DASA = "sdatt_transformer", "dasa_transformer"
ON = [
    pytest.param(SDATT, {}, id="sdatt"),
    pytest.param(SDATT, {"sdatt_heads": 4, "sdatt_n": 1.0}, id="sdatt all heads"),
    pytest.param(SDATT, {"sdatt_position": "hard", "decoder_normalize_before": True}, id="sdatt hard"),
    pytest.param(DASA, {"encoder_normalize_before": True}, id="dasa"),
]
build = partial(small_models.build, encoder_layers=3, decoder_layers=3)


def own_names(model):
    return set(model.state_dict()) - set(build("transformer").state_dict())


@pytest.mark.parametrize("arch, options", ON)
def test_alignment(arch, options):
    """Mean attention of the last layer, or of the first heads of a layer; 0 at padding, where fairseq asks for it."""
    model = build(arch, **options)
    given = batch(model)
    for where in ({}, {"alignment_layer": 0}, {"alignment_layer": 1, "alignment_heads": 1}):
        (attention,) = model(**given, **where)[1]["attn"]
        assert attention.shape == (5, 5, 7)
        torch.testing.assert_close(attention.sum(-1).double(), torch.ones(5, 5).double())
        assert not attention.masked_select(given["src_tokens"].eq(PAD).unsqueeze(1)).any()
    model.make_generation_fast_(need_attn=False)
    torch.testing.assert_close(model(**given)[1]["attn"][0], model(**given, alignment_layer=2)[1]["attn"][0])


def test_a_missing_parse_can_be_an_error():
    with pytest.raises(ValueError, match="1 of 5 sentences of a batch have no parse"):
        build(SDATT, sdatt_missing="error")(**batch(build(SDATT)))


@pytest.mark.parametrize("arch", [SDATT, DASA])
@pytest.mark.parametrize("size", SIZES)
def test_presets(arch, size):
    """Those of fairseq, in all its sizes."""
    args, stock = argparse.Namespace(), argparse.Namespace()
    ARCH_CONFIG_REGISTRY[f"{arch}{size}"](args)
    ARCH_CONFIG_REGISTRY[f"transformer{size}"](stock)
    assert vars(args) == vars(stock)


def test_all_layers_have_the_parameters():
    assert own_names(build(SDATT)) == {
        f"decoder.layers.{i}.encoder_attn.position.{part}.weight" for i in range(3) for part in ("hidden", "output")
    }
    model = build(DASA, dasa_init=0.5)
    assert own_names(model) == {f"encoder.layers.{i}.self_attn.distance_weight" for i in range(3)}
    assert model.encoder.layers[1].self_attn.distance_weight.tolist() == [0.5] * 4
    one_head = build(SDATT, encoder_attention_heads=1, decoder_attention_heads=1)
    assert [each.decoder.layers[0].encoder_attn.syntax_heads for each in (build(SDATT), one_head)] == [2, 1]


@pytest.mark.parametrize(
    "arch, options, message",
    [
        (SDATT, {"no_cross_attention": True}, "--no-cross-attention leaves no attention to the source"),
        (SDATT, {"cross_self_attention": True}, "--cross-self-attention leaves no attention to the source"),
    ],
)
def test_wrong_options_are_named(arch, options, message):
    with pytest.raises(ValueError, match=message):
        build(arch, **options)


def test_stock_options_stay_where_nothing_is_directed():
    assert isinstance(build(SDATT, 0, sdatt_heads=0, no_cross_attention=True), TransformerModel)


@pytest.mark.parametrize("left_pad", [False, True])
def test_spread_of_positions_is_logged_in_validation(left_pad):
    model = build(SDATT)
    given = batch(model, left_pad=left_pad)
    found = [[] for _ in range(3)]
    for layer, seen in zip(model.decoder.layers, found, strict=True):
        layer.encoder_attn.position.register_forward_hook(lambda _, arguments, output, seen=seen: seen.append(output))
    with metrics.aggregate(new_root=True) as log:
        model(**given)
    (values,) = zip(*found, strict=True)
    lengths, real = given["src_lengths"], given["prev_output_tokens"].ne(PAD)
    spreads, shares, times = [], [], []
    steps = real.sum(dim=1, keepdim=True)
    time = ((torch.arange(real.shape[1]) + 0.5) / steps)[real]
    for layer in values:
        for head in range(layer.shape[1]):
            shares.append((layer[:, head] / lengths[:, None])[real])
            times.append(time)
            spreads.append(float(shares[-1].std(correction=0)))
    assert len(spreads) == 6 and min(spreads) > 0.01
    clock = np.corrcoef(torch.cat(shares).detach().numpy(), torch.cat(times).numpy())[0, 1]
    assert log.get_smoothed_values() == {
        "position_spread": round(sum(spreads) / 6, 3),
        "position_clock": pytest.approx(clock, abs=6e-4),
    }
    with metrics.aggregate(new_root=True) as log:
        model.train()(**given)
        build(SDATT, sdatt_heads=0)(**given)
    assert not log.get_smoothed_values()

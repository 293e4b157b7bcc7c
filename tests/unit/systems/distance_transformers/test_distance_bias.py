"""The tree-distance bias on self-attention against its formula, written as loops."""

import math

import pytest
import torch
from fairseq.modules import MultiheadAttention
from oracles import multihead

from fairseq_syntax.systems.distance_transformers.dasa import DistanceBiasAttention, log_gaussian

B, T, C, H = 3, 6, 12, 3
LENGTHS = [6, 3, 1]
WEIGHTS = torch.tensor([1.5, -0.7, 0.0], dtype=torch.double)


def build(**options):
    torch.manual_seed(0)
    attention = DistanceBiasAttention(C, H, **options).double().eval()
    for name, parameter in attention.named_parameters():
        if name != "distance_weight":
            torch.nn.init.normal_(parameter, std=0.5)
    return attention


def batch(left_pad=False):
    """Random input, padding mask, distances; 255 at padding."""
    generator = torch.Generator().manual_seed(1)
    x = torch.full((T, B, C), 3.0, dtype=torch.double)
    mask = torch.ones(B, T, dtype=torch.bool)
    distances = torch.full((B, T, T), 255, dtype=torch.uint8)
    for b, length in enumerate(LENGTHS):
        part = slice(T - length, T) if left_pad else slice(0, length)
        x[part, b] = torch.randn(length, C, generator=generator, dtype=torch.double)
        mask[b, part] = False
        some = torch.randint(1, 21, (length, length), generator=generator).triu(1)  # 20² is beyond uint8
        distances[b, part, part] = (some + some.T).to(torch.uint8)
    return x, mask, distances


def loop_oracle(attention, x, mask, distances, sigma):
    """softmax(q·k/√d + λ_h exp(-M²/2σ²)) V one score at a time."""

    def weigh(h, b, t, scores):
        near = {j: math.exp(-(int(distances[b, t, j]) ** 2) / (2 * sigma**2)) for j in scores}
        return multihead.softmax({j: s + float(attention.distance_weight[h]) * near[j] for j, s in scores.items()})

    return multihead.attend(attention, x, x, ~mask, weigh)[0]


@pytest.mark.parametrize("left_pad", [False, True])
@pytest.mark.parametrize("sigma", [0.5, 2.0, 10.0, math.inf])
def test_equals_the_formula(sigma, left_pad):
    x, mask, distances = batch(left_pad)
    attention = build()
    with torch.no_grad():
        attention.distance_weight.copy_(WEIGHTS)
        out = attention.attend_to_near(x, mask, log_gaussian(distances, sigma).exp())
        expected = loop_oracle(attention, x, mask, distances, sigma)
    torch.testing.assert_close(out, expected, atol=1e-6, rtol=1e-6)  # G is float32


@pytest.mark.parametrize("masked", [True, False])
def test_no_parse_or_no_weight_is_stock_attention(masked):
    x, mask, distances = batch()
    mask = mask if masked else None
    stock = MultiheadAttention.forward(build(), x, x, x, key_padding_mask=mask, need_weights=False)[0]
    unparsed = build(initial=5.0).attend_to_near(x, mask, log_gaussian(torch.zeros_like(distances), 2.0).exp())
    weightless = build(initial=0.0).attend_to_near(x, mask, log_gaussian(distances, 2.0).exp())
    for found in (unparsed, weightless):
        torch.testing.assert_close(found, stock, atol=1e-12, rtol=1e-12)
    other = build(initial=5.0).attend_to_near(x, mask, log_gaussian(distances, 2.0).exp())
    assert not torch.allclose(other[:, 0], stock[:, 0], atol=1e-3)


def test_weights_drop_out_in_training_only():
    x, mask, distances = batch()
    near = log_gaussian(distances, 2.0).exp()
    attention = build(dropout=0.5)
    still = attention.attend_to_near(x, mask, near)
    assert torch.equal(still, build().attend_to_near(x, mask, near))
    attention.train()
    assert not torch.allclose(still, attention.attend_to_near(x, mask, near))

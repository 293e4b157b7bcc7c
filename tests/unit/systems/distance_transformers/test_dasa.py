"""Tree distances in self-attention, in three ways, against their formulas, written as loops."""

import math

import pytest
import small_models
import torch
from fairseq.modules import MultiheadAttention
from oracles import multihead, published_code

from fairseq_syntax.systems.distance_transformers.dasa import (
    DistanceBiasAttention,
    DistanceScaledAttention,
    inverse_distances,
    log_gaussian,
)

WEIGHTS = torch.tensor([1.5, -0.7, 0.0], dtype=torch.double)


def build(attention=DistanceBiasAttention, **options):
    return small_models.attention_layer(attention, **options)


def batch(left_pad=False):
    """Input, padding mask, distances; 255 at padding."""
    x, mask, parts = small_models.attention_input(left_pad)
    distances = torch.full((3, 6, 6), 255, dtype=torch.uint8)
    generator = torch.Generator().manual_seed(1)
    for b, part in enumerate(parts):
        some = torch.randint(1, 21, (len(part), len(part)), generator=generator).triu(1)  # 20² is beyond uint8
        distances[b, part[0] : part[-1] + 1, part[0] : part[-1] + 1] = (some + some.T).to(torch.uint8)
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


def row_of_weights(distances, t, epsilon):
    """Column -> 1 / (d + ε), divided by the sum of the row, of real tokens; none in the rows of padding."""
    inverse = {j: 1 / (int(d) + epsilon) for j, d in enumerate(distances[t]) if d != 255}
    return {j: value / sum(inverse.values()) for j, value in inverse.items()}


@pytest.mark.parametrize("left_pad", [False, True])
@pytest.mark.parametrize("epsilon", [1.0, 0.25, 1e-9])
def test_multiply_equals_its_formula(epsilon, left_pad):
    x, mask, distances = batch(left_pad)
    attention = build(DistanceScaledAttention)

    def weigh(h, b, t, scores):
        weights = row_of_weights(distances[b], t, epsilon)
        return multihead.softmax({j: score * weights.get(j, 0) for j, score in scores.items()})

    with torch.no_grad():
        found = attention.attend_scaled(x, mask, inverse_distances(distances, epsilon))
        expected = multihead.attend(attention, x, x, ~mask, weigh)[0]
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("left_pad", [False, True])
@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_log_equals_its_formula(weight, left_pad):
    """softmax(s + λ log W), that is, W^λ exp(s), normalised."""
    x, mask, distances = batch(left_pad)
    attention = build(initial=weight, learned=False)
    assert attention.state_dict().keys() == MultiheadAttention(12, 3).state_dict().keys()

    def weigh(h, b, t, scores):
        weights = row_of_weights(distances[b], t, 1.0)
        values = {j: weights.get(j, 1) ** weight * math.exp(score) for j, score in scores.items()}
        return {j: value / sum(values.values()) for j, value in values.items()}

    with torch.no_grad():
        bias = inverse_distances(distances, 1.0).log().masked_fill(distances == 255, 0)
        found = attention.attend_to_near(x, mask, bias)
        expected = multihead.attend(attention, x, x, ~mask, weigh)[0]
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)


def test_as_published_multiplied_scores_carry_no_tree():
    """With ε = 1e-9, W is 1 on the diagonal, and all other words get the same weight, whatever the tree."""
    distances = torch.tensor([[[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0]]], dtype=torch.uint8)
    weights = inverse_distances(distances, 1e-9)
    assert torch.equal(weights.diagonal(dim1=1, dim2=2), torch.ones(1, 4))
    assert (weights - torch.eye(4)).max() <= 1e-9
    attention = build(DistanceScaledAttention)
    x = torch.randn(4, 1, 12, dtype=torch.double)
    other = distances.flip(1).flip(2).clamp(max=2)
    found, expected = (attention.attend_scaled(x, None, inverse_distances(d, 1e-9)) for d in (distances, other))
    torch.testing.assert_close(found, expected, atol=1e-7, rtol=1e-7)
    log = (inverse_distances(distances, 1e-9).log() * 0.5).softmax(-1)
    assert float(log.diagonal(dim1=1, dim2=2).min()) > 0.999


def test_published_weights_are_of_other_words_where_fairseq_pads_on_the_left():
    """Its default: W is filled from column 0, the tokens stand at the end of the row."""
    distances = torch.tensor([[0, 1, 2], [1, 0, 1], [2, 1, 0]], dtype=torch.uint8)
    left, right = (torch.full((1, 5, 5), 255, dtype=torch.uint8) for _ in range(2))
    left[0, 2:, 2:] = right[0, :3, :3] = distances
    theirs = published_code.dasa_weights([distances], 5)
    torch.testing.assert_close(theirs, inverse_distances(right, 1e-9))
    ours = inverse_distances(left, 1e-9)
    assert ours[0, 2:, 2:].any(-1).all() and not theirs[0, 3:].any(), "two of three words get no weights at all"

"""Parent-scaled attention against the paper's equations, written as loops."""

import math

import pytest
import torch
from oracles import multihead
from small_models import attention_input, attention_layer

from fairseq_syntax.systems.pascal.attention import ParentScaledAttention
from fairseq_syntax.systems.pascal.parent_kernel import parent_weights


def build(pascal_heads=2, **options):
    return attention_layer(ParentScaledAttention, pascal_heads=pascal_heads, **options)


def batch(left_pad=False):
    """Input, padding mask, doubled parent positions in columns."""
    x, mask, parts = attention_input(left_pad)
    parents = torch.full(mask.shape, -1, dtype=torch.int32)
    generator = torch.Generator().manual_seed(1)
    for b, part in enumerate(parts):
        places = torch.randint(0, 2 * len(part) - 1, (len(part),), generator=generator, dtype=torch.int32)
        parents[b, part] = places + 2 * part[0]
    return x, mask, parents


def loop_oracle(attention, x, mask, parents, heads, weight):
    """Equations 1-3 one score at a time; `weight(offset)` is dist(p, j)."""

    def weigh(h, b, t, scores):
        if h < heads and parents[b, t] >= 0:
            scores = {j: score * weight(j - float(parents[b, t]) / 2) for j, score in scores.items()}
        return multihead.softmax(scores)

    return multihead.attend(attention, x, x, ~mask, weigh)[0]


def normal(variance):
    return lambda o: math.exp(-o * o / (2 * variance)) / math.sqrt(2 * math.pi * variance)


KERNELS = [
    ("normal", 1.0, normal(1.0)),
    ("normal", 4.0, normal(4.0)),
    ("uniform", 1.0, lambda o: float(abs(o) <= 1)),
    ("parent-only", 1.0, lambda o: float(abs(o) <= 0.5)),
]


@pytest.mark.parametrize("heads, left_pad", [(1, True), (3, False)])
@pytest.mark.parametrize("kernel, variance, weight", KERNELS)
def test_equals_the_equations(kernel, variance, weight, heads, left_pad):
    x, mask, parents = batch(left_pad)
    attention = build(heads)
    out, weights = attention.attend_to_parents(x, mask, parent_weights(parents, kernel, variance))
    expected = loop_oracle(attention, x, mask, parents, heads, weight)
    torch.testing.assert_close(out, expected, atol=1e-6, rtol=1e-5)  # D and the softmax are float32
    real = ~mask.unsqueeze(1).expand(-1, heads, -1)
    torch.testing.assert_close(weights.sum(-1)[real], torch.ones(int(real.sum())))
    assert not weights.masked_select(mask[:, None, None, :]).any()


def test_halves_of_positions_are_kept():
    """Regression: a head word cut into two pieces has its middle between them, and both get the same weight."""
    weights = parent_weights(torch.tensor([[3, 3, 3, 3]]), "normal", 1.0)  # 1.5
    assert weights[0, 0, 1] == weights[0, 0, 2] > weights[0, 0, 0] == weights[0, 0, 3]
    far = parent_weights(torch.tensor([[4095]]).expand(1, 4096), "parent-only", 1.0)  # 2047.5, exact only in float32
    assert far[0, 0].nonzero().flatten().tolist() == [2047, 2048]


def test_parent_ignoring_switches_whole_rows_at_its_rate():
    torch.manual_seed(3)
    attention = build(2, parent_ignoring=0.3).train()
    x = torch.randn(40, 30, 12, dtype=torch.double)
    prior = torch.full((30, 40, 40), 0.5)
    _, weights = attention.attend_to_parents(x, None, prior)
    query, key = (p(x).view(40, 30, 3, 4).permute(1, 2, 0, 3)[:, :2] for p in (attention.q_proj, attention.k_proj))
    scores = query @ key.transpose(-1, -2) / math.sqrt(4)
    plain, scaled = scores.softmax(-1).float(), (scores / 2).softmax(-1).float()
    ignored = torch.isclose(weights, plain, atol=1e-5).all(-1)
    assert (ignored | torch.isclose(weights, scaled, atol=1e-5).all(-1)).all()
    assert ignored.float().mean().item() == pytest.approx(0.3, abs=0.03)
    assert torch.equal(ignored[:, 0], ignored[:, 1])  # D has no index of a head
    evaluated = attention.eval().attend_to_parents(x, None, prior)[1]
    torch.testing.assert_close(evaluated, scaled, atol=1e-5, rtol=0)

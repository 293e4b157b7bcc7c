"""Parent-scaled attention against the paper's equations, written as loops."""

import math

import pytest
import torch
from oracles import multihead

from fairseq_syntax.systems.pascal.attention import ParentScaledAttention
from fairseq_syntax.systems.pascal.parent_kernel import parent_weights

B, T, C, H = 3, 7, 16, 4
LENGTHS = [7, 4, 1]


def build(pascal_heads=2, **options):
    torch.manual_seed(0)
    attention = ParentScaledAttention(C, H, pascal_heads=pascal_heads, **options).double().eval()
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return attention


def batch(left_pad=False):
    """Random input, padding mask, doubled parent positions in columns."""
    generator = torch.Generator().manual_seed(1)
    x = torch.zeros(T, B, C, dtype=torch.double)
    mask = torch.ones(B, T, dtype=torch.bool)
    parents = torch.full((B, T), -1, dtype=torch.int32)
    for b, length in enumerate(LENGTHS):
        start = T - length if left_pad else 0
        x[start : start + length, b] = torch.randn(length, C, generator=generator, dtype=torch.double)
        mask[b, start : start + length] = False
        places = torch.randint(0, 2 * length - 1, (length,), generator=generator, dtype=torch.int32)
        parents[b, start : start + length] = places + 2 * start
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


@pytest.mark.parametrize("heads, left_pad", [(1, True), (4, False)])
@pytest.mark.parametrize("kernel, variance, weight", KERNELS)
def test_equals_the_equations(kernel, variance, weight, heads, left_pad):
    x, mask, parents = batch(left_pad)
    attention = build(heads)
    out, weights = attention.attend_to_parents(x, mask, parent_weights(parents, kernel, variance))
    expected = loop_oracle(attention, x, mask, parents, heads, weight)
    torch.testing.assert_close(out, expected, atol=1e-6, rtol=1e-5)  # D and the softmax are float32
    real = ~mask.unsqueeze(1).expand(B, heads, T)
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
    x = torch.randn(40, 30, C, dtype=torch.double)
    prior = torch.full((30, 40, 40), 0.5)
    _, weights = attention.attend_to_parents(x, None, prior)
    query, key = (p(x).view(40, 30, H, C // H).permute(1, 2, 0, 3)[:, :2] for p in (attention.q_proj, attention.k_proj))
    scores = query @ key.transpose(-1, -2) / math.sqrt(C // H)
    plain, scaled = scores.softmax(-1).float(), (scores / 2).softmax(-1).float()
    ignored = torch.isclose(weights, plain, atol=1e-5).all(-1)
    assert (ignored | torch.isclose(weights, scaled, atol=1e-5).all(-1)).all()
    assert ignored.float().mean().item() == pytest.approx(0.3, abs=0.03)
    assert torch.equal(ignored[:, 0], ignored[:, 1])  # D has no index of a head
    evaluated = attention.eval().attend_to_parents(x, None, prior)[1]
    torch.testing.assert_close(evaluated, scaled, atol=1e-5, rtol=0)

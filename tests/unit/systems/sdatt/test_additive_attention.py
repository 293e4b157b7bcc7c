"""Additive attention, alone and beside weights of another kind, against its equations one score at a time."""

import math

import pytest
import torch
from torch import nn

from fairseq_syntax.systems.recurrent.source_attention import Source
from fairseq_syntax.systems.sdatt.additive_attention import (
    AdditiveAttention,
    AdditiveMemory,
    PositionNet,
    SourceWeights,
)

B, T, C, H, A = 3, 5, 4, 6, 7
LENGTHS = [5, 2, 1]


def batch(left_pad):
    """(annotations, source): random annotations at padding, too."""
    torch.manual_seed(1)
    padding = torch.ones(B, T, dtype=torch.bool)
    for row, length in enumerate(LENGTHS):
        start = T - length if left_pad else 0
        padding[row, start : start + length] = False
    return torch.randn(B, T, C, dtype=torch.double), Source(torch.where(padding, 1, 5), padding, ~padding)


def build(weights=None, double_context=False, dtype=torch.double):
    torch.manual_seed(0)
    pair = AdditiveMemory(C, A, double_context), AdditiveAttention(H, A, weights, double_context)
    for module in pair:
        for parameter in module.parameters():
            nn.init.normal_(parameter)
        module.to(dtype)
    return pair


def test_the_offset_of_the_scores_is_nothing_to_a_softmax_but_weights_see_it():
    memory, attention = build()
    states, source = batch(False)
    query = torch.randn(B, H, dtype=torch.double)
    made = memory(states, source)
    before, _, _ = attention(query, made, {})
    seen = []

    class Look(SourceWeights):
        def forward(self, scores, *rest):
            seen.append(scores)
            return super().forward(scores, *rest)

    attention.weights = Look()
    with torch.no_grad():
        attention(query, made, {})
        attention.score.bias += 3
    after, _, _ = attention(query, made, {})
    torch.testing.assert_close(after, before, atol=1e-12, rtol=0)
    torch.testing.assert_close(seen[1], seen[0] + 3, atol=1e-12, rtol=0)


def test_positions_follow_their_equation():
    torch.manual_seed(0)
    net = PositionNet(H).double()
    query, length = torch.randn(4, H, dtype=torch.double), torch.tensor([1, 2, 9, 80])
    found = net(query, length)
    assert {name: tuple(p.shape) for name, p in net.named_parameters()} == {
        "hidden.weight": (H, H),
        "output.weight": (1, H),
    }
    for b in range(4):
        inner = net.output.weight[0] @ torch.tanh(net.hidden.weight @ query[b])
        assert float(found[b]) == pytest.approx(int(length[b]) / (1 + math.exp(-float(inner))), abs=1e-12)
    assert torch.autograd.gradcheck(lambda q: net(q, length), (query.requires_grad_(),))
    # at the start, with small weights, in the middle
    with torch.no_grad():
        net.output.weight.zero_()
    assert net(query, length).tolist() == [0.5, 1, 4.5, 40]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_positions_are_not_rounded_to_half_precision(dtype):
    """An 80-token sentence would have steps of half a token in bfloat16."""
    torch.manual_seed(0)
    net = PositionNet(H).to(dtype)
    found = net(torch.randn(50, H, dtype=dtype), torch.full((50,), 1001))
    assert found.dtype == torch.float32
    assert (found != found.to(dtype).float()).any()


def test_large_scores_do_not_overflow():
    memory, attention = build(dtype=torch.float16)
    with torch.no_grad():
        attention.score.weight.fill_(9e3)
    states, source = batch(False)
    context, found, _ = attention(torch.zeros(B, H).half(), memory(states.half(), source), {})
    assert torch.isfinite(context).all()
    torch.testing.assert_close(found["attn"].sum(1), torch.ones(B))

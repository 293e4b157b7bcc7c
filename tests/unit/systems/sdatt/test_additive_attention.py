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
    positions_of,
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


class FirstOnly(SourceWeights):
    """Half of the weight of the first token, nothing else; remembers how often it was asked."""

    def initial_state(self, memory):
        return {"calls": torch.zeros_like(memory["length"])}

    def forward(self, scores, query, memory, state):
        weights, _, _ = super().forward(scores, query, memory, state)
        weights = weights * 0.5 * (positions_of(memory) == 0)
        return weights, {"query": query}, {"calls": state["calls"] + 1}


def build(weights=None, double_context=False, dtype=torch.double):
    torch.manual_seed(0)
    pair = AdditiveMemory(C, A, double_context), AdditiveAttention(H, A, weights, double_context)
    for module in pair:
        for parameter in module.parameters():
            nn.init.normal_(parameter)
        module.to(dtype)
    return pair


def scores_of(memory, attention, query, states):
    """e_j of one sentence."""
    w, u, v = attention.query.weight, memory.keys, attention.score
    return [v.weight[0] @ torch.tanh(w @ query + u.weight @ h + u.bias) + v.bias[0] for h in states]


@pytest.mark.parametrize("double_context", [False, True], ids=["one context", "two contexts"])
@pytest.mark.parametrize("special", [False, True], ids=["softmax", "other weights"])
@pytest.mark.parametrize("left_pad", [False, True], ids=["right", "left"])
def test_equals_the_equations(left_pad, special, double_context):
    memory, attention = build(FirstOnly() if special else None, double_context)
    states, source = batch(left_pad)
    query = torch.randn(B, H, dtype=torch.double)
    made = memory(states, source)
    # beam search reorders all tensors of a memory, and of the state, by their first dimension
    state = attention.initial_state(made)
    assert all(len(tensor) == B for tensor in [*made.values(), *state.values()])
    context, found, state = attention(query, made, state)
    assert context.shape == (B, memory.context_size) == (B, 2 * C if double_context else C)
    assert ("syntax_attn" in found) == double_context
    assert (state["calls"].tolist() == [1, 1, 1]) if special else state == {}
    if special:
        assert torch.equal(found["query"], query)
    for b in range(B):
        real = [t for t in range(T) if not source.padding_mask[b, t]]
        weights = [math.exp(e) for e in scores_of(memory, attention, query[b], states[b, real])]
        plain = [weight / sum(weights) for weight in weights]
        own = [0.5 * plain[0]] + [0.0] * (len(real) - 1) if special else plain
        contexts = []
        shown = {"attn": plain if double_context else own, "syntax_attn": own}
        for name in found.keys() & shown.keys():
            expected = torch.zeros(T, dtype=torch.double)
            expected[real] = torch.tensor(shown[name], dtype=torch.double)
            torch.testing.assert_close(found[name][b], expected, atol=1e-12, rtol=0)
        for row in [plain, own] if double_context else [own]:
            contexts.append(sum(weight * h for weight, h in zip(row, states[b, real], strict=True)))
        torch.testing.assert_close(context[b], torch.cat(contexts), atol=1e-12, rtol=0)


@pytest.mark.parametrize("left_pad", [False, True], ids=["right", "left"])
def test_the_memory_knows_where_the_tokens_are(left_pad):
    memory, _ = build()
    states, source = batch(left_pad)
    made = memory(states, source)
    assert made["length"].tolist() == LENGTHS
    assert made["start"].tolist() == ([0, 3, 4] if left_pad else [0, 0, 0])
    assert torch.equal(made["keep"], ~source.padding_mask)
    for row, length in enumerate(LENGTHS):
        assert positions_of(made)[row][made["keep"][row]].tolist() == list(range(length))
    assert not (positions_of(made)[made["keep"].logical_not()] >= 0).any() or not left_pad


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


@pytest.mark.parametrize("double_context", [False, True])
def test_padding_has_no_weight_and_no_gradient(double_context):
    memory, attention = build(double_context=double_context)
    states, source = batch(False)
    states.requires_grad_()
    query = torch.randn(B, H, dtype=torch.double)
    context, found, _ = attention(query, memory(states, source), {})
    assert not any(weights[source.padding_mask].any() for weights in found.values())
    context.sum().backward()
    assert not states.grad[source.padding_mask].any() and states.grad[~source.padding_mask].any()
    with torch.no_grad():
        changed = states.masked_fill(source.padding_mask[..., None], 1e6)
        again, _, _ = attention(query, memory(changed, source), {})
    torch.testing.assert_close(again, context, atol=1e-12, rtol=0)


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


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("double_context", [False, True])
def test_half_precision_stays_near(dtype, double_context):
    states, source = batch(True)
    query = torch.randn(B, H, dtype=torch.double)
    memory, attention = build(double_context=double_context)
    expected, found, _ = attention(query, memory(states, source), {})
    memory, attention = build(double_context=double_context, dtype=dtype)
    context, half, _ = attention(query.to(dtype), memory(states.to(dtype), source), {})
    assert context.dtype == dtype and half["attn"].dtype == torch.float32
    torch.testing.assert_close(half["attn"].double(), found["attn"], atol=0.1, rtol=0)
    torch.testing.assert_close(context.double(), expected, atol=0.2, rtol=0)


def test_large_scores_do_not_overflow():
    memory, attention = build(dtype=torch.float16)
    with torch.no_grad():
        attention.score.weight.fill_(9e3)
    states, source = batch(False)
    context, found, _ = attention(torch.zeros(B, H).half(), memory(states.half(), source), {})
    assert torch.isfinite(context).all()
    torch.testing.assert_close(found["attn"].sum(1), torch.ones(B))

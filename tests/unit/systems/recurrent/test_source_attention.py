"""General attention against the paper's equations 3 and 4, one score at a time."""

import math

import pytest
import torch

from fairseq_syntax.systems.recurrent.source_attention import (
    GlobalAttention,
    GlobalMemory,
    Source,
    attend,
    attention_bias,
)

B, T, C, H = 3, 5, 4, 6
LENGTHS = [5, 2, 1]


def batch(left_pad: bool):
    """(annotations, source): random annotations at padding, too."""
    torch.manual_seed(1)
    padding = torch.ones(B, T, dtype=torch.bool)
    for row, length in enumerate(LENGTHS):
        start = T - length if left_pad else 0
        padding[row, start : start + length] = False
    tokens = torch.where(padding, 1, 5)
    return torch.randn(B, T, C, dtype=torch.double), Source(tokens, padding, ~padding)


def build(dtype=torch.double):
    torch.manual_seed(0)
    memory = GlobalMemory(C, H)
    torch.nn.init.normal_(memory.keys.weight)
    return memory.to(dtype), GlobalAttention()


@pytest.mark.parametrize("left_pad", [False, True])
def test_equals_the_equations(left_pad):
    memory, attention = build()
    states, source = batch(left_pad)
    query = torch.randn(B, H, dtype=torch.double)
    made = memory(states, source)
    # beam search reorders all tensors of a memory by their first dimension
    assert all(len(tensor) == B for tensor in made.values())
    context, found, state = attention(query, made, attention.initial_state(made))
    assert state == {} and found.keys() == {"attn"}
    assert context.shape == (B, memory.context_size) and found["attn"].shape == (B, T)
    for b in range(B):
        real = [t for t in range(T) if not source.padding_mask[b, t]]
        scores = {t: math.exp(float(query[b] @ memory.keys.weight @ states[b, t])) for t in real}
        expected = torch.zeros(C, dtype=torch.double)
        for t in range(T):
            weight = scores.get(t, 0.0) / sum(scores.values())
            assert float(found["attn"][b, t]) == pytest.approx(weight, abs=1e-12)
            expected += weight * states[b, t]
        torch.testing.assert_close(context[b], expected, atol=1e-12, rtol=0)


def test_padding_has_no_weight_and_no_gradient():
    memory, attention = build()
    states, source = batch(False)
    states.requires_grad_()
    context, found, _ = attention(torch.randn(B, H, dtype=torch.double), memory(states, source), {})
    assert not found["attn"][source.padding_mask].any()
    context.sum().backward()
    assert not states.grad[source.padding_mask].any() and states.grad[~source.padding_mask].any()
    with torch.no_grad():
        changed = states.masked_fill(source.padding_mask[..., None], 1e6)
        again, _, _ = attention(torch.randn(B, H, dtype=torch.double), memory(changed, source), {})
    assert again.abs().max() < 100


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_of_a_long_sentence(dtype):
    """Its weights are those of the full precision, rounded once."""
    length = 2000
    query = torch.ones(1, H, dtype=dtype)
    keys = torch.randint(-2, 3, (1, length, H)).to(dtype)  # sums of six such are exact
    padding = torch.zeros(1, length, dtype=torch.bool)
    padding[0, 1500:] = True
    weights = attend(query, keys, attention_bias(padding, keys))
    assert weights.dtype == dtype and weights.shape == (1, 1, length)
    expected = torch.softmax(keys[0, :1500].double().sum(-1), dim=0)
    torch.testing.assert_close(weights[0, 0, :1500].double(), expected, atol=1e-7, rtol=torch.finfo(dtype).eps)
    assert not weights[0, 0, 1500:].any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_stays_near(dtype):
    states, source = batch(True)
    query = torch.randn(B, H, dtype=torch.double)
    memory, attention = build()
    expected, found, _ = attention(query, memory(states, source), {})
    memory, attention = build(dtype)
    context, half, _ = attention(query.to(dtype), memory(states.to(dtype), source), {})
    assert context.dtype == half["attn"].dtype == dtype
    torch.testing.assert_close(half["attn"].double(), found["attn"], atol=0.05, rtol=0)
    torch.testing.assert_close(context.double(), expected, atol=0.1, rtol=0)


def test_large_scores_do_not_overflow():
    query, keys = torch.full((1, 1), 1e4), torch.tensor([[[1e4], [-1e4], [0.0]]])
    weights = attend(query, keys, attention_bias(torch.zeros(1, 3, dtype=torch.bool), keys))
    assert weights.tolist() == [[[1.0, 0.0, 0.0]]]

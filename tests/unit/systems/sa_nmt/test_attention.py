"""Attention to content and syntax against Tran & Bisk (2018), eqs. 3, 4, 16-20, 22 and 23, written as loops."""

import pytest
import torch
from oracles import syntax_translation as oracle

from fairseq_syntax.systems.recurrent.source_attention import GlobalAttention, GlobalMemory, Source
from fairseq_syntax.systems.sa_nmt.attention import (
    OneSetMemory,
    SeparateSyntaxAttention,
    SeparateSyntaxMemory,
    SharedSyntaxAttention,
    SharedSyntaxMemory,
)
from fairseq_syntax.systems.sa_nmt.head_selection import HeadSelection

B, T, C, H = 3, 5, 4, 6
LENGTHS = [5, 3, 1]  # EOS included
KINDS = {
    "shared": (SharedSyntaxMemory, SharedSyntaxAttention),
    "separate": (SeparateSyntaxMemory, SeparateSyntaxAttention),
    "one-set": (OneSetMemory, None),
}


def build(kind):
    torch.manual_seed(0)
    memory_class, attention_class = KINDS[kind]
    memory = memory_class(C, H, HeadSelection(C)).double()
    attention = attention_class(C, H).double() if attention_class else GlobalAttention()
    for parameter in (*memory.parameters(), *attention.parameters()):
        torch.nn.init.normal_(parameter, std=0.7)
    return memory, attention.eval()


def batch(left_pad=False):
    torch.manual_seed(1)
    padding = torch.ones(B, T, dtype=torch.bool)
    words = torch.zeros(B, T, dtype=torch.bool)
    for row, length in enumerate(LENGTHS):
        start = T - length if left_pad else 0
        padding[row, start : start + length] = False
        words[row, start : start + length - 1] = True
    states = torch.randn(B, T, C, dtype=torch.double)
    return states, Source(torch.where(words, 5, 2).masked_fill(padding, 1), padding, words)


@pytest.mark.parametrize("left_pad", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_equations(kind, left_pad):
    memory, attention = build(kind)
    states, source = batch(left_pad)
    query = torch.randn(B, H, dtype=torch.double)
    made = memory(states, source)
    assert all(len(tensor) == B for tensor in made.values())
    context, found, state = attention(query, made, attention.initial_state(made))
    assert state == {} and context.shape == (B, memory.context_size)
    assert memory.context_size == (C if kind == "one-set" else 2 * C)
    expected_names = {"shared": {"attn", "gate_norm"}, "separate": {"attn", "syntax_attn", "gate_norm"}}
    assert found.keys() == expected_names.get(kind, {"attn"})
    parameters = dict(memory.named_parameters())
    for b in range(B):
        real = (~source.padding_mask[b]).nonzero().flatten().tolist()
        own = [states[b, t] for t in real]
        words = [bool(source.word_mask[b, t]) for t in real]
        syntax = oracle.syntactic_annotations(own, words, oracle.part(parameters, "head_selection."))
        if kind == "one-set":
            gates = [torch.sigmoid(parameters["gate.weight"] @ s) for s in own]
            own = [s + gate * m for s, gate, m in zip(own, gates, syntax, strict=True)]
        alpha = oracle.softmax([query[b] @ (parameters["keys.weight"] @ s) for s in own])
        expected = oracle.weighted(alpha, own)
        gamma = alpha
        if kind == "separate":
            gamma = oracle.softmax([query[b] @ (parameters["syntax_keys.weight"] @ m) for m in syntax])
            torch.testing.assert_close(found["syntax_attn"][b, real], torch.stack(gamma))
        if kind != "one-set":
            gate = torch.sigmoid(attention.gate.weight @ query[b])
            expected = torch.cat((expected, oracle.weighted(gamma, syntax) * gate))
            norm = sum(float(value) ** 2 for value in gate) ** 0.5
            assert float(found["gate_norm"][b]) == pytest.approx(norm, abs=1e-6)
        torch.testing.assert_close(found["attn"][b, real], torch.stack(alpha))
        torch.testing.assert_close(context[b], expected, atol=1e-10, rtol=0)
    for name in found.keys() & {"attn", "syntax_attn"}:
        assert not found[name][source.padding_mask].any()


def test_shared_weights_serve_both_and_separate_ones_do_not():
    states, source = batch()
    query = torch.randn(B, H, dtype=torch.double)
    memory, attention = build("separate")
    _, found, _ = attention(query, memory(states, source), {})
    assert (found["attn"] - found["syntax_attn"])[0].abs().max() > 0.1


@pytest.mark.parametrize("kind", ["shared", "separate"])
def test_a_closed_gate_leaves_plain_attention(kind):
    states, source = batch()
    query = torch.randn(B, H, dtype=torch.double)
    memory, attention = build(kind)
    with torch.no_grad():  # sigmoid(-1000) is 0 for this query
        attention.gate.weight.copy_(-1000 * torch.ones(C, 1) * query[0].sign())
    plain = GlobalMemory(C, H).double()
    plain.keys.weight = memory.keys.weight
    context, found, _ = attention(query[:1], memory(states[:1], first(source)), {})
    expected, plainly, _ = GlobalAttention()(query[:1], plain(states[:1], first(source)), {})
    torch.testing.assert_close(context[:, :C], expected, atol=1e-12, rtol=0)
    torch.testing.assert_close(found["attn"], plainly["attn"], atol=1e-12, rtol=0)
    assert not context[:, C:].any() and not found["gate_norm"].any()


def first(source):
    return Source(source.tokens[:1], source.padding_mask[:1], source.word_mask[:1])


def test_one_set_without_values_is_plain_attention():
    states, source = batch()
    memory, _ = build("one-set")
    with torch.no_grad():
        memory.head_selection.value.weight.zero_()
    plain = GlobalMemory(C, H).double()
    plain.keys.weight = memory.keys.weight
    made, expected = memory(states, source), plain(states, source)
    assert made.keys() == expected.keys()
    assert all(torch.equal(made[name], value) for name, value in expected.items())


@pytest.mark.parametrize("kind", ["shared", "separate"])
def test_the_gate_is_not_collected_in_training(kind):
    memory, attention = build(kind)
    _, found, _ = attention.train()(torch.randn(B, H).double(), memory(*batch()), {})
    assert "gate_norm" not in found


@pytest.mark.parametrize("kind", KINDS)
def test_half_precision_stays_near(kind):
    memory, attention = build(kind)
    states, source = batch()
    query = torch.randn(B, H, dtype=torch.double)
    expected, _, _ = attention(query, memory(states, source), {})
    half, _, _ = attention.half()(query.half(), memory.half()(states.half(), source), {})
    assert half.dtype == torch.float16
    torch.testing.assert_close(half.double(), expected, atol=0.05, rtol=0)

"""Attention to content and syntax where it is plain attention (Tran & Bisk 2018); all equations: test_model.py."""

import pytest
import torch

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


def batch():
    torch.manual_seed(1)
    padding = torch.arange(T) >= torch.tensor(LENGTHS)[:, None]
    words = torch.arange(T) < torch.tensor(LENGTHS)[:, None] - 1
    states = torch.randn(B, T, C, dtype=torch.double)
    return states, Source(torch.where(words, 5, 2).masked_fill(padding, 1), padding, words)


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

"""The parsing head of LISA against its equations, written as loops."""

import pytest
import torch
from fairseq.modules import MultiheadAttention
from oracles import multihead

from fairseq_syntax.systems.lisa.attention import ParserAttention

B, T, C, H = 3, 6, 12, 3
LENGTHS = [6, 4, 1]


def build(**options):
    torch.manual_seed(0)
    attention = ParserAttention(C, H, **options).double().eval()
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return attention


def batch(left_pad=False):
    """Random input (zero at padding) and its mask."""
    generator = torch.Generator().manual_seed(1)
    x, mask = torch.zeros(T, B, C, dtype=torch.double), torch.ones(B, T, dtype=torch.bool)
    for b, length in enumerate(LENGTHS):
        start = T - length if left_pad else 0
        x[start : start + length, b] = torch.randn(length, C, generator=generator, dtype=torch.double)
        mask[b, start : start + length] = False
    return x, mask


def leaky(value):
    return value if value > 0 else 0.01 * value


def biaffine_score(parser, dependent, parent):
    """[Q'; 1] U K'^T of two tokens, one product at a time."""
    q = [leaky(float(v)) for v in parser.dependent_proj(dependent)] + [1.0]
    k = [leaky(float(v)) for v in parser.parent_proj(parent)]
    return sum(q[i] * float(parser.weight[i, j]) * k[j] for i in range(len(q)) for j in range(len(k)))


def loop_oracle(attention, x, mask, gold=None):
    """Outputs, weights of the first head, logits: token by token."""
    logits = torch.zeros(B, T, T, dtype=torch.double)

    def weigh(h, b, t, scores):
        if h > 0:
            return multihead.softmax(scores)
        own = {j: biaffine_score(attention.parser, x[t, b], x[j, b]) for j in scores}
        for j, score in own.items():
            logits[b, t, j] = score
        given = gold is not None and gold[b, t] >= 0
        return {j: float(j == gold[b, t]) for j in scores} if given else multihead.softmax(own)

    out, weights = multihead.attend(attention, x, x, ~mask, weigh)
    return out, weights[0], logits


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("left_pad", [False, True])
def test_equals_the_equations(left_pad, given):
    attention, (x, mask) = build(), batch(left_pad)
    gold = None
    if given:  # some given, some not
        gold = torch.full((B, T), -1, dtype=torch.int32)
        for b, length in enumerate(LENGTHS):
            start = T - length if left_pad else 0
            for t in range(0, length, 2):
                gold[b, start + t] = start + (t * 3 + 1) % length
    out, weights, logits = attention.attend_with_parser(x, mask, gold)
    expected, expected_weights, expected_logits = loop_oracle(attention, x, mask, gold)
    real = ~mask
    torch.testing.assert_close(out.transpose(0, 1)[real], expected.transpose(0, 1)[real], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(weights[:, 0][real].double(), expected_weights[real], atol=1e-6, rtol=1e-5)
    both = real[:, :, None] & real[:, None, :]
    torch.testing.assert_close(logits[both], expected_logits[both])


def test_given_parents_replace_the_distribution_of_the_first_head_only():
    attention, (x, mask) = build(), batch()
    plain, predicted, logits = attention.attend_with_parser(x, mask)
    nobody = torch.full((B, T), -1)
    same, weights, _ = attention.attend_with_parser(x, mask, nobody)
    assert torch.equal(same, plain) and torch.equal(weights, predicted)
    gold = nobody.clone()
    gold[0, 2] = 4
    given, weights, again = attention.attend_with_parser(x, mask, gold)
    assert weights[0, 0, 2].tolist() == [0, 0, 0, 0, 1, 0]
    assert torch.equal(again, logits)  # the loss is over what the parser believes
    differs = (given != plain).any(-1)
    assert differs.nonzero().tolist() == [[2, 0]]


def test_without_the_parser_it_is_fairseqs_attention():
    attention, (x, mask) = build(), batch()
    stock = MultiheadAttention(C, H, self_attention=True).double().eval()
    stock.load_state_dict({k: v for k, v in attention.state_dict().items() if not k.startswith("parser.")})
    ours, theirs = (m(x, x, x, key_padding_mask=mask, need_weights=False)[0] for m in (attention, stock))
    assert torch.equal(ours, theirs)
    # the other heads are the stock ones also beside the parser: with its columns of the output taken out
    with torch.no_grad():
        for module in (attention, stock):
            module.out_proj.weight[:, : C // H] = 0
    beside = attention.attend_with_parser(x, mask)[0]
    expected = stock(x, x, x, key_padding_mask=mask, need_weights=False)[0]
    real = ~mask.T
    torch.testing.assert_close(beside[real], expected[real])

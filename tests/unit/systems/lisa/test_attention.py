"""The parsing head of LISA against its equations, written as loops."""

import pytest
import torch
from oracles import multihead
from small_models import attention_input, attention_layer

from fairseq_syntax.systems.lisa.attention import ParserAttention


def leaky(value):
    return value if value > 0 else 0.01 * value


def biaffine_score(parser, dependent, parent):
    """[Q'; 1] U K'^T of two tokens, one product at a time."""
    q = [leaky(float(v)) for v in parser.dependent_proj(dependent)] + [1.0]
    k = [leaky(float(v)) for v in parser.parent_proj(parent)]
    return sum(q[i] * float(parser.weight[i, j]) * k[j] for i in range(len(q)) for j in range(len(k)))


def loop_oracle(attention, x, mask, gold=None):
    """Outputs, weights of the first head, logits: token by token."""
    logits = torch.zeros(3, 6, 6, dtype=torch.double)

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
    attention, (x, mask, parts) = attention_layer(ParserAttention), attention_input(left_pad)
    gold = None
    if given:  # some given, some not
        gold = torch.full(mask.shape, -1, dtype=torch.int32)
        for b, part in enumerate(parts):
            for t in range(0, len(part), 2):
                gold[b, part[t]] = part[(t * 3 + 1) % len(part)]
    out, weights, logits = attention.attend_with_parser(x, mask, gold)
    expected, expected_weights, expected_logits = loop_oracle(attention, x, mask, gold)
    real = ~mask
    torch.testing.assert_close(out.transpose(0, 1)[real], expected.transpose(0, 1)[real], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(weights[:, 0][real].double(), expected_weights[real], atol=1e-6, rtol=1e-5)
    both = real[:, :, None] & real[:, None, :]
    torch.testing.assert_close(logits[both], expected_logits[both])

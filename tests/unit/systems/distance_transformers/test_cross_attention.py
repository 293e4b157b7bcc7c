"""Syntax-directed heads of attention to the source against their equations, written as loops."""

import math

import pytest
import torch
from oracles import multihead

from fairseq_syntax.systems.distance_transformers.cross_attention import (
    SourcePenalty,
    SyntaxCrossAttention,
    tree_penalty,
)

B, T, J, C, E, H = 3, 4, 7, 12, 8, 4
LENGTHS = [7, 3, 1]
INF = math.inf


def build(syntax_heads=2, **options):
    torch.manual_seed(0)
    attention = SyntaxCrossAttention(C, H, syntax_heads=syntax_heads, kdim=E, vdim=E, **options).double().eval()
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter, std=0.6)
    return attention


def batch(left_pad=False):
    """Queries, states of the source, True at real tokens, tree distances of random trees (255 at padding)."""
    generator = torch.Generator().manual_seed(1)
    query = torch.randn(T, B, C, generator=generator, dtype=torch.double)
    states = torch.full((J, B, E), 5.0, dtype=torch.double)
    keep = torch.zeros(B, J, dtype=torch.bool)
    distances = torch.full((B, J, J), 255, dtype=torch.uint8)
    for b, length in enumerate(LENGTHS):
        part = slice(J - length, J) if left_pad else slice(0, length)
        states[part, b] = torch.randn(length, E, generator=generator, dtype=torch.double)
        keep[b, part] = True
        parents = [int(torch.randint(0, max(i, 1), (), generator=generator)) for i in range(length)]
        paths = torch.zeros(length, length, dtype=torch.uint8)
        for i in range(1, length):  # from the parent on, which stands before
            paths[i, :i] = paths[:i, i] = paths[parents[i], :i] + 1
        distances[b, part, part] = paths
    return query, states, keep, distances


def attend(attention, query, states, penalty, **options):
    return attention(
        query, states, states, key_padding_mask=SourcePenalty.of(penalty), need_head_weights=True, **options
    )


def loop_oracle(attention, query, states, keep, distances, n, sigma):
    """Weights (H, B, T, J) and output (T, B, C), one score at a time, from the equations."""

    def around(scores, row):
        """Eqs. 10, 11 in the additive form."""
        near = {j: int(row[j]) for j in scores if row[j] <= n}
        return multihead.softmax({j: scores[j] - distance**2 / (2 * sigma**2) for j, distance in near.items()})

    def weigh(h, b, t, scores):
        directed = h - (H - attention.syntax_heads)
        if directed < 0:
            return multihead.softmax(scores)
        hidden = [math.tanh(float(line @ query[t, b])) for line in attention.position.hidden.weight]
        z = sum(a * c for a, c in zip(attention.position.output.weight[directed].tolist(), hidden, strict=True))
        length, rows = LENGTHS[b], distances[b, sorted(scores)]
        p = length / (1 + math.exp(-z))
        return around(scores, rows[min(int(p), length - 1)])

    out, weights = multihead.attend(attention, query, states, keep, weigh)
    return weights, out


@pytest.mark.parametrize("n, sigma", [(1.0, 0.5), (2.0, 1.0), (INF, 2.0), (1.0, INF)])
@pytest.mark.parametrize("heads, mode, left_pad", [(1, "smooth", True), (4, "smooth", False), (4, "hard", True)])
def test_equals_the_equations(heads, mode, n, sigma, left_pad):
    query, states, keep, distances = batch(left_pad)
    attention = build(heads, gradient=mode)
    with torch.no_grad():
        expected, expected_out = loop_oracle(attention, query, states, keep, distances, n, sigma)
        for training in (False, True):
            out, weights = attend(attention.train(training), query, states, tree_penalty(distances, keep, n, sigma))
            torch.testing.assert_close(weights, expected, atol=1e-7, rtol=1e-6)  # the penalty is float32
            torch.testing.assert_close(out, expected_out, atol=1e-6, rtol=1e-6)
            torch.testing.assert_close(weights.sum(-1), torch.ones(H, B, T, dtype=torch.double))
            assert not weights[..., ~keep[0]].any() and not weights[:, 2, :, ~keep[2]].any()


def random_scores(seed=2):
    torch.manual_seed(seed)
    _, _, keep, distances = batch()
    scores = torch.randn(B, 2, 50, J, dtype=torch.double) * 3
    share = torch.rand(B, 2, 50, dtype=torch.double)
    share[..., :4] = torch.tensor([0.0, 0.5, 1.0, 1e-9])
    length = torch.tensor(LENGTHS).view(B, 1, 1)
    penalty = tree_penalty(distances, keep, 2, 1).double()
    return scores.requires_grad_(), (share * length).requires_grad_(), penalty


def test_smooth_has_the_gradient_of_a_gaussian_mixture_of_all_rows():
    scores, position, penalty = random_scores()
    toward = torch.randn(scores.shape, dtype=torch.double)
    source = SourcePenalty.of(penalty)
    weights = build(2, gradient="smooth").train().weigh(scores, position, source)
    hard = build(2, gradient="hard").weigh(scores, position, source)
    assert torch.equal(weights, hard)
    found = torch.autograd.grad((weights * toward).sum(), (scores, position))
    torch.testing.assert_close(found[0], torch.autograd.grad((hard * toward).sum(), scores)[0])
    mixture, total = 0, 0
    for j in range(J):
        row = build(2, gradient="hard").weigh(scores.detach(), torch.full_like(position, j + 0.5), source)
        height = torch.exp(-((j + 0.5 - position) ** 2) / 18) * (j < source.length)
        mixture, total = mixture + height * (row * toward).sum(-1), total + height
    expected = torch.autograd.grad((mixture / total).sum(), position)[0]
    torch.testing.assert_close(found[1], expected, atol=1e-12, rtol=0)
    assert found[1][0].count_nonzero() > 40


def test_weights_drop_out_and_are_returned_whole():
    query, states, keep, distances = batch()
    penalty = tree_penalty(distances, keep, 2, 1)
    attention = build(2, dropout=0.5)
    still = attend(attention, query, states, penalty)
    torch.manual_seed(1)
    dropped = attend(attention.train(), query, states, penalty)
    assert not torch.allclose(dropped[0], still[0])
    assert torch.equal(dropped[1], still[1])
    mean = attention.eval()(query, states, states, key_padding_mask=SourcePenalty.of(penalty))[1]
    torch.testing.assert_close(mean, still[1].mean(0))
    assert attention(query, states, states, key_padding_mask=SourcePenalty.of(penalty), need_weights=False)[1] is None

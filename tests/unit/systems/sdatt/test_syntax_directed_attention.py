"""Syntax-directed attention against the example and the equations of the paper, one position at a time."""

import math

import numpy as np
import pytest
import torch
from oracles.directed_translation import row_weights, tree_paths

from fairseq_syntax.systems.sdatt.syntax_directed_attention import (
    PositionGradient,
    SyntaxDirectedWeights,
    neighbourhoods,
)
from fairseq_syntax.trees.distances import tree_distances

H = 6
INF = math.inf
GRADIENTS = [choice.value for choice in PositionGradient]

WORDS = "zhexie weixian fenzi yanzhong yingxiang zhengchang de yimin zhengce </s>".split()
HEADS = [2, 2, 4, 4, -1, 8, 5, 8, 4]
FENZI = WORDS.index("fenzi")
# heads of the sentences of a batch: a tree, a forest, a chain, one word, none; -2 has no parse
SENTENCES = [HEADS, [1, -1, 1, -1, 3], [1, 2, 3, 4, 5, -1], [-1], [], [-2, -2, -2]]
LENGTHS = [len(heads) + 1 for heads in SENTENCES]


def make_memory(sentences=SENTENCES, left_pad=False, width=None):
    """What weights need of a memory; words are tokens."""
    lengths = [len(heads) + 1 for heads in sentences]
    width = width or max(lengths)
    padding = torch.ones(len(sentences), width, dtype=torch.bool)
    distances = torch.full((len(sentences), width, width), 255, dtype=torch.uint8)
    start = torch.tensor([width - length if left_pad else 0 for length in lengths])
    for b, heads in enumerate(sentences):
        columns = slice(start[b], start[b] + lengths[b])
        padding[b, columns] = False
        distances[b, columns, columns] = torch.from_numpy(tree_distances(np.array(heads, dtype=int)))
    length = torch.tensor(lengths)
    return {"padding": padding, "length": length, "last": length - 1, "start": start, "distances": distances}


def weigh(scores, positions, memory, window=4.0, sigma=None, gradient="hard", training=True):
    """Weights of a memory."""
    sigma = window / 2 if sigma is None else sigma
    near = neighbourhoods(memory, memory["distances"], window, sigma, scores.dtype)
    return SyntaxDirectedWeights(H, gradient).train(training).weigh(scores, positions, memory | near)


def draw(*shape, scale=2.0, seed=0):
    return torch.randn(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(seed)) * scale


def some_positions(seed=1):
    """Real-valued positions in `SENTENCES`."""
    shares = torch.rand(len(LENGTHS), dtype=torch.double, generator=torch.Generator().manual_seed(seed))
    return shares * torch.tensor(LENGTHS)


def test_the_published_product_prefers_what_is_far_if_scores_are_negative():
    """Eq. 10 pulls scores towards 0."""
    position, memory = torch.tensor([FENZI + 0.5], dtype=torch.double), make_memory([HEADS])
    found, flat = (weigh(torch.full((1, 10), score).double(), position, memory)[0] for score in (-3.0, 0.0))
    assert float(found[FENZI]) == pytest.approx(0.0229, abs=5e-5)
    assert float(found[WORDS.index("de")]) == pytest.approx(0.3070, abs=5e-5)
    torch.testing.assert_close(flat, torch.full((10,), 0.1, dtype=torch.double), atol=1e-15, rtol=0)


@pytest.mark.parametrize("gradient", GRADIENTS)
def test_the_ends_of_sentences(gradient, dtype=torch.float):
    for heads in ([], [-1], [1, -1], HEADS):
        memory = make_memory([heads], width=10)
        length = len(heads) + 1
        for position in (0.0, 1e-30, 0.3, 0.5, length - 0.5, length - 1e-6, float(length)):
            scores = draw(1, 10, scale=30).to(dtype).requires_grad_()
            place = torch.tensor([position], dtype=dtype, requires_grad=True)
            found = weigh(scores, place, memory, 1.0, gradient=gradient)
            found.square().sum().backward()
            assert torch.isfinite(found).all() and torch.isfinite(scores.grad).all()
            assert place.grad is None or torch.isfinite(place.grad).all()
            assert not found[0, length:].any()
            row = min(int(float(place)), length - 1)
            assert not found[(memory["distances"][:, row] > 1) | memory["padding"]].any()


def test_far_words_are_not_wrapped_around():
    """A chain of 300: squares of such distances do not fit the bytes they come in, nor do they themselves."""
    chain = [*range(1, 300), -1]
    memory = make_memory([chain])
    scores = draw(1, 301)
    found = weigh(scores, torch.tensor([0.5]).double(), memory, INF, 10.0)[0]
    expected = row_weights(list(scores[0]), [min(d, 254) for d in tree_paths(chain)[0]], INF, 10.0)
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)
    # in half precision the squares do not fit either, and the scores are in float32
    again = weigh(scores.float(), torch.tensor([0.5]), memory, INF, 10.0)[0]
    torch.testing.assert_close(again.double(), found, atol=1e-6, rtol=0)


def gradients(gradient, scores, positions, memory, toward):
    """(weights, dL/de, dL/dp) of L = sum of weights times `toward`."""
    scores, positions = scores.clone().requires_grad_(), positions.clone().requires_grad_()
    found = weigh(scores, positions, memory, 2.0, gradient=gradient)
    to_scores, to_positions = torch.autograd.grad((found * toward).sum(), (scores, positions), allow_unused=True)
    return found.detach(), to_scores, to_positions


@pytest.mark.parametrize("left_pad", [False, True], ids=["right", "left"])
def test_smooth_is_the_row_with_the_gradient_of_a_gaussian_mixture_of_all(left_pad):
    memory, scores, toward = make_memory(left_pad=left_pad, width=10), draw(6, 10), draw(6, 10, seed=5)
    start, lengths = memory["start"], memory["length"].tolist()
    for seed in range(5):
        positions = some_positions(seed).double()
        arguments = scores, positions, memory, toward
        hard, hard_scores, _ = gradients("hard", *arguments)
        smooth, smooth_scores, found = gradients("smooth", *arguments)
        assert torch.equal(smooth, hard) and torch.equal(smooth_scores, hard_scores)
        assert torch.equal(weigh(scores, positions, memory, 2.0, gradient="smooth", training=False), hard)
        for b, length in enumerate(lengths):
            at_all = [positions.clone().index_fill_(0, torch.tensor(b), j + 0.5) for j in range(length)]
            rows = [weigh(scores, at, memory, 2.0)[b] for at in at_all]
            place = positions[b].clone().requires_grad_()
            heights = [torch.exp(-((j + 0.5 - place) ** 2) / 18) for j in range(length)]
            mixture = sum(height * (row * toward[b]).sum() for height, row in zip(heights, rows, strict=True))
            (expected,) = torch.autograd.grad(mixture / sum(heights), place)
            torch.testing.assert_close(found[b], expected, atol=1e-12, rtol=0)
    assert start.any() == left_pad and found[:4].abs().min() > 0

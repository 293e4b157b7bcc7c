"""The latent graph parser against its equations, sentence by sentence and word by word."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles.latent_graph import parse

from fairseq_syntax.systems.parser.network import GraphKind, LatentGraphParser, log_softmax, word_mask

SIZE, POS_SIZE, TAGS, LABELS = 3, 2, 4, 5
LENGTHS = st.lists(st.integers(1, 6), min_size=1, max_size=4)  # 1: EOS alone
KINDS = list(GraphKind)


def randomized(graph="latent", seed=0):
    """Double precision; no parameter stays at zero, where it would hide a mistake."""
    torch.manual_seed(seed)
    parser = LatentGraphParser(SIZE, POS_SIZE, TAGS, LABELS, graph).double()
    with torch.no_grad():
        for parameter in parser.parameters():
            parameter.normal_()
    return parser


def batch_of(lengths, extra=0, seed=1):
    """x (B, S, 2 SIZE) with noise in the padding, and what a kind may need: heads and labels (B, S)."""
    noise = torch.Generator().manual_seed(seed)
    width = max(lengths) + extra
    x = torch.randn(len(lengths), width, 2 * SIZE, generator=noise, dtype=torch.double)
    heads = torch.randint(-9, 99, (len(lengths), width), generator=noise)  # stays so at EOS and in padding
    labels = torch.randint(-9, 99, (len(lengths), width), generator=noise)
    for b, length in enumerate(lengths):
        for word in range(length - 1):
            others = [k for k in range(length) if k != word]
            heads[b, word] = others[int(heads[b, word]) % len(others)]
            labels[b, word] %= LABELS
    return x, torch.tensor(lengths), heads, labels


def off_diagonal(words):
    return ~torch.eye(words, words + 1, dtype=torch.bool)


def close(found, expected, atol=1e-10):
    torch.testing.assert_close(found, expected, atol=atol, rtol=0)


def expected_of(parser, x, length, heads, labels, teacher=None):
    """The oracle's answer for one sentence."""
    words = length - 1
    return parse(
        dict(parser.named_parameters()),
        list(x[:length]),
        graph=parser.graph.value,
        heads=heads[:words].tolist(),
        labels=labels[:words].tolist(),
        num_labels=LABELS,
        teacher=teacher,
    )


@pytest.mark.parametrize("kind", KINDS)
@given(lengths=LENGTHS, seed=st.integers(0, 99))
def test_graphs_equal_the_equations(kind, lengths, seed):
    parser = randomized(kind, seed)
    x, sizes, heads, labels = batch_of(lengths, seed=seed + 1)
    graph = parser(x, sizes, heads, labels)
    learned = {"latent": (True, True), "uni": (False, True), "dep": (False, False), "seq": (False, False)}[kind]
    assert (graph.head_log_probs is not None, graph.label_log_probs is not None) == learned
    assert (graph.heads is None) == (graph.labels is None) == (kind == "seq")
    for b, length in enumerate(lengths):
        tags, arcs, named, states = expected_of(parser, x[b], length, heads[b], labels[b])
        words = length - 1
        close(graph.pos_log_probs[b, :length], torch.stack(tags).log())
        close(graph.states[b, :length], torch.stack(states))
        if kind == "seq" or not words:
            continue
        arcs, named = torch.stack([torch.stack(row) for row in arcs]), torch.stack(list(named))
        close(graph.heads[b, :words, :length], arcs)
        close(graph.labels[b, :words], named)
        if learned[0]:
            close(graph.head_log_probs[b, :words, :length][off_diagonal(words)], arcs[off_diagonal(words)].log())
        if learned[1]:
            close(graph.label_log_probs[b, :words], named.log())


@pytest.mark.parametrize("head", [-1, 1, 4, 99], ids=["no parse", "itself", "padding", "outside"])
def test_what_cannot_be_a_head_makes_no_arc(head):
    x, sizes, heads, labels = batch_of([4, 5])
    heads[0, 1], labels[0, 1] = head, -1
    graph = randomized("dep")(x, sizes, heads, labels)
    assert graph.heads[0].sum(1).tolist() == [1, 0, 1, 0, 0]
    assert graph.labels[0].sum(1).tolist() == [1, 0, 1, 0, 0]


def test_clamped_heads_take_the_place_of_the_soft_ones_and_labels_follow():
    parser = randomized("latent")
    x, sizes, heads, _ = batch_of([5, 3, 1])
    heads[0, 2] = -1  # keeps its soft head
    soft = parser(x, sizes)
    clamped = parser(x, sizes, clamped_heads=heads)
    close(clamped.head_log_probs, soft.head_log_probs, 0)
    close(clamped.heads[0, 2], soft.heads[0, 2], 0)
    close(clamped.labels[0, 2], soft.labels[0, 2])
    for b, length in enumerate([5, 3]):
        gold = [max(int(head), 0) for head in heads[b, : length - 1]]
        *_, labels, _ = expected_of(parser, x[b], length, heads[b], heads[b], teacher=gold)
        for i in range(length - 1):
            if (b, i) != (0, 2):
                assert clamped.heads[b, i].nonzero().flatten().tolist() == [gold[i]] and clamped.heads[b, i].sum() == 1
                close(clamped.labels[b, i], labels[i])
                assert (clamped.labels[b, i] - soft.labels[b, i]).abs().max() > 1e-6
    assert (clamped.labels[~word_mask(sizes, 5)] == 0).all()


def test_autocast_for_which_the_processor_has_no_lstm_leaves_it_in_float32():
    """Hardly a processor has one of float16 that learns; bfloat16 is tried with all systems (`make test-isa`)."""
    parser, (x, sizes, *_) = randomized().float(), batch_of([5, 3])
    with torch.autocast("cpu", torch.float16):
        found = parser(x.float(), sizes)
    close(found.states, parser(x.float(), sizes).states, 1e-2)


def fills(matrix, bound):
    """Uniform in [-bound, bound]: inside, near its ends, and of its variance."""
    assert matrix.abs().max() <= bound
    assert matrix.abs().max() > 0.99 * bound
    assert float(matrix.std()) == pytest.approx(bound / math.sqrt(3), rel=0.03)


def test_parameters_start_as_the_paper_says():
    torch.manual_seed(0)
    d1, d2, tags, labels = 100, 50, 45, 46
    parser = LatentGraphParser(d1, d2, tags, labels)
    for layer, inputs in ((parser.layer1, 2 * d1), (parser.layer2, 3 * d1 + d2)):
        for lstm in (layer.left_to_right, layer.right_to_left):
            assert lstm.input_size == inputs
            for matrix in (*lstm.weight_ih_l0.chunk(4), *lstm.weight_hh_l0.chunk(4)):
                fills(matrix, math.sqrt(6 / (d1 + inputs + d1)))
            take, keep, new, show = (lstm.bias_ih_l0 + lstm.bias_hh_l0).chunk(4)
            assert (keep == 1).all() and not any(bias.any() for bias in (take, new, show))
    fills(parser.pos_input.weight, math.sqrt(6 / (tags + d2)))
    fills(parser.head_scorer.weight, math.sqrt(6 / (4 * d1)))
    for classifier in (parser.pos_classifier, parser.label_classifier):
        assert not classifier.output.weight.any() and not classifier.output.bias.any()
    graph = parser(torch.randn(2, 5, 2 * d1), torch.tensor([5, 3]))
    close(graph.pos_log_probs.exp(), torch.full((2, 5, tags), 1 / tags), 1e-6)
    close(graph.labels[0, :4], torch.full((4, labels), 1 / labels), 1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_infinite_scores_are_great_ones(dtype):
    scores = torch.tensor([[math.inf, 0.0, math.inf], [-math.inf] * 3, [-math.inf, 1.0, 0.0]], dtype=dtype)
    found = log_softmax(scores.requires_grad_())
    expected = torch.tensor([[0.5, 0.0, 0.5], [1 / 3] * 3, [0.0, *torch.tensor([1.0, 0.0]).softmax(0).tolist()]])
    torch.testing.assert_close(found.exp(), expected.to(found.dtype))
    assert found.isfinite().all() and torch.autograd.grad(found.exp().sum(), scores)[0].isfinite().all()

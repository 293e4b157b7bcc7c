"""Marginals of trees: enumeration in extended precision, laws, extreme scores."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import dependency_trees as oracle

from fairseq_syntax.trees import matrix_tree
from fairseq_syntax.trees.matrix_tree import head_marginals

INF = math.inf
# words and scale of the scores: every number of words, every scale, and the extremes together
SMALL = [(1, 1.0), (2, 20.0), (3, 100.0), (4, 1.0), (5, 0.0), (5, 20.0)]


def random_scores(seed, words, scale, batch=1):
    """Normal scores (batch, words, words) and (batch, words), float64."""
    generator = torch.Generator().manual_seed(seed)
    arcs = torch.randn(batch, words, words, generator=generator, dtype=torch.float64) * scale
    return arcs, torch.randn(batch, words, generator=generator, dtype=torch.float64) * scale


def all_words(roots):
    return torch.ones(roots.shape, dtype=torch.bool)


def assert_close(actual, expected, tolerance):
    expected = torch.as_tensor(expected, dtype=torch.float64)
    assert actual.shape == expected.shape
    assert (actual.double() - expected).abs().max() <= tolerance


def assert_both(actual, expected, tolerance, sentences=0):
    """Of arcs and of roots."""
    for found, right in zip(actual, expected, strict=True):
        assert_close(found[sentences], right, tolerance)


def gradients(function, arcs, roots, *arguments):
    """Gradients of the sum of what the function returns."""
    arcs, roots = arcs.detach().clone().requires_grad_(), roots.detach().clone().requires_grad_()
    return torch.autograd.grad(function(arcs, roots, *arguments).sum(), (arcs, roots), materialize_grads=True)


def weighted_marginals(arcs, roots, mask, arc_weights, root_weights):
    arc_marginals, root_marginals = head_marginals(arcs, roots, mask)
    return (arc_marginals * arc_weights).sum() + (root_marginals * root_weights).sum()


@pytest.fixture(params=["chosen", "elimination"])
def way(request, monkeypatch):
    """As it is chosen for each sentence, and the elimination for all: both have to be right."""
    if request.param == "elimination":
        monkeypatch.setattr(matrix_tree, "_LARGEST_INVERSE", -1.0)


# --- against enumeration ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "scale"), SMALL)
def test_marginals_and_their_gradient(words, scale, way):
    for seed in range(3):
        arcs, roots = random_scores(seed, words, scale)
        arc_weights, root_weights = random_scores(100 + seed, words, 1)
        listed = arcs[0].tolist(), roots[0].tolist()
        expected = oracle.marginals(*listed)
        actual = head_marginals(arcs, roots, all_words(roots))
        assert_both(actual, expected, 1e-8)
        expected = oracle.marginals_gradient(*listed, arc_weights[0].tolist(), root_weights[0].tolist())
        actual = gradients(weighted_marginals, arcs, roots, all_words(roots), arc_weights, root_weights)
        assert_both(actual, expected, 1e-7)


def test_derivatives_of_first_and_second_order(way):
    arcs, roots = random_scores(0, 3, 1, batch=2)
    mask = torch.tensor([[True] * 3, [False, True, True]])
    inputs = (arcs.requires_grad_(), roots.requires_grad_(), mask)
    assert torch.autograd.gradcheck(head_marginals, inputs)
    assert torch.autograd.gradgradcheck(head_marginals, inputs)


@pytest.mark.parametrize(("words", "scale"), [(20, 20), (12, 100)])
def test_longer_sentences_in_extended_precision(words, scale, way):
    arcs, roots = random_scores(words, words, scale)
    expected = oracle.laplacian_marginals(arcs[0].tolist(), roots[0].tolist())
    actual = head_marginals(arcs, roots, all_words(roots))
    assert_both(actual, expected, 1e-8)


# --- extreme scores -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cycle", "preference"), [(2, 10.0), (3, 20.0), (4, 35.0), (4, 300.0)])
def test_words_that_prefer_each_other(cycle, preference):
    """What a Laplacian cannot tell: how little leaks out of a cycle; the sum of a column does not show it."""
    arcs, roots = random_scores(cycle, 5, 1)
    for word in range(cycle):
        arcs[0, word, (word + 1) % cycle] += preference
    expected = oracle.marginals(arcs[0].tolist(), roots[0].tolist())
    actual = head_marginals(arcs, roots, all_words(roots))
    assert_both(actual, expected, 1e-8)


# --- batches, padding, types --------------------------------------------------------------------------------------


@given(st.data(), st.sampled_from([1.0, 30.0]))
def test_neighbours_and_padding_change_nothing(data, scale):
    """Each sentence of a batch as it is alone, its words anywhere, and whatever stands between them."""
    length = data.draw(st.integers(1, 7), label="length")
    mask = torch.tensor(data.draw(st.lists(st.lists(st.booleans(), min_size=length, max_size=length), min_size=1)))
    rubbish = data.draw(st.sampled_from([INF, -INF, math.nan, 1e30, 0.0]), label="rubbish")
    arcs, roots = random_scores(length, length, scale, batch=len(mask))
    weights = random_scores(1, length, 1, batch=len(mask))
    is_arc = mask[:, :, None] & mask[:, None, :] & ~torch.eye(length, dtype=torch.bool)
    arcs, roots = arcs.masked_fill(~is_arc, rubbish), roots.masked_fill(~mask, rubbish)
    actual = head_marginals(arcs, roots, mask)
    actual_gradient = gradients(weighted_marginals, arcs, roots, mask, *weights)
    for values in (*actual, *actual_gradient):
        assert not values[~(is_arc if values.ndim == 3 else mask)].any()
    for b, words in enumerate(mask):
        block = torch.arange(length)[words]
        alone = arcs[b][block][:, block][None], roots[b][block][None]
        full = all_words(alone[1])
        weights_alone = weights[0][b][block][:, block][None], weights[1][b][block][None]
        expected = head_marginals(*alone, full)
        expected_gradient = gradients(weighted_marginals, *alone, full, *weights_alone)
        for inside, outside in zip((*actual, *actual_gradient), (*expected, *expected_gradient), strict=True):
            inside = inside[b][block][:, block] if inside.ndim == 3 else inside[b][block]
            torch.testing.assert_close(inside, outside[0], rtol=0, atol=1e-7)


def test_nothing_at_all():
    for batch, length in ((0, 4), (3, 0)):
        arcs, roots = torch.zeros(batch, length, length), torch.zeros(batch, length)
        assert [part.shape for part in head_marginals(arcs, roots, all_words(roots))] == [arcs.shape, roots.shape]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("scale", [2.0, 60.0])
def test_computed_in_float64_and_returned_as_given(dtype, scale):
    arcs, roots = (scores.to(dtype) for scores in random_scores(0, 6, scale, batch=4))
    expected = head_marginals(arcs.double(), roots.double(), all_words(roots))
    for actual, exact in zip(head_marginals(arcs, roots, all_words(roots)), expected, strict=True):
        assert actual.dtype == dtype and torch.equal(actual, exact.to(dtype))
    weights = (scores.to(dtype) for scores in random_scores(1, 6, 1, batch=4))
    for gradient in gradients(weighted_marginals, arcs, roots, all_words(roots), *weights):
        assert gradient.dtype == dtype and gradient.isfinite().all()


@pytest.mark.parametrize("scale", [2.0, 60.0])
def test_neither_autocast_nor_inference_changes_anything(scale):
    arcs, roots = random_scores(0, 6, scale, batch=8)
    expected = head_marginals(arcs.requires_grad_(), roots, all_words(roots))
    for mode in (torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad(), torch.inference_mode()):
        with mode:
            actual = head_marginals(arcs * 1, roots * 1, all_words(roots))  # of tensors made in this mode
        assert all(torch.equal(*pair) for pair in zip(actual, expected, strict=True))
        assert actual[0].requires_grad == isinstance(mode, torch.autocast)


def test_shapes_that_disagree():
    with pytest.raises(ValueError, match=r"\(2, 3, 4\).*\(2, 3\).*expected"):
        head_marginals(torch.zeros(2, 3, 4), torch.zeros(2, 3), torch.ones(2, 3, dtype=torch.bool))


# --- forbidden arcs -----------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(2, 4), st.floats(0.1, 0.7), st.sampled_from([-INF, -1e9]), st.booleans())
def test_any_arcs_forbidden(seed, words, share, forbidden, eliminated):
    arcs, roots = random_scores(seed, words, 3)
    weights = random_scores(seed + 1, words, 1)
    generator = torch.Generator().manual_seed(seed)
    for scores in (arcs, roots):
        scores[torch.rand(scores.shape, generator=generator) < share] = forbidden
    listed = [scores.masked_fill(scores < -1e6, -INF)[0].tolist() for scores in (arcs, roots)]
    possible = any(oracle.tree_score(tree, *listed) > -INF for tree in oracle.all_trees(words))
    with pytest.MonkeyPatch.context() as patched:
        if eliminated:
            patched.setattr(matrix_tree, "_LARGEST_INVERSE", -1.0)
        actual = head_marginals(arcs, roots, all_words(roots))
        computed = gradients(weighted_marginals, arcs, roots, all_words(roots), *weights)
    assert_close(actual[0].sum(-1) + actual[1], torch.ones(1, words), 1e-9)
    if possible:
        assert_both(actual, oracle.marginals(*listed), 1e-9)
        assert not actual[0][arcs < -1e6].any()
        listed_weights = [scores[0].tolist() for scores in weights]
        assert_both(computed, oracle.marginals_gradient(*listed, *listed_weights), 1e-7)


def test_a_sentence_of_which_no_word_may_be_a_head():
    """Punctuation only: all of its trees are equally bad, and nothing breaks."""
    arcs, roots = random_scores(0, 4, 3, batch=2)
    arcs[1] = -INF
    mask = all_words(roots)
    arc_marginals, root_marginals = head_marginals(arcs, roots, mask)
    assert_close(root_marginals[1], [0.25] * 4, 1e-12)
    assert_close(arc_marginals[1], (1 - torch.eye(4)) / 4, 1e-12)
    computed = gradients(lambda *inputs: head_marginals(*inputs)[1].square(), arcs, roots, mask)
    assert all(gradient.isfinite().all() for gradient in computed)


# --- scores without bounds ------------------------------------------------------------------------------------------

HUGE = [-1e30, -1.5, 0.0, 2.0, 1e30]


@given(st.data(), st.integers(1, 4))
def test_huge_scores_rule_out_all_other_trees(data, words):
    """Arcs have a chance if they are in one of the trees that are best in what is huge."""
    score = st.sampled_from(HUGE)
    arcs = [[data.draw(score) for _ in range(words)] for _ in range(words)]
    roots = [data.draw(score) for _ in range(words)]
    inputs = torch.tensor([arcs], dtype=torch.float64), torch.tensor([roots], dtype=torch.float64)
    mask = all_words(inputs[1])
    arc_marginals, root_marginals = head_marginals(*inputs, mask)
    assert_close(arc_marginals.sum(-1) + root_marginals, torch.ones(1, words), 1e-9)
    assert all(part.isfinite().all() for part in gradients(lambda *given: head_marginals(*given)[0], *inputs, mask))
    allowed = [scores[0].tolist() for scores in matrix_tree._prepare(*inputs, mask)]
    if all(oracle.tree_score(heads, *allowed) == -INF for heads in oracle.all_trees(words)):
        return  # every tree has an arc that counts as forbidden
    sizes = {heads: round(oracle.tree_score(heads, arcs, roots) / 1e30) for heads in oracle.all_trees(words)}
    best = [heads for heads, size in sizes.items() if size == max(sizes.values())]
    for word in range(words):
        chances = [*arc_marginals[0, word].tolist(), float(root_marginals[0, word])]
        assert {head for head, p in enumerate(chances) if p > 1e-9} == {heads[word] % (words + 1) for heads in best}


def extreme(value, dtype=torch.float64):
    """Three sentences of three words; of the second, the arc from 0 to 1 and the root 2 have an extreme score."""
    arcs, roots = (scores.to(dtype) for scores in random_scores(1, 3, 1, batch=3))
    arcs[1, 0, 1] = roots[1, 2] = value
    return arcs, roots, all_words(roots)


@pytest.mark.parametrize("value", [1e30, INF, -1e30, -INF])
def test_infinite_scores_are_great_ones(value):
    arcs, roots, mask = extreme(value, torch.float32)
    arc_marginals, root_marginals = head_marginals(arcs, roots, mask)
    chance = 1.0 if value > 0 else 0.0
    assert arc_marginals[1, 0, 1] == chance and root_marginals[1, 2] == chance
    assert_close(arc_marginals.sum(-1) + root_marginals, torch.ones(3, 3), 1e-6)
    computed = gradients(lambda *inputs: head_marginals(*inputs)[0], arcs, roots, mask)
    assert all(gradient.isfinite().all() for gradient in computed)


def test_nan_stays_in_its_sentence(way):
    arcs, roots, mask = extreme(math.nan)
    others = [0, 2]
    alone = arcs[others], roots[others], mask[others]

    def arc_marginals(*inputs):
        return head_marginals(*inputs)[0]

    actual = arc_marginals(arcs, roots, mask)
    assert actual[1].isnan().any()
    assert_close(actual[others], arc_marginals(*alone), 1e-12)
    computed = zip(gradients(arc_marginals, arcs, roots, mask), gradients(arc_marginals, *alone), strict=True)
    for gradient, expected in computed:
        assert_close(gradient[others], expected, 1e-12)

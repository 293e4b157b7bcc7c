"""Head selection against an enumeration of all trees (Tran & Bisk 2018, eqs. 6-15, 21)."""

import pytest
import torch
from oracles import syntax_translation as oracle

from fairseq_syntax.systems.recurrent.source_attention import SourceBatch
from fairseq_syntax.systems.sa_nmt.head_selection import HeadDistribution, HeadSelection, RootScores

C = 4
PAD, EOS, STOP, COMMA, VOCABULARY = 1, 2, 5, 6, 12
# words, EOS in the middle and in front, two lengths of padding on both sides, an empty sentence, no EOS
SENTENCES = [
    [7, 8, 9, 10, EOS],
    [PAD, PAD, 7, 8, EOS],
    [8, EOS, 9, 7, PAD],
    [EOS, 9, 10, 7, PAD],
    [11, EOS, PAD, PAD, PAD],
    [EOS, PAD, PAD, PAD, PAD],
    [7, 7, 7, PAD, PAD],
]
KINDS = [
    pytest.param(tree, root, id=f"{'tree' if tree else 'flat'}-{root}")
    for tree, root in ((True, "query"), (True, "diagonal"), (False, "query"))
]


def build(tree=True, root="query", dtype=torch.double, **options):
    torch.manual_seed(0)
    distribution = HeadDistribution.tree if tree else HeadDistribution.flat
    layer = HeadSelection(C, distribution, RootScores(root), **options)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    return layer.to(dtype)


def batch(sentences, dtype=torch.double):
    """(annotations, source); annotations of padding are not zero."""
    tokens = torch.tensor(sentences)
    torch.manual_seed(1)
    states = torch.randn(*tokens.shape, C, dtype=torch.double).to(dtype).requires_grad_()
    padding = tokens.eq(PAD)
    return states, SourceBatch(tokens, padding, ~padding & tokens.ne(EOS))


def never_heads():
    never = torch.zeros(VOCABULARY, dtype=torch.bool)
    never[[STOP, COMMA]] = True
    return never


def expected_annotations(layer, states, source, **options):
    selection = dict(layer.named_parameters())
    rows = []
    for row, mask, tokens in zip(states, source.word_mask.tolist(), source.tokens.tolist(), strict=True):
        barred = [t for t, token in enumerate(tokens) if layer.never_heads is not None and layer.never_heads[token]]
        found = oracle.syntactic_annotations(list(row), mask, selection, barred=barred, **options)
        rows.append(torch.stack(found))
    return torch.stack(rows)


def assert_equal_with_gradients(layer, states, found, expected, keep=1e-10):
    torch.testing.assert_close(found, expected, atol=keep, rtol=keep)
    leaves = [states, *layer.parameters()]
    weights = torch.linspace(-1, 1, found.numel(), dtype=torch.double).view_as(found)
    gradients = [torch.autograd.grad((value * weights).sum(), leaves) for value in (found, expected)]
    for mine, reference in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, reference, atol=keep, rtol=keep)


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize(("tree", "root"), KINDS)
def test_scores_and_marginals_equal_the_enumeration(tree, root, scaled):
    layer = build(tree, root, scaled=scaled)
    states, source = batch(SENTENCES)
    found = layer.heads(states, source)
    weights = layer.head_query.weight, layer.dependent_key.weight, layer.root_query
    for row, mask in enumerate(source.word_mask):
        places = mask.nonzero().flatten().tolist()
        arcs, roots = found["arc_marginals"][row], found["root_marginals"][row]
        assert not arcs[~mask].any() and not arcs[:, ~mask].any() and not roots[~mask].any()
        if not places:
            continue
        phi = oracle.head_scores([states[row, t] for t in places], *weights, scaled)
        beta = (oracle.tree_heads if tree else oracle.flat_heads)(phi)
        for j, dependent in enumerate(places):
            torch.testing.assert_close(found["root_scores"][row, dependent], phi[j][j])
            torch.testing.assert_close(roots[dependent], beta[j, j], atol=1e-12, rtol=0)
            for i, head in enumerate(places):
                if i != j:
                    torch.testing.assert_close(found["arc_scores"][row, dependent, head], phi[i][j])
                    torch.testing.assert_close(arcs[dependent, head], beta[i, j], atol=1e-12, rtol=0)
    assert torch.equal(found["word_mask"], source.word_mask)


@pytest.mark.parametrize(("tree", "root"), KINDS)
def test_hard_heads_are_the_most_probable_with_the_gradient_of_the_soft(tree, root):
    hard, soft = build(tree, root, hard=True), build(tree, root)
    states, source = batch(SENTENCES)
    found = hard(states, source)
    assert_equal_with_gradients(hard, states, found, expected_annotations(hard, states, source, tree=tree, hard=True))
    values, marginals = hard.value(states), hard.heads(states, source)
    weights = marginals["arc_marginals"] + torch.diag_embed(marginals["root_marginals"])
    best = weights.argmax(-1)
    for row, place in source.word_mask.nonzero().tolist():
        # one value, whole
        torch.testing.assert_close(found[row, place], values[row, best[row, place]], atol=0, rtol=0)
    # eq. 21 is straight-through: scores get the gradient that soft heads give them
    scoring = ("head_query.weight", "dependent_key.weight", "root_query")
    for layer in (hard, soft):
        layer(states, source).sum().backward()
    for name, parameter in hard.named_parameters():
        if name in scoring:
            assert parameter.grad.abs().max() > 1e-3
            torch.testing.assert_close(parameter.grad, dict(soft.named_parameters())[name].grad)
    assert not torch.allclose(hard(states, source), soft(states, source))


PUNCTUATED = [
    [7, COMMA, 8, STOP, EOS],
    [STOP, 9, COMMA, EOS, PAD],  # one word that is none
    [STOP, COMMA, STOP, EOS, PAD],  # nothing else
    [STOP, EOS, PAD, PAD, PAD],
    [7, EOS, PAD, PAD, PAD],
    [EOS, PAD, PAD, PAD, PAD],
    [PAD, 8, 9, STOP, EOS],
]


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize(("tree", "root"), KINDS)
def test_punctuation_is_never_a_head(tree, root, hard):
    layer = build(tree, root, hard=hard, never_heads=never_heads())
    states, source = batch(PUNCTUATED)
    found = layer(states, source)
    assert_equal_with_gradients(layer, states, found, expected_annotations(layer, states, source, tree=tree, hard=hard))
    heads = layer.heads(states, source)
    arcs, roots = heads["arc_marginals"], heads["root_marginals"]
    for row in (0, 1, 6):
        marks = layer.never_heads[source.tokens[row]]
        assert not arcs[row][:, marks].any() and not roots[row, marks].any()
        # but they have heads
        torch.testing.assert_close(arcs[row, marks].sum(-1), torch.ones(int(marks.sum()), dtype=torch.double))
    if tree:
        assert roots[1].tolist() == pytest.approx([0, 1, 0, 0, 0])  # all hang on the one word
    # a sentence of punctuation only is as if the option were off
    layer.never_heads = None
    free = layer.heads(states, source)
    torch.testing.assert_close(arcs[2:4], free["arc_marginals"][2:4])
    torch.testing.assert_close(roots[2:4], free["root_marginals"][2:4])
    assert (arcs[0] - free["arc_marginals"][0]).abs().max() > 0.05


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize(("tree", "root"), KINDS)
def test_given_trees_take_the_place_of_the_marginals(tree, root, hard):
    """Columns of heads, EOS for roots, on either padding side; a sentence without a parse is left to itself."""
    layer = build(tree, root, hard=hard)
    states, source = batch(SENTENCES)
    heads = torch.full(source.tokens.shape, -1)
    heads[0], heads[1, 2:] = torch.tensor([1, 4, 1, 2, 4]), torch.tensor([4, 2, 4])
    given = source._replace(syntax={"piece_heads": heads})
    free, clamped = layer(states, source), layer(states, given)
    torch.testing.assert_close(clamped[2:], free[2:], atol=1e-12, rtol=0)
    for b, length in ((0, 5), (1, 3)):
        start = source.tokens.shape[1] - length
        for t in range(start, 5):
            head = heads[b, t] if source.tokens[b, heads[b, t]] != EOS else t  # a root looks at itself
            torch.testing.assert_close(clamped[b, t], layer.value(states[b, head]), atol=1e-12, rtol=0)
    found = layer.heads(states, given)
    total = found["arc_marginals"].sum(-1) + found["root_marginals"]
    torch.testing.assert_close(total, source.word_mask.to(total), atol=1e-9, rtol=0)

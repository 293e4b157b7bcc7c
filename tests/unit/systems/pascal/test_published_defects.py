"""Where published code departs from its paper: small reproductions, each beside what the equations give.

`oracles.published_code` is that code's behaviour, written anew; docs/fidelity.md lists it.
"""

import math

import pytest
import torch
from fairseq.data.data_utils import collate_tokens
from oracles import dependency_trees as oracle
from oracles import published_code

from fairseq_syntax.systems.lisa.criterion import parse_loss
from fairseq_syntax.systems.pascal.parent_kernel import parent_weights
from fairseq_syntax.systems.transformer.headwise_attention import masked_softmax
from fairseq_syntax.trees.matrix_tree import head_marginals

# setting -> scaled heads of 8
PUBLISHED = {"NC11 En-De": 2, "NC11 De-En": 8, "WMT18 En-Tr": 7, "WMT16 En-De": 5, "WMT17 En-De": 7, "WAT En-Ja": 7}


def eq_2(scores, weights, heads):
    """N = S ∘ D in the first heads of every sentence."""
    expected = scores.clone()
    expected[:, :heads] *= weights.unsqueeze(1)
    return expected


def random_batch(batch, heads=8, length=5):
    torch.manual_seed(1)
    parents = torch.randint(0, 2 * length - 1, (batch, length), dtype=torch.int32)
    return torch.randn(batch, heads, length, length, dtype=torch.double), parents


def test_published_pascal_scales_the_last_sentence_of_four_with_parents_of_others():
    scores, parents = random_batch(4)
    weights = parent_weights(parents, "normal", 1.0).double()
    found = published_code.pascal_scores(scores, weights, 2)
    assert torch.equal(found[:3], scores[:3]), "three sentences of four get no syntax at all"
    of = [0, 0, 1, 1, 2, 2, 3, 3]  # the sentence whose parents scale head k of the last one
    torch.testing.assert_close(found[3], scores[3] * weights[of])
    assert not torch.allclose(found, eq_2(scores, weights, 2))
    assert [row[2] for row in published_code.pascal_rows(4, 8, 2)] == of
    # another parse of the first sentence changes the last one
    weights[0] = parent_weights((parents[:1] + 3) % 9, "normal", 1.0)[0]
    again = published_code.pascal_scores(scores, weights, 2)
    assert torch.equal(again[0], found[0]) and not torch.allclose(again[3], found[3])


def test_five_of_six_published_settings_are_affected():
    shares = {}
    for name, heads in PUBLISHED.items():
        rows = published_code.pascal_rows(64, 8, heads)
        # the heads that have their own sentence's parents, of those that should
        shares[name] = round(sum(own == other for own, _, other in rows) / len(rows), 2)
    assert [name for name, share in shares.items() if share == 1] == ["NC11 De-En"]
    # as docs/fidelity.md says
    expected = {"NC11 En-De": 0.02, "NC11 De-En": 1.0, "WMT16 En-De": 0.02}
    assert shares == {**expected, **dict.fromkeys(("WMT18 En-Tr", "WMT17 En-De", "WAT En-Ja"), 0.06)}


def test_parents_padded_on_the_other_side_point_at_other_words():
    """Tokens on the left (fairseq's default), parents on the right: every position is off by the padding."""
    tokens = [torch.tensor([7, 8, 2]), torch.tensor([4, 5, 6, 9, 10, 2])]
    parents = [torch.tensor([1, 1, 2]), torch.tensor([1, 1, 1, 2, 2, 5])]  # positions, from 0
    padded = collate_tokens(tokens, 1, left_pad=True)
    sides = [collate_tokens(parents, -1, left_pad=left_pad) for left_pad in (True, False)]
    assert padded[0].tolist() == [1, 1, 1, 7, 8, 2]
    assert sides[0][0].tolist() == [-1, -1, -1, 1, 1, 2]
    assert sides[1][0].tolist() == [1, 1, 2, -1, -1, -1], "real tokens have no parents, padding has them"
    assert padded[0, 1] == 1 and padded[0, 1 + 3] == 8, "and position 1 is not column 1"


def test_published_lisa_loss_is_another():
    torch.manual_seed(3)
    logits, parents = torch.randn(2, 4, 4), torch.tensor([[1, 1, 1, 3], [0, 1, 0, 0]])
    mask = torch.tensor([[False] * 4, [False, False, True, True]])
    ours, _, counted = parse_loss(logits, parents.masked_fill(mask, -1), mask)
    ours_wild, _, _ = parse_loss(logits + 9 * mask.unsqueeze(-1), parents.masked_fill(mask, -1), mask)
    theirs = published_code.lisa_loss(logits, parents)
    assert int(counted.sum()) == 6
    assert float(ours) == float(ours_wild) and not math.isclose(float(ours), float(theirs), rel_tol=0.05)
    # near perfect heads: the cross entropy is near 0, theirs is not, since probabilities are at most 1 apart
    perfect = torch.full((1, 4, 4), -50.0).scatter(2, parents[:1].unsqueeze(-1), 50.0)
    ours, _, _ = parse_loss(perfect, parents[:1], mask[:1])
    assert float(ours) < 1e-6 and float(published_code.lisa_loss(perfect, parents[:1])) > 3


def test_published_lisa_attends_to_padding():
    torch.manual_seed(3)
    logits, mask = torch.randn(1, 3, 5), torch.tensor([[False, False, False, True, True]])
    ours, theirs = masked_softmax(logits, mask), published_code.lisa_attention(logits)
    torch.testing.assert_close(ours[..., :3], logits[..., :3].softmax(-1))
    assert not ours[..., 3:].any() and theirs[..., 3:].sum(-1).min() > 0.05


def test_released_sa_nmt_does_not_look_at_arcs():
    torch.manual_seed(4)
    phi = 2 * torch.randn(5, 5, dtype=torch.double)
    other = torch.where(torch.eye(5, dtype=torch.bool), phi, 3 * torch.randn(5, 5, dtype=torch.double))
    found, again = (published_code.clamped_diagonal(scores) for scores in (phi, other))
    assert torch.equal(found, again) and not found.masked_fill(torch.eye(5, dtype=torch.bool), 0).any()
    mask = torch.ones(1, 5, dtype=torch.bool)
    ours = [head_marginals(scores.T[None], scores.diagonal()[None], mask)[0] for scores in (phi, other)]
    assert (ours[0] - ours[1]).abs().max() > 0.1
    # nor are scores beyond the clamp told apart
    assert published_code.clamped_diagonal(torch.eye(2) * 8).equal(published_code.clamped_diagonal(torch.eye(2) * 80))


@pytest.mark.parametrize(("score", "least", "most"), [(0.0, 0.999, 1.0), (-10.0, 0.94, 0.96), (-15.0, 0.1, 0.12)])
def test_epsilon_in_the_laplacian_loses_probability(score, least, most):
    """Marginals do not depend on a number that is added to all scores. With epsilon they do."""
    arcs, roots = torch.full((4, 4), score, dtype=torch.double), torch.full((4,), score, dtype=torch.double)
    arc_marginals, root_marginals = published_code.marginals_with_epsilon(arcs, roots)
    total = arc_marginals.sum(1) + root_marginals
    assert least < total.min() < most
    mask = torch.ones(1, 4, dtype=torch.bool)
    found = head_marginals(arcs[None], roots[None], mask)
    torch.testing.assert_close(found[0].sum(2) + found[1], torch.ones(1, 4, dtype=torch.double))
    exact = published_code.marginals_with_epsilon(arcs + 30, roots + 30)
    enumerated = torch.tensor(oracle.marginals(arcs.tolist(), roots.tolist())[0], dtype=torch.double)
    torch.testing.assert_close(exact[0].fill_diagonal_(0), enumerated, atol=1e-9, rtol=0)

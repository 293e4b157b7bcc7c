"""Additive attention with global, local and flexible weights, one score at a time, and at the edges of sentences."""

import pytest
import torch
from torch import nn

from fairseq_syntax.systems.sdatt.attention import LocalWeights, PositionNet, centre_row

H = 6


class Fixed(nn.Module):
    """In the place of a position net: says what it was told."""

    def __init__(self, values):
        super().__init__()
        self.values = values

    def forward(self, query, length):
        return self.values


def make_memory(lengths, left_pad=False, width=None):
    """What weights need of a memory."""
    width = width or max(lengths)
    length = torch.tensor(lengths)
    start = width - length if left_pad else torch.zeros_like(length)
    columns = torch.arange(width)
    keep = (columns >= start[:, None]) & (columns < (start + length)[:, None])
    return {
        "padding": ~keep,
        "length": length,
        "last": length - 1,
        "start": start,
        "values": torch.zeros(len(lengths), width, 2).double(),
    }


def local(positions, lengths, scores, left_pad=False, width=None, **options):
    """Weights around given positions."""
    positions = torch.as_tensor(positions, dtype=torch.double)
    weights = LocalWeights(H, **options).double()
    weights.position = Fixed(positions)
    query = torch.zeros(len(lengths), H, dtype=torch.double)
    found, shown, state = weights(scores, query, make_memory(lengths, left_pad, width), {})
    assert torch.equal(shown["position"], positions) and state == {}
    return found


def draw(*shape, scale=2.0, seed=0):
    return torch.randn(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(seed)) * scale


@pytest.mark.parametrize(
    "position, length, row",
    [(1e-30, 5, 0), (0.0, 5, 0), (0.99, 5, 0), (1.0, 5, 1), (2.5, 5, 2), (4.999, 5, 4), (5.0, 5, 4), (1.0, 1, 0),
     (0.0, 1, 0), (0.5, 1, 0), (1.0, 2, 1), (2.0, 2, 1)],
)  # fmt: skip
def test_every_token_owns_an_equal_share(position, length, row):
    for dtype in (torch.double, torch.float, torch.half):
        found = centre_row(torch.tensor([position], dtype=dtype), torch.tensor([length - 1]))
        assert found.dtype == torch.long and found.tolist() == [row]


@pytest.mark.parametrize("softmax", ["window", "sentence"])
@pytest.mark.parametrize("length", [1, 30])
def test_local_is_finite_at_the_ends(length, softmax):
    """Also where the position net is saturated, and so far from the best score that a plain division were 0 / 0."""
    for share in (0.0, 1e-30, 0.5 / length, 1.0):
        for scale in (1.0, 1e4):
            scores = draw(1, 30, scale=scale).requires_grad_()
            found = local([share * length], [length], scores, width=30, softmax=softmax, window=2)
            found.square().sum().backward()
            assert torch.isfinite(found).all() and torch.isfinite(scores.grad).all()
            assert not found[0, length:].any()
            assert 0 <= float(found.detach().sum()) <= 1 + 1e-12


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_positions_are_not_rounded_to_half_precision(dtype):
    """An 80-token sentence would have steps of half a token in bfloat16."""
    torch.manual_seed(0)
    net = PositionNet(H).to(dtype)
    found = net(torch.randn(50, H, dtype=dtype), torch.full((50,), 1001))
    assert found.dtype == torch.float32
    assert (found != found.to(dtype).float()).any()

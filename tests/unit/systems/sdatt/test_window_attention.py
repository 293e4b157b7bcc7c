"""Local and flexible attention against their equations one position at a time, and at the edges of sentences."""

import math

import pytest
import torch
from torch import nn

from fairseq_syntax.systems.sdatt.additive_attention import global_weights
from fairseq_syntax.systems.sdatt.window_attention import FlexibleWeights, LocalWeights, centre_row

H = 6
INF = math.inf


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
    return {"keep": keep, "length": length, "start": start, "values": torch.zeros(len(lengths), width, 2).double()}


def test_a_position_that_is_no_number_is_no_index():
    row = centre_row(torch.tensor([math.nan, 2.5]), torch.tensor([4, 4]))
    assert row.tolist() == [0, 2]


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


# --- the row ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "position, length, row",
    [(1e-30, 5, 0), (0.0, 5, 0), (0.99, 5, 0), (1.0, 5, 1), (2.5, 5, 2), (4.999, 5, 4), (5.0, 5, 4), (1.0, 1, 0),
     (0.0, 1, 0), (0.5, 1, 0), (1.0, 2, 1), (2.0, 2, 1)],
)  # fmt: skip
def test_every_token_owns_an_equal_share(position, length, row):
    for dtype in (torch.double, torch.float, torch.half):
        found = centre_row(torch.tensor([position], dtype=dtype), torch.tensor([length]))
        assert found.dtype == torch.long and found.tolist() == [row]


# --- local-p ----------------------------------------------------------------------------------------------------------


def local_by_hand(scores, position, window, softmax, renormalize):
    """Eqs. 5-8 for one sentence: lists of numbers."""
    length = len(scores)
    row = min(math.floor(position), length - 1)
    inside = [abs(j - row) <= window for j in range(length)]
    taken = [softmax == "sentence" or near for near in inside]
    total = sum(math.exp(e) for e, use in zip(scores, taken, strict=True) if use)
    sigma = window / 2
    weights = [
        math.exp(e) / total * math.exp(-((j + 0.5 - position) ** 2) / (2 * sigma**2)) if near else 0.0
        for j, (e, near) in enumerate(zip(scores, inside, strict=True))
    ]
    return [weight / sum(weights) for weight in weights] if renormalize else weights


@pytest.mark.parametrize("renormalize", [False, True])
@pytest.mark.parametrize("softmax", ["window", "sentence"])
@pytest.mark.parametrize("window", [0.4, 1, 3, 10])
@pytest.mark.parametrize("left_pad", [False, True], ids=["right", "left"])
def test_local_equals_the_equations(left_pad, window, softmax, renormalize):
    lengths = [9, 9, 9, 6, 3, 2, 1]
    shares = torch.tensor([0.0, 0.31, 1.0, 0.5, 0.9, 0.26, 0.77], dtype=torch.double)
    positions = shares * torch.tensor(lengths)
    scores = draw(len(lengths), 9)
    options = {"window": window, "softmax": softmax, "renormalize": renormalize}
    found = local(positions, lengths, scores, left_pad, **options)
    for b, length in enumerate(lengths):
        columns = slice(9 - length, 9) if left_pad else slice(0, length)
        own = scores[b, columns].tolist()
        expected = torch.zeros(9, dtype=torch.double)
        expected[columns] = torch.tensor(local_by_hand(own, float(positions[b]), **options), dtype=torch.double)
        torch.testing.assert_close(found[b], expected, atol=1e-12, rtol=0)


def test_window_of_three_around_the_fifth_of_21():
    flat = torch.zeros(1, 21, dtype=torch.double)
    found = local([5.5], [21], flat, window=3)
    assert found[0].nonzero().flatten().tolist() == [2, 3, 4, 5, 6, 7, 8]
    # they do not sum to one, as published
    assert float(found.sum()) == pytest.approx(0.5278, abs=1e-4)
    sentence = local([5.5], [21], flat, window=3, softmax="sentence")
    torch.testing.assert_close(sentence, found * 7 / 21, atol=1e-12, rtol=0)
    # the Gaussian is around the position, the window around the token
    moved = local([5.9], [21], flat, window=3)
    assert moved[0].nonzero().flatten().tolist() == [2, 3, 4, 5, 6, 7, 8]
    assert moved[0, 6] > found[0, 6] and moved[0, 4] < found[0, 4]


@pytest.mark.parametrize("softmax", ["window", "sentence"])
def test_an_infinite_window_is_global_attention(softmax):
    lengths = [7, 4, 1]
    scores = draw(3, 7)
    for renormalize in (False, True):
        found = local([0.2, 3.9, 0.5], lengths, scores, window=INF, softmax=softmax, renormalize=renormalize)
        expected = global_weights(scores, make_memory(lengths)["keep"])
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("softmax", ["window", "sentence"])
@pytest.mark.parametrize("length", [1, 2, 30])
def test_local_is_finite_at_the_ends(length, softmax):
    """Also where the position net is saturated, and so far from the best score that a plain division were 0 / 0."""
    for share in (0.0, 1e-30, 0.5 / length, 1.0):
        for scale in (1.0, 1e4):
            scores = (draw(1, 30, scale=scale)).requires_grad_()
            for renormalize in (False, True):
                options = {"softmax": softmax, "renormalize": renormalize, "window": 2}
                found = local([share * length], [length], scores, width=30, **options)
                found.square().sum().backward()
                assert torch.isfinite(found).all() and torch.isfinite(scores.grad).all()
                assert not found[0, length:].any()
                total = float(found.detach().sum())
                assert total == pytest.approx(1, abs=1e-12) if renormalize else 0 <= total <= 1 + 1e-12
                assert renormalize or softmax == "sentence" or total > 0


def test_a_saturated_position_net():
    weights = LocalWeights(H, window=1)
    nn.init.ones_(weights.position.hidden.weight)
    query, memory = torch.ones(2, H), make_memory([4, 2])
    for sign, positions, rows in ((-1, [0, 0], [[0, 1], [0, 1]]), (1, [4, 2], [[2, 3], [0, 1]])):
        nn.init.constant_(weights.position.output.weight, sign * 1e4)
        found, shown, _ = weights(torch.zeros(2, 4), query, memory, {})
        assert shown["position"].tolist() == positions
        assert [row.nonzero().flatten().tolist() for row in found] == rows


@pytest.mark.parametrize("softmax", ["window", "sentence"])
@pytest.mark.parametrize("renormalize", [False, True])
def test_gradients_of_local_weights(softmax, renormalize):
    lengths = [6, 4, 1]
    scores = draw(3, 6).requires_grad_()
    positions = torch.tensor([2.3, 3.7, 0.4], dtype=torch.double, requires_grad=True)

    def apply(scores, positions):
        return local(positions, lengths, scores, window=2, softmax=softmax, renormalize=renormalize)

    assert torch.autograd.gradcheck(apply, (scores, positions))
    (gradient,) = torch.autograd.grad(apply(scores, positions)[0, 3], positions)
    assert gradient[0].abs() > 1e-3


# --- flexible ---------------------------------------------------------------------------------------------------------


def flexible(strengths, lengths, steps, left_pad=False, width=None, **options):
    """Weights of several steps with given gates: [(B, T)] and the last centre."""
    weights = FlexibleWeights(H, **options).double()
    memory = make_memory(lengths, left_pad, width)
    query = torch.zeros(len(lengths), H, dtype=torch.double)
    state = weights.initial_state(memory)
    assert state["centre"].tolist() == [0.0] * len(lengths)
    found = []
    for strength, scores in zip(strengths, steps, strict=True):
        weights.gate = Fixed(strength)
        row, shown, state = weights(scores, query, memory, state)
        assert torch.equal(shown["gate"], strength)
        found.append(row)
    return found, state["centre"]


def flexible_by_hand(strengths, steps, sigma, threshold):
    """One sentence: the weights of all steps."""
    centre, found = 0.0, []
    for strength, scores in zip(strengths, steps, strict=True):
        offsets = [abs(j - centre) for j in range(len(scores))]
        penalties = [strength * offset**2 / (2 * sigma**2) for offset in offsets]
        seen = [p <= threshold or o == min(offsets) for p, o in zip(penalties, offsets, strict=True)]
        weights = [math.exp(e - p) if use else 0.0 for e, p, use in zip(scores, penalties, seen, strict=True)]
        weights = [weight / sum(weights) for weight in weights]
        centre = sum(j * weight for j, weight in enumerate(weights))
        found.append(weights)
    return found, centre


@pytest.mark.parametrize("threshold", [INF, 3.0, 0.2, 1e-9])
@pytest.mark.parametrize("left_pad", [False, True], ids=["right", "left"])
def test_flexible_equals_the_equations(left_pad, threshold):
    lengths = [9, 6, 2, 1]
    steps, strengths = draw(4, 4, 9), draw(4, 4, seed=1).sigmoid()
    # the first step sees all, so that its centre is between two tokens
    strengths[0] = 0
    found, centre = flexible(strengths, lengths, steps, left_pad, sigma=1.5, threshold=threshold)
    for b, length in enumerate(lengths):
        columns = slice(9 - length, 9) if left_pad else slice(0, length)
        expected, last = flexible_by_hand(strengths[:, b].tolist(), steps[:, b, columns].tolist(), 1.5, threshold)
        assert float(centre[b]) == pytest.approx(last, abs=1e-12)
        for row, wanted in zip(found, expected, strict=True):
            whole = torch.zeros(9, dtype=torch.double)
            whole[columns] = torch.tensor(wanted, dtype=torch.double)
            torch.testing.assert_close(row[b], whole, atol=1e-12, rtol=0)
    if threshold < 3:  # something is left out
        assert any((row[0] == 0).any() for row in found[1:]) and float(centre[0]) > 0


def test_without_its_gate_it_is_global_attention():
    lengths, steps = [7, 4, 1], draw(3, 3, 7)
    found, _ = flexible(torch.zeros(3, 3).double(), lengths, steps)
    keep = make_memory(lengths)["keep"]
    for row, scores in zip(found, steps, strict=True):
        torch.testing.assert_close(row, global_weights(scores, keep), atol=1e-12, rtol=0)


def test_the_gate_follows_its_equation():
    torch.manual_seed(0)
    weights = FlexibleWeights(H).double()
    query, memory = draw(2, H), make_memory([5, 3])
    _, shown, _ = weights(draw(2, 5), query, memory, weights.initial_state(memory))
    net = weights.gate
    expected = torch.sigmoid(torch.tanh(query @ net.hidden.weight.T) @ net.output.weight[0])
    torch.testing.assert_close(shown["gate"], expected, atol=1e-12, rtol=0)


def test_a_strong_gate_keeps_the_eye_where_it_was():
    """Flat scores, a far sharper one at the end: without the penalty it would jump there."""
    scores = torch.zeros(1, 20, dtype=torch.double)
    scores[0, 19] = 6
    (row,), centre = flexible([torch.ones(1).double()], [20], [scores], sigma=1.0)
    assert row[0, 0] > 0.5 and row[0, 19] < 1e-6 and centre < 1
    (row,), centre = flexible([torch.zeros(1).double()], [20], [scores], sigma=1.0)
    assert row[0, 19] > 0.9 and centre > 15


def test_gradients_of_flexible_weights_pass_from_step_to_step():
    lengths = [5, 2]
    strengths = draw(3, 2, seed=1).sigmoid().requires_grad_()
    steps = draw(3, 2, 5).requires_grad_()

    def last(strengths, steps):
        return flexible(strengths, lengths, steps, sigma=1.0)[0][-1]

    assert torch.autograd.gradcheck(last, (strengths, steps))
    first, _ = torch.autograd.grad(last(strengths, steps)[0, 1], (steps, strengths))
    assert first[0, 0].abs().max() > 1e-4


@pytest.mark.parametrize("threshold", [INF, 0.01])
@pytest.mark.parametrize("length", [1, 2])
def test_flexible_in_the_shortest_sentences(length, threshold):
    steps = draw(3, 1, 4, scale=50)
    found, centre = flexible(torch.ones(3, 1).double(), [length], steps, width=4, threshold=threshold)
    for row in found:
        assert float(row.sum()) == pytest.approx(1, abs=1e-12) and not row[0, length:].any()
    assert 0 <= float(centre) <= length - 1


@pytest.mark.parametrize("kind", [LocalWeights, FlexibleWeights])
def test_padding_changes_nothing(kind):
    """More of it, on either side, and whatever the scores of padding are."""
    torch.manual_seed(0)
    weights = kind(H, 2.0).double()
    for parameter in weights.parameters():
        nn.init.normal_(parameter)
    lengths, scores, query = [6, 3, 1], draw(3, 6), draw(3, H)
    memory = make_memory(lengths)
    expected, shown, _ = weights(scores, query, memory, weights.initial_state(memory))
    for left_pad in (False, True):
        wide = make_memory(lengths, left_pad, 11)
        noise = draw(3, 11, scale=50, seed=3)
        noise[wide["keep"]] = scores[memory["keep"]]
        found, other, _ = weights(noise, query, wide, weights.initial_state(wide))
        torch.testing.assert_close(found[wide["keep"]], expected[memory["keep"]], atol=1e-12, rtol=0)
        assert not found[~wide["keep"]].any() and other.keys() == shown.keys()
        for name, value in shown.items():
            torch.testing.assert_close(other[name], value, atol=1e-12, rtol=0)

"""Cells of the recurrent decoder against those of torch, with the same weights in another order."""

import pytest
import torch
from torch import nn

from fairseq_syntax.systems.recurrent.cells import GRUCell, LSTMCell

B, AHEAD, STEP, H = 3, 4, 5, 6


def lstm_twin(cell: LSTMCell) -> nn.LSTMCell:
    """torch's cell over [ahead; step]: gates i, f, g, o instead of i, f, o, g, and one of its two biases zero."""
    twin = nn.LSTMCell(AHEAD + STEP, H).double()

    def reordered(rows):
        take, keep, show, new = rows.chunk(4)
        return torch.cat((take, keep, new, show))

    twin.weight_ih.data = reordered(torch.cat((cell.ahead.weight, cell.recurrent.weight[:, :STEP]), dim=1)).detach()
    twin.weight_hh.data = reordered(cell.recurrent.weight[:, STEP:]).detach()
    twin.bias_ih.data = reordered(cell.recurrent.bias).detach()
    twin.bias_hh.data.zero_()
    return twin


def gru_twin(cell: GRUCell) -> nn.GRUCell:
    twin = nn.GRUCell(AHEAD + STEP, H).double()
    twin.weight_ih.data = torch.cat((cell.ahead.weight, cell.input.weight), dim=1).detach()
    twin.weight_hh.data = cell.recurrent.weight.detach().clone()
    twin.bias_ih.data = cell.input.bias.detach().clone()
    twin.bias_hh.data = cell.recurrent.bias.detach().clone()
    return twin


KINDS = {"lstm": (LSTMCell, lstm_twin), "gru": (GRUCell, gru_twin)}
NUM_STATES = {"lstm": 2, "gru": 1}


def draw(*shape):
    return torch.randn(*shape, dtype=torch.double, requires_grad=True)


def build(kind, *sizes):
    torch.manual_seed(0)
    return KINDS[kind][0](*sizes).double()


@pytest.mark.parametrize("kind", KINDS)
def test_three_steps_equal_torch(kind):
    cell = build(kind, STEP, H, AHEAD)
    twin = KINDS[kind][1](cell)
    known, inputs = draw(3, B, AHEAD), draw(3, B, STEP)
    start = tuple(draw(B, H) for _ in range(NUM_STATES[kind]))
    state, expected = start, start
    for ahead, own, step in zip(cell.project_ahead(known), known, inputs, strict=True):
        state = cell(step, state, ahead)
        both = torch.cat((own, step), dim=1)
        expected = twin(both, expected) if kind == "lstm" else (twin(both, expected[0]),)
    assert len(state) == NUM_STATES[kind]
    leaves = (known, inputs, *start)
    for mine, theirs in zip(state, expected, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-12, rtol=0)
        found = torch.autograd.grad(mine.square().sum(), leaves, retain_graph=True, allow_unused=True)
        wanted = torch.autograd.grad(theirs.square().sum(), leaves, retain_graph=True, allow_unused=True)
        for gradient, reference in zip(found, wanted, strict=True):
            torch.testing.assert_close(gradient, reference, atol=1e-12, rtol=0)
    # of the weights, too: the hidden ones stand in the same order in both kinds
    state[0].sum().backward()
    expected[0].sum().backward()
    whole = cell.recurrent.weight.grad
    if kind == "gru":
        torch.testing.assert_close(whole, twin.weight_hh.grad, atol=1e-12, rtol=0)
    else:
        take, keep, show, new = whole[:, STEP:].chunk(4)
        torch.testing.assert_close(torch.cat((take, keep, new, show)), twin.weight_hh.grad, atol=1e-12, rtol=0)
    assert cell.ahead.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_known_ahead_may_be_left_out(kind):
    """A cell of an upper layer, which has nothing known ahead, is the cell whose projection of it is zero."""
    cell, upper = build(kind, STEP, H, AHEAD), build(kind, STEP, H)
    upper.load_state_dict({name: value for name, value in cell.state_dict().items() if name != "ahead.weight"})
    assert upper.ahead is None
    inputs, state = draw(B, STEP), tuple(draw(B, H) for _ in range(NUM_STATES[kind]))
    found = upper(inputs, state)
    for mine, expected in zip(
        found, cell(inputs, state, cell.project_ahead(torch.zeros(B, AHEAD).double())), strict=True
    ):
        torch.testing.assert_close(mine, expected, atol=1e-12, rtol=0)
    assert not torch.allclose(found[0], cell(inputs, state, cell.project_ahead(draw(B, AHEAD)))[0])


@pytest.mark.parametrize("kind", KINDS)
def test_everything_may_be_known_ahead(kind):
    """Without input feeding, only the state comes from the step before; a GRU has the bias of its input there."""
    cell = build(kind, 0, H, AHEAD)
    biases = {name: tuple(p.shape) for name, p in cell.named_parameters() if name.endswith("bias")}
    assert biases == {"recurrent.bias": (cell.gates * H,)} | ({"ahead.bias": (3 * H,)} if kind == "gru" else {})
    twin = {"lstm": nn.LSTMCell, "gru": nn.GRUCell}[kind](AHEAD, H).double()
    order = [0, 1, 3, 2] if kind == "lstm" else [0, 1, 2]
    with torch.no_grad():
        rows = torch.arange(cell.gates * H).view(cell.gates, H)[order].flatten()
        twin.weight_ih.copy_(cell.ahead.weight[rows])
        twin.weight_hh.copy_(cell.recurrent.weight[rows])
        twin.bias_hh.copy_(cell.recurrent.bias[rows])
        twin.bias_ih.zero_()
        if kind == "gru":
            twin.bias_ih.copy_(cell.ahead.bias)
    known, state = draw(B, AHEAD), tuple(draw(B, H) for _ in range(NUM_STATES[kind]))
    found = cell(None, state, cell.project_ahead(known))
    expected = twin(known, state) if kind == "lstm" else (twin(known, state[0]),)
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-12, rtol=0)
    assert torch.autograd.gradcheck(lambda known, *state: cell(None, state, cell.project_ahead(known)), (known, *state))

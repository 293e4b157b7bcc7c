"""The step of an LSTM and its derivative, for loops whose backward pass is written out.

Autograd would remember every small operation of such a loop, and fill a tensor of the whole batch with zeros for every
slice of it. Gates stand in the order cell input, input, forget, output (g, i, f, o): that of the derivatives with
respect to the cell, thrice, and to the hidden state.
"""

import torch
from torch import Tensor


def lstm_step_(gates: Tensor, previous_cells: Tensor | None, cells: Tensor, hidden: Tensor) -> None:
    """One step: turns sums of inputs (..., 4H) into gates, in place, and writes cells and hidden states (..., H)."""
    g, i, f, o = _split(gates)
    g.tanh_()
    gates[..., g.shape[-1] :].sigmoid_()
    torch.mul(i, g, out=cells)
    if previous_cells is not None:
        cells.addcmul_(f, previous_cells)
    torch.tanh(cells, out=hidden)
    hidden.mul_(o)


def derivatives(gates: Tensor, previous_cells: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
    """What the gradients of a step are multiplied by, for all steps of a loop at once.

    Args:
        gates: (..., 4H) activations.
        previous_cells, cells: (..., H).

    Returns (..., 4, H): the derivatives of g's, i's and f's inputs by the cell's gradient, of o's input by the hidden
    state's; (..., H): that of the cell by the hidden state.
    """
    g, i, f, o = _split(gates)
    squashed = cells.tanh()
    by_input = torch.empty_like(gates)
    to = _split(by_input)
    sigmoid_slope, tanh_slope = torch.ops.aten.sigmoid_backward.grad_input, torch.ops.aten.tanh_backward.grad_input
    tanh_slope(i, g, grad_input=to[0])  # i (1 - g²)
    for factor, gate, out in ((g, i, to[1]), (previous_cells, f, to[2]), (squashed, o, to[3])):
        sigmoid_slope(factor, gate, grad_input=out)
    return by_input.unflatten(-1, (4, -1)), torch.ops.aten.tanh_backward(o, squashed)


def backward_step_(d_hidden: Tensor, d_cells: Tensor, by_input: Tensor, through: Tensor, out: Tensor) -> None:
    """The gradient of one step: writes that of the sums of inputs (..., 4H), and adds to that of the cells (..., H).

    `d_cells` has what comes from later steps, and is complete afterwards; `by_input` and `through` are `derivatives`.
    """
    d_cells.addcmul_(d_hidden, through)
    out = out.unflatten(-1, (4, -1))
    torch.mul(by_input[..., :3, :], d_cells.unsqueeze(-2), out=out[..., :3, :])
    torch.mul(by_input[..., 3, :], d_hidden, out=out[..., 3, :])


def forget_gates(gates: Tensor) -> Tensor:
    """(..., H): f of (..., 4H) activations."""
    return _split(gates)[2]


def _split(gates: Tensor) -> tuple[Tensor, ...]:
    return gates.chunk(4, dim=-1)

"""What torch's cells of one kernel do on CUDA, written out for the CPU, where torch has none."""

import torch


def lstm(by_input, by_state, cell, input_bias=None, state_bias=None):
    """(state, cell, what the backward pass needs), from sums for the gates i, f, g, o."""
    take, keep, new, show = (by_input + by_state).chunk(4, dim=1)
    take, keep, new, show = take.sigmoid(), keep.sigmoid(), new.tanh(), show.sigmoid()
    after = keep * cell + take * new
    return show * after.tanh(), after, torch.cat((take, keep, new, show), dim=1)


def lstm_backward(to_state, to_cell, before, after, saved, has_bias):
    """(gradient of the sums, of the cell before, of biases)."""
    take, keep, new, show = saved.chunk(4, dim=1)
    to_state = torch.zeros_like(after) if to_state is None else to_state
    to_cell = 0 if to_cell is None else to_cell
    to_cell = to_cell + to_state * show * (1 - after.tanh() ** 2)
    gates = (
        to_cell * new * take * (1 - take),
        to_cell * before * keep * (1 - keep),
        to_cell * take * (1 - new**2),
        to_state * after.tanh() * show * (1 - show),
    )
    return torch.cat(gates, dim=1), to_cell * keep, gates[0].new_empty(0)


def gru(by_input, by_state, state, input_bias=None, state_bias=None):
    """(state, what the backward pass needs), from sums for r, z and n."""
    reset, update = (by_input + by_state).chunk(3, dim=1)[:2]
    reset, update = reset.sigmoid(), update.sigmoid()
    of_state = by_state.chunk(3, dim=1)[2]
    new = torch.tanh(by_input.chunk(3, dim=1)[2] + reset * of_state)
    return new + update * (state - new), torch.cat((reset, update, new, state, of_state), dim=1)


def gru_backward(gradient, saved, has_bias):
    """Gradients of the sums of input and state, of the state before, and of biases."""
    reset, update, new, state, of_state = saved.chunk(5, dim=1)
    to_new = gradient * (1 - update) * (1 - new**2)
    to_reset = to_new * of_state * reset * (1 - reset)
    to_update = gradient * (state - new) * update * (1 - update)
    by_input, by_state = (torch.cat((to_reset, to_update, last), dim=1) for last in (to_new, to_new * reset))
    return by_input, by_state, gradient * update, gradient.new_empty(0), gradient.new_empty(0)


def register() -> torch.library.Library:
    """Let torch find them while this exists."""
    library = torch.library.Library("aten", "IMPL")
    library.impl("_thnn_fused_lstm_cell", lstm, "CPU")
    library.impl("_thnn_fused_lstm_cell_backward_impl", lstm_backward, "CPU")
    library.impl("_thnn_fused_gru_cell", gru, "CPU")
    library.impl("_thnn_fused_gru_cell_backward", gru_backward, "CPU")
    return library

"""LSTM and GRU cells of a decoder that compute outside the time loop what does not depend on the step before.

On CUDA, all that follows the products is one kernel of torch's, as in `torch.nn.LSTMCell` and `GRUCell`.
"""

from abc import abstractmethod
from typing import Optional, Tuple

import torch
from torch import Tensor, nn


class RecurrentCell(nn.Module):
    """One layer of a recurrent decoder.

    Its input has two parts: one known for all steps beforehand (embeddings of target words), which `project_ahead`
    projects in one product, and one computed step by step (input feeding, the layer below).
    """

    gates: int  # rows of the input projection, in units of the hidden size
    input_has_bias = False  # besides that of the recurrent product

    def __init__(self, step_size: int, hidden_size: int, ahead_size: int = 0):
        """Args: sizes of the input computed at each step, of the state, and of the input known ahead."""
        super().__init__()
        self.hidden_size = hidden_size
        self.ahead = None
        if ahead_size:
            # the input needs only one bias: it is here if there is no other input at the step
            bias = not step_size and self.input_has_bias
            self.ahead = nn.Linear(ahead_size, self.gates * hidden_size, bias=bias)

    def project_ahead(self, inputs: Tensor) -> Tensor:
        """Project (…, ahead size) to (…, gates x hidden size), for the argument `ahead` of each step."""
        return self.ahead(inputs)

    @abstractmethod
    def forward(
        self, inputs: Optional[Tensor], state: Tuple[Tensor, ...], ahead: Optional[Tensor] = None
    ) -> Tuple[Tensor, ...]:
        """One step: the new state from `inputs` (B, step size), the state before, and a row of `project_ahead`."""


def fuses(tensor: Tensor) -> bool:
    """True if torch has fused kernels for a tensor."""
    return tensor.is_cuda


class LSTMCell(RecurrentCell):
    """`torch.nn.LSTMCell` with one bias instead of two that are summed; gates in the order i, f, o, g."""

    gates = 4

    def __init__(self, step_size, hidden_size, ahead_size=0):
        super().__init__(step_size, hidden_size, ahead_size)
        self.recurrent = nn.Linear(step_size + hidden_size, 4 * hidden_size)
        self.fused = None  # result of `for_kernel`, during the steps of a batch

    def for_kernel(self) -> Optional[Tuple[Tensor, ...]]:
        """Weights of the input and of the state, and the bias, in the order of torch's kernel, for training with it."""
        weight, bias = self.recurrent.weight, self.recurrent.bias
        if not fuses(weight) or not torch.is_grad_enabled():
            return None
        return *self._permuted(weight).tensor_split((-self.hidden_size,), dim=1), self._permuted(bias)

    def _permuted(self, rows: Tensor) -> Tensor:
        take, keep, show, new = rows.chunk(4)
        return torch.cat((take, keep, new, show))

    def project_ahead(self, inputs):
        if self.fused:
            return torch.nn.functional.linear(inputs, self._permuted(self.ahead.weight), self.fused[2])
        return torch.nn.functional.linear(inputs, self.ahead.weight, self.recurrent.bias)

    def forward(self, inputs, state, ahead=None):
        hidden, cell = state
        if self.fused:
            input_weight, state_weight, bias = self.fused
            bias = bias if ahead is None else ahead
            projected = bias if inputs is None else torch.addmm(bias, inputs, input_weight.t())
            return torch.ops.aten._thnn_fused_lstm_cell(projected, hidden @ state_weight.t(), cell)[:2]
        x = hidden if inputs is None else torch.cat((inputs, hidden), dim=1)
        # the bias is in `ahead`, if there is one: one operation instead of two at every step
        bias = self.recurrent.bias if ahead is None else ahead
        gates = torch.addmm(bias, x, self.recurrent.weight.t())
        # the three sigmoid gates are adjacent: one call for all of them
        take, keep, show = torch.sigmoid(gates[:, : 3 * self.hidden_size]).chunk(3, dim=1)
        cell = keep * cell + take * torch.tanh(gates[:, 3 * self.hidden_size :])
        return show * torch.tanh(cell), cell


class GRUCell(RecurrentCell):
    """`torch.nn.GRUCell`: the reset gate applies after the recurrent product; gates in the order r, z, n."""

    gates = 3
    input_has_bias = True

    def __init__(self, step_size, hidden_size, ahead_size=0):
        super().__init__(step_size, hidden_size, ahead_size)
        self.input = nn.Linear(step_size, 3 * hidden_size) if step_size else None
        self.recurrent = nn.Linear(hidden_size, 3 * hidden_size)

    def forward(self, inputs, state, ahead=None, masks: Tuple[Tensor, ...] = ()):
        """As in the base class; for `masks`, see `gru_step`."""
        if inputs is not None:
            ahead = self.input(inputs) if ahead is None else self.input(inputs) + ahead
        return (gru_step(ahead, state[0], self.recurrent.weight, self.recurrent.bias, masks),)


def gru_step(inputs: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor, masks: Tuple[Tensor, ...] = ()) -> Tensor:
    """The new state (B, H) of a GRU.

    Args:
        inputs: (B, 3H), projected.
        hidden: (B, H), the state before.
        weight, bias: (3H, H) and (3H,), of the recurrent product.
        masks: none, or two (B, H), of the state in the products for the gates and for the candidate.
    """
    if fuses(inputs) and not masks:
        return torch.ops.aten._thnn_fused_gru_cell(inputs, torch.nn.functional.linear(hidden, weight, bias), hidden)[0]
    split = 2 * hidden.shape[1]
    if masks:
        states = (hidden * mask for mask in masks)
        parts = zip(states, (weight[:split], weight[split:]), (bias[:split], bias[split:]), strict=True)
        new = torch.cat([torch.nn.functional.linear(*part) for part in parts], dim=1)
    else:
        new = torch.nn.functional.linear(hidden, weight, bias)
    reset, update = torch.sigmoid(inputs[:, :split] + new[:, :split]).chunk(2, dim=1)
    candidate = torch.tanh(inputs[:, split:] + reset * new[:, split:])
    return candidate + update * (hidden - candidate)

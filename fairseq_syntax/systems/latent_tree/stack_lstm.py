"""The states of a stack while trees are built, with structural attention where a nonterminal is opened.

Every entry of the stack has the state of an LSTM that has read it after all entries below it; so the state to which a
closed phrase returns is the one it was (StackLSTM, Dyer et al. 2015).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from .lstm_kernels import backward_step_, derivatives, forget_gates, lstm_step_
from .replay_plan import StackPlan


class Memory(NamedTuple):
    """What a decoder attends to: the I constituents of B source sentences, roots first."""

    keys: Tensor  # (B, I, H)
    values: Tensor  # (B, I, H)
    mask: Tensor  # (B, I) bool, True where there is a constituent

    def attend(self, rows: Tensor, queries: Tensor, scale: float) -> tuple[Tensor, Tensor]:
        """Attention of some nonterminals (eq. 1): a weighted sum of phrases by normalized dot products, times `scale`.

        Of states (n, H) of the stack in the sentences `rows` (n,): (n, I) weights, in float32 at least, and (n, H)
        sums.
        """
        keys = precise(self.keys.index_select(0, rows))
        scores = torch.bmm(keys, precise(queries).unsqueeze(2)).squeeze(2).mul_(scale)
        weights = scores.masked_fill_(~self.mask.index_select(0, rows), float("-inf")).softmax(1)
        values = self.values.index_select(0, rows)
        return weights, torch.bmm(weights.to(values.dtype).unsqueeze(1), values).squeeze(1)


class StackLSTM(nn.Module):
    """One layer of an LSTM over stacks, of entries and states (H); `scale` is that of the dot products of attention."""

    def __init__(self, size: int, scale: float = 1.0):
        super().__init__()
        self.size = size
        self.scale = scale
        bound = size**-0.5
        for name, *shape in (
            ("input_weight", 4 * size, size),
            ("bias", 4 * size),
            ("recurrent_weight", 4 * size, size),
        ):
            self.register_parameter(name, nn.Parameter(torch.empty(*shape).uniform_(-bound, bound)))

    def project(self, entries: Tensor) -> Tensor:
        """(n, 4H): what n entries, (n, H), add to the gates."""
        return torch.addmm(self.bias, entries, self.input_weight.t())

    @staticmethod
    def step(gates: Tensor, hidden: Tensor, cells: Tensor, recurrent: Tensor) -> tuple[Tensor, Tensor]:
        """(n, H) hidden states and cells of entries on others, without gradients.

        `gates` (n, 4H) of `project` are overwritten; `recurrent` are (H, 4H) weights.
        """
        gates.addmm_(hidden, recurrent)
        new_cells, new_hidden = torch.empty_like(cells), torch.empty_like(hidden)
        lstm_step_(gates, cells, new_cells, new_hidden)
        return new_hidden, new_cells

    def forward(self, entries: Tensor, plan: "DeviceStackPlan", memory: Memory | None) -> tuple[Tensor, Tensor | None]:
        """All states of a batch.

        Args:
            entries: (E, H) all that may be pushed; the plan's codes are rows of it.
            plan: what is pushed on what.
            memory: what new nonterminals attend to, which then are the sum of their entry and what attention gives.

        Returns (N, H) states in the order of the plan, and (B, J, I) weights of attention by sentence, nonterminal
        (root excluded) and source constituent, in float32 at least; None without a memory.
        """
        gates = nn.functional.embedding(plan.code, self.project(entries))
        if memory is None:
            return _Stack.apply(gates, self.recurrent_weight, plan), None
        return _AttentiveStack.apply(
            gates, self.recurrent_weight, self.input_weight, memory.keys, memory.values, memory.mask, self.scale, plan
        )


@dataclass(frozen=True)
class DeviceStackPlan:
    """The plan of the stack with its indices on the device of the model."""

    plan: StackPlan
    below: Tensor  # (N,)
    code: Tensor  # (N,)
    attending: tuple[Tensor, ...]
    row: tuple[Tensor, ...]
    column: tuple[Tensor, ...]

    @classmethod
    def of(cls, plan: StackPlan, device: torch.device) -> "DeviceStackPlan":
        """The plan on a device."""
        numbers = [len(level) for level in plan.attending]
        # one copy for each kind, not one for each place of the stack
        levels = np.stack([np.concatenate(parts) for parts in (plan.attending, plan.row, plan.column)])
        below, code, levels = (torch.from_numpy(array).to(device) for array in (plan.below, plan.code, levels))
        return cls(plan, below, code, *(part.split(numbers) for part in levels))

    def levels(self):
        """(slice of states, its number) of each place of the stack, from the bottom."""
        start = 0
        for level, size in enumerate(self.plan.sizes):
            yield slice(start, start + size), level
            start += size


class _Stack(Function):
    """All states of stacks, place by place; without attention."""

    @staticmethod
    def forward(ctx, gates, recurrent, plan):
        gates, hidden, cells = _run(gates, recurrent, plan)
        ctx.save_for_backward(gates, hidden, cells, recurrent)
        ctx.plan = plan
        return hidden

    @staticmethod
    @once_differentiable
    def backward(ctx, d_hidden):
        gates, hidden, cells, recurrent = ctx.saved_tensors
        d_gates = _run_back(gates, hidden, cells, recurrent, ctx.plan, d_hidden)
        return d_gates, _recurrent_gradient(d_gates, hidden, ctx.plan), None


class _AttentiveStack(Function):
    """All states of stacks, place by place; nonterminals attend with the state below them."""

    @staticmethod
    def forward(ctx, gates, recurrent, input_weight, keys, values, mask, scale, plan):
        memory = Memory(keys, values, mask)
        # what a source constituent gets in all, and its square, are too much for half precision
        attention = precise(keys.new_zeros(len(keys), plan.plan.nonterminals, keys.shape[1]))
        inputs = keys.new_zeros(len(keys), plan.plan.nonterminals, keys.shape[2])

        def attend(level, states):
            rows, columns = plan.row[level], plan.column[level]
            weights, sums = memory.attend(rows, states, scale)
            attention[rows, columns] = weights
            inputs[rows, columns] = sums
            return sums @ input_weight.t()

        gates, hidden, cells = _run(gates, recurrent, plan, attend)
        ctx.save_for_backward(gates, hidden, cells, recurrent, input_weight, keys, values, attention, inputs)
        ctx.plan, ctx.scale = plan, scale
        return hidden, attention

    @staticmethod
    @once_differentiable
    def backward(ctx, d_hidden, d_attention):
        gates, hidden, cells, recurrent, input_weight, keys, values, attention, inputs = ctx.saved_tensors
        plan = ctx.plan
        d_inputs = torch.zeros_like(inputs)
        d_scores = torch.zeros_like(attention)
        d_new = torch.zeros_like(inputs).repeat(1, 1, 4)  # of the gates of nonterminals
        queries = torch.zeros_like(inputs)

        def attend_back(level, d_gates):
            rows, columns = plan.row[level], plan.column[level]
            d_sums = d_gates @ input_weight
            weights = attention[rows, columns]
            d_weights = torch.bmm(precise(values.index_select(0, rows)), precise(d_sums).unsqueeze(2)).squeeze(2)
            d_weights += d_attention[rows, columns]
            d_scored = (d_weights - (d_weights * weights).sum(1, keepdim=True)).mul_(weights).mul_(ctx.scale)
            d_inputs[rows, columns] = d_sums
            d_scores[rows, columns] = d_scored
            d_new[rows, columns] = d_gates
            queries[rows, columns] = hidden.index_select(0, plan.below.index_select(0, plan.attending[level]))
            return torch.bmm(d_scored.to(keys.dtype).unsqueeze(1), keys.index_select(0, rows)).squeeze(1)

        d_gates = _run_back(gates, hidden, cells, recurrent, plan, d_hidden, attend_back)
        return (
            d_gates,
            _recurrent_gradient(d_gates, hidden, plan),
            d_new.flatten(0, 1).t() @ inputs.flatten(0, 1),
            torch.bmm(d_scores.to(keys.dtype).transpose(1, 2), queries),
            torch.bmm(attention.to(values.dtype).transpose(1, 2), d_inputs),
            None,
            None,
            None,
        )


def _run(gates, recurrent, plan, attend=None):
    """Activated gates (N, 4H), hidden states and cells (N, H); `attend` gives what attention adds to some gates."""
    gates = gates.clone()
    hidden, cells = (gates.new_empty(len(gates), recurrent.shape[1]) for _ in range(2))
    recurrent_t = recurrent.t().contiguous()  # products with few rows are faster
    for here, level in plan.levels():
        if not level:
            lstm_step_(gates[here], None, cells[here], hidden[here])
            continue
        below = plan.below[here]
        gates[here].addmm_(hidden.index_select(0, below), recurrent_t)
        attending = plan.attending[level]
        if attend is not None and len(attending):
            gates[attending] += attend(level, hidden.index_select(0, plan.below.index_select(0, attending)))
        lstm_step_(gates[here], cells.index_select(0, below), cells[here], hidden[here])
    return gates, hidden, cells


def _run_back(gates, hidden, cells, recurrent, plan, d_hidden, attend_back=None):
    """(N, 4H) gradient of the gates' sums."""
    d_hidden = d_hidden.clone()
    d_cells = torch.zeros_like(d_hidden)
    d_gates = torch.empty_like(gates)
    roots = slice(0, plan.plan.sizes[0])
    below_cells = cells.index_select(0, plan.below)
    below_cells[roots] = 0
    factors, through = derivatives(gates, below_cells, cells)
    forget = forget_gates(gates)
    for here, level in reversed(list(plan.levels())):
        backward_step_(d_hidden[here], d_cells[here], factors[here], through[here], d_gates[here])
        if not level:
            break
        below = plan.below[here]
        d_cells.index_add_(0, below, d_cells[here] * forget[here])
        d_hidden.index_add_(0, below, d_gates[here] @ recurrent)
        attending = plan.attending[level]
        if attend_back is not None and len(attending):
            d_queries = attend_back(level, d_gates.index_select(0, attending))
            d_hidden.index_add_(0, plan.below.index_select(0, attending), d_queries)
    return d_gates


def _recurrent_gradient(d_gates, hidden, plan):
    roots = plan.plan.sizes[0]
    return d_gates[roots:].t() @ hidden.index_select(0, plan.below[roots:])


def precise(values: Tensor) -> Tensor:
    """In float32 at least, where half precision would not do."""
    return values.to(torch.promote_types(values.dtype, torch.float32))

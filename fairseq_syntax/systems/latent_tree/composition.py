"""Phrases of trees, composed of their children by LSTMs in both directions (Dyer et al. 2016; unlabelled here)."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from .lstm_kernels import backward_step_, derivatives, forget_gates, lstm_step_
from .replay_plan import CompositionPlan


class Composition(nn.Module):
    """z = tanh(W [fwd; bwd] + b), where fwd and bwd are the last states of LSTMs over the children, in order and back.

    Args:
        size: H, of symbols, phrases and states.
    """

    def __init__(self, size: int):
        super().__init__()
        self.size = size
        bound = size**-0.5
        for name, *shape in (
            ("input_weight", 2, 4 * size, size),
            ("input_bias", 2, 4 * size),
            ("recurrent_weight", 2, 4 * size, size),
            ("output_weight", size, 2 * size),
            ("output_bias", size),
        ):
            self.register_parameter(name, nn.Parameter(torch.empty(*shape).uniform_(-bound, bound)))

    def project(self, inputs: Tensor) -> Tensor:
        """(2, n, 4H): what n symbols or phrases, (n, H), add to the gates of either direction."""
        return torch.baddbmm(self.input_bias[:, None], inputs.expand(2, -1, -1), self.input_weight.transpose(1, 2))

    def forward(self, symbols: Tensor, plan: "DevicePlan") -> Tensor:
        """(C, H) phrases of a batch, in the order of the plan, composed of embeddings (V, H) of all symbols."""
        return _Compose.apply(
            self.project(symbols),
            self.input_weight,
            self.input_bias,
            self.recurrent_weight,
            self.output_weight,
            self.output_bias,
            plan,
        )

    def read(
        self, gates: Tensor, sizes: list[int], last: Tensor, recurrent: Tensor, before: Tensor | None = None
    ) -> Tensor:
        """(2, 2, n, H) hidden states and cells of both directions after the last children of n phrases; no gradients.

        Args:
            gates: (2, M, 4H) inputs of their children, packed; overwritten.
            sizes: how many phrases have a child at each step.
            last: (n,) where the last child of each phrase is packed.
            recurrent: (2, H, 4H) weights.
            before: the same of the children before these, if there are any.
        """
        states = gates.new_empty(2, *gates.shape[:2], self.size)
        scan_(gates, states[1], states[0], sizes, recurrent, before)
        return states.index_select(2, last)

    def combine(self, ends: Tensor) -> Tensor:
        """(n, H) phrases from the last hidden states of both directions, (2, n, H)."""
        return torch.addmm(self.output_bias, ends.transpose(0, 1).flatten(1), self.output_weight.t()).tanh()


@dataclass(frozen=True)
class DevicePlan:
    """The plan of compositions with its indices on the device of the model."""

    plan: CompositionPlan
    codes: Tensor  # (2, M)
    previous: Tensor  # (M,)
    last: Tensor  # (C,)
    used: Tensor  # (2, C)

    @classmethod
    def of(cls, plan: CompositionPlan, device: torch.device) -> "DevicePlan":
        """The plan on a device."""

        codes = np.stack((plan.forward, plan.backward))
        used = np.stack((plan.used_forward, plan.used_backward))
        return cls(plan, *(torch.from_numpy(array).to(device) for array in (codes, plan.previous, plan.last, used)))


def scan_(
    gates: Tensor, cells: Tensor, hidden: Tensor, sizes: list[int], recurrent: Tensor, first: Tensor | None = None
) -> None:
    """Run LSTMs in both directions over the packed children of one height.

    Args:
        gates: (2, M, 4H) inputs; the gates' activations afterwards.
        cells, hidden: (2, M, H), written.
        sizes: how many phrases have a child at each step; M in all.
        recurrent: (2, H, 4H) weights.
        first: hidden states and cells before, (2, 2, N, H); zeros when None.
    """
    start = 0
    previous_hidden, previous_cells = (None, None) if first is None else first
    for size in sizes:
        now = slice(start, start + size)
        here, new_cells, new_hidden = gates[:, now], cells[:, now], hidden[:, now]
        if previous_hidden is not None:
            here.baddbmm_(previous_hidden[:, :size], recurrent)
            previous_cells = previous_cells[:, :size]
        lstm_step_(here, previous_cells, new_cells, new_hidden)
        previous_hidden, previous_cells, start = new_hidden, new_cells, start + size


class _Compose(Function):
    """All compositions of a batch, height by height; `symbols` are projected already, (2, V, 4H)."""

    @staticmethod
    def forward(ctx, symbols, input_weight, input_bias, recurrent, output_weight, output_bias, plan):
        count, vocabulary, size = len(plan.last), symbols.shape[1], output_bias.shape[0]
        inputs = symbols.new_empty(2, vocabulary + count, 4 * size)
        inputs[:, :vocabulary] = symbols
        children = plan.codes.shape[1]
        gates = symbols.new_empty(2, children, 4 * size)
        cells, hidden = (symbols.new_zeros(2, children + 1, size) for _ in range(2))
        ends = symbols.new_empty(count, 2 * size)
        phrases = symbols.new_empty(count, size)
        # products with few rows are faster
        recurrent_t, input_t = (weight.transpose(1, 2).contiguous() for weight in (recurrent, input_weight))
        last_height = len(plan.plan.phrases) - 1
        done, packed = 0, 0
        for height, (number, steps) in enumerate(zip(plan.plan.phrases, plan.plan.steps, strict=True)):
            here = slice(packed, packed + sum(steps))
            for direction in range(2):
                torch.index_select(inputs[direction], 0, plan.codes[direction, here], out=gates[direction, here])
            scan_(gates[:, here], cells[:, here], hidden[:, here], steps, recurrent_t)
            new = slice(done, done + number)
            ends[new] = hidden.index_select(1, plan.last[new]).transpose(0, 1).flatten(1)
            torch.addmm(output_bias, ends[new], output_weight.t(), out=phrases[new]).tanh_()
            if height < last_height:
                torch.baddbmm(
                    input_bias[:, None],
                    phrases[new].expand(2, -1, -1),
                    input_t,
                    out=inputs[:, vocabulary + done : vocabulary + done + number],
                )
            done, packed = done + number, here.stop
        ctx.save_for_backward(gates, cells, hidden, ends, phrases, input_weight, recurrent, output_weight)
        ctx.plan, ctx.vocabulary = plan, vocabulary
        return phrases

    @staticmethod
    @once_differentiable
    def backward(ctx, d_phrases):
        gates, cells, hidden, ends, phrases, input_weight, recurrent, output_weight = ctx.saved_tensors
        plan, sizes = ctx.plan, ctx.plan.plan
        children, size = plan.codes.shape[1], phrases.shape[1]
        factors, through = derivatives(gates, cells.index_select(1, plan.previous), cells[:, :children])
        forget = forget_gates(gates)
        d_gates = gates.new_zeros(2, children + 1, 4 * size)
        d_sums = torch.empty_like(phrases)  # of tanh's inputs
        d_inputs = gates.new_empty(2, len(phrases), 4 * size)  # of the phrases as children
        slopes = 1 - phrases * phrases
        done, packed = len(phrases), children
        for number, steps in zip(reversed(sizes.phrases), reversed(sizes.steps), strict=True):
            new = slice(done - number, done)
            for direction in range(2):
                torch.index_select(d_gates[direction], 0, plan.used[direction, new], out=d_inputs[direction, new])
            d_phrase = torch.bmm(d_inputs[:, new], input_weight).sum(0).add_(d_phrases[new])
            torch.mul(d_phrase, slopes[new], out=d_sums[new])
            d_hidden = (d_sums[new] @ output_weight).unflatten(1, (2, -1)).transpose(0, 1).contiguous()
            d_cells = torch.zeros_like(d_hidden)
            stop = packed
            for step in range(len(steps) - 1, -1, -1):
                rows, now = slice(0, steps[step]), slice(stop - steps[step], stop)
                backward_step_(d_hidden[:, rows], d_cells[:, rows], factors[:, now], through[:, now], d_gates[:, now])
                if step:
                    d_cells[:, rows].mul_(forget[:, now])
                    torch.bmm(d_gates[:, now], recurrent, out=d_hidden[:, rows])
                stop = now.start
            done, packed = new.start, stop
        d_gates = d_gates[:, :children]
        leaf = plan.codes.masked_fill(plan.codes >= ctx.vocabulary, ctx.vocabulary)
        d_symbols = torch.stack(
            [
                torch.ops.aten.embedding_dense_backward(
                    d_gates[direction], leaf[direction], ctx.vocabulary + 1, ctx.vocabulary, False
                )[:-1]
                for direction in range(2)
            ]
        )
        d_inputs = d_inputs.transpose(1, 2)
        return (
            d_symbols,
            d_inputs @ phrases,
            d_inputs.sum(2),
            torch.bmm(d_gates.transpose(1, 2), hidden.index_select(1, plan.previous)),
            d_sums.t() @ ends,
            d_sums.sum(0),
            None,
        )

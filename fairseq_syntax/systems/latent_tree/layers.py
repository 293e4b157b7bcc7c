"""The networks of a recurrent neural network grammar, whose trees have been grown, with gradients.

While trees grow (`growing`), states and phrases are computed action by action, without gradients. From these, one
product gives the gates of all actions of a batch, which the gradients need. Only the backward pass goes step by step,
in few steps: a phrase depends on its children alone, so all phrases of one height are computed together, in all
sentences; a state depends on the one below it, so all states at one place of the stack are. The number of steps is the
depth of the trees, not their length.

The backward passes are written by hand: autograd would record every small operation of these loops, and fill a tensor
of the whole batch with zeros for every slice of it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from .transitions import NONE, Action, Constituents


class Grown(NamedTuple):
    """Trees of B sentences of at most T actions, built without gradients.

    All P phrases have M children in all, among which there are zeros that are none.
    """

    actions: np.ndarray  # (B, T), padded with NOP
    symbols: np.ndarray  # (B, T) what each GEN has generated; arbitrary elsewhere
    state: np.ndarray  # (B, T) number of the state before each action; arbitrary for NOP
    states: Tensor  # (2, N, H) hidden states and cells of the stack
    row: np.ndarray  # (P,) sentence of each phrase
    opened: np.ndarray  # (P,) step of its NT; `NONE` for roots
    parent: np.ndarray  # (M,) phrase of each child; `NONE` for zeros
    step: np.ndarray  # (M,) which of its children it is, from the first or last on
    phrases: Tensor  # (P, H)
    chains: tuple[Tensor, ...]  # (2, 2, M, H) in all, hidden states and cells after each child, from either end on


# --- plans: integers only, and no loop over sentences or actions -----------------------------------------------------


@dataclass(frozen=True)
class CompositionPlan:
    """Order of composing C phrases: by increasing height and, within a height, by decreasing number of children.

    All M children are packed by height, by step (first children, then second ones, …) and by phrase, as in a
    PackedSequence: at each step, the phrases that still have a child come first. Tensors are on the model's device.
    """

    slot: np.ndarray  # (constituents,) place of each constituent in this order; `NONE` for those that are not composed
    phrases: list[int]  # number of phrases of each height, lowest first
    steps: list[list[int]]  # for each height, the number of phrases that have a child at each step
    phrase: Tensor  # (C,) number of each phrase among those that have been grown
    child: Tensor  # (M + 1,) number of each child among those of grown phrases; at the end that of a zero
    # (2, M) codes of the children from the first on, and from the last on: a symbol, or the number of symbols plus the
    # slot of a phrase
    codes: Tensor
    previous: Tensor  # (M,) where the child before each one is packed; M for first ones
    last: Tensor  # (C,) where the last child of each phrase is packed; M for a phrase without children
    used: Tensor  # (2, C) where each phrase is packed as a child, in both orders; M for others


@dataclass(frozen=True)
class StackPlan:
    """Order of computing the N states of the stack: by their place on the stack.

    There is one state for each action: the one on which it was decided. The first of a sentence is that of its root.
    """

    state: np.ndarray  # (B, T) number of the state before each action; `NONE` for NOP
    grown: Tensor  # (N,) number of each state among those that have been grown
    sizes: list[int]  # number of states at each place of the stack, the roots' first
    nonterminals: int  # the most that a sentence has
    below: Tensor  # (N,) number of the state below; 0 for roots, which have none
    # (N,) what is pushed: a symbol, the number of symbols for a new nonterminal, that number plus 1 plus the slot of a
    # phrase, or beyond all phrases the entry of a root
    code: Tensor
    # (n,) states that new nonterminals (without roots) have pushed, their sentences, and the number of each nonterminal
    # within its sentence, in the order of opening; and how many there are at each place
    attending: Tensor
    row: Tensor
    column: Tensor
    numbers: list[int]

    def levels(self):
        """(slice of states, its number) of each place of the stack, from the bottom."""
        start = 0
        for level, size in enumerate(self.sizes):
            yield slice(start, start + size), level
            start += size


def composition_plan(
    trees: Constituents, symbols: np.ndarray, vocabulary: int, complete: bool, grown: Grown, device: torch.device
) -> CompositionPlan:
    """Plan the composition of phrases of B sentences; `symbols` (B, T) are generated by the GENs.

    `complete`: compose all constituents, and not only those that a REDUCE has closed: no state of the stack sees the
    others.
    """
    actions = trees.actions
    composed = np.full(len(trees), True) if complete else trees.closed != NONE
    children = trees.terminals + trees.nonterminals
    order = np.lexsort((-children, trees.height))
    order = order[composed[order]]
    slot = np.full(len(trees), NONE)
    slot[order] = np.arange(len(order))
    heights = np.bincount(trees.height[order], minlength=1)[1:]

    # all children, with the constituent they are in and the time when they joined it
    ends = trees.lengths[:, None] + 1 == (actions == Action.GEN).cumsum(1)
    row, time = ((actions == Action.GEN) & ~ends).nonzero()
    inner = (trees.parent != NONE).nonzero()[0]
    parent = np.concatenate((trees.innermost[row, time], trees.parent[inner]))
    code = np.concatenate((symbols[row, time], vocabulary + slot[inner]))
    # a constituent has at most one child that joins when the sentence ends
    time = np.concatenate((time, np.where(trees.closed[inner] == NONE, actions.shape[1], trees.closed[inner])))
    child = np.concatenate((np.full(len(row), NONE), slot[inner]))
    kept = composed[parent]
    parent, code, time, child = slot[parent[kept]], code[kept], time[kept], child[kept]

    in_time = np.lexsort((time, parent))
    parent, code, child = parent[in_time], code[in_time], child[in_time]
    number = children[order]
    first = number.cumsum() - number
    step = np.arange(len(parent)) - first[parent]
    height = trees.height[order][parent]
    reverse = (number[parent] - 1 - step).astype(int)
    packed, packed_reverse = (np.lexsort((parent, steps, height)) for steps in (step, reverse))
    place = np.empty(len(parent), dtype=int)
    place[packed] = np.arange(len(parent))
    last = np.full(len(order), len(parent))
    last[parent[reverse == 0]] = place[reverse == 0]
    used = np.full((2, len(order)), len(parent))
    for direction, packing in enumerate((packed, packed_reverse)):
        places = (child[packing] != NONE).nonzero()[0]
        used[direction, child[packing][places]] = places
    previous = np.where(step > 0, np.roll(place, 1), len(parent))[packed]
    phrase = np.lexsort((grown.opened, grown.row))[composed.cumsum()[order] - 1]
    sorted_children = np.lexsort((grown.step, grown.parent))  # zeros first
    sizes = np.bincount(grown.parent + 1, minlength=len(phrase) + 1)
    child = sorted_children[sizes.cumsum()[phrase[parent]] + step][packed]
    child = np.append(child, sorted_children[0])
    arrays = phrase, child, np.stack((code[packed], code[packed_reverse])), previous, last, used
    return CompositionPlan(
        slot,
        heights.tolist(),
        [np.bincount(step[height == level + 1]).tolist() for level in range(len(heights))],
        *(torch.from_numpy(array).to(device) for array in arrays),
    )


def stack_plan(
    trees: Constituents, symbols: np.ndarray, vocabulary: int, slot: np.ndarray, roots: int, grown: Grown, device
) -> StackPlan:
    """Plan the states of the stack; as `composition_plan`, with the `slot` of its plan.

    `roots` is the number of entries for roots: one for each sentence, or one for all.
    """
    actions = trees.actions
    rows, steps = actions.shape
    row, step = (actions != Action.NOP).nonzero()
    before = np.where(step == 0, Action.NT, actions[row, step - 1])  # the action that has pushed the state
    closed = trees.closes[row, step - 1] * (step > 0)
    is_phrase = before == Action.REDUCE
    # A REDUCE pushes to the place of its nonterminal, which was pushed on the state before the NT.
    below = np.where(is_phrase, trees.opened[closed], step - 1)
    children = trees.terminals + trees.nonterminals
    place = np.where(is_phrase, -children[closed], 1)
    height = np.zeros((rows, steps), dtype=int)
    height[row, step] = place
    place = (height.cumsum(1) - 1)[row, step]

    order = np.lexsort((step, row, place))
    state = np.full((rows, steps), NONE)
    state[row[order], step[order]] = np.arange(len(order))
    code = np.where(is_phrase, vocabulary + 1 + slot[closed], vocabulary)
    code = np.where((before == Action.GEN) & (step > 0), symbols[row, step - 1], code)[order]
    sizes = np.bincount(place)
    code[: sizes[0]] = vocabulary + 1 + (slot != NONE).sum() + np.arange(sizes[0]) % roots
    below = np.where(step > 0, state[row, below], 0)[order]

    opening = ((before == Action.NT) & (step > 0))[order].nonzero()[0]
    column = (actions == Action.NT).cumsum(1)[row[order], step[order] - 1] - 1
    numbers = np.diff(np.searchsorted(opening, sizes.cumsum()), prepend=0).tolist()
    arrays = (below, code, opening, row[order][opening], column[opening], grown.state[row, step][order])
    below, code, *attending, in_turn = to_device(device, *arrays)
    most = int((actions == Action.NT).sum(1).max(initial=0))
    return StackPlan(state, in_turn, sizes.tolist(), most, below, code, *attending, numbers)


def to_device(device: torch.device, *arrays: np.ndarray) -> tuple[Tensor, ...]:
    """Send integers of the host to the device in one copy."""
    packed = torch.from_numpy(np.concatenate(arrays)).to(device, non_blocking=True)
    return packed.split([len(array) for array in arrays])


# --- a step of an LSTM ---------------------------------------------------------------------------------------------
#
# Gates stand in the order cell input, input, forget, output (g, i, f, o).


def activate_(gates: Tensor) -> None:
    """Turn sums of inputs (..., 4H) into gates, in place."""
    size = gates.shape[-1] // 4
    gates[..., :size].tanh_()
    gates[..., size:].sigmoid_()


def lstm_step_(gates: Tensor, previous_cells: Tensor | None, cells: Tensor, hidden: Tensor) -> None:
    """Turn sums of inputs (..., 4H) into gates, in place, and write cells and hidden states (..., H)."""
    activate_(gates)
    g, i, f, o = _split(gates)
    torch.mul(i, g, out=cells)
    if previous_cells is not None:
        cells.addcmul_(f, previous_cells)
    torch.tanh(cells, out=hidden)
    hidden.mul_(o)


def derivatives(gates: Tensor, previous_cells: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
    """The factors of the gradients of a step, for all steps of a loop at once, from (..., 4H) gates and (..., H) cells.

    Returns (..., 4, H): d cell / d input of g, i and f, and d hidden / d input of o; and (..., H): d hidden / d cell.
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
    """Write the gradient of the sums of inputs of a step, (..., 4H), to `out`.

    `d_cells` (..., H) comes with the gradient from later steps and is complete afterwards; `by_input` and `through` are
    of `derivatives`.
    """
    d_cells.addcmul_(d_hidden, through)
    out = out.unflatten(-1, (4, -1))
    torch.mul(by_input[..., :3, :], d_cells.unsqueeze(-2), out=out[..., :3, :])
    torch.mul(by_input[..., 3, :], d_hidden, out=out[..., 3, :])


def _split(gates: Tensor) -> tuple[Tensor, ...]:
    return gates.chunk(4, dim=-1)


# --- composition -----------------------------------------------------------------------------------------------------


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
        """Parts (2, n, 4H) of the gates of either direction from n symbols or phrases (n, H)."""
        return torch.baddbmm(self.input_bias[:, None], inputs.expand(2, -1, -1), self.input_weight.transpose(1, 2))

    def forward(self, symbols: Tensor, plan: CompositionPlan, grown: Grown) -> Tensor:
        """(C, H) phrases of a batch, in the order of the plan, composed of embeddings (V, H) of all symbols."""
        phrases = grown.phrases.index_select(0, plan.phrase)
        if not torch.is_grad_enabled():
            return phrases
        weights = (self.input_weight, self.input_bias, self.recurrent_weight, self.output_weight, self.output_bias)
        return _Compose.apply(self.project(symbols), *weights, plan, phrases, grown.chains)

    def compose(self, gates: Tensor, sizes: list[int], last: Tensor, recurrent: Tensor) -> tuple[Tensor, Tensor]:
        """(n, H) phrases that are independent of each other, without gradients.

        Args:
            gates: (2, M, 4H) inputs of their children, packed; overwritten.
            sizes: number of phrases that have a child at each step.
            last: (n,) where the last child of each phrase is packed; M for a phrase without children.
            recurrent: (2, H, 4H) weights.

        Returns them, and (2, 2, M + 1, H) hidden states and cells after each child, in either direction; 0 at the end.
        """
        chains = gates.new_empty(2, 2, gates.shape[1] + 1, self.size)
        chains[:, :, -1] = 0
        hidden, cells = chains
        scan_(gates, cells, hidden, sizes, recurrent)
        ends = hidden.index_select(1, last).transpose(0, 1).flatten(1)
        return torch.addmm(self.output_bias, ends, self.output_weight.t()).tanh(), chains


def scan_(gates: Tensor, cells: Tensor, hidden: Tensor, sizes: list[int], recurrent: Tensor) -> None:
    """Run LSTMs in both directions over the packed children of one height.

    Args:
        gates: (2, M, 4H) inputs; the gates' activations afterwards.
        cells, hidden: (2, M, H), written.
        sizes: number of phrases that have a child at each step; M in all.
        recurrent: (2, H, 4H) weights.
    """
    start = 0
    previous_hidden = previous_cells = None
    for size in sizes:
        now = slice(start, start + size)
        here, new_cells, new_hidden = gates[:, now], cells[:, now], hidden[:, now]
        if previous_hidden is not None:
            here.baddbmm_(previous_hidden[:, :size], recurrent)
            previous_cells = previous_cells[:, :size]
        lstm_step_(here, previous_cells, new_cells, new_hidden)
        previous_hidden, previous_cells, start = new_hidden, new_cells, start + size


class _Compose(Function):
    """All compositions of a batch; `symbols` are projected already, (2, V, 4H)."""

    @staticmethod
    def forward(ctx, symbols, input_weight, input_bias, recurrent, output_weight, output_bias, plan, phrases, chains):
        hidden, cells = torch.cat(chains, 2).index_select(2, plan.child)
        as_children = torch.baddbmm(input_bias[:, None], phrases.expand(2, -1, -1), input_weight.transpose(1, 2))
        inputs = torch.cat((symbols, as_children), 1)
        gates = torch.stack([of.index_select(0, codes) for of, codes in zip(inputs, plan.codes, strict=True)])
        gates.baddbmm_(hidden.index_select(1, plan.previous), recurrent.transpose(1, 2))
        activate_(gates)
        ends = hidden.index_select(1, plan.last).transpose(0, 1).flatten(1)
        ctx.save_for_backward(gates, cells, hidden, ends, phrases, input_weight, recurrent, output_weight)
        ctx.plan, ctx.vocabulary = plan, symbols.shape[1]
        return phrases.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, d_phrases):
        gates, cells, hidden, ends, phrases, input_weight, recurrent, output_weight = ctx.saved_tensors
        plan = ctx.plan
        children, size = plan.codes.shape[1], phrases.shape[1]
        factors, through = derivatives(gates, cells.index_select(1, plan.previous), cells[:, :children])
        forget = _split(gates)[2]
        d_gates = gates.new_zeros(2, children + 1, 4 * size)
        d_sums = torch.empty_like(phrases)  # of tanh's inputs
        d_inputs = gates.new_empty(2, len(phrases), 4 * size)  # of the phrases as children
        slopes = 1 - phrases * phrases
        done, packed = len(phrases), children
        for number, steps in zip(reversed(plan.phrases), reversed(plan.steps), strict=True):
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
            *[None] * 3,
        )


# --- stack -----------------------------------------------------------------------------------------------------------


class TreeMemory(NamedTuple):
    """The I constituents of B source sentences, roots first, as a decoder attends to them."""

    keys: Tensor  # (B, I, H)
    values: Tensor  # (B, I, H)
    mask: Tensor  # (B, I) bool, True where there is a constituent

    def attend(self, rows: Tensor, queries: Tensor) -> Tensor:
        """(n, H) sums of values under the attention of n nonterminals of the sentences `rows` (eq. 1).

        Weights are the softmax of dot products of keys and the states (n, H) of the stack below, in float32 at least.
        """
        keys = precise(self.keys.index_select(0, rows))
        scores = torch.bmm(keys, precise(queries).unsqueeze(2)).squeeze(2)
        weights = scores.masked_fill_(~self.mask.index_select(0, rows), float("-inf")).softmax(1)
        values = self.values.index_select(0, rows)
        return torch.bmm(weights.to(values.dtype).unsqueeze(1), values).squeeze(1)


class StackLSTM(nn.Module):
    """One layer of an LSTM over stacks, of entries and states (H)."""

    def __init__(self, size: int):
        super().__init__()
        bound = size**-0.5
        for name, *shape in (
            ("input_weight", 4 * size, size),
            ("bias", 4 * size),
            ("recurrent_weight", 4 * size, size),
        ):
            self.register_parameter(name, nn.Parameter(torch.empty(*shape).uniform_(-bound, bound)))

    def project(self, entries: Tensor) -> Tensor:
        """Parts (n, 4H) of the gates from n entries (n, H)."""
        return torch.addmm(self.bias, entries, self.input_weight.t())

    def forward(
        self, entries: Tensor, plan: StackPlan, memory: TreeMemory | None, grown: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """All states of a batch.

        Args:
            entries: (E, H) all that may be pushed; the plan's codes are rows of it.
            plan: the order of states.
            memory: attended to by new nonterminals, which add the result to their entry.
            grown: (2, N, H) hidden states and cells in the order in which they have been grown.

        Returns (N, H) states in the order of the plan, and (B, J, I) weights of attention by sentence, nonterminal
        (root excluded) and source constituent, in float32 at least; None without a memory.
        """
        states = grown.index_select(1, plan.grown)
        if not torch.is_grad_enabled():
            return states[0], None if memory is None else _attention(states[0], plan, *memory)[0]
        gates = nn.functional.embedding(plan.code, self.project(entries))
        memory = (None, None, None) if memory is None else memory
        return _Stack.apply(gates, self.recurrent_weight, self.input_weight, *memory, plan, states)


def _attention(hidden: Tensor, plan: StackPlan, keys: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """(B, J, I) attention of nonterminals from the states below them, 0 where there is none, and sums (B, J, H)."""
    # the sum over a source constituent, and its square, exceed half precision
    place = plan.row, plan.column
    queries = keys.new_zeros(len(keys), plan.nonterminals, keys.shape[2])
    queries[place] = hidden.index_select(0, plan.below.index_select(0, plan.attending))
    scores = torch.bmm(precise(queries), precise(keys).transpose(1, 2))
    weights = scores.masked_fill_(~mask[:, None], float("-inf")).softmax(2)
    attention = torch.zeros_like(weights)
    attention[place] = weights[place]
    return attention, torch.bmm(attention.to(values.dtype), values)


class _Stack(Function):
    """All states of stacks; with keys, new nonterminals attend with the state below them."""

    @staticmethod
    def forward(ctx, gates, recurrent, input_weight, keys, values, mask, plan, states):
        ctx.plan = plan
        hidden, cells = states
        gates, roots, attention = gates.clone(), plan.sizes[0], None
        gates[roots:].addmm_(hidden.index_select(0, plan.below[roots:]), recurrent.t())
        memory = []
        if keys is not None:
            attention, inputs = _attention(hidden, plan, keys, values, mask)
            gates.index_add_(0, plan.attending, inputs[plan.row, plan.column] @ input_weight.t())
            memory = [input_weight, keys, values, attention, inputs]
        activate_(gates)
        hidden = hidden.clone()
        ctx.save_for_backward(gates, hidden, cells, recurrent, *memory)
        return hidden, attention

    @staticmethod
    @once_differentiable
    def backward(ctx, d_hidden, d_attention):
        plan = ctx.plan
        gates, hidden, cells, recurrent, *attentive = ctx.saved_tensors
        if not attentive:
            d_gates = _run_back(gates, hidden, cells, recurrent, plan, d_hidden)
            return d_gates, _recurrent_gradient(d_gates, hidden, plan), *[None] * 6
        input_weight, keys, values, attention, inputs = attentive
        d_inputs = torch.zeros_like(inputs)
        d_scores = torch.zeros_like(attention)
        d_new = torch.zeros_like(inputs).repeat(1, 1, 4)  # of the gates of nonterminals
        queries = torch.zeros_like(inputs)
        below = plan.below.index_select(0, plan.attending)
        queries[plan.row, plan.column] = hidden.index_select(0, below)

        def attend_back(rows, columns, d_gates):
            d_sums = d_gates @ input_weight
            weights = attention[rows, columns]
            d_weights = torch.bmm(precise(values.index_select(0, rows)), precise(d_sums).unsqueeze(2)).squeeze(2)
            d_weights += d_attention[rows, columns]
            d_scored = (d_weights - (d_weights * weights).sum(1, keepdim=True)).mul_(weights)
            d_inputs[rows, columns] = d_sums
            d_scores[rows, columns] = d_scored
            d_new[rows, columns] = d_gates
            return torch.bmm(d_scored.to(keys.dtype).unsqueeze(1), keys.index_select(0, rows)).squeeze(1)

        d_gates = _run_back(gates, hidden, cells, recurrent, plan, d_hidden, attend_back)
        return (
            d_gates,
            _recurrent_gradient(d_gates, hidden, plan),
            d_new.flatten(0, 1).t() @ inputs.flatten(0, 1),
            torch.bmm(d_scores.to(keys.dtype).transpose(1, 2), queries),
            torch.bmm(attention.to(values.dtype).transpose(1, 2), d_inputs),
            *[None] * 3,
        )


def _run_back(gates, hidden, cells, recurrent, plan, d_hidden, attend_back=None):
    """(N, 4H) gradient of the gates' sums."""
    d_hidden = d_hidden.clone()
    d_cells = torch.zeros_like(d_hidden)
    d_gates = torch.empty_like(gates)
    roots = slice(0, plan.sizes[0])
    below_cells = cells.index_select(0, plan.below)
    below_cells[roots] = 0
    factors, through = derivatives(gates, below_cells, cells)
    forget = _split(gates)[2]
    levels = list(zip(*(part.split(plan.numbers) for part in (plan.attending, plan.row, plan.column)), strict=True))
    for here, level in reversed(list(plan.levels())):
        backward_step_(d_hidden[here], d_cells[here], factors[here], through[here], d_gates[here])
        if not level:
            break
        below = plan.below[here]
        d_cells.index_add_(0, below, d_cells[here] * forget[here])
        d_hidden.index_add_(0, below, d_gates[here] @ recurrent)
        attending, rows, columns = levels[level]
        if attend_back is not None and len(attending):
            d_queries = attend_back(rows, columns, d_gates.index_select(0, attending))
            d_hidden.index_add_(0, plan.below.index_select(0, attending), d_queries)
    return d_gates


def _recurrent_gradient(d_gates, hidden, plan):
    roots = plan.sizes[0]
    return d_gates[roots:].t() @ hidden.index_select(0, plan.below[roots:])


def precise(values: Tensor) -> Tensor:
    """Convert to float32 if the precision is lower."""
    return values if values.dtype in (torch.float32, torch.float64) else values.float()

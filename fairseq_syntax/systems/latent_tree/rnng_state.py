"""Trees that are being built: the stacks of many sentences or hypotheses, without gradients."""

import torch
from torch import Tensor

from .rnng import RNNG
from .stack_lstm import Memory
from .transitions import Action, Limits, Transitions


class _Store:
    """Rows that are only ever appended to, so that a number always means the same row.

    Args:
        rows: (..., n, K) the first ones; the last dimension but one grows.
        room: how many more to make room for at first.
    """

    def __init__(self, rows: Tensor, room: int):
        self.count = rows.shape[-2]
        self._rows = rows
        self._make_room(room)

    def _make_room(self, room: int) -> None:
        rows = self._rows.new_empty(*self._rows.shape[:-2], self.count + room, self._rows.shape[-1])
        rows[..., : self.count, :] = self._rows[..., : self.count, :]
        self._rows = rows

    def append(self, rows: Tensor) -> Tensor:
        """Append (..., n, K) and return their numbers, (n,)."""
        stop = self.count + rows.shape[-2]
        if stop > self._rows.shape[-2]:
            self._make_room(max(stop - self.count, self.count))
        self._rows[..., self.count : stop, :] = rows
        numbers = torch.arange(self.count, stop, device=rows.device)
        self.count = stop
        return numbers

    def __getitem__(self, numbers: Tensor) -> Tensor:
        return self._rows.index_select(-2, numbers)

    def of(self, part: int, numbers: Tensor) -> Tensor:
        """Rows of one of several parts, (parts, n, K)."""
        return self._rows[part].index_select(0, numbers)


class RNNGState:
    """Where R rows are in building their trees.

    Stacks hold numbers of states, which are never overwritten: to drop rows, or to have one twice, numbers are moved.

    Args:
        grammar: the side whose trees are built.
        lengths: (R,) symbols of each row without its end, or the most it may have.
        memory: what new nonterminals attend to; the learned vector when not given.
        roots: (R, H) what the roots are pushed as; the learned vector when not given.

    Attributes:
        transitions: what is legal.
        sentence: (R,) sentence of the memory that each row belongs to.
    """

    @torch.no_grad()
    def __init__(
        self, grammar: RNNG, lengths: Tensor, limits: Limits, memory: Memory | None = None, roots: Tensor | None = None
    ):
        rows, device = len(lengths), lengths.device
        self.grammar = grammar
        self.memory = memory
        self.sentence = torch.arange(rows, device=device)
        self.transitions = Transitions(lengths, limits)
        stack, size = grammar.stack, grammar.size
        embeddings = grammar.embed.weight
        new = grammar.nonterminal[None] if memory is None else embeddings.new_zeros(1, size)
        self._entry_gates = stack.project(torch.cat((embeddings, new)))
        self._child_gates = _Store(grammar.composition.project(embeddings), 4 * rows)
        zero = embeddings.new_zeros(1, size)
        roots = (grammar.nonterminal if roots is None else roots).expand(rows, size)
        nothing = zero.expand(rows, size)
        root_states = stack.step(stack.project(roots), nothing, nothing)
        # state 0 is below everything
        room = 2 * rows * (int(lengths.max()) + 1)
        self._hidden, self._cells = (_Store(torch.cat((zero, states)), room) for states in root_states)
        # place 0 of a stack is below everything, place 1 is the root
        places = int(lengths.max()) + limits.max_open + 2
        self._states = torch.zeros(rows, places, dtype=torch.long, device=device)
        self._states[:, 1] = self.sentence + 1
        self._codes = torch.zeros_like(self._states)
        self._top = torch.ones_like(lengths)
        self._opened = torch.ones(rows, limits.max_open, dtype=torch.long, device=device)
        self._actions = torch.tensor([Action.NT, Action.GEN, Action.REDUCE], device=device)

    def hidden(self, rows: Tensor) -> Tensor:
        """(n, H) states on top of the stacks of some rows."""
        return self._hidden[self._states[rows, self._top[rows]]]

    @torch.no_grad()
    def advance(self, actions: Tensor, symbols: Tensor, ends: Tensor) -> None:
        """Let each row take an action (R,), NOP leaves it as it is; `symbols` are what GENs generate, `ends` those that
        end.
        """
        order = actions.masked_fill(ends, int(Action.NOP))
        numbers = (order[:, None] == self._actions).sum(0).tolist()
        order = order.argsort(stable=True)
        rows = order[: sum(numbers)]
        nt, gen, reduce = rows.split(numbers)
        if len(rows):
            pushing = rows[: len(nt) + len(gen)]
            opened = self._opened[reduce, self.transitions.open[reduce] - 1]
            place = torch.cat((self._top[pushing] + 1, opened))
            below = self._states[rows, place - 1]
            codes = torch.cat((torch.full_like(nt, self.grammar.vocabulary), symbols[gen]))
            gates = self._entry_gates.index_select(0, codes)
            if self.memory is not None and len(nt):
                queries = self._hidden[below[: len(nt)]]
                _, sums = self.memory.attend(self.sentence[nt], queries, self.grammar.stack.scale)
                gates[: len(nt)].addmm_(sums, self.grammar.stack.input_weight.t())
            if len(reduce):
                phrases = self._compose(reduce, opened)
                gates = torch.cat((gates, self.grammar.stack.project(phrases)))
                codes = torch.cat((codes, self._child_gates.append(self.grammar.composition.project(phrases))))
            hidden, cells = self.grammar.stack.step(gates, self._hidden[below], self._cells[below])
            self._states[rows, place] = self._hidden.append(hidden)
            self._cells.append(cells)
            self._codes[rows, place] = codes
            self._top[rows] = place
        self.transitions.step(actions, ends)
        if len(nt):
            self._opened[nt, self.transitions.open[nt] - 1] = self._top[nt]

    def _compose(self, rows: Tensor, opened: Tensor) -> Tensor:
        """(n, H) phrases of the innermost constituents of some rows, opened at these places of their stacks."""
        children, order = (self._top[rows] - opened).sort(descending=True)
        rows, opened = rows[order], opened[order]
        steps = torch.arange(int(children[0]), device=rows.device)
        step, number = (steps[:, None] < children).nonzero(as_tuple=True)  # packed
        sizes = torch.bincount(step)
        starts = sizes.cumsum(0) - sizes
        gates = torch.stack(
            [
                self._child_gates.of(direction, self._codes[rows[number], opened[number] + place])
                for direction, place in enumerate((1 + step, children[number] - step))
            ]
        )
        composition = self.grammar.composition
        last = starts[children - 1] + torch.arange(len(rows), device=rows.device)
        phrases = composition.combine(composition.ends(gates, sizes.tolist(), last))
        return torch.empty_like(phrases).index_copy_(0, order, phrases)

    def select(self, rows: Tensor) -> None:
        """Go on with these rows, (R',): some may be dropped, others be there more than once."""
        for name in ("sentence", "_states", "_codes", "_top", "_opened"):
            setattr(self, name, getattr(self, name).index_select(0, rows))
        self.transitions.select(rows)

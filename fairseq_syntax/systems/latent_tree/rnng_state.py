"""Trees that are being built: the stacks of many sentences or hypotheses, without gradients."""

import torch
from torch import Tensor, nn

from .rnng import RNNG
from .stack_lstm import Memory
from .transitions import Action, Limits, Transitions

AT_A_TIME = 4  # children that are read before others go on, where the host must not look how many there are


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

    def all(self) -> Tensor:
        """All rows, (..., n, K)."""
        return self._rows[..., : self.count, :]

    def of(self, part: int, numbers: Tensor) -> Tensor:
        """Rows of one of several parts, (parts, n, K)."""
        return self._rows[part].index_select(0, numbers)


class _Weights:
    """Those of a grammar, laid out for products with few rows, which on a CPU take up to twice as long otherwise."""

    def __init__(self, grammar: RNNG):
        stack, composition = grammar.stack, grammar.composition
        self.recurrent = stack.recurrent_weight.t().contiguous()  # (H, 4H)
        self.attended = stack.input_weight.t().contiguous()  # (H, 4H)
        self.composition = composition.recurrent_weight.transpose(1, 2).contiguous()  # (2, H, 4H)
        # what phrases add to the gates of the stack, and as children to those of either direction: (H, 12H)
        self.phrase = torch.cat((stack.input_weight, *composition.input_weight)).t().contiguous()
        self.bias = torch.cat((stack.bias, *composition.input_bias))


class RNNGState:
    """Where R rows are in building their trees.

    Stacks hold numbers of states, which are never overwritten: to drop rows, or to have one twice, numbers are moved.

    A host that may look at values takes for each kind of action the rows that take it. One that must not, for it would
    wait for the device, takes all rows for each kind, and those that do something else stand for a row more, the last,
    which is nobody's.

    Args:
        grammar: the side whose trees are built.
        lengths: (R,) symbols of each row without its end, or the most it may have.
        memory: what new nonterminals attend to; the learned vector when not given.
        roots: (R, H) what the roots are pushed as; the learned vector when not given.
        longest: the greatest of the lengths or more, if it is known.
        looking: the host may look at values.

    Attributes:
        transitions: what is legal.
        sentence: (R,) sentence of the memory that each row belongs to.
        rows: how many there are; without looking, one more than are somebody's.
        may: without looking, action -> rows that may take it: all of them, as long as nobody says otherwise.
    """

    @torch.no_grad()
    def __init__(
        self,
        grammar: RNNG,
        lengths: Tensor,
        limits: Limits,
        memory: Memory | None = None,
        roots: Tensor | None = None,
        longest: int | None = None,
        looking: bool = True,
    ):
        device, longest = lengths.device, int(lengths.max()) if longest is None else longest
        self.grammar, self.memory, self.looking = grammar, memory, looking
        self.transitions = Transitions(lengths if looking else nn.functional.pad(lengths, (0, 1)), limits)
        self.rows = rows = len(self.transitions.lengths)
        self.sentence = torch.arange(rows, device=device).clamp_(max=len(lengths) - 1)
        stack, embeddings = grammar.stack, grammar.embed.weight
        new = grammar.nonterminal[None] if memory is None else embeddings.new_zeros(1, grammar.size)
        self._weights = _Weights(grammar)
        self._entry_gates = stack.project(torch.cat((embeddings, new)))
        self._child_gates = _Store(grammar.composition.project(embeddings), 4 * rows)
        zero = embeddings.new_zeros(1, grammar.size)
        roots = (grammar.nonterminal if roots is None else roots).expand(len(lengths), -1)
        nothing = zero.expand(len(lengths), -1)
        root_states = stack.step(stack.project(roots), nothing, nothing, self._weights.recurrent)
        # state 0 is below everything
        room = 2 * rows * (longest + 1)
        self._hidden, self._cells = (_Store(torch.cat((zero, states)), room) for states in root_states)
        # place 0 of a stack is below everything, place 1 is the root
        self._codes = torch.zeros(rows, longest + limits.max_open + 2, dtype=torch.long, device=device)
        self._top = torch.stack((torch.ones_like(self.sentence), self.sentence + 1), 1)  # its place, and its state
        # the place of the nonterminal of each open constituent, and the state below it; those of the root are not used
        self._open = torch.zeros(rows, limits.max_open + 1, 2, dtype=torch.long, device=device)
        if not looking:
            self.transitions.stop_last()
            self._number()

    def _number(self) -> None:
        """Number the rows, none of which is about to close a constituent; without looking."""
        self._everyone = torch.arange(self.rows, device=self.sentence.device)
        self._nobody = torch.full_like(self.sentence, self.rows - 1)
        self.may = dict.fromkeys((Action.NT, Action.GEN, Action.REDUCE), self._everyone)
        self._read = torch.zeros_like(self._nobody)  # children of the constituent that a row is about to close
        # hidden states and cells, of either direction
        self._carried = self.all_hidden().new_zeros(2, 2, self.rows, self.grammar.size)

    def which(self, mask: Tensor) -> Tensor:
        """The rows of a mask (R,); without looking, R of them, the last instead of those that are not meant."""
        return mask.nonzero().squeeze(1) if self.looking else self._everyone.where(mask, self._nobody)

    def hidden(self, rows: Tensor) -> Tensor:
        """(n, H) states on top of the stacks of some rows."""
        return self._hidden[self._top[:, 1].index_select(0, rows)]

    def on_top(self) -> Tensor:
        """(R,) numbers of the states on top of the stacks."""
        return self._top[:, 1].clone()

    def all_hidden(self) -> Tensor:
        """(N, H) states that there have been, by their numbers."""
        return self._hidden.all()

    @torch.no_grad()
    def advance(self, actions: Tensor, symbols: Tensor, ends: Tensor) -> None:
        """Let each row take an action (R,), NOP for none; a REDUCE has to be `ready`.

        `symbols` are what GENs generate, `ends` those that end.
        """
        order = actions.masked_fill(ends & (actions == Action.GEN), int(Action.NOP))
        nt, gen, reduce = self._by_action(order)
        rows = torch.cat((nt, gen, reduce))
        if len(rows):
            pushing = rows[: len(nt) + len(gen)]
            top, inside = self._top.index_select(0, rows), self.transitions.inside
            opened = self._open[reduce, inside[reduce]]
            place, below = top[:, 0] + 1, top[:, 1]
            place[len(pushing) :], below[len(pushing) :] = opened.unbind(1)
            codes = symbols.masked_fill(order == Action.NT, self.grammar.vocabulary).index_select(0, pushing)
            gates = self._entry_gates.index_select(0, codes)
            if len(nt):
                self._open[nt, inside[nt] + 1] = torch.stack((place[: len(nt)], below[: len(nt)]), 1)
                if self.memory is not None:
                    queries = self._hidden[below[: len(nt)]]
                    _, sums = self.memory.attend(self.sentence[nt], queries, self.grammar.stack.scale)
                    gates[: len(nt)].addmm_(sums, self._weights.attended)
            if len(reduce):
                phrases = self._compose(reduce, opened[:, 0])
                added = torch.addmm(self._weights.bias, phrases, self._weights.phrase).unflatten(1, (3, -1))
                gates = torch.cat((gates, added[:, 0]))
                codes = torch.cat((codes, self._child_gates.append(added[:, 1:].transpose(0, 1))))
            before = self._hidden[below], self._cells[below]
            hidden, cells = self.grammar.stack.step(gates, *before, self._weights.recurrent)
            self._cells.append(cells)
            self._codes[rows, place] = codes
            self._top[rows] = torch.stack((place, self._hidden.append(hidden)), 1)
        if not self.looking:
            self._top[-1] = 0
        self.transitions.step(actions, ends)

    def _by_action(self, order: Tensor) -> list[Tensor]:
        """Rows that take each of NT, GEN and REDUCE."""
        if not self.looking:
            # of the last row, which is nobody's
            return [
                rows.where(order.index_select(0, rows) == action, self.rows - 1) for action, rows in self.may.items()
            ]
        numbers = torch.bincount(order, minlength=len(Action)).tolist()[:-1]
        return order.argsort(stable=True)[: sum(numbers)].split(numbers)

    def ready(self, pending: Tensor, wait: float = 0.0) -> Tensor:
        """Which of the rows that are to close a constituent can do it now.

        Looking, none or all of them: they wait for each other. Without, those whose children have all been read; each
        call reads a few.

        Args:
            pending: (R,) bool, rows that are to close a constituent.
            wait: the part of the sentences going on that has to be pending.
        """
        if self.looking:
            return pending & (pending.sum() >= wait * self.transitions.live.sum())
        opened = self._open[self._everyone, self.transitions.inside, 0]
        step = torch.arange(AT_A_TIME, device=pending.device)[:, None] + self._read
        left = (self._top[:, 0] - opened - self._read).masked_fill(~pending, 0)
        now = left.clamp(max=AT_A_TIME)
        rows = self._everyone.expand_as(step)
        gates = self._child_inputs(rows, opened + 1 + step, (self._top[:, 0] - step).clamp(min=0))
        last = (now - 1).clamp(min=0) * self.rows + self._everyone
        read = self.grammar.composition.read(
            gates.flatten(1, 2), [self.rows] * AT_A_TIME, last, self._weights.composition, self._carried
        )
        self._carried = torch.where((now > 0)[:, None], read, self._carried)
        self._read += now
        return pending & (left == now)

    def _compose(self, rows: Tensor, opened: Tensor) -> Tensor:
        """(n, H) phrases of the innermost constituents of some rows, opened at these places of their stacks."""
        composition = self.grammar.composition
        if not self.looking:
            ends = self._carried[0].index_select(1, rows)
            self._read.index_fill_(0, rows, 0)
            self._carried.index_fill_(2, rows, 0.0)
            return composition.combine(ends)
        top = self._top[rows, 0]
        children, order = (top - opened).sort(descending=True)
        step = torch.arange(int(children[0]), device=rows.device)[:, None]
        step, number = (step < children).nonzero(as_tuple=True)  # packed
        sizes = torch.bincount(step)
        place = order[number]
        gates = self._child_inputs(rows[place], opened[place] + 1 + step, top[place] - step)
        last = (sizes.cumsum(0) - sizes)[children - 1] + torch.arange(len(rows), device=rows.device)
        phrases = composition.combine(composition.read(gates, sizes.tolist(), last, self._weights.composition)[0])
        return torch.empty_like(phrases).index_copy_(0, order, phrases)

    def _child_inputs(self, rows: Tensor, forward: Tensor, backward: Tensor) -> Tensor:
        """(2, ..., 4H) of the children at these places of the stacks of some rows, read in either direction."""
        places = torch.stack((forward, backward)).clamp_(max=self._codes.shape[1] - 1)
        codes = self._codes.take(places.add_(rows * self._codes.shape[1]))
        gates = [self._child_gates.of(direction, part.flatten()) for direction, part in enumerate(codes)]
        return torch.stack(gates).unflatten(1, rows.shape)

    def select(self, rows: Tensor) -> None:
        """Go on with these rows, (R',): some may be dropped, others be there more than once.

        Without looking, nobody's row stays the last; a row that is about to close a constituent must stay where it is.
        """
        if not self.looking:
            rows = nn.functional.pad(rows, (0, 1), value=self.rows - 1)
        for name in ("sentence", "_codes", "_top", "_open"):
            setattr(self, name, getattr(self, name).index_select(0, rows))
        self.transitions.select(rows)
        others, self.rows = len(rows) != self.rows, len(rows)
        if others and not self.looking:
            self._number()

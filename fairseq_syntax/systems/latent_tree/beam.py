"""Beam search for text and tree together, in which hypotheses of equal numbers of symbols are compared.

Hypotheses that have opened or closed more constituents have taken more actions, and are less probable for that alone.
So they meet again only when each has generated its next symbol (as words in Stern et al. 2017). Sentences need not keep
step: in a turn, hypotheses of some open or close constituents, and those of others generate.
"""

import torch
from torch import Tensor, nn

from .rnng import RNNG
from .rnng_state import RNNGState
from .stack_lstm import Memory
from .symbols import SymbolChoice
from .transitions import Action, Limits

LOOKS_EVERY = 16  # turns; to look at values, the host waits for a device


@torch.no_grad()
def beam_search(
    grammar: RNNG,
    most: Tensor,
    limits: Limits,
    choice: SymbolChoice,
    memory: Memory,
    roots: Tensor | None,
    beam: int,
    power: float,
    looking: bool | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The best hypotheses of B sentences.

    From one symbol to the next, the K best hypotheses of a sentence that still open or close constituents are kept, and
    beside them the 2K best that have generated the symbol, until none of the former can get among the latter. Of these,
    the K best that do not end go on, and those of the K best that end are finished. A sentence is done with K finished
    hypotheses.

    Args:
        most: (B,) symbols without the end that a hypothesis may have.
        choice: what may be generated.
        memory, roots: see `RNNGState`.
        beam: K.
        power: of the length, the end included, by which scores are divided when finished hypotheses are compared.
        looking: see `RNNGState`; on a CPU alone when not given.

    Returns (N,) sentence of each of N hypotheses, from 1 to K a sentence; (N, T) actions, filled up with NOP; (N, n +
    1) symbols, filled up with padding. Raises FloatingPointError: a probability is not a number.
    """
    looking = most.device.type == "cpu" if looking is None else looking
    longest = int(most.max())
    state = RNNGState(grammar, most, limits, memory, roots, longest, looking)
    search = _Search(state, choice, beam, power, longest)
    while search.goes_on():
        for _ in range(LOOKS_EVERY):
            search.turn()
            if looking and not search.going_on.any():
                break
    return search.best()


class _Search:
    """The hypotheses of B sentences: in columns, K that are to generate a symbol, and a pool of 2K that have chosen it.

    Scores, (B, K) and (B, 2K), are log probabilities, that of the tree included; -inf where nothing stands.
    """

    def __init__(self, state: RNNGState, choice: SymbolChoice, beam: int, power: float, longest: int):
        self.state, self.choice, self.beam, self.power = state, choice, beam, power
        most = state.transitions.lengths[: len(state.transitions.lengths) - (not state.looking)]
        sentences, device, self.width = len(most), most.device, 3 * beam
        self._first = torch.arange(sentences, device=device)[:, None] * self.width  # row of each sentence
        self._columns = torch.arange(self.width, device=device).expand(sentences, -1)
        state.select(torch.arange(sentences, device=device).repeat_interleave(self.width))
        choosing, pool = (self._rows(self._columns[:, part]) for part in (slice(beam), slice(beam, None)))
        state.may = {Action.NT: choosing, Action.GEN: pool, Action.REDUCE: choosing}

        def full(*shape, value):
            return torch.full((sentences, *shape), value, device=device)

        self.scores, self.pool_scores = full(beam, value=-torch.inf), full(2 * beam, value=-torch.inf)
        self.scores[:, 0] = 0
        self.pool_symbols = full(2 * beam, value=choice.pad)
        # where the K are, what they do next, and whether they wait until it can be done
        self.places, self.taken = self._columns[:, :beam], full(beam, value=int(Action.NOP))
        self.stalled = full(value=False)
        self.going_on, self.generated, self.found = full(value=True), full(value=0), full(value=0)
        # a column more than are used, for what does nothing
        shapes = {"actions": state.transitions.limits.max_actions(longest) + 1, "text": longest + 2}
        fillers = {"actions": int(Action.NOP), "text": choice.pad}
        self.lines = {name: full(self.width, shapes[name], value=fillers[name]).flatten(0, 1) for name in shapes}
        # 2K - 1 may be finished, K - 1 of them before the last turn
        self.finished = {name: full(2 * beam, shapes[name], value=fillers[name]) for name in shapes}
        self.finished["scores"] = full(2 * beam, value=-torch.inf)
        self._seen = {"policy": [], "output": []}  # choices before, and numbers that tell if probabilities are some

    def goes_on(self) -> bool:
        """Whether a sentence is not done; the host waits for it. FloatingPointError: a probability is not a number."""
        seen = {head: [torch.cat(part) for part in zip(*turns, strict=True)] for head, turns in self._seen.items()}
        finite = [numbers.isfinite().all() for _, numbers in filter(None, seen.values())]
        going_on, *finite = torch.stack((self.going_on.any(), *finite)).tolist()
        for head, (before, numbers) in seen.items() if not all(finite) else ():
            self.state.grammar.checked(numbers[:, None], before, head)
        self._seen = {"policy": [], "output": []}
        return going_on

    def turn(self) -> None:
        """Let the hypotheses of each sentence take an action, or generate a symbol."""
        chosen = self._choose()
        if not self.state.looking:
            kept = self.scores, self.pool_scores, self.pool_symbols, self.taken, self._columns
            stalled = self.stalled[:, None]
            chosen = [torch.where(stalled, old, new) for old, new in zip(kept, chosen, strict=True)]
        self.scores, self.pool_scores, self.pool_symbols, self.taken, columns = chosen
        self._select(columns)
        self.places = self._columns[:, : self.beam]
        # nothing can get into the pool any more
        ready = (self.scores == -torch.inf).all(1)
        generating = ready[:, None] & (self.pool_scores > -torch.inf)
        self._advance(torch.where(generating, int(Action.GEN), int(Action.NOP)))
        if not self.state.looking or ready.any():
            self._begin_anew(ready, generating & (self.pool_symbols == self.choice.eos))

    def _begin_anew(self, ready: Tensor, ends: Tensor) -> None:
        """Go on from the pool in sentences (B,) whose pool has generated: some of it, (B, 2K), the end."""
        self.generated += ready
        # scores are sorted
        self._finish(ends[:, : self.beam])
        scores, places = self.pool_scores.masked_fill(ends, -torch.inf).topk(self.beam)
        self.going_on &= ~ready | ((self.found < self.beam) & (scores > -torch.inf).any(1))
        ready = ready[:, None]
        self.scores = torch.where(ready, scores.masked_fill(~self.going_on[:, None], -torch.inf), self.scores)
        self.places = torch.where(ready, self.beam + places, self.places)
        self.pool_scores = self.pool_scores.masked_fill(ready, -torch.inf)

    def _choose(self) -> tuple[Tensor, ...]:
        """What hypotheses stand in the columns next: scores, those of the pool and its symbols, actions, and columns in
        which they stand now.
        """
        structure, symbols = self._continuations()
        pool = self.pool_scores.shape[1]
        found, index = symbols.flatten(1).topk(pool)
        pool_scores, chosen = torch.cat((self.pool_scores, found), 1).topk(pool)
        vocabulary = symbols.shape[2]
        pool_symbols = torch.cat((self.pool_symbols, index % vocabulary), 1).gather(1, chosen)
        pool_places = torch.cat((self._columns[:, self.beam :], self.places.gather(1, index // vocabulary)), 1)

        scores, index = structure.flatten(1).topk(self.beam)
        # every further action makes a hypothesis less probable
        scores = scores.masked_fill(scores <= pool_scores[:, -1:], -torch.inf)
        taken = torch.where(index % 2 == 0, int(Action.NT), int(Action.REDUCE))
        taken = taken.masked_fill(scores == -torch.inf, int(Action.NOP))
        places = torch.cat((self.places.gather(1, index // 2), pool_places.gather(1, chosen)), 1)
        return scores, pool_scores, pool_symbols, taken, places

    def _continuations(self) -> tuple[Tensor, Tensor]:
        """Scores of hypotheses with one more action: (B, K, 2) of NT and REDUCE, (B, K, V) of GEN and each symbol."""
        state, grammar, scores = self.state, self.state.grammar, self.scores.flatten()
        live = scores > -torch.inf
        places = live.nonzero().squeeze(1) if state.looking else torch.arange(len(live), device=live.device)
        rows = self._rows(self.places).index_select(0, places)
        numbers = state.transitions.taken, state.transitions.consumed, state.transitions.lengths
        taken, before, most = (values.index_select(0, rows) for values in numbers)
        hidden, forbidden = state.hidden(rows), ~state.transitions.structure(rows)
        policy = grammar.policy_scores(hidden)
        text = self.choice.log_probabilities(grammar, hidden)
        self._seen["policy"].append((taken, policy.sum(1)))
        self._seen["output"].append((before, text.sum(1)))
        policy[:, :: Action.REDUCE].masked_fill_(forbidden, -torch.inf)
        policy = policy.log_softmax(1).to(scores) + scores.index_select(0, places)[:, None]
        text = policy[:, Action.GEN, None] + self.choice.allowed_(text, before, most).to(scores)

        def spread(values):
            spread = values.new_full((len(live), values.shape[1]), -torch.inf)
            return spread.index_copy(0, places, values).unflatten(0, self.scores.shape)

        # again, for a forbidden NaN would be the best of all
        return spread(policy[:, :: Action.REDUCE].masked_fill(forbidden, -torch.inf)), spread(text)

    def _advance(self, pool_actions: Tensor) -> None:
        """Let all hypotheses act that can, (B, 2K) of those in the pool."""
        state = self.state
        actions = torch.cat((self.taken, pool_actions), 1)
        if not state.looking:
            pending = actions == Action.REDUCE
            closing = state.ready(nn.functional.pad(pending.flatten(), (0, 1)))[:-1].view_as(pending)
            self.stalled = (pending & ~closing).any(1)
            actions = actions.masked_fill(self.stalled[:, None], int(Action.NOP))
        actions, symbols = actions.flatten(), torch.cat((self.taken, self.pool_symbols), 1).flatten()
        generating = actions == Action.GEN
        # behind what is there; what fills lines up changes nothing
        taken, consumed = (
            values[: len(actions), None] for values in (state.transitions.taken, state.transitions.consumed)
        )
        self.lines["actions"].scatter_(1, taken, actions[:, None])
        self.lines["text"].scatter_(1, consumed, symbols.masked_fill(~generating, self.choice.pad)[:, None])
        ends = generating & (symbols == self.choice.eos)
        if not state.looking:
            actions = nn.functional.pad(actions, (0, 1), value=int(Action.NOP))
            symbols, ends = (nn.functional.pad(values, (0, 1)) for values in (symbols, ends))
        state.advance(actions, symbols, ends)

    def _finish(self, ends: Tensor) -> None:
        """Keep hypotheses that end, among the K best of the pool: (B, K) bool."""
        place = self.found[:, None] + ends.cumsum(1) - 1
        self.found += ends.sum(1)
        # the last place is for those that do not end
        place = place.masked_fill(~ends, 2 * self.beam - 1)
        rows = self._rows(self._columns[:, self.beam : 2 * self.beam])
        values = {name: lines.index_select(0, rows).unflatten(0, ends.shape) for name, lines in self.lines.items()}
        length = self.generated.double()[:, None] ** self.power
        values["scores"] = self.pool_scores[:, : self.beam] / length.to(self.scores)
        values["scores"] = values["scores"].masked_fill(~ends, -torch.inf)
        for name, value in values.items():
            self.finished[name].scatter_(1, place[(...,) + (None,) * (value.dim() - 2)].expand_as(value), value)

    def best(self) -> tuple[Tensor, Tensor, Tensor]:
        """The K best finished hypotheses of each sentence; see `beam_search`."""
        scores, order = self.finished["scores"].sort(dim=1, descending=True, stable=True)
        rows, rank = (scores[:, : self.beam] > -torch.inf).nonzero(as_tuple=True)
        actions, text = (self.finished[name][rows, order[rows, rank]] for name in ("actions", "text"))
        length = int((actions != Action.NOP).sum(1).max())
        return rows, actions[:, :length], text[:, :-1]

    def _rows(self, columns: Tensor) -> Tensor:
        """Numbers of the rows of the state in these columns, (B, n), flat."""
        return (self._first + columns).flatten()

    def _select(self, columns: Tensor) -> None:
        """Go on with the hypotheses of these columns, (B, 3K)."""
        rows = self._rows(columns)
        self.state.select(rows)
        self.lines = {name: lines.index_select(0, rows) for name, lines in self.lines.items()}

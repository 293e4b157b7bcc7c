"""Beam search for text and tree together, in which hypotheses of equal numbers of symbols are compared.

Hypotheses that have opened or closed more constituents have taken more actions, and are less probable for that alone.
So they meet again only when each has generated its next symbol (as words in Stern et al. 2017).
"""

import torch
from torch import Tensor

from .rnng import RNNG
from .rnng_state import RNNGState
from .stack_lstm import Memory
from .symbols import SymbolChoice
from .transitions import Action, Limits


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

    Returns (N,) sentence of each of N hypotheses, from 1 to K a sentence; (N, T) actions, filled up with NOP; (N, n +
    1) symbols, filled up with padding. Raises FloatingPointError: a probability is not a number.
    """
    search = _Search(RNNGState(grammar, most, limits, memory, roots), choice, beam)
    finished = []
    going_on = torch.ones(len(most), dtype=torch.bool, device=most.device)
    count = torch.zeros_like(most)
    while going_on.any():
        rows, scores, actions, text = search.next_symbol()
        wanted = going_on[rows]
        finished.append((rows[wanted], scores[wanted] / (search.generated**power), actions[wanted], text[wanted]))
        count += torch.bincount(rows[wanted], minlength=len(most))
        going_on &= (count < beam) & (search.scores > -torch.inf).any(1)
        search.scores.masked_fill_(~going_on[:, None], -torch.inf)
    rows, scores, actions, text = (torch.cat(parts) for parts in zip(*finished, strict=True))
    # the K best of each sentence
    order = scores.argsort(descending=True, stable=True)
    order = order[rows[order].argsort(stable=True)]
    rank = torch.arange(len(order), device=rows.device)
    rank -= torch.searchsorted(rows[order], rows[order])
    best = order[rank < beam]
    length = int((actions[best] != Action.NOP).sum(1).max())
    return rows[best], actions[best, :length], text[best]


class _Search:
    """The hypotheses of B sentences, as many for each; scores of places that nothing stands in are -inf.

    Attributes:
        scores: (B, K) log probabilities of hypotheses, that of the tree included.
        generated: symbols that they have, the ends among them.
    """

    def __init__(self, state: RNNGState, choice: SymbolChoice, beam: int):
        self.state, self.choice, self.beam = state, choice, beam
        self.most = state.transitions.lengths
        sentences, device = len(self.most), self.most.device
        self.generated = 0
        self.actions = torch.full((sentences, int(state.transitions.budget.max())), int(Action.NOP), device=device)
        self.text = torch.full((sentences, int(self.most.max()) + 1), choice.pad, device=device)
        self.scores = torch.full((sentences, beam), -torch.inf, device=device)
        self.scores[:, 0] = 0
        self._width = 1  # rows of the state for each sentence

    def next_symbol(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Let all hypotheses generate one symbol, after any number of other actions.

        Returns those that end: (n,) sentences, (n,) scores, (n, T) actions and (n, symbols) symbols.
        """
        beam, pool = self.beam, 2 * self.beam
        pool_scores = self.scores.new_full((len(self.most), pool), -torch.inf)
        pool_symbols = torch.zeros_like(pool_scores, dtype=torch.long)
        # places: hypotheses that are to generate the symbol, then those that have chosen it, before their GEN
        places = torch.arange(beam, device=self.most.device).clamp(max=self._width - 1)
        self._select(torch.cat((places, places.new_zeros(pool))).expand(len(self.most), -1))
        while True:
            structure, symbols = self._continuations()
            found, index = symbols.flatten(1).topk(pool)
            vocabulary = symbols.shape[2]
            pool_scores, chosen = torch.cat((pool_scores, found), 1).topk(pool)
            pool_symbols = torch.cat((pool_symbols, index % vocabulary), 1).gather(1, chosen)
            kept = torch.arange(beam, beam + pool, device=chosen.device).expand_as(pool_scores)
            pool_places = torch.cat((kept, index // vocabulary), 1).gather(1, chosen)

            self.scores, index = structure.flatten(1).topk(beam)
            # every further action makes a hypothesis less probable
            self.scores = self.scores.masked_fill(self.scores <= pool_scores[:, -1:], -torch.inf)
            self._select(torch.cat((index // 2, pool_places), 1))
            taken = torch.where(index % 2 == 0, int(Action.NT), int(Action.REDUCE))
            taken = taken.masked_fill(self.scores == -torch.inf, int(Action.NOP))
            self._advance(torch.cat((taken, torch.full_like(pool_places, int(Action.NOP))), 1))
            if (self.scores == -torch.inf).all():
                return self._generate(pool_scores, pool_symbols)

    def _continuations(self) -> tuple[Tensor, Tensor]:
        """Scores of hypotheses with one more action: (B, K, 2) of NT and REDUCE, (B, K, V) of GEN and each symbol."""
        width = self._width
        first = torch.arange(len(self.most), device=self.most.device)[:, None] * width
        rows = (first + torch.arange(self.beam, device=first.device))[self.scores > -torch.inf]
        shape = (*self.scores.shape, -1)
        structure = self.scores.new_full((*shape[:2], 2), -torch.inf)
        grammar = self.state.grammar
        symbols = self.scores.new_full((*shape[:2], grammar.vocabulary), -torch.inf)
        if len(rows):
            live = self.scores > -torch.inf
            hidden = self.state.hidden(rows)
            forbidden = ~self.state.transitions.legal()[rows]
            policy = grammar.checked(
                grammar.log_policy(hidden, forbidden), self.state.transitions.taken[rows], "policy"
            )
            policy = policy.masked_fill(forbidden, -torch.inf).to(self.scores)
            before = self.state.transitions.consumed[rows]
            text = self.choice.scores(grammar, hidden, before, self.state.transitions.lengths[rows])
            structure[live] = self.scores[live][:, None] + policy[:, [Action.NT, Action.REDUCE]]
            symbols[live] = (self.scores[live] + policy[:, Action.GEN])[:, None] + text.to(self.scores)
        return structure, symbols

    def _generate(self, scores: Tensor, symbols: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Let the pool generate its symbols; see `next_symbol`."""
        beam = self.beam
        self._select(beam + torch.arange(scores.shape[1], device=scores.device).expand_as(scores))
        gen = torch.where(scores > -torch.inf, int(Action.GEN), int(Action.NOP))
        self.text[:, self.generated] = symbols.flatten()
        self.generated += 1
        self._advance(gen, symbols)
        ends = (symbols == self.choice.eos) & (scores > -torch.inf)
        # scores are sorted
        ending = (ends & (torch.arange(scores.shape[1], device=scores.device) < beam)).flatten().nonzero().squeeze(1)
        result = (ending // self._width, scores.flatten()[ending], self.actions[ending], self.text[ending])
        self.scores, places = scores.masked_fill(ends, -torch.inf).topk(beam)
        self._select(places)
        return result

    def _advance(self, actions: Tensor, symbols: Tensor | None = None) -> None:
        """Let the hypotheses take actions, (B, width), and GEN symbols."""
        actions = actions.flatten()
        symbols = torch.zeros_like(actions) if symbols is None else symbols.flatten()
        rows = (actions != Action.NOP).nonzero().squeeze(1)
        self.actions[rows, self.state.transitions.taken[rows]] = actions[rows]
        self.state.advance(actions, symbols, (actions == Action.GEN) & (symbols == self.choice.eos))

    def _select(self, places: Tensor) -> None:
        """Go on with these hypotheses of each sentence, (B, new width)."""
        rows = torch.arange(len(places), device=places.device)[:, None] * self._width + places
        rows = rows.flatten()
        self.state.select(rows)
        self.actions = self.actions.index_select(0, rows)
        self.text = self.text.index_select(0, rows)
        self._width = places.shape[1]

"""Which symbols a grammar may generate, and the most probable ones."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class SymbolChoice:
    """What generation allows."""

    never: tuple[int, ...]  # symbols that are not generated
    pad: int  # what follows the end
    eos: int  # the end of the sentence
    unk: int  # the unknown symbol
    min_symbols: int = 0  # how many must stand before the end
    unkpen: float = 0  # taken from the score of the unknown symbol
    temperature: float = 1  # that scores are divided by before they become probabilities

    def allowed_(self, scores: Tensor, generated: Tensor, most: Tensor) -> Tensor:
        """Log probabilities (n, V) of symbols, in place; -inf for those that are not allowed.

        `generated` (n,) symbols stand before, and there may be `most` (n,), after which only the end is allowed.
        """
        # one by one: a list of indices would be copied to a device, for which the host waits
        for symbol in self.never:
            scores[:, symbol] = -torch.inf
        scores[:, self.unk] -= self.unkpen
        scores[generated < self.min_symbols, self.eos] = -torch.inf
        only_end = generated >= most
        end = scores[:, self.eos].clone()
        scores.masked_fill_(only_end[:, None], -torch.inf)
        scores[:, self.eos] = end
        return scores

    def scores_of(self, grammar, hidden: Tensor, symbols: Tensor) -> Tensor:
        """(n,) the same for symbols that were chosen, (n,)."""
        scores = self.log_probabilities(grammar, hidden).gather(1, symbols[:, None]).squeeze(1)
        return torch.where(symbols == self.unk, scores - self.unkpen, scores)

    def log_probabilities(self, grammar, hidden: Tensor) -> Tensor:
        """(n, V) log probabilities of all symbols."""
        return (grammar.output(hidden).float() / self.temperature).log_softmax(1)

    def greedy(self, grammar) -> "GreedySymbols":
        """The most probable symbols, for `grow_trees`."""
        return GreedySymbols(self, grammar)


class GreedySymbols:
    """Gives the most probable symbol each time."""

    def __init__(self, choice: SymbolChoice, grammar):
        self.choice = choice
        self.grammar = grammar
        self._seen = []  # of each turn: symbols that rows had before, and numbers that tell if scores are numbers

    def __call__(self, state, generating: Tensor) -> tuple[Tensor, Tensor]:
        rows = state.which(generating)
        numbers = state.transitions.consumed, state.transitions.lengths
        before, most = (values.index_select(0, rows) for values in numbers)
        scores = self.choice.log_probabilities(self.grammar, state.hidden(rows))
        self._seen.append((before, scores.sum(1)))
        best = self.choice.allowed_(scores, before, most).argmax(1)
        symbols = torch.full_like(state.transitions.lengths, self.choice.pad).index_copy_(0, rows, best)
        return symbols, symbols == self.choice.eos

    def check(self) -> None:
        """Complain if a probability was not a number.

        Raises:
            FloatingPointError: it was not.
        """
        before, sums = (torch.cat(parts) for parts in zip(*self._seen, strict=True))
        self.grammar.checked(sums[:, None], before, "output")

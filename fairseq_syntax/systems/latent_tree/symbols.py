"""Which symbols a grammar may generate, and the most probable ones."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class SymbolChoice:
    """What generation allows."""

    never: tuple[int, ...]  # symbols that are not generated
    pad: int  # what stands behind the end
    eos: int  # the end of the sentence
    unk: int  # the unknown symbol
    min_symbols: int = 0  # how many must stand before the end
    unkpen: float = 0  # taken from the score of the unknown symbol
    temperature: float = 1  # that scores are divided by before they become probabilities

    def scores(self, grammar, hidden: Tensor, generated: Tensor, most: Tensor) -> Tensor:
        """(n, V) log probabilities of symbols after states (n, H) of the stack; -inf for those that are not allowed.

        `generated` (n,) symbols stand before, and there may be `most` (n,), after which only the end is allowed. Raises
        FloatingPointError: a probability is not a number.
        """
        scores = grammar.checked(self._log_probabilities(grammar, hidden), generated, "output")
        scores[:, list(self.never)] = -torch.inf
        scores[:, self.unk] -= self.unkpen
        scores[generated < self.min_symbols, self.eos] = -torch.inf
        only_end = generated >= most
        end = scores[:, self.eos].clone()
        scores.masked_fill_(only_end[:, None], -torch.inf)
        scores[:, self.eos] = end
        return scores

    def scores_of(self, grammar, hidden: Tensor, symbols: Tensor) -> Tensor:
        """(n,) the same for symbols that were chosen, (n,)."""
        scores = self._log_probabilities(grammar, hidden).gather(1, symbols[:, None]).squeeze(1)
        return torch.where(symbols == self.unk, scores - self.unkpen, scores)

    def _log_probabilities(self, grammar, hidden: Tensor) -> Tensor:
        return (grammar.output(hidden).float() / self.temperature).log_softmax(1)

    def greedy(self, grammar, most: Tensor) -> "GreedySymbols":
        """The most probable symbols, for `modules.tree_growing.grow_trees`."""
        return GreedySymbols(self, grammar, most)


class GreedySymbols:
    """Gives the most probable symbol each time, and keeps them.

    Attributes:
        text: (B, n + 1) symbols of all sentences, their ends included, and padding.
    """

    def __init__(self, choice: SymbolChoice, grammar, most: Tensor):
        self.choice = choice
        self.grammar = grammar
        self.most = most
        self.text = torch.full((len(most), int(most.max()) + 1), choice.pad, device=most.device)

    def __call__(self, rows: Tensor, hidden: Tensor, generated: Tensor) -> tuple[Tensor, Tensor]:
        scores = self.choice.scores(self.grammar, hidden, generated, self.most[rows])
        symbols = scores.argmax(1)
        self.text[rows, generated] = symbols
        return symbols, symbols == self.choice.eos

"""Making up trees by a policy: sampled, or greedily the most probable action each time."""

from collections.abc import Callable

import torch
from torch import Tensor

from .rnng import RNNG
from .rnng_state import RNNGState
from .stack_lstm import Memory
from .transitions import Action, Limits

# rows, their hidden states (n, H) and what they have generated (n,) -> symbols, and which of them are ends
NextSymbols = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


@torch.no_grad()
def grow_trees(
    grammar: RNNG,
    lengths: Tensor,
    limits: Limits,
    next_symbols: NextSymbols,
    memory: Memory | None = None,
    roots: Tensor | None = None,
    greedy: bool = False,
    generator: torch.Generator | None = None,
    wait: float = 0.5,
) -> Tensor:
    """(B, T) actions, filled up with NOP, of trees that are built for B sentences.

    Sentences need not keep step. To compose a phrase takes many small steps, so a sentence that wants to close a
    constituent waits for others that want to, until they are a part `wait` of those that go on. The trees of greedy
    decoding do not depend on it.

    Args:
        lengths: (B,) symbols of each sentence without its end, or the most it may have.
        next_symbols: gives the symbols of GENs.
        memory, roots: see `RNNGState`.
        greedy: take the most probable action instead of drawing one.
        generator: to draw with; torch's own when not given.
        wait: between 0 and 1.

    Raises FloatingPointError: a probability is not a number.
    """
    state = RNNGState(grammar, lengths, limits, memory, roots)
    transitions = state.transitions
    actions = torch.full((len(lengths), int(transitions.budget.max())), int(Action.NOP), device=lengths.device)
    pending = torch.zeros_like(transitions.live)
    symbols = torch.zeros_like(lengths)
    while transitions.live.any():
        choosing = (transitions.live & ~pending).nonzero().squeeze(1)
        hidden = state.hidden(choosing)
        chosen = _choose(state, choosing, hidden, greedy, generator)
        actions[choosing, transitions.taken[choosing]] = chosen
        closing = chosen == Action.REDUCE
        pending[choosing] = closing
        now = torch.full_like(symbols, int(Action.NOP))
        now[choosing] = chosen.masked_fill(closing, int(Action.NOP))
        if pending.sum() >= wait * transitions.live.sum():
            now[pending] = int(Action.REDUCE)
            pending.zero_()
        generating = (chosen == Action.GEN).nonzero().squeeze(1)
        rows = choosing[generating]
        ends = torch.zeros_like(pending)
        symbols[rows], ends[rows] = next_symbols(rows, hidden[generating], transitions.consumed[rows])
        state.advance(now, symbols, ends)
    return actions[:, : int(transitions.taken.max())]


def _choose(state: RNNGState, rows: Tensor, hidden: Tensor, greedy: bool, generator) -> Tensor:
    """(n,) actions of rows (n,) with hidden states (n, H); see `grow_trees`."""
    transitions = state.transitions
    log_policy = state.grammar.log_policy(hidden, ~transitions.legal().index_select(0, rows))
    state.grammar.checked(log_policy, transitions.taken[rows], "policy")
    if greedy:
        return log_policy.argmax(1)
    return torch.multinomial(log_policy.exp(), 1, generator=generator).squeeze(1)


def given_text(text: Tensor, lengths: Tensor) -> NextSymbols:
    """The symbols of texts (B, n + 1) that are known, each followed by its end; lengths (B,) are without it."""

    def next_symbols(rows, hidden, generated):
        return text[rows, generated], generated == lengths[rows]

    return next_symbols


def left_justified(tokens: Tensor, padding: int) -> tuple[Tensor, Tensor]:
    """(B, n + 1) sentences with their padding on the right, and their lengths (B,) without the end."""
    blank = tokens.eq(padding)
    order = blank.long().sort(dim=1, stable=True).indices
    return tokens.gather(1, order), (~blank).sum(1) - 1

"""Trees to train and translate with: drawn from a policy, its most probable ones, or given by the text."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from itertools import groupby

import numpy as np
import torch
from torch import Tensor, nn

from ...data.dataset import SyntaxPairDataset
from ...trees.characters import SPACE
from .layers import Memory
from .rnng import RNNG, Grown, RNNGState
from .transitions import NUM_ACTIONS, Action, Limits

# state, and which rows generate (R,) -> symbols (R,) of the rows, and which of them are ends (R,)
NextSymbols = Callable[[RNNGState, Tensor], tuple[Tensor, Tensor]]

# one for each sentence
Seeds = Sequence[tuple[int, ...]]

WAIT = 0.5  # constituents are closed when this share of the unfinished sentences waits to close one


@torch.no_grad()
def grow_trees(
    grammar: RNNG,
    lengths: Tensor,
    limits: Limits,
    next_symbols: NextSymbols,
    memory: Memory | None = None,
    greedy: bool = False,
    seeds: Seeds | None = None,
) -> Grown:
    """Build the trees of B sentences; all actions are legal, even if probabilities are not numbers.

    Sentences need not keep step: composing a phrase takes many small steps, so a sentence that wants to close a
    constituent waits until enough others want to. Greedy trees do not depend on that.

    Args:
        lengths: (B,) symbols of each sentence without its end, or the most it may have.
        next_symbols: gives the symbols of GENs.
        memory: see `RNNGState`.
        greedy: take the most probable action instead of drawing one.
        seeds: one for each sentence, from which alone its tree is drawn; without them, torch draws.
    """
    state = RNNGState(grammar, lengths, limits, memory)
    transitions = state.transitions
    nothing = torch.full_like(lengths, int(Action.NOP))
    pending = torch.zeros_like(transitions.live)
    draws = None if seeds is None else _draws(seeds, limits.max_actions(int(lengths.max()))).to(lengths.device)
    turns = []
    while (live := transitions.live).any():
        choosing = (live & ~pending).nonzero().squeeze(1)
        actions = nothing.index_copy(0, choosing, _choose(state, choosing, greedy, draws))
        pending |= actions == Action.REDUCE
        closing = pending & (pending.sum() >= WAIT * live.sum())
        pending &= ~closing
        symbols, ends = next_symbols(state, actions == Action.GEN)
        turns.append((actions, symbols, state.top[:, 1].clone()))
        now = actions.masked_fill(actions == Action.REDUCE, int(Action.NOP))
        state.advance(now.masked_fill_(closing, int(Action.REDUCE)), symbols, ends)
    actions, symbols, states = (torch.stack(column, 1) for column in zip(*turns, strict=True))
    # without the turns in which a sentence has waited
    order = (actions == Action.NOP).long().sort(dim=1, stable=True).indices[:, : int(transitions.taken.max())]
    return Grown(
        *(column.gather(1, order) for column in (actions, symbols)), state.all_hidden(), states.gather(1, order)
    )


def _draws(seeds: Seeds, actions: int) -> Tensor:
    """(B, actions, 3) exponential numbers, those of each sentence from its seed."""
    size = (actions, NUM_ACTIONS)
    return torch.from_numpy(np.stack([np.random.default_rng(seed).standard_exponential(size) for seed in seeds]))


def _choose(state: RNNGState, rows: Tensor, greedy: bool, draws: Tensor | None) -> Tensor:
    """(n,) actions of rows (n,); see `grow_trees`."""
    scores = state.grammar.policy_scores(state.hidden(rows))
    forbidden = ~state.transitions.structure(rows)
    scores[:, :: Action.REDUCE].masked_fill_(forbidden, -torch.inf)
    probable = scores.log_softmax(1).exp_()
    if not greedy:
        # the largest of p / q with exponential q is drawn with probability p
        if draws is None:
            q = torch.empty_like(probable).exponential_()
        else:
            q = draws[rows, state.transitions.taken[rows]].to(probable)
        probable.div_(q)
    probable[:, :: Action.REDUCE].masked_fill_(forbidden, -1.0)  # argmax prefers what is not a number
    return probable.argmax(1)


def given_text(text: Tensor, lengths: Tensor) -> NextSymbols:
    """The symbols of known texts (B, n + 1), each followed by its end; lengths (B,) are without it."""
    text = nn.functional.pad(text, (0, 1))  # for sentences that have ended

    def next_symbols(state, generating):
        consumed = state.transitions.consumed
        return text.gather(1, consumed[:, None]).squeeze(1), consumed == lengths

    return next_symbols


def left_justified(tokens: Tensor, padding: int) -> tuple[Tensor, Tensor]:
    """(B, n + 1) sentences with their padding on the right, and their lengths (B,) without the end."""
    blank = tokens.eq(padding)
    order = blank.long().sort(dim=1, stable=True).indices
    return tokens.gather(1, order), (~blank).sum(1) - 1


ForcedTrees = StrEnum("ForcedTrees", "none words")
"""Trees that a batch comes with: none, or a constituent for each run of characters other than the space."""


def forced_actions(tokens: Tensor, inside: Tensor, pad: int, eos: int) -> Tensor:
    """(B, T) actions, padded with NOP, that build trees with a constituent for each run of the symbols `inside`.

    `a b ▁ c` with all but the space in runs -> NT GEN GEN REDUCE GEN NT GEN REDUCE GEN: (X (X a b ) ▁ (X c ) ) and the
    end of the sentence.

    Args:
        tokens: (B, N) ids of sentences, padded on either side, each with its end.
        inside: (B, N) bool, the symbols that are in runs; it need not be False for ends and padding.
        pad, eos: ids of padding and end.
    """
    rows = []
    for row, within in zip(tokens.tolist(), inside.tolist(), strict=True):
        actions: list[int] = []
        in_run = [one and symbol != eos for symbol, one in zip(row, within, strict=True) if symbol != pad]
        for is_run, run in groupby(in_run):
            generates = [Action.GEN] * len(list(run))
            actions += [Action.NT, *generates, Action.REDUCE] if is_run else generates
        rows.append(torch.tensor(actions, device=tokens.device))
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=int(Action.NOP))


class ForcedTreeDataset(SyntaxPairDataset):
    """Sentence pairs of characters that come with trees: `net_input["src_actions"]`, `["tgt_actions"]` (B, T) int64.

    `trees` is a `ForcedTrees`; with `none`, batches are those of fairseq.
    """

    trees: str = ForcedTrees.none

    def force(self, trees: str) -> None:
        """Set `trees`; ValueError for trees of words over text that has no spaces."""
        for name, dictionary in (("source", self.src_dict), ("target", self.tgt_dict)):
            if trees == ForcedTrees.words and SPACE not in dictionary:
                raise ValueError(
                    f"--rnng-forced-trees words: the {name} dictionary has no {SPACE}, which separates words; make "
                    "the text with fairseq-syntax characters, or choose none"
                )
        self.trees = trees

    def collater(self, samples, pad_to_length=None):
        """As in the base class, with the actions."""
        batch = super().collater(samples, pad_to_length=pad_to_length)
        if batch and self.trees != ForcedTrees.none:
            sides = [("src_actions", batch["net_input"]["src_tokens"], self.src_dict)]
            if batch["target"] is not None:
                sides.append(("tgt_actions", batch["target"], self.tgt_dict))
            for name, tokens, dictionary in sides:
                inside = tokens != dictionary.index(SPACE)
                batch["net_input"][name] = forced_actions(tokens, inside, dictionary.pad(), dictionary.eos())
        return batch

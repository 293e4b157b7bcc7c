"""Trees to train and translate with: drawn from a policy, its most probable ones, or given by the text."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

import numpy as np
import torch
from torch import Tensor, nn

from ...data.dataset import SyntaxPairDataset
from ...trees.characters import SPACE
from .layers import Memory
from .rnng import RNNG, Grown, RNNGState, sent_up
from .transitions import NUM_ACTIONS, Action, Limits

# one for each sentence
Seeds = Sequence[tuple[int, ...]]

WAIT = 0.5  # constituents are closed when this share of the unfinished sentences waits to close one


@dataclass(frozen=True)
class SymbolChoice:
    """Which symbols may be generated."""

    never: tuple[int, ...]  # never generated
    pad: int
    eos: int
    min_symbols: int = 0  # before the end, at least

    def best(self, scores: Tensor, before: np.ndarray, most: np.ndarray) -> Tensor:
        """(n,) symbols with the highest scores (n, V), which are overwritten.

        `before` (n,) symbols precede; after `most` (n,) symbols only the end is allowed.
        """
        for symbol in self.never:
            scores[:, symbol] = -torch.inf
        if (too_short := before < self.min_symbols).any():
            scores[*sent_up(scores.device, too_short.nonzero()[0]), self.eos] = -torch.inf
        if (complete := before >= most).any():
            (rows,) = sent_up(scores.device, complete.nonzero()[0])
            end = scores[rows, self.eos]
            scores[rows] = -torch.inf
            scores[rows, self.eos] = end
        return scores.argmax(1)


@torch.inference_mode()
def grow_trees(
    grammar: RNNG,
    lengths: np.ndarray,
    limits: Limits,
    text: np.ndarray | SymbolChoice,
    memory: Memory | None = None,
    greedy: bool = False,
    seeds: Seeds | None = None,
) -> Grown:
    """Build the trees of B sentences; all actions are legal, even if probabilities are not numbers.

    Sentences need not keep step: composing a phrase takes many small steps, so a sentence that wants to close a
    constituent waits until enough others want to. Greedy trees do not depend on that. The host waits for the device
    once a turn, to learn what has been chosen.

    Args:
        lengths: (B,) symbols of each sentence without its end, or the most it may have.
        text: (B, n + 1) symbols of known texts with their ends; or which symbols to take the most probable of.
        memory: see `RNNGState`.
        greedy: take the most probable action instead of drawing one.
        seeds: one for each sentence, from which alone its tree is drawn; without them, torch draws.
    """
    state = RNNGState(grammar, lengths, limits, memory)
    transitions, device, rows = state.transitions, grammar.embed.weight.device, np.arange(len(lengths))
    choice = text if isinstance(text, SymbolChoice) else None
    pending = np.zeros(len(lengths), dtype=bool)
    noise = None if seeds is None else _noise(seeds, limits.max_actions(int(lengths.max()))).to(device)
    turns = []
    while (live := transitions.live).any():
        actions, choosing = np.full(len(lengths), Action.NOP), (live & ~pending).nonzero()[0]
        chosen = _choose(state, choosing, choice, greedy, noise) if len(choosing) else np.zeros((2, 0), dtype=int)
        actions[choosing] = chosen[0]
        if choice is None:
            symbols = text[rows, np.minimum(transitions.consumed, text.shape[1] - 1)]
            ends = transitions.consumed == lengths
        else:
            symbols = np.full(len(lengths), choice.pad)
            symbols[choosing] = chosen[1]
            ends = symbols == choice.eos
        turns.append((actions, symbols, state.state.copy()))
        pending |= actions == Action.REDUCE
        closing = pending & (pending.sum() >= WAIT * live.sum())
        pending &= ~closing
        now = np.where(actions == Action.REDUCE, Action.NOP, actions)
        now[closing] = Action.REDUCE
        state.advance(now, symbols, ends)
    columns = [np.stack(column, 1) for column in zip(*turns, strict=True)]
    # without the turns in which a sentence has waited
    order = np.argsort(columns[0] == Action.NOP, axis=1, kind="stable")[:, : transitions.taken.max()]
    return Grown(*(np.take_along_axis(column, order, 1) for column in columns), state.all_hidden())


def _noise(seeds: Seeds, actions: int) -> Tensor:
    """(B, actions, 3) numbers of the distribution that `_choose` draws with, those of each sentence from its seed."""
    size = (actions, NUM_ACTIONS)
    return torch.from_numpy(np.stack([np.random.default_rng(seed).standard_exponential(size) for seed in seeds])).log_()


def _choose(
    state: RNNGState, rows: np.ndarray, choice: SymbolChoice | None, greedy: bool, noise: Tensor | None
) -> np.ndarray:
    """(1, n) actions of rows (n,), or (2, n) with the symbols that they generate; see `grow_trees`."""
    transitions, grammar = state.transitions, state.grammar
    no_nt, no_reduce = ~transitions.structure()[rows].T
    taken, integers = transitions.taken[rows], (state.state[rows], no_nt + 2 * no_reduce, rows)
    number, forbidden, row, taken = sent_up(grammar.embed.weight.device, *integers, taken)
    hidden = state.hidden(number)
    scores = grammar.policy_scores(hidden).nan_to_num_()
    if not greedy:
        # of probabilities p, p / q is largest with probability p, if q are exponential
        drawn = torch.empty_like(scores).exponential_().log_() if noise is None else noise[row, taken].to(scores)
        scores.sub_(drawn)
    chosen = [scores.add_(state.forbid.index_select(0, forbidden)).argmax(1)]
    if choice is not None:
        before, most = transitions.consumed[rows], transitions.lengths[rows]
        chosen.append(choice.best(grammar.output(hidden), before, most))
    return torch.stack(chosen).cpu().numpy()


def left_justified(tokens: np.ndarray, padding: int) -> tuple[np.ndarray, np.ndarray]:
    """(B, n + 1) sentences with their padding on the right, and their lengths (B,) without the end."""
    blank = tokens == padding
    order = np.argsort(blank, axis=1, kind="stable")
    return np.take_along_axis(tokens, order, 1), (~blank).sum(1) - 1


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

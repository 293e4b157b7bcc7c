"""Trees to train and translate with: drawn from a policy, its most probable ones, or given by the text."""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum

import numpy as np
import torch
from torch import Tensor, nn

from ...data.dataset import SyntaxPairDataset
from ...trees.characters import SPACE
from .layers import Memory
from .rnng import AT_A_TIME, FORBIDDEN, RNNG, Grown, RNNGState
from .transitions import NUM_ACTIONS, Action, Limits, Transitions

# the rows and which of them generate (R,) -> their symbols (R,), and which of those are ends (R,)
NextSymbols = Callable[[RNNGState, Tensor], tuple[Tensor, Tensor]]

# of the random numbers of each sentence
Seeds = Sequence[tuple[int, ...]]

WAIT = 0.5  # the part of the sentences that want to close a constituent before they do, on a CPU


@torch.no_grad()
def grow_trees(
    grammar: RNNG,
    lengths: Tensor,
    limits: Limits,
    next_symbols: NextSymbols,
    memory: Memory | None = None,
    greedy: bool = False,
    seeds: Seeds | None = None,
    wait: float = WAIT,
    longest: int | None = None,
    looking: bool | None = None,
) -> Grown:
    """Build the trees of B sentences.

    Sentences need not keep step. Composing a phrase takes many small steps, so on a CPU, a sentence that wants to close
    a constituent waits for others that want to, until they are the part `wait` of the sentences that go on. On a GPU,
    it reads a few children a turn while others go on, and the host seldom asks whether all have ended. Greedy trees
    depend on neither.

    Args:
        lengths: (B,) symbols of each sentence without its end, or the most it may have.
        next_symbols: gives the symbols of GENs.
        memory: see `RNNGState`.
        greedy: take the most probable action instead of drawing one.
        seeds: of each sentence, from which alone its tree is then drawn; torch draws when not given.
        wait: between 0 and 1.
        longest: the greatest of the lengths or more, if it is known.
        looking: see `RNNGState`; on a CPU alone when not given.

    Raises FloatingPointError: a probability is not a number.
    """
    looking = lengths.device.type == "cpu" if looking is None else looking
    longest = int(lengths.max()) if longest is None else longest
    state = RNNGState(grammar, lengths, limits, memory, longest, looking)
    transitions = state.transitions
    nothing = torch.full((state.rows,), int(Action.NOP), device=lengths.device)
    pending = torch.zeros_like(transitions.live)
    draws = None if seeds is None else _draws(seeds, limits.max_actions(longest), state.rows).to(lengths.device)
    turns = []
    for _ in _turns(transitions, longest, looking):
        choosing = state.which(transitions.live & ~pending)
        actions = nothing.index_copy(0, choosing, _choose(state, choosing, greedy, draws))
        if not looking:
            actions[-1:] = int(Action.NOP)  # a slice: for one element, the host waits
        pending |= actions == Action.REDUCE
        closing = state.ready(pending, wait)
        pending &= ~closing
        symbols, ends = next_symbols(state, actions == Action.GEN)
        turns.append((actions, symbols, state.on_top()))
        now = actions.masked_fill(actions == Action.REDUCE, int(Action.NOP))
        state.advance(now.masked_fill_(closing, int(Action.REDUCE)), symbols, ends)
    state.complain(state.not_finite().tolist())
    actions, symbols, states = (torch.stack(column, 1)[: len(lengths)] for column in zip(*turns, strict=True))
    order = (actions == Action.NOP).long().sort(dim=1, stable=True).indices
    if looking:
        order = order[:, : int(transitions.taken.max())]
    actions, symbols, states = (column.gather(1, order) for column in (actions, symbols, states))
    return Grown(actions, symbols, state.all_hidden(), states)


def _turns(transitions: Transitions, longest: int, looking: bool) -> Iterator[None]:
    """Turns until all sentences have ended; without looking, the host asks twice at most whether they have."""
    if looking:
        while transitions.live.any():
            yield
        return
    actions = transitions.limits.max_actions(longest)
    most = actions + actions // AT_A_TIME  # each action is a child at most once
    looks = 2 * longest + 16, longest + 8 + most // 2
    for turn in range(most):
        if turn in looks and not transitions.live.any():
            return
        yield


def _draws(seeds: Seeds, actions: int, rows: int) -> Tensor:
    """(R, actions, 3) exponential numbers, those of each sentence from its seed; 1 in rows without a sentence."""
    draws = np.ones((rows, actions, NUM_ACTIONS))
    for row, seed in zip(draws, seeds, strict=False):
        row[:] = np.random.default_rng(seed).standard_exponential(row.shape)
    return torch.from_numpy(draws)


def _choose(state: RNNGState, rows: Tensor, greedy: bool, draws: Tensor | None) -> Tensor:
    """(n,) actions of rows (n,); see `grow_trees`."""
    scores = state.grammar.policy_scores(state.hidden(rows))
    forbidden = ~state.transitions.structure(rows)
    scores[:, :: Action.REDUCE].masked_fill_(forbidden, FORBIDDEN)
    state.note("policy", scores)
    if not greedy:
        # the largest of p / q with exponential q is drawn with probability p; what is not a number is still legal
        probable = scores.log_softmax(1).exp_()
        if draws is None:
            q = torch.empty_like(probable).exponential_()
        else:
            q = draws[rows, state.transitions.taken[rows].clamp(max=draws.shape[1] - 1)].to(probable)
        scores = probable.div_(q)
        scores[:, :: Action.REDUCE].masked_fill_(forbidden, -1.0)
    return scores.argmax(1)


def given_text(text: Tensor, lengths: Tensor) -> NextSymbols:
    """The symbols of known texts (B, n + 1), each followed by its end; lengths (B,) are without it."""
    # for sentences that have ended, and the row of no sentence
    text, lengths = nn.functional.pad(text, (0, 1, 0, 1)), nn.functional.pad(lengths, (0, 1))

    def next_symbols(state, generating):
        consumed, rows = state.transitions.consumed, state.rows
        return text[:rows].gather(1, consumed[:, None]).squeeze(1), consumed == lengths[:rows]

    return next_symbols


def left_justified(tokens: Tensor, padding: int) -> tuple[Tensor, Tensor]:
    """(B, n + 1) sentences with their padding on the right, and their lengths (B,) without the end."""
    blank = tokens.eq(padding)
    order = blank.long().sort(dim=1, stable=True).indices
    return tokens.gather(1, order), (~blank).sum(1) - 1


ForcedTrees = StrEnum("ForcedTrees", "none flat words")
"""Trees that a batch comes with: none; all characters in the root; or a constituent for each run of characters other
than the space."""


def forced_actions(tokens: Tensor, inside: Tensor, pad: int, eos: int) -> Tensor:
    """(B, T) actions, filled up with NOP, that build trees with a constituent for each run of the symbols `inside`.

    `a b ▁ c` with all but the space in runs -> NT GEN GEN REDUCE GEN NT GEN REDUCE GEN: (X (X a b ) ▁ (X c ) ) and the
    end of the sentence.

    Args:
        tokens: (B, N) ids of sentences, padded on either side, each with its end.
        inside: (B, N) bool, the symbols that are in runs; it need not be False for ends and padding.
        pad, eos: ids of padding and end.
    """
    real = tokens != pad
    inside = inside & real & (tokens != eos)
    beside = torch.nn.functional.pad(inside, (1, 1))
    opens, closes = inside & ~beside[:, :-2], inside & ~beside[:, 2:]
    behind = (real.long() + opens.long() + closes.long()).cumsum(dim=1)  # number of actions up to each symbol
    # one more column, for everything else
    steps = int(behind[:, -1].max()) if tokens.numel() else 0
    actions = tokens.new_full((len(tokens), steps + 1), Action.NOP)
    generates = behind - 1 - closes.long()
    for which, place, action in (
        (opens, generates - 1, Action.NT),
        (real, generates, Action.GEN),
        (closes, behind - 1, Action.REDUCE),
    ):
        actions.scatter_(1, place.where(which, steps), int(action))
    return actions[:, :-1]


class ForcedTreeDataset(SyntaxPairDataset):
    """Sentence pairs of characters that come with trees: `net_input["src_actions"]`, `["tgt_actions"]` (B, T) int64.

    `trees` is a `ForcedTrees`; with `none`, batches are those of fairseq.
    """

    trees: str = ForcedTrees.none

    def force(self, trees: str) -> None:
        """Let batches come with trees; ValueError for trees of words over text that has no spaces."""
        for name, dictionary in (("source", self.src_dict), ("target", self.tgt_dict)):
            if trees == ForcedTrees.words and SPACE not in dictionary:
                raise ValueError(
                    f"--rnng-forced-trees words: the {name} dictionary has no {SPACE}, which separates words; make "
                    "the text with fairseq-syntax characters, or choose none or flat"
                )
        self.trees = trees

    def collater(self, samples, pad_to_length=None):
        """Batch as the base class does, plus the actions."""
        batch = super().collater(samples, pad_to_length=pad_to_length)
        if batch and self.trees != ForcedTrees.none:
            sides = [("src_actions", batch["net_input"]["src_tokens"], self.src_dict)]
            if batch["target"] is not None:
                sides.append(("tgt_actions", batch["target"], self.tgt_dict))
            for name, tokens, dictionary in sides:
                # flat trees have no runs
                inside = (tokens != dictionary.index(SPACE)) & (self.trees == ForcedTrees.words)
                batch["net_input"][name] = forced_actions(tokens, inside, dictionary.pad(), dictionary.eos())
        return batch

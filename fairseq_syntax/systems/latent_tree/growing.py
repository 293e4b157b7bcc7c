"""Trees for training and translation: drawn from a policy, its most probable ones, or forced by the text."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

import numpy as np
import torch
from torch import Tensor, nn

from ...data.dataset import SyntaxPairDataset
from ...trees.characters import SPACE
from .layers import Grown, TreeMemory, lstm_step_, precise, to_device
from .rnng import RNNG
from .transitions import NONE, NUM_ACTIONS, Action, Limits, Transitions, legality

# one for each sentence
Seeds = Sequence[tuple[int, ...]]

WAIT = 0.5  # constituents are closed when this share of the unfinished sentences waits to close one


class _Store:
    """Append-only rows, whose numbers never change.

    Args:
        rows: (2, n, K), the first ones; n grows.
        room: number of further rows to allocate at first.
    """

    def __init__(self, rows: Tensor, room: int):
        self.count = rows.shape[1]
        self._rows = rows
        self._make_room(room)

    def _make_room(self, room: int) -> None:
        rows = self._rows.new_empty(2, self.count + room, self._rows.shape[2])
        rows[:, : self.count] = self.all()
        self._rows = rows

    def append(self, number: int) -> Tensor:
        """Append `number` rows and return them, (2, number, K), to be written."""
        if self.count + number > self._rows.shape[1]:
            self._make_room(max(number, self.count))
        self.count += number
        return self._rows[:, self.count - number : self.count]

    def read(self, numbers: Tensor) -> Tensor:
        """Rows (2, n, K) by their numbers (n,)."""
        return self._rows.index_select(1, numbers)

    def all(self) -> Tensor:
        """All rows, (2, n, K)."""
        return self._rows[:, : self.count]


class RNNGState:
    """State of B rows whose trees are being built, without gradients.

    Integers are on the host, which derives all stacks from the actions taken, so nothing is read back from the device.
    Stacks hold numbers of states, which are never overwritten.

    Args:
        grammar: the side whose trees are built.
        lengths: (B,) symbols of each row without its end, or the most it may have.
        memory: attended to by new nonterminals, see `RNNG.replay`.

    Attributes:
        transitions: the legal actions.
        forbid: (4, 3) added to the scores of actions; rows: nothing, NT, REDUCE or both of them illegal.
        state: (B,) number of the top state of each stack.
    """

    @torch.inference_mode()
    def __init__(self, grammar: RNNG, lengths: np.ndarray, limits: Limits, memory: TreeMemory | None = None):
        rows, longest, self._device = len(lengths), int(lengths.max()), grammar.embed.weight.device
        self.grammar, self.memory = grammar, memory
        self.transitions = Transitions(lengths, limits)
        stack, composition, embeddings = grammar.stack, grammar.composition, grammar.embed.weight
        new = grammar.nonterminal[None] if memory is None else embeddings.new_zeros(1, grammar.size)
        self.forbid = precise(embeddings.new_zeros(4, NUM_ACTIONS))
        self.forbid[1::2, Action.NT] = self.forbid[2:, Action.REDUCE] = -torch.inf
        # transposed, because products with few rows take up to twice as long on a CPU otherwise
        self._recurrent = stack.recurrent_weight.t().contiguous()  # (H, 4H)
        self._attended = stack.input_weight.t().contiguous()  # (H, 4H)
        self._composing = composition.recurrent_weight.transpose(1, 2).contiguous()  # (2, H, 4H)
        # (H, 12H): from phrases to the gates of the stack, and of the composition in either direction
        self._phrase = torch.cat((stack.input_weight, *composition.input_weight)).t().contiguous()
        self._bias = torch.cat((stack.bias, *composition.input_bias))
        self._entry_gates = stack.project(torch.cat((embeddings, new)))
        self._child_gates = _Store(composition.project(embeddings), 4 * rows)
        # hidden states and cells; state 0 is below everything
        self._states = _Store(embeddings.new_zeros(2, 1, grammar.size), 2 * rows * (longest + 1))
        roots = (grammar.nonterminal if memory is None else memory.values[:, 0]).expand(rows, -1)
        self._push(stack.project(roots), self._states.read(torch.zeros_like(roots[:, 0], dtype=torch.long)))
        # place 0 of a stack is below everything, place 1 is the root
        self._codes = np.zeros((rows, longest + limits.max_open + 2), dtype=int)
        self._place = np.ones(rows, dtype=int)
        self.state = np.arange(1, rows + 1)
        # for each open constituent, root first: place of its nonterminal, the state below that, and its step
        self._open = np.tile([1, 0, NONE], (rows, limits.max_open + 1, 1))
        # compositions of each turn: (row, opened, parent, step) and (phrases, chains) of `Grown`
        nothing = np.zeros(0, dtype=int)
        self._composed = [(nothing, nothing, np.array([NONE]), np.array([0]))]
        self._phrases = [(embeddings.new_empty(0, grammar.size), embeddings.new_zeros(2, 2, 1, grammar.size))]

    def hidden(self, numbers: Tensor) -> Tensor:
        """Hidden states (n, H) by their numbers (n,)."""
        return self._states.all()[0].index_select(0, numbers)

    def grown(self, actions: np.ndarray, symbols: np.ndarray, state: np.ndarray) -> Grown:
        """Everything computed so far, as `Grown`."""
        integers = (np.concatenate(parts) for parts in zip(*self._composed, strict=True))
        phrases, chains = zip(*self._phrases, strict=True)
        return Grown(actions, symbols, state, self._states.all(), *integers, torch.cat(phrases), chains)

    def _push(self, gates: Tensor, below: Tensor) -> None:
        """Append the states after pushing entries, with gates (n, 4H), on states `below` (2, n, H)."""
        gates.addmm_(below[0], self._recurrent)
        hidden, cells = self._states.append(len(gates))
        lstm_step_(gates, below[1], cells, hidden)

    @torch.inference_mode()
    def advance(self, actions: np.ndarray, symbols: np.ndarray, ends: np.ndarray) -> None:
        """Let each row take an action (B,), NOP for none.

        `symbols` (B,) are what GENs generate, `ends` (B,) bool the rows whose GEN is the end of the sentence.
        """
        nt, reduce = (np.flatnonzero(actions == action) for action in (Action.NT, Action.REDUCE))
        pushing = np.concatenate((nt, np.flatnonzero((actions == Action.GEN) & ~ends)))
        rows = np.concatenate((pushing, reduce))
        if len(rows):
            inside, phrases = self.transitions.inside, self._child_gates.count
            place = np.concatenate((self._place[pushing] + 1, self._open[reduce, inside[reduce], 0]))
            below = np.concatenate((self.state[pushing], self._open[reduce, inside[reduce], 1]))
            codes = np.concatenate((symbols[pushing], phrases + np.arange(len(reduce))))
            codes[: len(nt)] = self.grammar.vocabulary
            new = place[: len(nt)], below[: len(nt)], self.transitions.taken[nt]
            self._open[nt, inside[nt] + 1] = np.stack(new, 1)
            sizes, *children = self._children(reduce, inside[reduce]) if len(reduce) else ([],)
            entries, on, opening, *children = to_device(self._device, codes[: len(pushing)], below, nt, *children)
            states, gates = self._states.read(on), self._entry_gates.index_select(0, entries)
            if self.memory is not None and len(nt):
                gates[: len(nt)].addmm_(self.memory.attend(opening, states[0, : len(nt)]), self._attended)
            if len(reduce):
                gates = torch.cat((gates, self._compose(sizes, *children)))
            self._push(gates, states)
            self.state[rows] = self._states.count - len(rows) + np.arange(len(rows))
            self._codes[rows, place], self._place[rows] = codes, place
        self.transitions.step(actions, ends)

    @torch.inference_mode()
    def close(self) -> None:
        """Compose the constituents closed by the ends of sentences, roots included, empty ones excluded."""
        inside = self.transitions.inside
        for level in range(int(inside.max()), -1, -1):
            rows = np.flatnonzero(inside >= level)
            place = self._open[rows, level, 0]
            filled = (self._place[rows] > place) | (level == 0)
            composed, phrases = rows[filled], self._child_gates.count
            if len(composed):
                sizes, *children = self._children(composed, level)
                self._compose(sizes, *to_device(self._device, *children))
                self._codes[composed, place[filled]] = phrases + np.arange(len(composed))
            self._place[rows] = np.where(filled, place, place - 1)

    def _children(
        self, rows: np.ndarray, inside: np.ndarray | int
    ) -> tuple[list[int], np.ndarray, np.ndarray, np.ndarray]:
        """Plan the composition of constituents of n rows at depth `inside` (n,), for `Composition.compose`.

        Returns the number of phrases at each step, codes of the M children from the first on, and from the last on, and
        where the last child of each phrase is packed.
        """
        opened, _, nt_step = self._open[rows, inside].T
        top = self._place[rows]
        counts = top - opened
        order = np.argsort(-counts, kind="stable")
        step, number = (np.arange(counts.max())[:, None] < counts[order]).nonzero()
        sizes = np.bincount(step, minlength=1)
        last = np.empty_like(order)
        places = (sizes.cumsum() - sizes)[counts[order] - 1] + np.arange(len(order))
        last[order] = np.where(counts[order] > 0, places, len(step))
        phrase = order[number]
        row, parent = rows[phrase], self._child_gates.count - self.grammar.vocabulary + phrase
        self._composed.append((rows, nt_step, np.append(parent, NONE), np.append(step, 0)))
        return sizes.tolist(), self._codes[row, opened[phrase] + 1 + step], self._codes[row, top[phrase] - step], last

    def _compose(self, sizes: list[int], forward: Tensor, backward: Tensor, last: Tensor) -> Tensor:
        """Compose phrases, enter them as children, and return their part (n, 4H) of the gates of the stack."""
        children = zip(self._child_gates.all(), (forward, backward), strict=True)
        gates = torch.stack([side.index_select(0, codes) for side, codes in children])
        phrases, chains = self.grammar.composition.compose(gates, sizes, last, self._composing)
        self._phrases.append((phrases, chains))
        added = torch.addmm(self._bias, phrases, self._phrase).unflatten(1, (3, -1))
        self._child_gates.append(len(phrases)).copy_(added[:, 1:].transpose(0, 1))
        return added[:, 0]


@dataclass(frozen=True)
class SymbolChoice:
    """Constraints on the symbols generated."""

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
            scores[*to_device(scores.device, too_short.nonzero()[0]), self.eos] = -torch.inf
        if (complete := before >= most).any():
            (rows,) = to_device(scores.device, complete.nonzero()[0])
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
    memory: TreeMemory | None = None,
    greedy: bool = False,
    seeds: Seeds | None = None,
    actions: np.ndarray | None = None,
) -> Grown:
    """Build the trees of B sentences; all actions are legal, even if probabilities are not numbers.

    Sentences are not in step: composing a phrase takes many small operations, so a sentence that closes a constituent
    waits until enough others do. Greedy trees do not depend on that. The host waits for the device
    once a turn, for the actions chosen.

    Args:
        lengths: (B,) symbols of each sentence without its end, or the most it may have.
        text: (B, n + 1) symbols of known texts with their ends; or constraints on choosing the most probable ones.
        memory: see `RNNGState`.
        greedy: take the most probable action instead of drawing one.
        seeds: one for each sentence, from which alone its tree is drawn; without them, torch draws.
        actions: (B, T) to take instead, padded with NOP.

    Raises ValueError: `actions` are not legal.
    """
    if actions is not None:
        legality(actions, lengths, limits)
    state = RNNGState(grammar, lengths, limits, memory)
    transitions, pending = state.transitions, np.zeros(len(lengths), dtype=bool)
    most, device = limits.max_actions(int(lengths.max())), grammar.embed.weight.device
    noise = None if seeds is None else _noise(seeds, most).to(device)
    turns = []
    while (live := transitions.live).any():
        taken, symbols, ends = _chosen(state, (live & ~pending).nonzero()[0], text, greedy, noise, actions)
        turns.append((taken, symbols, state.state.copy()))
        pending |= taken == Action.REDUCE
        closing = pending & (pending.sum() >= WAIT * live.sum())
        pending &= ~closing
        now = np.where(taken == Action.REDUCE, Action.NOP, taken)
        now[closing] = Action.REDUCE
        state.advance(now, symbols, ends)
    if memory is None:
        state.close()
    columns = [np.stack(column, 1) for column in zip(*turns, strict=True)]
    # leave out the turns in which a sentence has waited
    order = np.argsort(columns[0] == Action.NOP, axis=1, kind="stable")[:, : transitions.taken.max()]
    return state.grown(*(np.take_along_axis(column, order, 1) for column in columns))


def _chosen(
    state: RNNGState,
    rows: np.ndarray,
    text: np.ndarray | SymbolChoice,
    greedy: bool,
    noise: Tensor | None,
    actions: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choices of a turn by the rows (n,) that choose: actions (B,), NOP for others; symbols; and ends, bool."""
    transitions = state.transitions
    taken = np.full(len(transitions.lengths), Action.NOP)
    choice = text if isinstance(text, SymbolChoice) else None
    chosen = np.zeros((2, 0), dtype=int)
    if actions is not None:
        chosen = actions[None, rows, transitions.taken[rows]]
    elif len(rows):
        chosen = _choose(state, rows, choice, greedy, noise)
    taken[rows] = chosen[0]
    if choice is None:
        symbols = text[np.arange(len(taken)), np.minimum(transitions.consumed, text.shape[1] - 1)]
        return taken, symbols, transitions.consumed == transitions.lengths
    symbols = np.full(len(taken), choice.pad)
    symbols[rows] = chosen[1]
    return taken, symbols, symbols == choice.eos


def _noise(seeds: Seeds, actions: int) -> Tensor:
    """Random numbers (B, actions, 3) for `_choose`, from the seed of each sentence."""
    size = (actions, NUM_ACTIONS)
    return torch.from_numpy(np.stack([np.random.default_rng(seed).standard_exponential(size) for seed in seeds])).log_()


def _choose(
    state: RNNGState, rows: np.ndarray, choice: SymbolChoice | None, greedy: bool, noise: Tensor | None
) -> np.ndarray:
    """(1, n) actions of rows (n,), or (2, n) with the symbols that they generate; see `grow_trees`."""
    transitions, grammar = state.transitions, state.grammar
    no_nt, no_reduce = ~transitions.structure()[rows].T
    taken, integers = transitions.taken[rows], (state.state[rows], no_nt + 2 * no_reduce, rows)
    number, forbidden, row, taken = to_device(grammar.embed.weight.device, *integers, taken)
    hidden = state.hidden(number)
    scores = grammar.policy_scores(hidden)
    if not greedy:
        # of probabilities p, p / q is largest with probability p, if q are exponential
        drawn = torch.empty_like(scores).exponential_().log_() if noise is None else noise[row, taken].to(scores)
        scores.sub_(drawn)
    # scores of legal actions stay finite
    chosen = [scores.nan_to_num_().add_(state.forbid.index_select(0, forbidden)).argmax(1)]
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
"""Trees of a batch: none, or a constituent for each run of characters other than the space."""


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
        in_run = [is_inside and symbol != eos for symbol, is_inside in zip(row, within, strict=True) if symbol != pad]
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

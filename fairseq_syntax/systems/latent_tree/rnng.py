"""Recurrent neural network grammars with unlabelled constituents: one side of the latent-tree translator.

`RNNG` computes with trees that are known, `RNNGState` builds trees without gradients. Bradbury & Socher 2017, Sec. 2;
Dyer et al. 2016.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from .layers import Composition, Memory, StackLSTM, composition_plan, lstm_step_, precise, stack_plan
from .transitions import NONE, NUM_ACTIONS, Action, Constituents, Limits, Transitions, constituents, legality

FORBIDDEN = -1e9  # added to the score of an action that is not legal; finite, so that its gradient is 0 and not NaN


@dataclass(frozen=True)
class TreeScores:
    """Scores of one side of B sentences under known trees of at most T actions."""

    actions: Tensor  # (B, T) of `Action`
    constituents: Constituents  # what they build
    symbols: Tensor  # (B, T) what each GEN generates, the end of the sentence included; padding elsewhere
    log_policy: Tensor  # (B, T) float32, log probability of each action; 0 for NOP
    symbol_loss: Tensor  # (B, T) float32, negative log probability of each symbol; 0 where there is no GEN
    capped: np.ndarray  # (B,) bool, sentences whose budget of actions forbade an NT


class Grown(NamedTuple):
    """Trees of B sentences, built without gradients; of at most T actions."""

    actions: np.ndarray  # (B, T), padded with NOP
    symbols: np.ndarray  # (B, T) what each GEN has generated; arbitrary elsewhere
    state: np.ndarray  # (B, T) number of the state before each action; arbitrary for NOP
    states: Tensor  # (N, H) of the stack


@dataclass(frozen=True)
class TreePair:
    """Both sides of B sentence pairs of at most I and J constituents."""

    source: TreeScores
    target: TreeScores
    # (B, J, I) of the target's constituents, roots excluded, over the source's, roots first, both in the order of
    # opening; float32 at least, 0 where one does not exist
    attention: Tensor
    attending: Tensor  # (B, J) bool, constituents of the target
    attended: Tensor  # (B, I) bool, constituents of the source


@dataclass(frozen=True)
class Replay:
    """States of the stack and phrases of B sentences whose trees are known."""

    states: Tensor  # (N, H) of the stack, one for each action
    state: np.ndarray  # (B, T) number of the state before each action; `NONE` for NOP
    # (C, H), and the number of the phrase of each constituent, `NONE` where it has none; both None for a target without
    # gradients, which needs no phrases
    phrases: Tensor | None
    slot: np.ndarray | None
    attention: Tensor | None  # (B, J, I), or None


class RNNG(nn.Module):
    """A stack-only recurrent neural network grammar over symbols.

    Args:
        vocabulary, padding: V, number of symbols, and which of them is padding.
        size: H, of embeddings, phrases and states.
        side: "source": new nonterminals are a learned vector; "target": they attend to the source.
        detach_policy: policy gradients train only the policy layer.
    """

    def __init__(self, vocabulary: int, padding: int, size: int, side: str = "source", detach_policy: bool = False):
        super().__init__()
        self.vocabulary = vocabulary
        self.padding = padding
        self.size = size
        self.detach_policy = detach_policy
        self.embed = nn.Embedding(vocabulary, size)  # N(0, 1), as the paper's random vectors
        self.nonterminal = nn.Parameter(torch.randn(size)) if side == "source" else None
        self.composition = Composition(size)
        self.stack = StackLSTM(size)
        self.policy = nn.Linear(size, NUM_ACTIONS)
        self.output = nn.Linear(size, vocabulary)

    def replay(self, trees: Constituents, symbols: np.ndarray, memory: Memory | None = None) -> Replay:
        """Compose all phrases and compute all states of given trees of B sentences.

        Args:
            symbols: (B, T) that each GEN generates.
            memory: what new nonterminals attend to; roots are the phrase of the source's root. Without it, both are the
                learned vector, and all phrases are composed, also those closed automatically.
        """
        device = self.embed.weight.device
        composing = composition_plan(trees, symbols, self.vocabulary, memory is None, device)
        phrases = self.composition(self.embed.weight, composing)
        new = self.nonterminal[None] if memory is None else phrases.new_zeros(1, self.size)
        roots = self.nonterminal[None] if memory is None else memory.values[:, 0]
        stacking = stack_plan(trees, symbols, self.vocabulary, composing.slot, len(roots), device)
        entries = torch.cat((self.embed.weight, new, phrases, roots))
        states, attention = self.stack(entries, stacking, memory)
        return Replay(states, stacking.state, phrases, composing.slot, attention)

    def remembered(self, grown: Grown, trees: Constituents, symbols: np.ndarray, memory: Memory | None) -> Replay:
        """The `replay` of trees that have just been grown, without gradients: their states are there already."""
        device, actions = grown.states.device, trees.actions
        state = np.where(actions == Action.NOP, NONE, grown.state)
        if memory is None:
            composing = composition_plan(trees, symbols, self.vocabulary, True, device)
            return Replay(grown.states, state, self.composition(self.embed.weight, composing), composing.slot, None)
        row, step = (actions == Action.NT).nonzero()
        column = ((actions == Action.NT).cumsum(1) - 1)[row, step]
        place = tuple(torch.from_numpy(index).to(device) for index in (row, column))
        queries = memory.keys.new_zeros(len(actions), int(column.max(initial=-1)) + 1, self.size)
        queries[place] = grown.states.index_select(0, torch.from_numpy(state[row, step]).to(device))
        scores = torch.bmm(precise(queries), precise(memory.keys).transpose(1, 2))
        weights = scores.masked_fill_(~memory.mask[:, None], float("-inf")).softmax(2)
        attention = torch.zeros_like(weights)
        attention[place] = weights[place]
        return Replay(grown.states, state, None, None, attention)

    def memory(self, replay: Replay, trees: Constituents) -> Memory:
        """What a decoder attends to (Sec. 2.2): all constituents of each sentence, in the order of opening.

        The key is the state of the stack when the constituent had just been opened, the value its phrase.
        """
        device = replay.states.device
        row = trees.row
        roots = (trees.parent == NONE).nonzero()[0]
        column = np.arange(len(trees)) - roots[row]
        shape = (len(roots), int(column.max(initial=-1)) + 1)
        place = torch.from_numpy(row * shape[1] + column).to(device)
        values = replay.phrases.index_select(0, torch.from_numpy(replay.slot).to(device))
        # the state on which the action after the opening was decided
        opened = replay.state[row, trees.opened + 1]
        keys = replay.states.index_select(0, torch.from_numpy(opened).to(device))
        mask = torch.zeros(shape, dtype=torch.bool, device=device).flatten()
        mask[place] = True

        def padded(items):
            return items.new_zeros(shape[0] * shape[1], self.size).index_copy(0, place, items).unflatten(0, shape)

        return Memory(padded(keys), padded(values), mask.unflatten(0, shape))

    def scores(
        self,
        replay: Replay,
        trees: Constituents,
        symbols: np.ndarray,
        legal: np.ndarray,
        capped: np.ndarray,
        detach_output: bool = False,
    ) -> TreeScores:
        """Scores of all actions and symbols (Sec. 2.1); `legal` and `capped` are those of `legality`."""
        states, actions = replay.states, trees.actions
        device = states.device

        def there(array):
            return torch.from_numpy(array).to(device)

        # the host knows where actions are; with masks on a GPU it would have to wait
        places = (actions != Action.NOP).ravel().nonzero()[0]
        generating = (actions == Action.GEN).ravel().nonzero()[0]
        where, state, action = there(places), there(replay.state.ravel()[places]), there(actions)
        forbidden = there(~legal.reshape(-1, NUM_ACTIONS)[places])

        policy_states = states.detach() if self.detach_policy else states
        log_policy = self.log_policy(policy_states.index_select(0, state), forbidden)
        taken = log_policy.gather(1, action.flatten()[where, None]).squeeze(1)

        symbol, generated = there(symbols), there(generating)
        output_states = states.detach() if detach_output else states
        logits = precise(self.output(output_states.index_select(0, there(replay.state.ravel()[generating]))))
        loss = nn.functional.cross_entropy(logits, symbol.flatten()[generated], reduction="none")

        def spread(values, places):
            return values.new_zeros(actions.size).index_copy(0, places, values).view(actions.shape)

        return TreeScores(
            actions=action,
            constituents=trees,
            symbols=symbol,
            log_policy=spread(taken, where),
            symbol_loss=spread(loss, generated),
            capped=capped,
        )

    def log_policy(self, states: Tensor, forbidden: Tensor) -> Tensor:
        """(n, 3) float32 log probabilities of the actions in (n, H) states; `forbidden` (n, 3) bool."""
        return self.policy_scores(states).masked_fill(forbidden, FORBIDDEN).log_softmax(1)

    def policy_scores(self, states: Tensor) -> Tensor:
        """(n, 3) float32 scores of the actions in (n, H) states."""
        return precise(self.policy(states))

    def forward(
        self,
        actions: np.ndarray,
        text: np.ndarray,
        limits: Limits,
        memory: Memory | None = None,
        most: np.ndarray | None = None,
        grown: Grown | None = None,
        detach_output: bool = False,
    ) -> tuple[TreeScores, Replay]:
        """Scores of given trees.

        Args:
            actions: (B, T) of `Action`, padded with NOP.
            text: (B, n + 1) symbols, each sentence followed by its end and padding.
            memory, most: see `replay` and `legality`.
            grown: the same trees, if they have just been grown; saves the replay where no gradients are needed.
            detach_output: losses of symbols train only the output layer.

        Raises ValueError: an action is not legal, or the actions do not fit the text.
        """
        legal, capped = legality(actions, (text != self.padding).sum(1) - 1, limits, most)
        trees = constituents(actions)
        symbols = generated_symbols(actions, text, self.padding)
        if grown is None or torch.is_grad_enabled():
            replay = self.replay(trees, symbols, memory)
        else:
            replay = self.remembered(grown, trees, symbols, memory)
        return self.scores(replay, trees, symbols, legal, capped, detach_output), replay


def generated_symbols(actions: np.ndarray, text: np.ndarray, padding: int) -> np.ndarray:
    """(B, T) the symbol of each GEN, from texts (B, n + 1) with their ends; padding elsewhere."""
    gen = actions == Action.GEN
    place = np.clip(gen.cumsum(1) - 1, 0, text.shape[1] - 1)
    return np.where(gen, np.take_along_axis(text, place, axis=1), padding)


# --- trees that are being built --------------------------------------------------------------------------------------


class _Store:
    """Rows that are only ever appended to, so that a number always means the same row.

    Args:
        rows: (2, n, K) the first ones; n grows.
        room: how many more to make room for at first.
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
        """Append this many and return them, (2, number, K), to be written."""
        start, self.count = self.count, self.count + number
        if self.count > self._rows.shape[1]:
            self.count = start
            self._make_room(max(number, start))
            self.count += number
        return self._rows[:, start : self.count]

    def read(self, numbers: Tensor) -> Tensor:
        """The rows (2, n, K) of these numbers (n,)."""
        return self._rows.index_select(1, numbers)

    def all(self) -> Tensor:
        """All rows, (2, n, K)."""
        return self._rows[:, : self.count]


class RNNGState:
    """The progress of B rows in building their trees; nothing here has a gradient.

    Integers are on the host. It knows all stacks from the actions that were taken, so the device is sent numbers of
    states and entries, and asked for nothing. Stacks hold numbers of states, which are never overwritten.

    Args:
        grammar: the side whose trees are built.
        lengths: (B,) symbols of each row without its end, or the most it may have.
        memory: what new nonterminals attend to, see `RNNG.replay`.

    Attributes:
        transitions: what is legal.
        forbid: (4, 3) what is added to scores of actions if none, NT, REDUCE or both are not legal.
        state: (B,) number of the state on top of each stack.
    """

    @torch.inference_mode()
    def __init__(self, grammar: RNNG, lengths: np.ndarray, limits: Limits, memory: Memory | None = None):
        rows, longest = len(lengths), int(lengths.max())
        self.grammar, self.memory = grammar, memory
        self.transitions = Transitions(lengths, limits)
        stack, composition, embeddings = grammar.stack, grammar.composition, grammar.embed.weight
        new = grammar.nonterminal[None] if memory is None else embeddings.new_zeros(1, grammar.size)
        self.forbid = precise(embeddings.new_zeros(4, NUM_ACTIONS))
        self.forbid[1::2, Action.NT] = self.forbid[2:, Action.REDUCE] = -torch.inf
        # laid out for products with few rows, which on a CPU take up to twice as long otherwise
        self._recurrent = stack.recurrent_weight.t().contiguous()  # (H, 4H)
        self._attended = stack.input_weight.t().contiguous()  # (H, 4H)
        self._composing = composition.recurrent_weight.transpose(1, 2).contiguous()  # (2, H, 4H)
        # what phrases add to the gates of the stack, and as children to those of either direction: (H, 12H)
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
        # the place of the nonterminal of each open constituent, and the state below it; those of the root are not used
        self._open = np.zeros((rows, limits.max_open + 1, 2), dtype=int)

    def hidden(self, numbers: Tensor) -> Tensor:
        """(n, H) states of these numbers (n,)."""
        return self.all_hidden().index_select(0, numbers)

    def all_hidden(self) -> Tensor:
        """(N, H) all states so far, by their numbers."""
        return self._states.all()[0]

    def _push(self, gates: Tensor, below: Tensor) -> None:
        """Append the states of entries with these gates (n, 4H) on others, (2, n, H)."""
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
            opened, under = self._open[reduce, inside[reduce]].T
            place = np.concatenate((self._place[pushing] + 1, opened))
            below = np.concatenate((self.state[pushing], under))
            codes = np.concatenate((symbols[pushing], phrases + np.arange(len(reduce))))
            codes[: len(nt)] = self.grammar.vocabulary
            self._open[nt, inside[nt] + 1] = np.stack((place, below), 1)[: len(nt)]
            sizes, *children = self._children(reduce, opened)
            entries, on, rows_of_nt, *children = sent_up(
                self._recurrent.device, codes[: len(pushing)], below, nt, *children
            )
            states, gates = self._states.read(on), self._entry_gates.index_select(0, entries)
            if self.memory is not None and len(nt):
                _, sums = self.memory.attend(rows_of_nt, states[0, : len(nt)])
                gates[: len(nt)].addmm_(sums, self._attended)
            if len(reduce):
                gates = torch.cat((gates, self._compose(sizes, *children)))
            self._push(gates, states)
            self.state[rows] = self._states.count - len(rows) + np.arange(len(rows))
            self._codes[rows, place], self._place[rows] = codes, place
        self.transitions.step(actions, ends)

    def _children(self, rows: np.ndarray, opened: np.ndarray) -> tuple[list[int], np.ndarray, np.ndarray, np.ndarray]:
        """How the innermost constituents of n rows, opened at these places, are composed; see `Composition.compose`.

        Returns the number of phrases at each step, codes of the M children from the first on, and from the last on, and
        where the last child of each phrase is packed.
        """
        top = self._place[rows]
        counts = top - opened
        order = np.argsort(-counts, kind="stable")
        step, number = (np.arange(counts.max(initial=0))[:, None] < counts[order]).nonzero()
        sizes = np.bincount(step)
        last = np.empty_like(order)
        last[order] = (sizes.cumsum() - sizes)[counts[order] - 1] + np.arange(len(order))
        phrase = order[number]
        row = rows[phrase]
        return sizes.tolist(), self._codes[row, opened[phrase] + 1 + step], self._codes[row, top[phrase] - step], last

    def _compose(self, sizes: list[int], forward: Tensor, backward: Tensor, last: Tensor) -> Tensor:
        """(n, 4H) what phrases add to the gates of the stack; they are entered as children."""
        children = torch.stack(
            [of.index_select(0, codes) for of, codes in zip(self._child_gates.all(), (forward, backward), strict=True)]
        )
        phrases = self.grammar.composition.compose(children, sizes, last, self._composing)
        added = torch.addmm(self._bias, phrases, self._phrase).unflatten(1, (3, -1))
        self._child_gates.append(len(phrases)).copy_(added[:, 1:].transpose(0, 1))
        return added[:, 0]


def sent_up(device: torch.device, *arrays: np.ndarray) -> tuple[Tensor, ...]:
    """Integers of the host on the device, in one copy."""
    packed = torch.from_numpy(np.concatenate(arrays)).to(device, non_blocking=True)
    return packed.split([len(array) for array in arrays])

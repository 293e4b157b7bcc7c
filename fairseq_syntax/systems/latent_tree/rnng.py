"""Recurrent neural network grammars with unlabelled constituents: one side of the latent-tree translator.

Trees are known here (see `rnng_state` for how they are made up). Bradbury & Socher 2017, Sec. 2; Dyer et al. 2016.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from .composition import Composition, DevicePlan
from .constituents import NONE, Constituents, constituents
from .legality import legality
from .replay_plan import composition_plan, stack_plan
from .stack_lstm import DeviceStackPlan, Memory, StackLSTM, precise
from .transitions import NUM_ACTIONS, Action, Limits

FORBIDDEN = -1e9  # added to the score of an action that is not legal; finite, so that its gradient is 0 and not NaN


class AttentionKey(StrEnum):
    """What of a source constituent is compared with the decoder's state."""

    open = "open"  # the state of the stack when it had just been opened
    closed = "closed"  # its phrase embedding


@dataclass(frozen=True)
class TreeScores:
    """One side of B sentences under given trees of at most T actions."""

    actions: Tensor  # (B, T) of `Action`
    constituents: Constituents  # what they build
    symbols: Tensor  # (B, T) what each GEN generates, the end of the sentence included; padding elsewhere
    log_policy: Tensor  # (B, T) float32, log probability of each action; 0 for NOP
    entropy: Tensor  # (B, T) float32, of the policy when each action was taken; 0 for NOP
    symbol_loss: Tensor  # (B, T) float32, negative log probability of each symbol; 0 where there is no GEN
    values: Tensor | None  # (B, T) float32, expected reward-to-go before each action, where the model has a head for it
    capped: np.ndarray  # (B,) bool, sentences whose budget of actions forbade an NT


class Grown(NamedTuple):
    """Trees of B sentences, that have been made up in T turns or fewer.

    Attributes:
        actions: (B, T), filled up with NOP.
        symbols: (B, T) what each GEN has generated; anything elsewhere.
        states: (N, H) of the stack, without gradients.
        state: (B, T) number of the state before each action; anything for NOP.
    """

    actions: Tensor
    symbols: Tensor
    states: Tensor
    state: Tensor


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
    """States and phrases of B sentences."""

    states: Tensor  # (N, H) of the stack, one for each action
    state: np.ndarray  # (B, T) number of the state before each action; `NONE` for NOP
    phrases: Tensor | None  # (C, H); None without gradients, with a memory
    slot: np.ndarray  # (constituents,) each one's phrase; `NONE` where there is none
    attention: Tensor | None  # (B, J, I), or None


class RNNG(nn.Module):
    """A stack-only recurrent neural network grammar over symbols.

    Args:
        vocabulary, padding: V, number of symbols, and the one of them that is padding.
        size: H, of embeddings, phrases and states.
        own_nonterminal: new nonterminals (or the root alone, with attention) are pushed as a learned vector.
        scale: of the dot products of attention.
        value_head: predict the rewards to come, for the `value` baseline.
        detach_policy: policy gradients train the policy's own weights alone.
        detach_output: losses of symbols train the output's own weights alone.
        side: which of the translator, "source" or "target", for messages.
    """

    def __init__(
        self,
        vocabulary: int,
        padding: int,
        size: int,
        own_nonterminal: bool = True,
        scale: float = 1.0,
        value_head: bool = False,
        detach_policy: bool = False,
        detach_output: bool = False,
        side: str = "source",
    ):
        super().__init__()
        self.vocabulary = vocabulary
        self.padding = padding
        self.size = size
        self.side = side
        self.detach_policy = detach_policy
        self.detach_output = detach_output
        self.embed = nn.Embedding(vocabulary, size)  # N(0, 1), as the paper's random vectors
        self.nonterminal = nn.Parameter(torch.randn(size)) if own_nonterminal else None
        self.composition = Composition(size)
        self.stack = StackLSTM(size, scale)
        self.policy = nn.Linear(size, NUM_ACTIONS)
        self.output = nn.Linear(size, vocabulary)
        self.value = None
        if value_head:
            self.value = nn.Sequential(nn.Linear(size, size), nn.Tanh(), nn.Linear(size, 1))

    def replay(
        self,
        trees: Constituents,
        actions: np.ndarray,
        symbols: np.ndarray,
        memory: Memory | None = None,
        roots: Tensor | None = None,
    ) -> Replay:
        """Compose all phrases and compute all states of given trees of B sentences.

        Args:
            actions, symbols: (B, T) that built them, and what each GEN generates.
            memory: what new nonterminals attend to; without it they are the learned vector, and all phrases are
                composed, also those closed automatically.
            roots: (B, H) what the roots are pushed as; the learned vector when not given.
        """
        device = self.embed.weight.device
        composing = composition_plan(trees, actions, symbols, self.vocabulary, complete=memory is None)
        phrases = self.composition(self.embed.weight, DevicePlan.of(composing, device))
        stacking = stack_plan(trees, actions, symbols, self.vocabulary, composing.slot)
        new = self.nonterminal[None] if memory is None else phrases.new_zeros(1, self.size)
        roots = self.nonterminal[None] if roots is None else roots
        stacking.code[: stacking.sizes[0]] = (
            self.vocabulary + 1 + len(phrases) + np.arange(stacking.sizes[0]) % len(roots)
        )
        entries = torch.cat((self.embed.weight, new, phrases, roots))
        states, attention = self.stack(entries, DeviceStackPlan.of(stacking, device), memory)
        return Replay(states, stacking.state, phrases, composing.slot, attention)

    def remembered(
        self, grown: Grown, trees: Constituents, actions: np.ndarray, symbols: np.ndarray, memory: Memory | None
    ) -> Replay:
        """The same as `replay` of trees that have just been made up, without gradients: their states are there."""
        device = grown.states.device
        state = np.where(actions == Action.NOP, NONE, grown.state[:, : actions.shape[1]].cpu().numpy())
        composing = composition_plan(trees, actions, symbols, self.vocabulary, complete=memory is None)
        if memory is None:
            phrases = self.composition(self.embed.weight, DevicePlan.of(composing, device))
            return Replay(grown.states, state, phrases, composing.slot, None)
        row, step = (actions == Action.NT).nonzero()
        column = ((actions == Action.NT).cumsum(1) - 1)[row, step]
        place = tuple(torch.from_numpy(index).to(device) for index in (row, column))
        queries = memory.keys.new_zeros(len(actions), int(column.max(initial=-1)) + 1, self.size)
        queries[place] = grown.states.index_select(0, torch.from_numpy(state[row, step]).to(device))
        scores = torch.bmm(precise(queries), precise(memory.keys).transpose(1, 2)) * self.stack.scale
        weights = scores.masked_fill_(~memory.mask[:, None], float("-inf")).softmax(2)
        attention = torch.zeros_like(weights)
        attention[place] = weights[place]
        return Replay(grown.states, state, None, composing.slot, attention)

    def memory(self, replay: Replay, trees: Constituents, key: AttentionKey) -> Memory:
        """What a decoder attends to (Sec. 2.2): all constituents of each sentence, in the order of opening."""
        device = replay.states.device
        row = trees.row
        roots = (trees.parent == NONE).nonzero()[0]
        column = np.arange(len(trees)) - roots[row]
        shape = (len(roots), int(column.max(initial=-1)) + 1)
        place = torch.from_numpy(row * shape[1] + column).to(device)
        values = replay.phrases.index_select(0, torch.from_numpy(replay.slot).to(device))
        keys = values
        if key == AttentionKey.open:
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
        actions: np.ndarray,
        symbols: np.ndarray,
        legal: np.ndarray,
        capped: np.ndarray,
    ) -> TreeScores:
        """How probable actions and symbols are (Sec. 2.1), one product with each weight for all; see `legality`."""
        states = replay.states
        device = states.device

        def there(array):
            return torch.from_numpy(array).to(device)

        # the host knows where actions are: on a GPU, masks of its own would make it wait
        places = (actions != Action.NOP).ravel().nonzero()[0]
        generating = (actions == Action.GEN).ravel().nonzero()[0]
        where, state, action = there(places), there(replay.state.ravel()[places]), there(actions)
        forbidden = there(~legal.reshape(-1, NUM_ACTIONS)[places])

        policy_states = states.detach() if self.detach_policy else states
        log_policy = self.log_policy(policy_states.index_select(0, state), forbidden)
        taken = log_policy.gather(1, action.flatten()[where, None]).squeeze(1)
        entropy = -(log_policy.exp() * log_policy).sum(1)

        symbol, generated = there(symbols), there(generating)
        output_states = states.detach() if self.detach_output else states
        logits = precise(self.output(output_states.index_select(0, there(replay.state.ravel()[generating]))))
        loss = nn.functional.cross_entropy(logits, symbol.flatten()[generated], reduction="none")

        def spread(values, places):
            return values.new_zeros(actions.size).index_copy(0, places, values).view(actions.shape)

        values = None
        if self.value is not None:
            values = spread(precise(self.value(states.detach().index_select(0, state)).squeeze(1)), where)
        return TreeScores(
            actions=action,
            constituents=trees,
            symbols=symbol,
            log_policy=spread(taken, where),
            entropy=spread(entropy, where),
            symbol_loss=spread(loss, generated),
            values=values,
            capped=capped,
        )

    def log_policy(self, states: Tensor, forbidden: Tensor) -> Tensor:
        """(n, 3) float32 log probabilities of the actions in (n, H) states; `forbidden` (n, 3) bool."""
        return self.policy_scores(states).masked_fill(forbidden, FORBIDDEN).log_softmax(1)

    def policy_scores(self, states: Tensor) -> Tensor:
        """(n, 3) float32 scores of the actions in (n, H) states."""
        return precise(self.policy(states))

    def checked(self, log_probabilities: Tensor, before: Tensor, head: str) -> Tensor:
        """Log probabilities (n, K) by which trees or texts are made up, which must be numbers.

        `before` (n,) is how many choices each row has made, `head` which of the grammar's gave them, "policy" or
        "output". Raises FloatingPointError: one is not finite; side, choice and the norms of all weights are named.
        """
        finite = torch.isfinite(log_probabilities)
        if not finite.all():
            first = int((~finite).any(1).long().argmax())
            norms = (f"{self.side}.{name} {parameter.norm():.3g}" for name, parameter in self.named_parameters())
            raise FloatingPointError(
                f"{self.side} side: the {head} gave a probability that is not a number at step {int(before[first])}; "
                f"norms of the parameters: {', '.join(norms)}"
            )
        return log_probabilities

    def forward(
        self,
        actions: np.ndarray,
        text: np.ndarray,
        limits: Limits,
        memory: Memory | None = None,
        roots: Tensor | None = None,
        most: np.ndarray | None = None,
        grown: Grown | None = None,
    ) -> tuple[TreeScores, Replay]:
        """Scores of given trees.

        Args:
            actions: (B, T) of `Action`, filled up with NOP.
            text: (B, n + 1) symbols, each sentence followed by its end and padding.
            memory, roots, most: see `replay` and `legality`.
            grown: the same trees, if they have just been made up.

        Raises ValueError: an action is not legal, or the actions do not fit the text.
        """
        legal, capped = legality(actions, (text != self.padding).sum(1) - 1, limits, most)
        trees = constituents(actions)
        symbols = generated_symbols(actions, text, self.padding)
        if grown is None or torch.is_grad_enabled():
            replay = self.replay(trees, actions, symbols, memory, roots)
        else:
            replay = self.remembered(grown, trees, actions, symbols, memory)
        return self.scores(replay, trees, actions, symbols, legal, capped), replay


def generated_symbols(actions: np.ndarray, text: np.ndarray, padding: int) -> np.ndarray:
    """(B, T) the symbol of each GEN, of texts (B, n + 1) with their ends; padding elsewhere."""
    gen = actions == Action.GEN
    place = np.clip(gen.cumsum(1) - 1, 0, text.shape[1] - 1)
    return np.where(gen, np.take_along_axis(text, place, axis=1), padding)

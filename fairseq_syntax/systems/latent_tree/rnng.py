"""Recurrent neural network grammars with unlabelled constituents: one side of the latent-tree translator.

`RNNG` computes with trees that `growing` has built without gradients. Bradbury & Socher 2017, Sec. 2;
Dyer et al. 2016.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from .layers import Composition, Grown, Memory, StackLSTM, composition_plan, precise, stack_plan
from .transitions import NONE, NUM_ACTIONS, Action, Constituents, Limits, constituents, legality

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
    phrases: Tensor  # (C, H)
    slot: np.ndarray  # number of the phrase of each constituent, `NONE` where it has none
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

    def replay(self, grown: Grown, trees: Constituents, symbols: np.ndarray, memory: Memory | None = None) -> Replay:
        """All phrases and states of B sentences whose trees have been grown, with gradients.

        Args:
            trees, symbols: what the actions build, and (B, T) what each GEN generates.
            memory: what new nonterminals attend to; roots are the phrase of the source's root. Without it, both are the
                learned vector, and all phrases are composed, also those closed automatically.
        """
        device = self.embed.weight.device
        composing = composition_plan(trees, symbols, self.vocabulary, memory is None, grown, device)
        phrases = self.composition(self.embed.weight, composing, grown)
        new = self.nonterminal[None] if memory is None else phrases.new_zeros(1, self.size)
        roots = self.nonterminal[None] if memory is None else memory.values[:, 0]
        stacking = stack_plan(trees, symbols, self.vocabulary, composing.slot, len(roots), grown, device)
        entries = torch.cat((self.embed.weight, new, phrases, roots))
        states, attention = self.stack(entries, stacking, memory, grown.states)
        return Replay(states, stacking.state, phrases, composing.slot, attention)

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
        grown: Grown,
        text: np.ndarray,
        limits: Limits,
        memory: Memory | None = None,
        most: np.ndarray | None = None,
        detach_output: bool = False,
    ) -> tuple[TreeScores, Replay]:
        """Scores of trees that have been grown.

        Args:
            text: (B, n + 1) symbols, each sentence followed by its end and padding.
            memory, most: see `replay` and `legality`.
            detach_output: losses of symbols train only the output layer.

        Raises ValueError: an action is not legal, or the actions do not fit the text.
        """
        legal, capped = legality(grown.actions, (text != self.padding).sum(1) - 1, limits, most)
        trees = constituents(grown.actions)
        symbols = generated_symbols(grown.actions, text, self.padding)
        replay = self.replay(grown, trees, symbols, memory)
        return self.scores(replay, trees, symbols, legal, capped, detach_output), replay


def generated_symbols(actions: np.ndarray, text: np.ndarray, padding: int) -> np.ndarray:
    """(B, T) the symbol of each GEN, from texts (B, n + 1) with their ends; padding elsewhere."""
    gen = actions == Action.GEN
    place = np.clip(gen.cumsum(1) - 1, 0, text.shape[1] - 1)
    return np.where(gen, np.take_along_axis(text, place, axis=1), padding)

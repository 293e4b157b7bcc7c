"""A small differentiable translator of trees, in double precision, whose actions are given; and all trees of a text.

It has what a latent-tree model has: policies and losses of symbols that depend on all actions before, a target that
depends on the source's tree, and attention between constituents.
"""

from types import SimpleNamespace

import numpy as np
import torch
from oracles.rnng_trees import all_action_rows
from oracles.transitions import legal_actions
from torch import nn

from fairseq_syntax.systems.latent_tree.reinforce import MovingBaselines
from fairseq_syntax.systems.latent_tree.transitions import NONE, Action, Limits, constituents

LIMITS = Limits(max_open=3, max_consecutive=2)
PADDING, END, SYMBOLS = 1, 2, 8


def all_actions(symbols: int) -> torch.Tensor:
    """(trees, T) every row of actions that is legal for a text of so many symbols."""
    budget = int(LIMITS.max_actions(symbols))
    rows = sorted(all_action_rows(symbols, LIMITS.max_open, LIMITS.max_consecutive, budget))
    width = max(map(len, rows))
    return torch.tensor([row + [int(Action.NOP)] * (width - len(row)) for row in rows])


class Side(nn.Module):
    """A recurrent network over actions and symbols."""

    def __init__(self, size: int):
        super().__init__()
        self.begin = nn.Parameter(torch.randn(size))
        self.action = nn.Embedding(4, size)
        self.symbol = nn.Embedding(SYMBOLS, size)
        self.recurrent = nn.Linear(size, size)
        self.policy = nn.Linear(size, 3)
        self.output = nn.Linear(size, SYMBOLS)

    def forward(self, actions, text, begin):
        """TreeScores of (B, T) actions over (B, n + 1) symbols, and the (B, T + 1, H) states."""
        lengths = text.ne(PADDING).sum(1) - 1
        gen, real = actions == Action.GEN, actions != Action.NOP
        place = (gen.cumsum(1) - 1).clamp(0, text.shape[1] - 1)
        symbols = torch.where(gen, text.gather(1, place), PADDING)
        state, states = torch.tanh(self.begin + begin).expand(len(text), -1), []
        for action, symbol in zip(actions.unbind(1), symbols.unbind(1), strict=True):
            states.append(state)
            state = torch.tanh(self.recurrent(state) + self.action(action) + self.symbol(symbol))
        states = torch.stack([*states, state], 1)
        before = states[:, :-1]
        forbidden = ~legal_actions(actions, lengths, LIMITS)
        log_policy = self.policy(before).masked_fill(forbidden, -1e9).log_softmax(2)
        taken = log_policy.gather(2, actions.clamp(max=2)[:, :, None]).squeeze(2)
        losses = -self.output(before).log_softmax(2).gather(2, symbols[:, :, None]).squeeze(2)
        scores = SimpleNamespace(
            actions=actions,
            constituents=constituents(actions.numpy()),
            symbols=symbols,
            log_policy=torch.where(real, taken, 0),
            entropy=torch.where(real, -(log_policy.exp() * log_policy).sum(2), 0),
            symbol_loss=torch.where(gen, losses, 0),
            capped=np.zeros(len(actions), dtype=bool),
        )
        return scores, states


class ToyTranslator(nn.Module):
    """Called as the real model is.

    Attributes:
        trees: what "sample" and "greedy" stand for: actions of source and target.
        calls: what it has been called with: trees, rows, generator.
    """

    def __init__(self, size: int = 6, seed: int = 0):
        super().__init__()
        torch.manual_seed(seed)
        self.source, self.target = Side(size), Side(size)
        self.over = nn.Linear(size, size)
        self.baselines = MovingBaselines(SYMBOLS, SYMBOLS)
        self.double()
        self.trees = {}
        self.calls = []

    def forward(self, src_tokens, src_lengths, target, trees, src_actions=None, tgt_actions=None, seeds=None):
        self.calls.append((trees, len(src_tokens), seeds))
        source_actions, target_actions = self.trees[trees]
        return self.pair(
            src_tokens,
            target,
            source_actions if src_actions is None else src_actions,
            target_actions if tgt_actions is None else tgt_actions,
        )

    def pair(self, src_tokens, target, source_actions, target_actions):
        """TreePair of (B, T) actions of both sides."""
        source, keys = self.source(source_actions, src_tokens, 0)
        end = keys[:, -1]
        target, queries = self.target(target_actions, target, self.over(end))
        rows = torch.arange(len(source_actions))[:, None]
        i, attended = places(source.constituents, len(rows), roots=True)
        j, attending = places(target.constituents, len(rows), roots=False)
        # of a source constituent the state when it has been opened, of the target's the one before
        scores = queries[rows, j] @ keys[rows, i + 1].transpose(1, 2)
        attention = scores.masked_fill(~attended[:, None], -1e9).softmax(2) * attending[:, :, None]
        return SimpleNamespace(
            source=source, target=target, attention=attention, attending=attending, attended=attended
        )


def places(built, rows: int, roots: bool):
    """(B, n) steps at which constituents were opened, -1 of roots and 0 in padding, and where there are any."""
    found = [[] for _ in range(rows)]
    for row, opened in zip(built.row.tolist(), built.opened.tolist(), strict=True):
        if roots or opened != NONE:
            found[row].append(opened)
    width = max(map(len, found))
    exists = torch.tensor([[n < len(row) for n in range(width)] for row in found], dtype=torch.bool).reshape(
        rows, width
    )
    steps = torch.tensor([row + [0] * (width - len(row)) for row in found], dtype=torch.long).reshape(rows, width)
    return steps, exists

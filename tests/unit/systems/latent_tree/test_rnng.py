"""The grammar over whole batches against the one that takes an action at a time."""

import random

import numpy as np
import pytest
import torch
from latent_trees import given_trees
from oracles import rnng as naive
from oracles.rnng_trees import all_action_rows, padded, random_actions
from torch.utils._python_dispatch import TorchDispatchMode

from fairseq_syntax.systems.latent_tree import growing
from fairseq_syntax.systems.latent_tree.growing import grow_trees
from fairseq_syntax.systems.latent_tree.rnng import RNNG
from fairseq_syntax.systems.latent_tree.transitions import Action, Limits, legality

LIMITS = Limits(max_open=5, max_consecutive=3)
VOCABULARY, PAD, EOS = 11, 1, 2
POLICIES = {"even": (0.3, 0.5, 0.2), "deep": (0.6, 0.2, 0.2), "flat": (0.05, 0.9, 0.05)}


def random_text(lengths, generator):
    """Random symbols, each sentence followed by its end and padding, (B, n + 1)."""
    text = torch.randint(3, VOCABULARY, (len(lengths), int(lengths.max()) + 1), generator=generator)
    place = torch.arange(text.shape[1])
    text[place == lengths[:, None]] = EOS
    text[place > lengths[:, None]] = PAD
    return text.numpy()


class Sides:
    """Both sides of random sentence pairs."""

    def __init__(self, sentences, policy="even", size=6, seed=0, dtype=torch.float64):
        self.generator = torch.Generator().manual_seed(seed)
        torch.manual_seed(seed)
        self.encoder = RNNG(VOCABULARY, PAD, size).to(dtype)
        self.decoder = RNNG(VOCABULARY, PAD, size, "target").to(dtype)
        self.lengths = [torch.randint(0, 9, (sentences,), generator=self.generator) for _ in "st"]
        self.texts = [random_text(lengths, self.generator) for lengths in self.lengths]
        limits, draw = (LIMITS.max_open, LIMITS.max_consecutive), random.Random(seed)
        self.actions = [
            padded([random_actions(draw, n, *limits, LIMITS.max_actions(n), POLICIES[policy]) for n in side.tolist()])
            for side in self.lengths
        ]

    def batched(self, rows=slice(None)):
        """Scores, replays and memory."""
        actions, texts = ([side[rows] for side in sides] for sides in (self.actions, self.texts))
        source, replayed = given_trees(self.encoder, actions[0], texts[0], LIMITS)
        memory = self.encoder.memory(replayed, source.constituents)
        target, replayed_target = given_trees(self.decoder, actions[1], texts[1], LIMITS, memory)
        return (source, replayed), (target, replayed_target), memory

    def naive(self, row):
        """Both sides of one sentence, an action at a time."""
        actions = [side[row][side[row] != Action.NOP].tolist() for side in self.actions]
        texts = [
            text[row, : int(lengths[row]) + 1].tolist() for text, lengths in zip(self.texts, self.lengths, strict=True)
        ]
        source = naive.run(self.encoder, LIMITS, actions[0], texts[0])
        return source, naive.run(self.decoder, LIMITS, actions[1], texts[1], source["keys"], source["values"])

    def parameters(self):
        """Of both sides."""
        return [*self.encoder.parameters(), *self.decoder.parameters()]


def weighted(values):
    """A number that tells all of some values apart."""
    weights = torch.arange(1, values.numel() + 1, dtype=values.dtype).view(values.shape)
    return (values * weights.cos()).sum()


@pytest.mark.parametrize(
    ("policy", "sentences", "dtype", "forward", "backward"),
    [
        ("even", 1, torch.float64, 1e-12, 1e-9),
        ("deep", 12, torch.float64, 1e-12, 1e-9),
        ("flat", 7, torch.float64, 1e-12, 1e-9),
        ("even", 8, torch.float32, 1e-5, 1e-4),
    ],
)
def test_equals_an_action_at_a_time(policy, sentences, dtype, forward, backward):
    sides = Sides(sentences, policy, dtype=dtype, seed=sentences)
    batched = sides.batched()
    memory = batched[2]
    ours, slow = [], []
    for row in range(sentences):
        for (scores, replay), result in zip(batched, sides.naive(row), strict=False):
            number = len(result["states"])
            generated = scores.actions[row] == Action.GEN
            ours += [replay.states[replay.state[row, :number]], scores.symbol_loss[row][generated]]
            slow += [torch.stack(result["states"]), torch.stack(result["symbol_loss"])]
            ours.append(scores.log_policy[row, :number])
            slow.append(torch.stack([naive.log_policy(*entry) for entry in result["policies"]]))
        source, target = sides.naive(row)
        count = len(source["keys"])
        ours += [memory.keys[row, :count], memory.values[row, :count]]
        slow += [source["keys"], source["values"]]
        assert memory.mask[row].tolist() == [place < count for place in range(memory.mask.shape[1])]
        attention = batched[1][1].attention[row]
        ours += [attention[j, :count] for j in range(len(target["attention"]))]
        slow += target["attention"]
        assert (attention[:, count:] == 0).all()
    for mine, theirs in zip(ours, slow, strict=True):
        torch.testing.assert_close(mine, theirs, atol=forward, rtol=forward)
    gradients = [
        torch.autograd.grad(sum(map(weighted, values)), sides.parameters(), allow_unused=True, retain_graph=True)
        for values in (ours, slow)
    ]
    for mine, theirs in zip(*gradients, strict=True):
        expected = torch.zeros_like(mine) if theirs is None else theirs
        scale = max(1.0, float(expected.abs().max()))
        torch.testing.assert_close(mine / scale, expected / scale, atol=backward, rtol=0)


class Operations(TorchDispatchMode):
    """How many tensor operations are done."""

    def __init__(self):
        super().__init__()
        self.number = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.number += 1
        return function(*args, **(kwargs or {}))


def test_operations_are_of_steps_and_not_of_sentences():
    """Neither growing nor replaying loops over a batch in Python."""
    grammar, generator = RNNG(VOCABULARY, PAD, 8), torch.Generator().manual_seed(0)
    grammar.policy.weight.data.zero_()
    grammar.policy.bias.data.copy_(torch.tensor((0.13, 0.66, 0.21)).log())
    lengths = torch.full((64,), 40)
    text = random_text(lengths, generator)
    numbers = []
    for rows in (slice(8), slice(64)):
        seeds = [(i,) for i in range(len(lengths[rows]))]
        with Operations() as growing_them:
            grown = grow_trees(grammar, lengths[rows].numpy(), LIMITS, text[rows], seeds=seeds)
        with Operations() as replaying:
            scores, _ = grammar(grown, text[rows], LIMITS)
            (scores.symbol_loss.sum() - scores.log_policy.sum()).backward()
        numbers.append((growing_them.number, replaying.number))
    few, many = numbers
    # the longest tree, and the sizes and places of constituents, are what more sentences have more of
    assert many[0] < 2 * few[0] and many[1] < 3 * few[1]


def test_greedy_trees_are_the_best_actions_of_the_replay_however_long_sentences_wait(monkeypatch):
    sides = Sides(12, seed=3)
    for grammar in (sides.encoder, sides.decoder):
        grammar.policy.weight.data *= 8  # so that no two actions are equally probable
    memory = sides.batched()[2]
    for grammar, lengths, text, attended in zip(
        (sides.encoder, sides.decoder), sides.lengths, sides.texts, (None, memory), strict=True
    ):
        grown = []
        for wait in (0.5, 0.0, 1.0):
            monkeypatch.setattr(growing, "WAIT", wait)
            grown.append(grow_trees(grammar, lengths.numpy(), LIMITS, text, attended, greedy=True))
        actions = grown[0].actions
        _, replay = given_trees(grammar, actions, text, LIMITS, attended)
        places = (actions != Action.NOP).nonzero()
        for each in grown:
            assert np.array_equal(each.actions, actions)
            torch.testing.assert_close(each.states[0][each.state[places]], replay.states[replay.state[places]])
        # all alternatives, as probable as they would have been
        legal, _ = legality(actions, (text != PAD).sum(1) - 1, LIMITS)
        row, step = (actions != Action.NOP).nonzero()
        forbidden = torch.from_numpy(~legal[row, step])
        best = grammar.log_policy(replay.states[replay.state[row, step]], forbidden).argmax(1)
        assert best.tolist() == actions[row, step].tolist()


@pytest.mark.parametrize("seeded", [True, False])
def test_sampled_trees_follow_the_policy(seeded):
    """A chi-square test of 8,000 draws against the probabilities of all trees of two symbols."""
    limits = Limits(max_open=3, max_consecutive=2)
    torch.manual_seed(0)
    grammar = RNNG(VOCABULARY, PAD, 4).double()
    grammar.policy.weight.data *= 3
    text = np.array([[5, 7, EOS]])
    trees = [tuple(row) for row in all_action_rows(2, limits.max_open, limits.max_consecutive, limits.max_actions(2))]
    width = max(map(len, trees))
    actions = np.array([[*tree, *[Action.NOP] * (width - len(tree))] for tree in trees])
    scores, _ = given_trees(grammar, actions, text.repeat(len(trees), 0), limits)
    probable = scores.log_policy.sum(1).exp()
    assert probable.sum().item() == pytest.approx(1)
    draws = 8000
    lengths = np.full(draws, 2)
    seeds = [(1, i) for i in range(draws)] if seeded else None
    torch.manual_seed(1)
    grown = grow_trees(grammar, lengths, limits, text.repeat(draws, 0), seeds=seeds).actions
    counts = dict.fromkeys(trees, 0)
    for row in grown:
        counts[tuple(row[row != Action.NOP].tolist())] += 1
    expected = probable.detach().numpy() * draws
    seen = np.array([counts[tree] for tree in trees])
    statistic = ((seen - expected) ** 2 / expected).sum()
    assert statistic < len(trees) - 1 + 4 * (2 * (len(trees) - 1)) ** 0.5

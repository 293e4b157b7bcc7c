"""A small latent-tree translator in double precision, whose trees are given; and all trees of a text."""

import latent_trees
import torch
from oracles.rnng_trees import all_action_rows, padded

from fairseq_syntax.systems.latent_tree.transitions import Limits

LIMITS = Limits(max_open=3, max_consecutive=2)
PADDING, END, SYMBOLS = 1, 2, 8


def all_actions(symbols: int) -> torch.Tensor:
    """(trees, T) every row of actions that is legal for a text of so many symbols."""
    budget = int(LIMITS.max_actions(symbols))
    return torch.from_numpy(padded(sorted(all_action_rows(symbols, LIMITS.max_open, LIMITS.max_consecutive, budget))))


def translator(seed=0):
    """The model; its `trees` are what "sample" and "greedy" stand for: (B, T) actions of source and target."""
    task, model = latent_trees.build(seed=seed, sharpness=1.0, symbols="abcd")
    model.limits = LIMITS
    words, compute = task.source_dictionary, model.forward
    assert (words.pad(), words.eos(), len(words)) == (PADDING, END, SYMBOLS)

    def forward(src_tokens, src_lengths, target, trees="sample", src_actions=None, tgt_actions=None, **options):
        given = (src_actions, tgt_actions)
        chosen = model.trees.get(trees, given)
        actions = [own if own is not None else tree for own, tree in zip(given, chosen, strict=True)]
        return compute(src_tokens, src_lengths, target, trees, *actions, **options)

    model.trees, model.forward = {}, forward
    return model.double().train()

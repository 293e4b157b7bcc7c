"""Small latent-tree translators and their batches."""

import torch
from fairseq.data import Dictionary, data_utils

from fairseq_syntax.systems.latent_tree.growing import grow_trees
from fairseq_syntax.systems.latent_tree.model import LatentTreeOptions, LatentTreeRNNG


class Task:
    """What a model asks of its task."""

    builds_trees = True

    def __init__(self, symbols="abc"):
        self.source_dictionary = Dictionary()
        for symbol in symbols:
            self.source_dictionary.add_symbol(symbol)
        self.target_dictionary = self.source_dictionary


def build(size=6, seed=0, sharpness=4.0, symbols="abc", **options):
    """A task and a model whose choices differ clearly."""
    task = Task(symbols)
    torch.manual_seed(seed)
    model = LatentTreeRNNG.build_model(LatentTreeOptions(rnng_size=size, **options), task).eval()
    for grammar in (model.encoder, model.decoder):
        for head in (grammar.policy, grammar.output):
            head.weight.data *= sharpness
    return task, model


def sample(task, *sentences, left=False):
    """A batch of fairseq's."""
    rows = [task.source_dictionary.encode_line(" ".join(text), add_if_not_exist=False).long() for text in sentences]
    tokens = data_utils.collate_tokens(rows, task.source_dictionary.pad(), left_pad=left)
    return {"net_input": {"src_tokens": tokens, "src_lengths": torch.tensor([len(ids) for ids in rows])}}


def pairs(task, sources, targets, left=False):
    """A batch for training."""
    batch = sample(task, *sources, left=left)
    target = sample(task, *targets, left=left)["net_input"]["src_tokens"]
    ntokens = int(target.ne(task.target_dictionary.pad()).sum())
    return {**batch, "target": target, "nsentences": len(sources), "ntokens": ntokens, "id": torch.arange(len(sources))}


def given_trees(grammar, actions, text, limits, memory=None):
    """`TreeScores` and `Replay` of one side under given actions (B, T), for texts (B, n + 1)."""
    lengths = (text != grammar.padding).sum(1) - 1
    grown = grow_trees(grammar, lengths, limits, text, memory, actions=actions)
    return grammar(grown, text, limits, memory)

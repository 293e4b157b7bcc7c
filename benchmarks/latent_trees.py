"""Latent-tree RNNGs against fairseq's LSTM."""

import sys
from argparse import Namespace

import torch
from models import BenchmarkTask, SyntaxTranslationConfig, dictionary, update
from timing import peak_memory, report, report_memory, side_by_side

from fairseq_syntax.systems.latent_tree.generator import TreeGenerator
from fairseq_syntax.systems.latent_tree.model import LatentTreeOptions, LatentTreeRNNG
from fairseq_syntax.systems.latent_tree.reinforce import ReinforceTreeConfig, ReinforceTreeCriterion
from fairseq_syntax.systems.latent_tree.rnng import RNNG
from fairseq_syntax.systems.latent_tree.task import TreeTranslationConfig, TreeTranslationTask

CHARACTERS = 99
POLICY = (0.13, 0.66, 0.21)  # NT, GEN, REDUCE, where legal: about 1.4 actions a character


def random_text(sentences: int, characters: int, pad: int, eos: int, seed: int) -> torch.Tensor:
    """Texts of equal length with their ends, (B, n + 1)."""
    generator = torch.Generator().manual_seed(seed)
    text = torch.randint(max(pad, eos) + 2, CHARACTERS, (sentences, characters + 1), generator=generator)
    text[:, -1] = eos
    return text


def fix_policy(grammar: RNNG) -> None:
    """Let a grammar draw trees of usual depth: those of an untrained policy are deeper than all later ones."""
    grammar.policy.weight.data.zero_()
    grammar.policy.bias.data.copy_(torch.tensor(POLICY).log())


def translators(size: int) -> dict:
    """Name -> (task, model, criterion) of fairseq's LSTM with two layers and of ours."""
    symbols = dictionary(CHARACTERS)
    widths = ("encoder_embed_dim", "encoder_hidden_size", "decoder_embed_dim", "decoder_hidden_size")
    lstm = dict.fromkeys((*widths, "decoder_out_embed_dim"), size)
    lstm |= {"arch": "lstm", "criterion": "cross_entropy", "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.1}
    stock = BenchmarkTask(SyntaxTranslationConfig(data=".", source_lang="a", target_lang="b"), symbols, symbols)
    task = TreeTranslationTask(TreeTranslationConfig(data=".", source_lang="a", target_lang="b"), symbols, symbols)
    torch.manual_seed(1)
    criterion = stock.build_criterion(Namespace(_name=None, criterion="cross_entropy", sentence_avg=False))
    ours = LatentTreeRNNG.build_model(LatentTreeOptions(rnng_size=size), task)
    for grammar in (ours.encoder, ours.decoder):
        fix_policy(grammar)
    return {
        "lstm": (stock, stock.build_model(Namespace(**lstm)), criterion),
        "latent_tree_rnng": (task, ours, ReinforceTreeCriterion(task, ReinforceTreeConfig(seed=1))),
    }


def sentence_pairs(task, sentences: int, characters: int) -> dict:
    """A batch of random text."""
    symbols = task.source_dictionary
    source, target = (random_text(sentences, characters, symbols.pad(), symbols.eos(), seed) for seed in (1, 2))
    lengths = torch.full((sentences,), characters + 1)
    net_input = {"src_tokens": source, "src_lengths": lengths, "prev_output_tokens": target.roll(1, 1)}
    batch = {"id": torch.arange(sentences), "nsentences": sentences, "ntokens": target.numel()}
    return {**batch, "target": target, "net_input": net_input}


def training_step(system, batch: dict):
    """One update of a system, as a function; at the smallest of learning rates the policy stays what it is."""
    return update(*system[1:], [batch], lr=1e-12)


def whole_models(size: int, sentences: int, characters: int, rounds: int) -> None:
    """Training steps and greedy translation."""
    systems = translators(size)
    batch = sentence_pairs(systems["lstm"][0], sentences, characters)
    steps = {name: training_step(system, batch) for name, system in systems.items()}
    seconds = side_by_side(steps, rounds, warm_up=1)
    title = f"training step, size {size}, {sentences} pairs of {characters} characters"
    report(title, seconds, "lstm", 2 * batch["target"].numel())

    stock, lstm, _ = systems["lstm"]
    model = systems["latent_tree_rnng"][1]
    torch.manual_seed(1)  # the same trees whatever was drawn before
    for grammar in (model.encoder, model.decoder):
        # Policies that are the same everywhere build flat trees when the most probable action is taken. These do not.
        grammar.policy.reset_parameters()
        grammar.policy.weight.data.mul_(20)
    limit = {"min_len": characters, "max_len_a": 0, "max_len_b": characters}
    beam = stock.build_generator([lstm.eval()], Namespace(beam=1, **limit))
    task = systems["latent_tree_rnng"][0]
    trees = TreeGenerator(task.source_dictionary, task.target_dictionary, **limit)
    lines = [
        {"net_input": {name: value[row : row + 1] for name, value in batch["net_input"].items()}, "id": batch["id"][:1]}
        for row in range(min(10, sentences))
    ]
    for title, batches in ((f"{sentences} sentences", [batch]), ("sentences one at a time,", lines)):
        translating = {
            "lstm": lambda batches=batches: [stock.inference_step(beam, [lstm], one) for one in batches],
            "latent_tree_rnng": lambda batches=batches: [trees.generate([model], one) for one in batches],
        }
        seconds, words = side_by_side(translating, max(1, rounds // 2)), sum(len(one["id"]) for one in batches)
        title = f"greedy translation, size {size}, {title} of {characters} characters"
        report(title, seconds, "lstm", words * characters)
    found = [hypotheses[0] for hypotheses in trees.generate([model], batch)]
    assert all(len(hypothesis["tokens"]) == characters + 1 for hypothesis in found), "all are to have the same length"


def memory(name: str, size: int, sentences: int, characters: int) -> None:
    """Print the peak memory, in MiB, of this process in three training steps."""
    system = translators(size)[name]
    step = training_step(system, sentence_pairs(system[0], sentences, characters))
    for _ in range(3):
        step()
    print(peak_memory())


def run(quick: bool) -> None:
    """All of it.

    Args:
        quick: tiny sizes, one round.
    """
    size, characters = (16, 4) if quick else (384, 66)
    for sentences in (2,) if quick else (10, 64):
        whole_models(size, sentences, characters, 1 if quick else 5)
    arguments = {name: [name, f"{size}", f"{sentences}", f"{characters}"] for name in ("lstm", "latent_tree_rnng")}
    title = f"peak memory of a process that trains (size {size}, {sentences} pairs of {characters} characters)"
    report_memory(title, __file__, arguments, "lstm")


if __name__ == "__main__":
    memory(sys.argv[2], *map(int, sys.argv[3:]))

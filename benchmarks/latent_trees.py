"""Latent-tree RNNGs: whole batches against a sentence and an action at a time, and against fairseq's LSTM."""

import subprocess
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from fairseq.data import Dictionary
from fixed_stack import FixedStackRNNG
from timing import peak_memory, report, report_memory, report_table, side_by_side
from torch.utils.flop_counter import FlopCounterMode

from fairseq_syntax.systems.latent_tree.generator import TreeGenerator
from fairseq_syntax.systems.latent_tree.growing import given_text, grow_trees
from fairseq_syntax.systems.latent_tree.model import LatentTreeOptions, LatentTreeRNNG
from fairseq_syntax.systems.latent_tree.reinforce import ReinforceTreeConfig, ReinforceTreeCriterion
from fairseq_syntax.systems.latent_tree.rnng import RNNG
from fairseq_syntax.systems.latent_tree.task import TreeTranslationConfig, TreeTranslationTask
from fairseq_syntax.systems.latent_tree.transitions import Action, Limits, Transitions

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from oracles import rnng as naive

CHARACTERS = 99
PRODUCTS = ("mm", "addmm", "addmm_", "bmm", "baddbmm", "mkldnn_rnn_layer", "mkldnn_rnn_layer_backward")
POLICY = (0.13, 0.66, 0.21)  # NT, GEN, REDUCE, where legal: about 1.4 actions a character


def random_batch(sentences: int, characters: int, pad: int, eos: int, seed: int = 1) -> tuple[torch.Tensor, np.ndarray]:
    """Texts of equal length with their ends, (B, n + 1), and random trees of them, (B, T)."""
    generator = torch.Generator().manual_seed(seed)
    text = torch.randint(max(pad, eos) + 2, CHARACTERS, (sentences, characters + 1), generator=generator)
    text[:, -1] = eos
    state = Transitions(torch.full((sentences,), characters), Limits())
    actions = []
    while state.live.any():
        chosen = torch.multinomial(torch.tensor(POLICY) * state.legal(), 1, generator=generator).squeeze(1)
        actions.append(torch.where(state.live, chosen, int(Action.NOP)))
        state.step(actions[-1])
    return text, torch.stack(actions, 1).numpy()


def fix_policy(grammar: RNNG) -> None:
    """Let a grammar draw trees as `random_batch` does: those of an untrained policy are deeper than all later ones."""
    grammar.policy.weight.data.zero_()
    grammar.policy.bias.data.copy_(torch.tensor(POLICY).log())


def one_side(size: int, sentences: int, characters: int, rounds: int) -> None:
    """The loss of a language model with trees, forward and backward: trees given, and drawn first."""
    torch.manual_seed(1)
    grammar, limits = RNNG(CHARACTERS, 1, size), Limits()
    fix_policy(grammar)
    text, actions = random_batch(sentences, characters, 1, 2)
    lengths = torch.full((sentences,), characters)
    number = int((actions != Action.NOP).sum())

    def replay(trees=actions):
        grammar.zero_grad()
        scores, _ = grammar(trees, text.numpy(), limits)
        (scores.symbol_loss.sum() - scores.log_policy.sum()).backward()

    def draw_and_replay():
        torch.manual_seed(1)  # the same trees in every round, drawn as in training
        replay(grow_trees(grammar, lengths, limits, given_text(text, lengths)).actions.numpy())

    def action_by_action():
        grammar.zero_grad()
        for taken, line in zip(actions, text.tolist(), strict=True):
            result = naive.run(grammar, limits, taken[taken != Action.NOP].tolist(), line)
            policy = sum(naive.log_policy(*entry)[0] for entry in result["policies"])
            (sum(result["symbol_loss"]) - policy).backward()

    peer = FixedStackRNNG(grammar)

    def fixed_stack():
        peer.zero_grad()
        loss = peer(actions, text, limits)
        loss.backward()
        return loss.item()

    scores, _ = grammar(actions, text.numpy(), limits)
    ours = (scores.symbol_loss.sum() - scores.log_policy.sum()).item()
    assert abs(fixed_stack() / ours - 1) < 1e-4, "the peer computes the same"
    contestants = {"trees given": replay, "trees drawn first": draw_and_replay}
    seconds = side_by_side({"fixed stack": fixed_stack, **contestants}, rounds, warm_up=1)
    title = f"one side, size {size}, {sentences} sentences of {characters} characters, trees given"
    report(title, {name: seconds[name] for name in ("fixed stack", "trees given")}, "fixed stack")
    seconds = side_by_side({"an action at a time": action_by_action, **contestants}, rounds, warm_up=1)
    title = f"one side, size {size}, {sentences} sentences of {characters} characters ({number} actions)"
    report(title, seconds, "an action at a time")
    for name, value in seconds.items():
        print(f"  {name:28} {number / value:10.0f} actions/s")


def dictionary() -> Dictionary:
    """As many symbols as German text has characters."""
    result = Dictionary()
    for number in range(CHARACTERS - len(result)):
        result.add_symbol(f"c{number}")
    return result


def translators(size: int) -> dict:
    """Name -> (task, model, criterion) of fairseq's LSTM with two layers and of ours."""
    from models import BenchmarkTask, SyntaxTranslationConfig

    symbols = dictionary()
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
    source, target = (random_batch(sentences, characters, symbols.pad(), symbols.eos(), seed)[0] for seed in (1, 2))
    lengths = torch.full((sentences,), characters + 1)
    net_input = {"src_tokens": source, "src_lengths": lengths, "prev_output_tokens": target.roll(1, 1)}
    batch = {"id": torch.arange(sentences), "nsentences": sentences, "ntokens": target.numel()}
    return {**batch, "target": target, "net_input": net_input}


def training_step(system, batch: dict):
    """One update of a system, as a function."""
    _, model, criterion = system
    # the smallest of learning rates, so that the policy stays what it is
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-12)

    def step():
        model.train()
        optimizer.zero_grad()
        loss, size, _ = criterion(model, batch)
        (loss / size).backward()
        optimizer.step()

    return step


def product_flop(_, left: torch.Size, right: torch.Size, **unused) -> int:
    """Of `addmm_`, which the counter does not know."""
    return 2 * left.numel() * right[1]


def profiled(work: Callable) -> list[str]:
    """GFLOP of all matrix products, the seconds that they take, and the seconds of everything."""
    counter = FlopCounterMode(display=False, custom_mapping={torch.ops.aten.addmm_: product_flop})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # whose layers the counter passes over
        with torch.backends.mkldnn.flags(enabled=False), counter:
            work()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        work()
    seconds = {event.key: event.self_cpu_time_total / 1e6 for event in profile.key_averages()}
    products = sum(seconds.get(f"aten::{name}", 0) for name in PRODUCTS)
    return [f"{counter.get_total_flops() / 1e9:.1f}", f"{products:.2f}", f"{sum(seconds.values()):.2f}"]


def whole_models(size: int, sentences: int, characters: int, rounds: int) -> None:
    """Training steps and greedy translation."""
    systems = translators(size)
    batch = sentence_pairs(systems["lstm"][0], sentences, characters)
    steps = {name: training_step(system, batch) for name, system in systems.items()}
    seconds = side_by_side(steps, rounds, warm_up=1)
    title = f"training step, size {size}, {sentences} pairs of {characters} characters"
    report(title, seconds, "lstm", 2 * batch["target"].numel())
    profiles = [[f"training step, {name}", *profiled(step)] for name, step in steps.items()]

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
        for row in range(sentences)
    ]
    translating = {
        "lstm": lambda: stock.inference_step(beam, [lstm], batch),
        "latent_tree_rnng": lambda: trees.generate([model], batch),
    }
    seconds = side_by_side(translating, max(1, rounds // 2), warm_up=1)
    profiles += [[f"greedy translation, {name}", *profiled(work)] for name, work in translating.items()]
    alone = side_by_side(
        {
            "lstm": lambda: [stock.inference_step(beam, [lstm], line) for line in lines[:10]],
            "latent_tree_rnng": lambda: [trees.generate([model], line) for line in lines[:10]],
        },
        max(1, rounds // 2),
    )
    found = [hypotheses[0] for hypotheses in trees.generate([model], batch)]
    assert all(len(hypothesis["tokens"]) == characters + 1 for hypothesis in found), "all are to have the same length"
    opened = sum(len(hypothesis["tgt_spans"]) for hypothesis in found) / (sentences * characters)
    title = f"greedy translation, size {size}, {sentences} sentences of {characters} characters"
    report(title, seconds, "lstm", sentences * characters)
    title = f"greedy translation, size {size}, a sentence of {characters} characters at a time"
    report(title, alone, "lstm", len(lines[:10]) * characters)
    title = f"what matrix products take, {sentences} sentences; translations have {opened:.2f} constituents a character"
    report_table(title, ["matrix products", "GFLOP", "seconds", "of all"], profiles)


def memory(name: str, size: int, sentences: int, characters: int) -> None:
    """Print the peak memory, in MiB, of this process in three training steps."""
    system = translators(size)[name]
    step = training_step(system, sentence_pairs(system[0], sentences, characters))
    for _ in range(3):
        step()
    print(peak_memory())


def compare_memory(size: int, sentences: int, characters: int) -> None:
    """Peak memory of a process that trains."""
    arguments = [str(number) for number in (size, sentences, characters)]
    peaks = {}
    for name in ("lstm", "latent_tree_rnng"):
        command = [sys.executable, __file__, "--memory", name, *arguments]
        peaks[name] = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])
    report_memory(
        f"peak memory of a process that trains (size {size}, {sentences} pairs of {characters} characters)",
        peaks,
        "lstm",
    )


def run(quick: bool) -> None:
    """All of it.

    Args:
        quick: tiny sizes, one round.
    """
    size, characters = (16, 4) if quick else (384, 66)
    for sentences in (2,) if quick else (10, 64):
        one_side(size, sentences, characters, 1 if quick else 3 if sentences > 10 else 7)
    for sentences in (2,) if quick else (10, 64):
        whole_models(size, sentences, characters, 1 if quick else 5)
    compare_memory(size, 2 if quick else 64, characters)


if __name__ == "__main__":
    memory(sys.argv[2], *map(int, sys.argv[3:]))

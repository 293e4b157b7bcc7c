"""Training steps and generation of each model against the stock model of the same size, in one process."""

import functools
import itertools
import sys
from argparse import Namespace
from collections.abc import Callable

import numpy as np
import torch
from corpora import random_heads
from fairseq.data import Dictionary
from fairseq.dataclass.configs import FairseqConfig, GenerationConfig
from timing import peak_memory, report, report_memory, section, side_by_side

from fairseq_syntax.data.collating import TokenSyntax, collate_syntax
from fairseq_syntax.systems.sdatt.model import SYSTEMS
from fairseq_syntax.task import SyntaxTranslationConfig, SyntaxTranslationTask

VOCABULARY = 8000
TRANSFORMERS = ("transformer", "pascal_transformer", "lisa_transformer", "planted_transformer", "tag_transformer")
# those that go by tree distances, and their peer
DISTANCE_TRANSFORMERS = ("transformer", "dasa_transformer")
RECURRENT = ("lstm", "nmt_lstm", "fa_nmt_shared", "sa_nmt_shared")
CRITERIONS = {
    "lisa_transformer": "label_smoothed_cross_entropy_with_heads",
    "planted_transformer": "label_smoothed_cross_entropy_with_planted_heads",
    "": "label_smoothed_cross_entropy",  # all others
}


class BenchmarkTask(SyntaxTranslationTask):
    """The real task with dictionaries made up on the spot, and no data directory."""

    def syntax_dictionary(self, name):
        return dictionary(50)


def dictionary(size: int) -> Dictionary:
    """A dictionary of `size` entries."""
    result = Dictionary()
    for i in range(size - len(result)):
        result.add_symbol(f"w{i}")
    return result


def make_batches(sentences: int, length: int, count: int, seed: int = 1) -> list[dict]:
    """Batches of random sentences of about `length` tokens (half to one and a half) with random trees."""
    random = np.random.default_rng(seed)
    batches = []
    for _ in range(count):
        lengths = np.sort(random.integers(length // 2, length + length // 2, sentences))[::-1]
        columns = int(lengths[0])
        source = torch.ones(sentences, columns, dtype=torch.long)
        trees = []
        for row, tokens in enumerate(lengths):
            source[row, :tokens] = torch.from_numpy(random.integers(4, VOCABULARY, tokens))
            source[row, tokens - 1] = 2
            words = tokens - 1
            heads = random_heads(random, (1, words))[0] - 1
            trees.append(TokenSyntax(np.arange(tokens), heads, *(random.integers(4, 50, words) for _ in "du")))
        target = source.flip(0)
        batches.append(
            {
                "id": torch.arange(sentences),
                "nsentences": sentences,
                "ntokens": int(target.ne(1).sum()),
                "target": target,
                "net_input": {
                    "src_tokens": source,
                    "src_lengths": torch.from_numpy(lengths.copy()),
                    "prev_output_tokens": torch.roll(target, 1, 1),
                },
                "trees": trees,
            }
        )
    return batches


def with_syntax(batches: list[dict], names) -> list[dict]:
    """The batches with what a model asks for."""
    result = []
    for batch in batches:
        net_input = dict(batch["net_input"])
        if names:
            net_input["src_syntax"] = collate_syntax(batch["trees"], names, net_input["src_tokens"].shape[1], False)
        result.append({**batch, "net_input": net_input})
    return result


def transformers(size: str, systems: tuple[str, ...] = TRANSFORMERS, **options) -> dict[str, dict]:
    """Options of the stock Transformer (the peer comes first) and of ours, at a size of fairseq's."""
    return {system: {"arch": f"{system}{size}", "dropout": 0.1, **options} for system in systems}


def recurrent(width: int) -> dict[str, dict]:
    """Options of fairseq's LSTM and of ours: two layers, embeddings and annotations of `width`, tied output."""
    shared = {"dropout": 0.3, "encoder_layers": 2, "decoder_layers": 2, "encoder_hidden_size": width // 2}
    shared |= {name: width for name in ("encoder_embed_dim", "decoder_embed_dim", "decoder_hidden_size")}
    stock = {"encoder_bidirectional": True, "decoder_out_embed_dim": width, "share_decoder_input_output_embed": True}
    # fairseq's LSTM asks for the criterion, to tell whether to build an adaptive softmax
    stock["criterion"] = "cross_entropy"
    return {system: {"arch": system, **shared, **(stock if system == "lstm" else {})} for system in RECURRENT}


def directed(width: int) -> dict[str, dict]:
    """Options of global attention (the peer) and of all systems compared with it: states of `width`, and embeddings in
    the proportion of the paper, whose width is 1000, in eights."""
    shared = dict.fromkeys(("encoder_hidden_size", "decoder_hidden_size"), width)
    shared |= dict.fromkeys(("encoder_embed_dim", "decoder_embed_dim"), width * 62 // 800 * 8)
    return {system: {"arch": system, **shared} for system in sorted(SYSTEMS, key=lambda name: name != "global_att")}


def build(options: dict, from_checkpoint: bool = False):
    """Task, model and criterion of one system; `from_checkpoint`: as for translation."""
    symbols = dictionary(VOCABULARY)
    task = BenchmarkTask(SyntaxTranslationConfig(data=".", source_lang="a", target_lang="b"), symbols, symbols)
    torch.manual_seed(1)
    model = task.build_model(Namespace(**options), from_checkpoint)
    kind = next(criterion for name, criterion in CRITERIONS.items() if options["arch"].startswith(name))
    criterion = task.build_criterion(Namespace(_name=None, criterion=kind, sentence_avg=False, label_smoothing=0.1))
    return task, model, criterion


def needed_inputs(model, training: bool) -> list[str]:
    """What the model asks for beside the tokens; stock models ask for nothing."""
    names = ("syntax_inputs", "training_syntax_inputs") if training else ("syntax_inputs",)
    return sorted({wanted for name in names for wanted in getattr(model, name, ())})


def training_steps(
    systems: dict[str, dict], sentences: int, length: int, move: Callable = lambda thing: thing
) -> tuple[dict[str, Callable], float]:
    """Forward, backward and update of each system, and words a batch. `move` brings a model or a batch to a device."""
    steps = {}
    shared = make_batches(sentences, length, 4)
    for system, options in systems.items():
        _, model, criterion = build(options)
        batches = [move(batch) for batch in with_syntax(shared, needed_inputs(model, training=True))]
        steps[system] = update(move(model), criterion, batches)
    return steps, sum(batch["ntokens"] for batch in shared) / len(shared)


def update(model, criterion, batches: list[dict], lr: float = 1e-4) -> Callable[[], None]:
    """Forward, backward and update, on one batch after the other."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    turns = itertools.cycle(batches)

    def step():
        model.train()
        optimizer.zero_grad()
        loss, size, _ = criterion(model, next(turns))
        (loss / size).backward()
        optimizer.step()

    return step


def compare(title: str, systems: dict[str, dict], training: tuple, generation: tuple) -> None:
    """Training steps and translation of all systems, against the first.

    Args:
        title: of the section.
        systems: name -> options.
        training: sentences, tokens and rounds.
        generation: sentences, tokens, beam and rounds.
    """
    section(title)
    sentences, length, rounds = training
    steps, words = training_steps(systems, sentences, length)
    # a multiple of the number of batches, so that all systems time the same ones
    seconds = side_by_side(steps, rounds * 4, warm_up=4)
    report(f"training step, {sentences} sentences of {length} tokens", seconds, next(iter(systems)), words)
    sentences, length, beam, rounds = generation
    seconds = side_by_side(translations(systems, sentences, length, beam), rounds, warm_up=1)
    title = f"generation, beam {beam}, {sentences} sentences of {length} tokens"
    report(title, seconds, next(iter(systems)), sentences * length)


def translations(
    systems: dict[str, dict], sentences: int, length: int, beam: int, move: Callable = lambda thing: thing
) -> dict[str, Callable]:
    """Translation of a batch by each system; every hypothesis is made to be as long as its source, as the models are
    untrained."""
    contestants = {}
    shared = make_batches(sentences, length, 1)
    for system, options in systems.items():
        task, model, _ = build(options, from_checkpoint=True)
        model.eval()
        (batch,) = with_syntax(shared, needed_inputs(model, training=False))
        model.prepare_for_inference_(FairseqConfig(generation=GenerationConfig(beam=beam, no_beamable_mm=True)))
        model, batch = move(model), move(batch)
        generator = task.build_generator([model], Namespace(beam=beam, min_len=length, max_len_a=0, max_len_b=length))
        contestants[system] = functools.partial(task.inference_step, generator, [model], batch)
    return contestants


def size_of(quick: bool) -> str:
    """The size of fairseq's that Transformers are compared at."""
    return "_tiny" if quick else "_iwslt_de_en"


def memory(system: str, size: str) -> None:
    """Print the peak memory of this process after three training steps (run in a process of its own)."""
    _, model, criterion = build(transformers(size, (system,))[system])
    for batch in with_syntax(make_batches(32, 40, 3), needed_inputs(model, training=True)):
        loss, _, _ = criterion(model.train(), batch)
        loss.backward()
        model.zero_grad()
    print(peak_memory())


def compare_memory(quick: bool) -> None:
    """Peak memory of a training step of every system; `quick`: of two."""
    systems = list(dict.fromkeys(TRANSFORMERS + DISTANCE_TRANSFORMERS))[: 2 if quick else None]
    arguments = {system: [system, size_of(quick)] for system in systems}
    title = "peak memory of a process that trains (32 sentences of 40 tokens)"
    report_memory(title, __file__, arguments, "transformer")


if __name__ == "__main__":
    memory(sys.argv[2], sys.argv[3])

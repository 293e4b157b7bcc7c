"""Attention to the source directed by syntax: cost of a step against global attention.

Run by itself: `python benchmarks/attention.py --shape 80 25 1000` (sentences, tokens on either side, size of states).
"""

import argparse
from collections.abc import Callable
from typing import NamedTuple

import models
import numpy as np
import torch
from distances import random_heads
from fairseq.utils import apply_to_sample
from timing import machine, report, section, side_by_side
from torch import Tensor

from fairseq_syntax.data.collating import TokenSyntax, collate_syntax
from fairseq_syntax.systems.sdatt.model import SYSTEMS
from fairseq_syntax.systems.sdatt.syntax_directed_attention import Combine, PositionGradient


class Shape(NamedTuple):
    """What is timed.

    Fields:
        sentences: B.
        tokens: of each sentence, EOS included, and steps of the decoder.
        width: H, size of the states; annotations and keys have twice that.
    """

    sentences: int
    tokens: int
    width: int


SHAPES = [Shape(16, 40, 256), Shape(80, 25, 256)]
PAPER = Shape(80, 25, 1000)
TINY = Shape(2, 5, 32)  # figures that mean nothing


def variants(width: int) -> dict[str, dict]:
    """Options of every attention over the words, global attention first, and of the other ways of SDAtt.

    Left out are the systems with dependency units, which have the attention of the others.
    """
    systems = {name: options for name, options in models.directed(width).items() if not SYSTEMS[name].get("sdatt_sdr")}
    systems["sdatt, hard"] = {**systems["sdatt"], "sdatt_position": str(PositionGradient.hard)}
    systems["sdatt, add"] = {**systems["sdatt"], "sdatt_combine": str(Combine.add)}
    return systems


def encoded(model, shape: Shape) -> dict:
    """The encoder's output for random sentences with random trees, none shorter than the others."""
    random = np.random.default_rng(1)
    source = torch.from_numpy(random.integers(4, models.VOCABULARY, (shape.sentences, shape.tokens)))
    source[:, -1] = model.encoder.dictionary.eos()
    words = np.arange(shape.tokens)
    trees = [TokenSyntax(words, random_heads(random, shape.tokens - 1)) for _ in range(shape.sentences)]
    with torch.no_grad():
        return model.encoder(source, src_syntax=collate_syntax(trees, model.syntax_inputs, shape.tokens, False))


def attention_steps(model, encoder_out: dict, shape: Shape) -> tuple[Callable, Tensor]:
    """Function of what is given for all steps (T, B, …) and of the memory, and the former: queries of the attention."""

    def run(queries: Tensor, memory: dict) -> Tensor:
        state, contexts = model.decoder.attention.initial_state(memory), []
        for query in queries.unbind(0):
            context, _, state = model.decoder.attention(query, memory, state)
            contexts.append(context)
        return torch.stack(contexts)

    generator = torch.Generator().manual_seed(2)
    return run, torch.randn(shape.tokens, shape.sentences, shape.width, generator=generator).tanh()


def decoder_steps(model, encoder_out: dict, shape: Shape) -> tuple[Callable, Tensor]:
    """The same of whole steps of the decoder, both GRUs included, which are given the projected embeddings.

    Left out are the embeddings, the deep output and the output layer: they are computed outside the steps.
    """

    def run(ahead: Tensor, memory: dict) -> Tensor:
        state, outputs = model.decoder.initial_state({**encoder_out, "memory": memory}), []
        for step in ahead.unbind(0):
            output, _, state = model.decoder.step(step, state, memory)
            outputs.append(output)
        return torch.stack(outputs)

    generator = torch.Generator().manual_seed(2)
    embedding = model.decoder.embed_tokens.embedding_dim
    embedded = torch.randn(shape.tokens, shape.sentences, embedding, generator=generator)
    with torch.no_grad():
        return run, model.decoder.project_ahead(embedded)


def forward(model, run: Callable, given: Tensor, memory: dict) -> Callable[[], None]:
    """All steps as in generation: no gradients, and SDAtt computes one row of distances."""

    def timed() -> None:
        model.eval()
        with torch.inference_mode():
            run(given, memory)

    return timed


def forward_backward(model, run: Callable, given: Tensor, memory: dict) -> Callable[[], None]:
    """All steps as in training, with gradients of the parameters, of the memory and of what is given."""
    leaves = [parameter for parameter in model.decoder.parameters() if parameter.requires_grad]

    def leaf(tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point():
            return tensor
        leaves.append(tensor.detach().clone().requires_grad_())
        return leaves[-1]

    given, memory = leaf(given), apply_to_sample(leaf, memory)
    with torch.no_grad():
        outputs = run(given, memory)
    gradient = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(3))

    def timed() -> None:
        model.train()
        # of the decoder's parameters, those outside the steps have no part in this
        torch.autograd.grad(run(given, memory), leaves, gradient, allow_unused=True)

    return timed


def steps(shape: Shape, rounds: int) -> None:
    """Attention alone and whole steps of the decoder, forward and with backward, against global attention."""
    built = {}
    for name, options in variants(shape.width).items():
        _, model, _ = models.build(options)
        built[name] = model, encoded(model, shape)
    size = f"{shape.tokens} steps, {shape.sentences} sentences of {shape.tokens} tokens, states of {shape.width}"
    for what, make in (("attention alone", attention_steps), ("whole step of the decoder", decoder_steps)):
        for how, time in (("forward", forward), ("forward and backward", forward_backward)):
            contestants = {
                name: time(model, *make(model, encoder_out, shape), encoder_out["memory"])
                for name, (model, encoder_out) in built.items()
            }
            seconds = side_by_side(contestants, rounds)
            report(f"{what}, {how}, {size}", seconds, next(iter(built)))


def run(quick: bool, paper_size: bool = False) -> None:
    """Print steps, training and generation, then those of the Transformers; `quick`: figures that mean nothing."""
    shapes = [TINY] if quick else [*SHAPES, *([PAPER] if paper_size else [])]
    for shape in shapes:
        steps(shape, 1 if quick else 21 if shape.width < PAPER.width else 7)
    for width in (32,) if quick else (256, *([PAPER.width] if paper_size else [])):
        systems = models.directed(width)
        section(f"recurrent models, states of {width}")
        sizes = {32: (4, 8, 1), 256: (80, 25, 5), PAPER.width: (80, 25, 2)}[width]
        models.training(systems, *sizes, ">= 0.9 (sdatt), 0.85 (global_plus_chen17)")
        models.generation(systems, *((2, 4, 5, 1) if quick else (16, 20, 5, 5)))
    section("Transformers with tree distances")
    options = {"encoder_layers": 2, "decoder_layers": 2} if quick else {}
    systems = models.transformers(models.size_of(quick), models.DISTANCE_TRANSFORMERS, **options)
    models.training(systems, *((4, 8, 1) if quick else (24, 25, 5)), ">= 0.95 (dasa_transformer)")
    models.generation(systems, *((2, 4, 5, 1) if quick else (16, 20, 5, 5)), ">= 0.97")


def main(arguments: list[str] | None = None) -> None:
    """Run the steps alone."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--shape",
        type=int,
        nargs=3,
        action="append",
        metavar=("SENTENCES", "TOKENS", "WIDTH"),
        help="may be given again; default: " + ", ".join(f"{' '.join(map(str, shape))}" for shape in SHAPES),
    )
    parser.add_argument("--rounds", type=int, default=21, help="how often each is timed (default: 21)")
    parser.add_argument("--quick", action="store_true", help="a tiny shape, once; the figures mean nothing")
    args = parser.parse_args(arguments)
    print(machine())
    for shape in [TINY] if args.quick else args.shape or SHAPES:
        steps(Shape(*shape), 1 if args.quick else args.rounds)


if __name__ == "__main__":
    main()

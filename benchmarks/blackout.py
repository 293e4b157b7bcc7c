"""BlackOut against the full softmax: the output layer, forward and backward."""

from collections.abc import Callable

import numpy as np
import torch
from timing import report, side_by_side
from torch.nn import functional as F

from fairseq_syntax.training.blackout_loss import NoiseSharing, OutputLayer, noise_distribution, sampled_losses

VOCABULARIES = (8_000, 24_000, 66_000)
NOISE = 2000
SENTENCES, TOKENS, WIDTH = 50, 24, 256


def contestants(vocabulary: int, sentences: int, tokens: int, width: int, noise_words: int) -> dict[str, Callable]:
    """Ways to the loss of a batch and to the gradients of its features and of the matrix."""
    generator = torch.Generator().manual_seed(1)
    # words as frequent as Zipf's law has them
    counts = (1e7 / np.arange(1, vocabulary + 1)).round()
    target = torch.multinomial(torch.from_numpy(counts), sentences * tokens, True, generator=generator)
    target = target.view(sentences, tokens)
    features = torch.randn(sentences, tokens, width, generator=generator).requires_grad_()
    weight = torch.randn(vocabulary, width, generator=generator).mul_(width**-0.5).requires_grad_()
    noise = noise_distribution(counts, 0.4, [])
    counted = torch.ones_like(target, dtype=torch.bool)

    def full_softmax() -> None:
        # as fairseq's cross_entropy
        scores = F.log_softmax(F.linear(features, weight), dim=-1, dtype=torch.float32)
        loss = F.nll_loss(scores.view(-1, vocabulary), target.view(-1), reduction="sum")
        torch.autograd.grad(loss, (features, weight))

    def blackout(share: NoiseSharing) -> Callable[[], None]:
        def run() -> None:
            layer = OutputLayer(weight, None)
            losses = sampled_losses(features, target, counted, layer, noise, noise_words, share)
            torch.autograd.grad(losses.sum(), (features, weight))

        return run

    return {
        "full softmax": full_softmax,
        "blackout, shared by a batch": blackout(NoiseSharing.batch),
        "blackout, by a sentence": blackout(NoiseSharing.sentence),
    }


def run(quick: bool, rounds: int = 5) -> None:
    """Every size of the vocabulary.

    Args:
        quick: tiny sizes, one round.
        rounds: see `side_by_side`.
    """
    sentences, tokens, width = (2, 4, 8) if quick else (SENTENCES, TOKENS, WIDTH)
    noise_words = 20 if quick else NOISE
    for vocabulary in (100,) if quick else VOCABULARIES:
        timed = contestants(vocabulary, sentences, tokens, width, noise_words)
        seconds = side_by_side(timed, 1 if quick else rounds, warm_up=1)
        title = f"output layer of {vocabulary} words, {noise_words} noise words, width {width}"
        words = sentences * tokens
        report(f"{title}, {words} target words", seconds, "full softmax", words)

"""Trees out of the probabilities of heads."""

import math
from collections.abc import Callable

import numpy as np
from torch import Tensor

TINY = 1e-12
"""Probability below which all heads are equally bad: no score of an arc is -inf."""

Decoder = Callable[[list[np.ndarray], list[np.ndarray]], list[list[int]]]


def best_trees(decode: Decoder, log_probs: Tensor, sizes: list[int]) -> list[list[int]]:
    """The heads of sentences, numbers of words or `conllu.ROOT`.

    Args:
        decode: one of `trees.spanning`.
        log_probs: (B, S, S), [b, t, j]: of j being the head of t; that of EOS, behind the words, stands for the root.
        sizes: words of each sentence.
    """
    scores = log_probs.clamp(min=math.log(TINY)).double().cpu().numpy()
    arcs = [row[:size, :size] for row, size in zip(scores, sizes, strict=True)]
    roots = [row[:size, size] for row, size in zip(scores, sizes, strict=True)]
    return decode(arcs, roots)

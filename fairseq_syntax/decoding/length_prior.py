"""Beam search that knows how long translations are: p(L_y | L_x), Hashimoto & Tsuruoka (2017), eq. 10.

    score(y | x) = (sum_t log p(y_t | x, y_<t) + log p(L_y | L_x)) / T

Lengths in p(L_y | L_x) are without EOS on both sides; the divisor T counts EOS, whose log-probability is in the sum.
"""

from enum import StrEnum

import numpy as np
import torch
from fairseq.search import BeamSearch
from scipy.ndimage import convolve1d
from scipy.special import ndtr
from torch import Tensor

FLOOR = 1e-8
"""Least probability of a length, before rows are normalised."""

FORBIDDEN = -1e4
"""Log-probability of a length that is ruled out. Finite: at the greatest length EOS is all that is left."""

LONGEST = 1024
"""Longer lengths are not told apart."""

_KERNEL = np.array([1, 2, 3, 2, 1]) / 3  # over source lengths up to 2 away; the length itself counts fully
_BACK_OFF = 5.0  # pseudo-counts
_LEAST_SPREAD = 0.01  # of logarithms of ratios


Smoothing = StrEnum("Smoothing", "kernel raw")
"""How probabilities are made of the counts of lengths."""
Unseen = StrEnum("Unseen", "floor author")
"""What becomes of lengths that no training pair has."""


def length_table(
    source: np.ndarray,
    target: np.ndarray,
    smoothing: str = Smoothing.kernel,
    unseen: str = Unseen.floor,
    bin_size: int = 1,
) -> np.ndarray:
    """log p(L_y | L_x), estimated from the lengths of sentence pairs.

    `raw`: relative frequencies, the paper's. `kernel`: triangular weights over source lengths up to 2 away, and 5
    pseudo-counts of a log-normal distribution of (L_y + 1) / (L_x + 1) with mean and deviation of the data. Every
    probability is at least about 1e-8. Unseen lengths as by the `author`, with `raw` only: a pair that was not seen is
    forbidden (`FORBIDDEN`).

    A source length adds nothing, and its row is 0, if the data say nothing of it: it is shorter or longer than every
    source sentence, or no pair counts for it. The ratio alone would not do: where a model has seen no such sentence
    either, the division by the length makes the most improbable lengths, which are great, the best.

    Args:
        source, target: (pairs,) lengths without EOS.
        bin_size: count source lengths together in groups of so many.

    Returns (X + 2, Y + 2), finite, where X and Y are the longest lengths, `LONGEST` at most; the last row and column
    stand for everything longer. exp of each row that is not 0 sums to 1, but not of `author`'s. Raises ValueError: no
    pairs; kernel with unseen lengths as by the author; bin_size below 1.
    """
    source, target = np.asarray(source), np.asarray(target)
    if not len(source):
        raise ValueError("there are no sentence pairs to take lengths from")
    if bin_size < 1:
        raise ValueError(f"a bin of {bin_size} lengths: must be at least 1")
    if unseen == Unseen.author and smoothing != Smoothing.raw:
        raise ValueError(
            "unseen lengths are forbidden by the author only in raw counts; the kernel leaves none unseen: "
            "choose --smoothing raw --unseen author, or --unseen floor"
        )
    counts = _counts(source, target, bin_size, _KERNEL if smoothing == Smoothing.kernel else None)
    told = counts.any(axis=1, keepdims=True)
    if smoothing == Smoothing.kernel:
        counts += _BACK_OFF * _ratios(source, target, *counts.shape)
    probabilities = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    if unseen == Unseen.author:
        table = np.full_like(probabilities, FORBIDDEN)
        np.log(probabilities, out=table, where=probabilities > 0)
    else:
        probabilities = np.maximum(probabilities, FLOOR)
        table = np.log(probabilities / probabilities.sum(axis=1, keepdims=True))
    return np.where(told, table, 0.0)


def _counts(source: np.ndarray, target: np.ndarray, bin_size: int, kernel: np.ndarray | None) -> np.ndarray:
    """(X + 2, Y + 2) pairs of each length, those of a bin together, and those of neighbours by a kernel."""
    height, width = (min(int(lengths.max()), LONGEST) + 2 for lengths in (source, target))
    cells = np.minimum(source, height - 1) * width + np.minimum(target, width - 1)
    counts = np.bincount(cells, minlength=height * width).reshape(height, width).astype(np.float64)
    # what is longer than everything is neither in a bin nor anybody's neighbour
    known, longer = counts[:-1], counts[-1:]
    known = np.add.reduceat(known, np.arange(0, height - 1, bin_size))
    if kernel is not None:
        shortest = known.any(axis=1).argmax()
        known = convolve1d(known, kernel, axis=0, mode="constant")
        known[:shortest] = 0
    return np.concatenate([known[np.arange(height - 1) // bin_size], longer])


def _ratios(source: np.ndarray, target: np.ndarray, height: int, width: int) -> np.ndarray:
    """(height, width) P(L_y | L_x) of the log-normal ratios; the last column holds what is left."""
    logarithms = np.log(target + 1.0) - np.log(source + 1.0)
    # between L_y and L_y + 1, on the scale of L_y + 1
    edges = np.log(np.arange(width - 1) + 1.5) - np.log(np.arange(height) + 1.0)[:, None]
    below = ndtr((edges - logarithms.mean()) / max(logarithms.std(), _LEAST_SPREAD))
    return np.diff(below, axis=1, prepend=0.0, append=1.0)


def log_probabilities(table: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """(pairs,) log p(L_y | L_x) of lengths without EOS; those beyond the table are its last."""
    height, width = table.shape
    return table[np.minimum(source, height - 1), np.minimum(target, width - 1)]


class LengthPriorBeamSearch(BeamSearch):
    """Beam search by eq. 10: EOS costs log p(L_y | L_x), where L_y is the number of tokens before it.

    fairseq's generator divides by T afterwards. It sets the source lengths of the sentences that are left before
    every step, if its `should_set_src_lengths` says so; see `use_length_prior`.

    Args:
        table: (X + 2, Y + 2) of `length_table`.
        rerank: add the prior after the best continuations are chosen, so that it orders finished hypotheses only.
            By default it is added before, and decides when EOS is among them.
    """

    def __init__(self, tgt_dict, table: Tensor, rerank: bool = False):
        super().__init__(tgt_dict)
        self.needs_src_lengths = True
        self.rerank = rerank
        self.register_buffer("table", table)

    def step(self, step: int, lprobs, scores, prev_output_tokens=None, original_batch_idxs=None):
        """As in fairseq; lprobs (B, beam, V)."""
        self.table = self.table.to(lprobs.device)  # fairseq moves models, not searches
        height, width = self.table.shape
        source_lengths = (self.src_lengths.to(lprobs.device) - 1).clamp(0, height - 1)  # EOS is counted
        prior = self.table[source_lengths, min(step, width - 1)].to(lprobs.dtype)
        if not self.rerank:
            lprobs = lprobs.clone()
            lprobs[:, :, self.eos] += prior[:, None]
        best, tokens, beams = super().step(step, lprobs, scores, prev_output_tokens, original_batch_idxs)
        if self.rerank:
            best = best + prior[:, None] * tokens.eq(self.eos)
        return best, tokens, beams


def use_length_prior(generator, table: np.ndarray, rerank: bool = False) -> None:
    """Let fairseq's `SequenceGenerator` search with a length prior; see `LengthPriorBeamSearch`.

    Raises ValueError: it searches in another way than by plain beam search, or its scores are not those of eq. 10.
    """
    if type(getattr(generator, "search", None)) is not BeamSearch:
        raise ValueError(
            "--length-prior works with beam search alone; leave out --sampling, --diverse-beam-groups, "
            "--diversity-rate, --match-source-len, --constraints, --score-reference and allowed prefixes, or take "
            "--length-prior off"
        )
    if generator.len_penalty != 1 or not generator.normalize_scores:
        raise ValueError(
            "--length-prior: scores are divided by the length, which is --lenpen 1; leave out --lenpen and "
            "--unnormalized, or take --length-prior off"
        )
    if generator.unk_penalty:
        raise ValueError(
            f"--unkpen {generator.unk_penalty:g}: with --length-prior scores are probabilities; leave --unkpen out, or "
            "take --length-prior off"
        )
    generator.search = LengthPriorBeamSearch(
        generator.tgt_dict, torch.as_tensor(np.asarray(table), dtype=torch.float32), rerank
    )
    generator.should_set_src_lengths = True

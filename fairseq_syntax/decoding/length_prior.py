"""Beam search with a prior over target lengths (Hashimoto & Tsuruoka 2017, eq. 10).

    score(y | x) = (sum_t log p(y_t | x, y_<t) + log p(L_y | L_x)) / T

The lengths L_x and L_y do not count EOS; T does, and the sum includes its log-probability.
"""

from enum import StrEnum

import numpy as np
import torch
from fairseq.search import BeamSearch
from scipy.ndimage import convolve1d
from scipy.special import ndtr
from torch import Tensor

FLOOR = 1e-8
"""Smallest probability of a length, before rows are normalised."""

FORBIDDEN = -1e4
"""Log-probability of a forbidden length; finite, because only EOS is possible at the greatest length."""

LONGEST = 1024
"""Longer lengths share one row or column."""

_KERNEL = np.array([1, 2, 3, 2, 1]) / 3  # weights of source lengths up to 2 away; the length itself has weight 1
_BACK_OFF = 5.0  # pseudo-counts
_LEAST_SPREAD = 0.01  # smallest standard deviation of log-ratios


Smoothing = StrEnum("Smoothing", "kernel raw")
"""Estimation of probabilities from counts of lengths."""


def length_table(source: np.ndarray, target: np.ndarray, smoothing: str = Smoothing.kernel) -> np.ndarray:
    """Estimate log p(L_y | L_x) from the lengths of sentence pairs.

    `raw` smoothing takes relative frequencies, as in the paper, and gives `FORBIDDEN` to unseen pairs, as in the
    author's code. `kernel` adds counts of source lengths up to 2 away, with triangular weights, and 5 pseudo-counts
    from a log-normal distribution of (L_y + 1) / (L_x + 1); its probabilities are at least about 1e-8.

    Rows of source lengths without counts are 0, so that they have no prior. The ratio alone would not do there: for
    lengths that the model has not seen either, division by the length makes long, improbable translations the best.

    Args:
        source, target: (pairs,) lengths without EOS.

    Returns (X + 2, Y + 2), finite, for longest lengths X and Y, at most `LONGEST`; the last row and column stand for
    all longer ones. Rows with a prior sum to 1 in exp. Raises ValueError: no pairs.
    """
    source, target = np.asarray(source), np.asarray(target)
    if not len(source):
        raise ValueError("there are no sentence pairs to take lengths from")
    counts = _counts(source, target, smoothing == Smoothing.kernel)
    has_prior = counts.any(axis=1, keepdims=True)
    if smoothing == Smoothing.kernel:
        counts += _BACK_OFF * _ratios(source, target, *counts.shape)
    probabilities = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    if smoothing == Smoothing.kernel:
        probabilities = np.maximum(probabilities, FLOOR)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
    table = np.full_like(probabilities, FORBIDDEN)
    np.log(probabilities, out=table, where=probabilities > 0)
    return np.where(has_prior, table, 0.0)


def _counts(source: np.ndarray, target: np.ndarray, smooth: bool) -> np.ndarray:
    """Counts of pairs (X + 2, Y + 2), over source lengths that are near each other, if that is wanted."""
    height, width = (min(int(lengths.max()), LONGEST) + 2 for lengths in (source, target))
    cells = np.minimum(source, height - 1) * width + np.minimum(target, width - 1)
    counts = np.bincount(cells, minlength=height * width).reshape(height, width).astype(np.float64)
    if smooth:  # but not the last row, for longer lengths
        shortest = counts[:-1].any(axis=1).argmax()
        counts[:-1] = convolve1d(counts[:-1], _KERNEL, axis=0, mode="constant")
        counts[:shortest] = 0
    return counts


def _ratios(source: np.ndarray, target: np.ndarray, height: int, width: int) -> np.ndarray:
    """P(L_y | L_x) from log-normal ratios: (height, width), where the last column has the remaining probability."""
    logarithms = np.log(target + 1.0) - np.log(source + 1.0)
    # between L_y and L_y + 1, on the scale of L_y + 1
    edges = np.log(np.arange(width - 1) + 1.5) - np.log(np.arange(height) + 1.0)[:, None]
    below = ndtr((edges - logarithms.mean()) / max(logarithms.std(), _LEAST_SPREAD))
    return np.diff(below, axis=1, prepend=0.0, append=1.0)


def log_probabilities(table: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """log p(L_y | L_x) for lengths without EOS: (pairs,). Lengths beyond the table take its last row or column."""
    height, width = table.shape
    return table[np.minimum(source, height - 1), np.minimum(target, width - 1)]


class LengthPriorBeamSearch(BeamSearch):
    """Beam search by eq. 10, which adds log p(L_y | L_x) to the score of EOS, with L_y tokens before it.

    fairseq's generator divides by T afterwards. With `should_set_src_lengths`, it sets the source lengths before every
    step; see `use_length_prior`.

    Args:
        table: (X + 2, Y + 2) from `length_table`.
    """

    def __init__(self, tgt_dict, table: Tensor):
        super().__init__(tgt_dict)
        self.needs_src_lengths = True
        self.register_buffer("table", table)

    def step(self, step: int, lprobs, scores, prev_output_tokens=None, original_batch_idxs=None):
        """As in fairseq, for lprobs (B, beam, V)."""
        self.table = self.table.to(lprobs.device)  # fairseq moves models, not searches
        height, width = self.table.shape
        source_lengths = (self.src_lengths.to(lprobs.device) - 1).clamp(0, height - 1)  # EOS is counted
        prior = self.table[source_lengths, min(step, width - 1)].to(lprobs.dtype)
        lprobs = lprobs.clone()
        lprobs[:, :, self.eos] += prior[:, None]
        return super().step(step, lprobs, scores, prev_output_tokens, original_batch_idxs)


def use_length_prior(generator, table: np.ndarray) -> None:
    """Set up a length prior in fairseq's `SequenceGenerator`; see `LengthPriorBeamSearch`.

    Raises ValueError: the generator does not use plain beam search, or its scores differ from eq. 10.
    """
    plain = type(getattr(generator, "search", None)) is BeamSearch and generator.normalize_scores
    if not plain or generator.len_penalty != 1 or generator.unk_penalty:
        raise ValueError(
            "--length-prior works with plain beam search, of probabilities divided by the length; leave out --lenpen, "
            "--unnormalized, --unkpen, --sampling, --diverse-beam-groups, --diversity-rate, --match-source-len, "
            "--constraints, --score-reference and allowed prefixes, or take --length-prior off"
        )
    table = torch.as_tensor(np.asarray(table), dtype=torch.float32)
    generator.search = LengthPriorBeamSearch(generator.tgt_dict, table)
    generator.should_set_src_lengths = True

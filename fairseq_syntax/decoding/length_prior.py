"""Beam search with a prior over target lengths (Hashimoto & Tsuruoka 2017, eq. 10).

    score(y | x) = (sum_t log p(y_t | x, y_<t) + log p(L_y | L_x)) / T

The lengths L_x and L_y do not count EOS; T does, and the sum includes its log-probability.
"""

import numpy as np
import torch
from fairseq.search import BeamSearch
from torch import Tensor

FORBIDDEN = -1e4
"""Log-probability of a forbidden length; finite, because only EOS is possible at the greatest length."""

LONGEST = 1024
"""Longer lengths share one row or column."""


def length_table(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """log p(L_y | L_x), relative frequencies in sentence pairs; `FORBIDDEN` for unseen pairs of lengths.

    Rows of source lengths without counts are 0, so that they have no prior.

    Args:
        source, target: (pairs,) lengths without EOS.

    Returns (X + 2, Y + 2), finite, for longest lengths X and Y, at most `LONGEST`; the last row and column stand for
    all longer ones. Rows with a prior sum to 1 in exp. Raises ValueError: no pairs.
    """
    source, target = np.asarray(source), np.asarray(target)
    if not len(source):
        raise ValueError("there are no sentence pairs to take lengths from")
    height, width = (min(int(lengths.max()), LONGEST) + 2 for lengths in (source, target))
    cells = np.minimum(source, height - 1) * width + np.minimum(target, width - 1)
    counts = np.bincount(cells, minlength=height * width).reshape(height, width)
    table = np.full(counts.shape, FORBIDDEN)
    np.log(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), out=table, where=counts > 0)
    return np.where(counts.any(axis=1, keepdims=True), table, 0.0)


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
            "--constraints and allowed prefixes, or take --length-prior off"
        )
    table = torch.as_tensor(np.asarray(table), dtype=torch.float32)
    generator.search = LengthPriorBeamSearch(generator.tgt_dict, table)
    generator.should_set_src_lengths = True

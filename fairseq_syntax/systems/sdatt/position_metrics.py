"""Statistics of predicted positions for the validation log."""

from itertools import combinations_with_replacement
from typing import Optional

from fairseq.logging import metrics
from torch import Tensor

from .attention import centre_row


def log_positions(position: Tensor, plain: Tensor, of_source: Tensor, of_target: Tensor) -> None:
    """Log how far predicted positions are from where plain attention is strongest, how they vary and with what.

    Plain attention is the softmax of the same scores over the whole sentence. Weights that are already centred on the
    position cannot confirm it: they are strongest near it wherever it is.

    Args:
        position: (B, S), from 0 to the length of the source.
        plain: (B, S, T) weights of plain attention.
        of_source, of_target: (B, T) and (B, S), True at real tokens.
    """
    length = of_source.sum(dim=1, keepdim=True)
    strongest = plain.argmax(dim=2) - of_source.int().argmax(dim=1, keepdim=True)
    away = (centre_row(position, length) - strongest).abs()[of_target]
    share = (position / length)[of_target]
    metrics.log_scalar("position_error", away.float().mean(), weight=len(away), round=2)
    metrics.log_scalar("position_spread", share.std(correction=0), weight=len(share), round=3)
    log_correlations(share, progress(of_target), ((strongest + 0.5) / length)[of_target])


def progress(of_target: Tensor) -> Tensor:
    """Relative times t/S (N,) of the real tokens of targets (B, S): S is the length of the target, t mid-token."""
    real = of_target.long()
    return ((real.cumsum(dim=1) - 0.5) / real.sum(dim=1, keepdim=True))[of_target]


def log_correlations(share: Tensor, time: Tensor, alignment: Optional[Tensor] = None) -> None:
    """Log what the position correlates with, over all tokens of the validation set, however they are batched.

    "position_clock" is the correlation of `share`, p/J (N,), with `time`, t/S (N,): near 1, the position is a clock.
    "position_alignment" is the correlation of p/J with `alignment` (N,), where attention looks, that is left when t/S
    is given: near 0, the position knows nothing of it. Where a row is constant, they are 0.
    """
    rows = [row.double() for row in (share, time, alignment) if row is not None]
    for i, row in enumerate(rows):
        metrics.log_scalar(f"_position_{i}", row.mean(), weight=len(row))
    for i, j in combinations_with_replacement(range(len(rows)), 2):
        metrics.log_scalar(f"_position_{i}{j}", (rows[i] * rows[j]).mean(), weight=len(rows[i]))
    metrics.log_derived("position_clock", lambda meters: round(_correlation(meters, 0, 1), 3))
    if alignment is not None:
        metrics.log_derived("position_alignment", lambda meters: round(_partial_correlation(meters), 3))


def _correlation(meters, i: int, j: int) -> float:
    def covariance(i: int, j: int) -> float:
        return float(meters[f"_position_{i}{j}"].avg - meters[f"_position_{i}"].avg * meters[f"_position_{j}"].avg)

    variances = covariance(i, i), covariance(j, j)
    # of numbers from 0 to 1
    return covariance(i, j) / (variances[0] * variances[1]) ** 0.5 if min(variances) > 1e-10 else 0.0


def _partial_correlation(meters) -> float:
    """Of the first and the third, given the second."""
    own, of_share, of_alignment = (_correlation(meters, *pair) for pair in ((0, 2), (0, 1), (1, 2)))
    left = (1 - of_share**2) * (1 - of_alignment**2)
    return (own - of_share * of_alignment) / left**0.5 if left > 1e-10 else 0.0

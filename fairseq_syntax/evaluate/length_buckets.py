"""Scores by the length of the source sentence (Chen et al. 2018, Figures 5-8)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..pictures.figures import plt, shown

FEW = 50
"""Sentences under which the BLEU of a bucket says little."""


@dataclass(frozen=True)
class Bucket:
    """Sentences of similar length.

    Attributes:
        label: the numbers of words that its sentences have, "11-20"; ">50" of the last one, which is open.
        sentences: (n,) their indices, ascending.
    """

    label: str
    sentences: np.ndarray

    def __len__(self) -> int:
        return len(self.sentences)


def length_buckets(lengths: Sequence[int], width: int = 10, longest: int = 50) -> list[Bucket]:
    """Put sentences into buckets: "1-10", "11-20", …, of `width` numbers of words each.

    Args:
        lengths: N numbers of words, without the end of the sentence; 0 counts as 1.
        width: of the buckets.
        longest: a multiple of `width`; all sentences of more words share the last bucket.

    Returns:
        The buckets in ascending order, empty ones too, up to the last that is not empty.

    Raises:
        ValueError: `longest` is no multiple of `width`.
    """
    if longest < width or longest % width:
        raise ValueError(f"the last bucket begins after {longest} words, which is no multiple of the width {width}")
    closed = longest // width
    numbers = np.minimum((np.maximum(np.asarray(lengths, dtype=np.int64), 1) - 1) // width, closed)
    labels = [f"{width * i + 1}-{width * (i + 1)}" for i in range(closed)] + [f">{longest}"]
    used = int(numbers.max()) + 1 if len(numbers) else 0
    return [Bucket(labels[i], np.flatnonzero(numbers == i)) for i in range(used)]


def draw_buckets(
    buckets: Sequence[Bucket],
    names: Sequence[str],
    scores: Sequence[Sequence[float]],
    intervals: Sequence[Sequence[tuple[float, float]]],
    score: str = "BLEU",
):
    """A line for each system over the buckets, and the number of sentences under each: a matplotlib figure.

    Args:
        buckets: B of them.
        names: of the S systems.
        scores: S times B; NaN leaves a gap.
        intervals: S times B, of the scores: drawn as bars, those of systems beside one another.
        score: its name.
    """
    figure, axis = plt.subplots(figsize=(max(4.5, 0.9 * len(buckets) + 1.5), 3.6))
    marks = "osD^vPX*"
    lines = []
    for i, (values, ends) in enumerate(zip(scores, intervals, strict=True)):
        # the bars of all systems take a third of the room of a bucket
        places = np.arange(len(buckets)) + (i - (len(names) - 1) / 2) / (3 * len(names))
        low, high = np.array(ends, dtype=float).reshape(-1, 2).T
        # the score of a corpus may be outside the interval of its resamples
        away = np.maximum([values - low, high - values], 0)
        style = dict(marker=marks[i % len(marks)], markersize=5, elinewidth=0.8)
        lines.append(axis.errorbar(places, values, away, **style))
    # handed over, as matplotlib leaves names with a `_` in front out of the legend
    for text in axis.legend(lines, [shown(name) for name in names], fontsize="small").get_texts():
        text.set_parse_math(False)
    axis.set_xticks(range(len(buckets)), [f"{bucket.label}\nn = {len(bucket)}" for bucket in buckets])
    axis.set_xlabel("source words, n sentences")
    axis.set_ylabel(f"{score}, 95 % intervals (bootstrap)")
    axis.grid(axis="y", alpha=0.3)
    return figure

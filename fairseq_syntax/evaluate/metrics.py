"""Metrics that are functions of summed sentence statistics, so that subsets and resamples of a corpus score quickly.

sacrebleu counts the statistics of BLEU, chrF, chrF++ and TER; this module scores many corpora at once from the counts.
RIBES is the mean of `ribes.sentence_ribes`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.metrics.base import Metric as SacrebleuMetric

from .ribes import ALPHA, BETA, sentence_ribes

_ORDER = 4
Texts = Sequence[str]


class Metric(ABC):
    """A corpus score that only depends on sums over sentences.

    Attributes:
        name: name in tables.
        higher: whether higher is better.
        digits: decimals in tables.
        columns: number C of statistics per sentence.
    """

    name: str
    higher = True
    digits = 2
    columns: int

    @abstractmethod
    def statistics(self, hyps: Texts, refs: Sequence[Texts]) -> np.ndarray:
        """The statistics of each sentence: (N, C), float64.

        Args:
            hyps: N texts.
            refs: N lists of one or more texts.
        """

    @abstractmethod
    def scores(self, sums: np.ndarray) -> np.ndarray:
        """Scores (…) of corpora from sums of statistics (…, C); NaN for an empty corpus if the metric is a mean."""

    @abstractmethod
    def signature(self, references: int = 1) -> str:
        """The settings needed to reproduce the score, for a number of references per sentence."""

    def sentence_scores(self, statistics: np.ndarray) -> np.ndarray:
        """Scores (…) of single sentences from their statistics (…, C)."""
        return self.scores(statistics)

    def score(self, statistics: np.ndarray) -> float:
        """The score of a corpus from its statistics (N, C)."""
        return float(self.scores(statistics.sum(axis=0)))


class _FromSacrebleu(Metric):
    """A metric with statistics and signature from sacrebleu."""

    def __init__(self, metric: SacrebleuMetric):
        self._metric: Any = metric  # subclasses read attributes that only some metrics have

    def statistics(self, hyps: Texts, refs: Sequence[Texts]) -> np.ndarray:
        if len(hyps) != len(refs):
            raise ValueError(f"{len(hyps)} translations, but references of {len(refs)} sentences")
        if not hyps:
            return np.zeros((0, self.columns))
        counts = self._metric._extract_corpus_statistics(hyps, list(zip(*refs, strict=True)))
        return np.array(counts, dtype=np.float64)

    def signature(self, references: int = 1) -> str:
        # sacrebleu learns the number of references by scoring
        self._metric.corpus_score(["a"], [["a"]] * references)
        return str(self._metric.get_signature())


class Bleu(_FromSacrebleu):
    """BLEU (Papineni et al. 2002), 0 to 100, with sacrebleu's defaults.

    The statistics are the numbers of words in the hypothesis and in its closest reference, of matching n-grams, and of
    n-grams in the hypothesis (n = 1..4).

    Args:
        lowercase: whether to ignore letter case (`sacrebleu -lc`).
        tokenize: one of sacrebleu's tokenizers; `none` splits at white space.

    Raises ValueError: the tokenizer needs a missing package.
    """

    name = "BLEU"
    columns = 2 + 2 * _ORDER

    def __init__(self, lowercase: bool = False, tokenize: str = "none"):
        try:
            super().__init__(BLEU(lowercase=lowercase, tokenize=tokenize, force=True))
        except (ImportError, OSError, RuntimeError) as error:
            raise ValueError(f"--tokenize {tokenize}: {' '.join(str(error).split())}") from None

    def words(self, text: str) -> list[str]:
        """The words of a text, always lower-cased."""
        return self._metric.tokenizer(text.lower().rstrip()).split()

    def scores(self, sums: np.ndarray) -> np.ndarray:
        return np.where((sums[..., 2 + _ORDER :] > 0).all(axis=-1), self.sentence_scores(sums), 0.0)

    def sentence_scores(self, statistics: np.ndarray) -> np.ndarray:
        """BLEU over the n-gram orders that a sentence is long enough for, as in `sacrebleu.sentence_bleu`."""
        with np.errstate(divide="ignore", invalid="ignore"):
            penalty = np.exp(np.minimum(0, 1 - statistics[..., 1] / statistics[..., 0]))
        precision = self.precision(statistics)
        return np.where(precision > 0, precision * penalty, 0.0)

    def precision(self, sums: np.ndarray) -> np.ndarray:
        """BLEU without its brevity penalty: the geometric mean of the precisions of n-grams, in percent."""
        right, every = sums[..., 2 : 2 + _ORDER], sums[..., 2 + _ORDER :]
        # smoothing `exp`: orders without a match count as half a match, a quarter of one, …
        unmatched, counted = right == 0, every > 0
        matches = np.where(unmatched, 0.5 ** np.cumsum(unmatched, axis=-1), right)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(counted, np.log(100 * matches / every), 0.0)
            return np.where(unmatched.all(axis=-1), 0.0, np.exp(logs.sum(axis=-1) / counted.sum(axis=-1)))


class Chrf(_FromSacrebleu):
    """chrF and chrF++ (Popović 2015, 2017), 0 to 100, with sacrebleu's defaults.

    The statistics of each order are the numbers of n-grams in the hypothesis, in the reference, and in both.

    Args:
        lowercase: whether to ignore letter case.
        word_order: longest word n-grams: 0 for chrF, 2 for chrF++.
    """

    def __init__(self, lowercase: bool = False, word_order: int = 0):
        super().__init__(CHRF(lowercase=lowercase, word_order=word_order))
        self.name = "chrF" + "+" * word_order
        self.columns = 3 * self._metric.order

    def scores(self, sums: np.ndarray) -> np.ndarray:
        hypothesis, reference, both = np.moveaxis(sums.reshape(*sums.shape[:-1], -1, 3), -1, 0)
        counted = (hypothesis > 0) & (reference > 0)
        orders = np.maximum(counted.sum(axis=-1), 1)
        precision, recall = (
            np.where(counted, both / np.where(counted, size, 1), 0.0).sum(axis=-1) / orders
            for size in (hypothesis, reference)
        )
        factor = self._metric.beta**2
        below = factor * precision + recall
        return np.where(below > 0, 100 * (1 + factor) * precision * recall / np.where(below > 0, below, 1), 0.0)


class Ter(_FromSacrebleu):
    """TER (Snover et al. 2006), where 0 is best, with sacrebleu's defaults, which ignore letter case.

    The statistics are the number of edits to the nearest reference, and the mean length of the references in words.
    """

    name = "TER"
    higher = False
    columns = 2

    def __init__(self):
        super().__init__(TER())

    def scores(self, sums: np.ndarray) -> np.ndarray:
        edits, words = sums[..., 0], sums[..., 1]
        return 100 * np.where(words > 0, edits / np.where(words > 0, words, 1), np.sign(edits))


class Ribes(Metric):
    """RIBES (Isozaki et al. 2010), 0 to 1, of lower-cased words, with the tokenizers of `Bleu`; see `ribes`.

    The mean over sentences; the statistics are the score of a sentence and 1.
    """

    name = "RIBES"
    columns = 2
    digits = 4

    def __init__(self, tokenize: str = "none"):
        self._tokenize = tokenize
        self._words = Bleu(tokenize=tokenize).words

    def statistics(self, hyps: Texts, refs: Sequence[Texts]) -> np.ndarray:
        words = self._words
        pairs = zip(hyps, refs, strict=True)
        scores = [sentence_ribes(words(hyp), [words(ref) for ref in row]) for hyp, row in pairs]
        return np.stack([np.asarray(scores, dtype=np.float64), np.ones(len(scores))], axis=1)

    def scores(self, sums: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return sums[..., 0] / sums[..., 1]

    def signature(self, references: int = 1) -> str:
        return f"nrefs:{references}|alpha:{ALPHA:.2f}|beta:{BETA:.2f}|case:lc|tok:{self._tokenize}"


METRICS: dict[str, Callable[[bool, str], Metric]] = {
    "BLEU": Bleu,
    "chrF": lambda lowercase, tokenize: Chrf(lowercase),
    "chrF++": lambda lowercase, tokenize: Chrf(lowercase, 2),
    "TER": lambda lowercase, tokenize: Ter(),
    "RIBES": lambda lowercase, tokenize: Ribes(tokenize),
}
"""Name -> function of (lowercase, tokenize) that makes the metric."""

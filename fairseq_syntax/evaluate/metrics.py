"""Scores of translations from statistics that add up: those of any part of a corpus, or of a resample, are a sum away.

BLEU, chrF, chrF++ and TER are sacrebleu's, which counts; here the counts of many corpora become scores at once. RIBES
is `ribes.sentence_ribes`, of which a corpus has the mean.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.metrics.base import Metric as SacrebleuMetric

from .ribes import ALPHA, BETA, sentence_ribes

_ORDER = 4


class Metric(ABC):
    """A score of a corpus that depends on a sum over its sentences only.

    Attributes:
        name: in tables.
        higher: whether more is better.
        digits: after the point.
        columns: C, numbers a sentence has.
    """

    name: str
    higher = True
    digits = 2
    columns: int

    @abstractmethod
    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """What is summed.

        Args:
            hypotheses: N texts.
            references: of each of the N, one or more texts.
            sources: N texts; only metrics that read the source need them.

        Returns:
            (N, C) float64.
        """

    @abstractmethod
    def scores(self, sums: np.ndarray) -> np.ndarray:
        """Scores of corpora.

        Args:
            sums: (…, C) sums of statistics.

        Returns:
            (…); NaN where nothing was summed and the metric is a mean.
        """

    @abstractmethod
    def signature(self, references: int = 1) -> str:
        """What is needed to compute the score again, for so many references a sentence."""

    def sentence_scores(self, statistics: np.ndarray) -> np.ndarray:
        """Scores of single sentences, (…), from their (…, C) statistics."""
        return self.scores(statistics)

    def score(self, statistics: np.ndarray) -> float:
        """The score of a corpus, from its (N, C) statistics."""
        return float(self.scores(statistics.sum(axis=0)))


class _FromSacrebleu(Metric):
    """A metric that sacrebleu counts and signs.

    Args:
        metric: sacrebleu's.
    """

    def __init__(self, metric: SacrebleuMetric):
        self._metric: Any = metric  # classes below read what their kind alone has

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        if len(hypotheses) != len(references):
            raise ValueError(f"{len(hypotheses)} translations, but references of {len(references)} sentences")
        if not hypotheses:
            return np.zeros((0, self.columns))
        found = self._metric._extract_corpus_statistics(hypotheses, list(zip(*references, strict=True)))
        return np.array(found, dtype=np.float64)

    def signature(self, references: int = 1) -> str:
        # sacrebleu knows the number of references after it has scored something
        self._metric.corpus_score(["a"], [["a"]] * references)
        return str(self._metric.get_signature())


class Bleu(_FromSacrebleu):
    """BLEU (Papineni et al. 2002), 0 to 100, with sacrebleu's defaults.

    The statistics are: words of the hypothesis, words of its closest reference, n-grams of the hypothesis that are
    right (n = 1..4), all n-grams of the hypothesis (n = 1..4).

    Args:
        lowercase: whether letter case does not count (`sacrebleu -lc`).
        tokenize: how text becomes words, one of sacrebleu's; `none` takes what white space separates.

    Raises:
        ValueError: the tokenizer needs a package that is missing.
    """

    name = "BLEU"
    columns = 2 + 2 * _ORDER

    def __init__(self, lowercase: bool = False, tokenize: str = "none"):
        try:
            super().__init__(BLEU(lowercase=lowercase, tokenize=tokenize, force=True))
        except (ImportError, RuntimeError) as error:
            raise ValueError(f"--tokenize {tokenize}: {' '.join(str(error).split())}") from None

    def words(self, text: str) -> list[str]:
        """The words that BLEU counts, lower-cased whatever the setting."""
        return self._metric.tokenizer(text.lower().rstrip()).split()

    def scores(self, sums: np.ndarray) -> np.ndarray:
        return np.where((sums[..., 2 + _ORDER :] > 0).all(axis=-1), self.sentence_scores(sums), 0.0)

    def sentence_scores(self, statistics: np.ndarray) -> np.ndarray:
        """The same over the orders that a sentence is long enough for, as `sacrebleu.sentence_bleu`."""
        long, reference = statistics[..., 0], statistics[..., 1]
        right, every = statistics[..., 2 : 2 + _ORDER], statistics[..., 2 + _ORDER :]
        # smoothing `exp`: the k-th order without a match has half of a match, a quarter, …
        none, known = right == 0, every > 0
        matches = np.where(none, 0.5 ** np.cumsum(none, axis=-1), right)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(known, np.log(100 * matches / every), 0.0)
            precision = np.exp(logs.sum(axis=-1) / known.sum(axis=-1))
            score = precision * np.exp(np.minimum(0, 1 - reference / long))
        return np.where(none.all(axis=-1), 0.0, score)


class Chrf(_FromSacrebleu):
    """chrF and chrF++ (Popović 2015, 2017), 0 to 100, with sacrebleu's defaults.

    The statistics are, of each order: n-grams of the hypothesis, of the reference, and of both.

    Args:
        lowercase: whether letter case does not count.
        word_order: longest n-grams of words: 0 for chrF, 2 for chrF++.
    """

    def __init__(self, lowercase: bool = False, word_order: int = 0):
        super().__init__(CHRF(lowercase=lowercase, word_order=word_order))
        self.name = "chrF" + "+" * word_order
        self.columns = 3 * self._metric.order

    def scores(self, sums: np.ndarray) -> np.ndarray:
        hypothesis, reference, both = np.moveaxis(sums.reshape(*sums.shape[:-1], -1, 3), -1, 0)
        known = (hypothesis > 0) & (reference > 0)
        orders = np.maximum(known.sum(axis=-1), 1)
        precision, recall = (
            np.where(known, both / np.where(known, size, 1), 0.0).sum(axis=-1) / orders
            for size in (hypothesis, reference)
        )
        factor = self._metric.beta**2
        below = factor * precision + recall
        return np.where(below > 0, 100 * (1 + factor) * precision * recall / np.where(below > 0, below, 1), 0.0)


class Ter(_FromSacrebleu):
    """TER (Snover et al. 2006), 0 is best, with sacrebleu's defaults: letter case does not count.

    The statistics are: edits to the nearest reference, and words of a reference.
    """

    name = "TER"
    higher = False
    columns = 2

    def __init__(self):
        super().__init__(TER())

    def scores(self, sums: np.ndarray) -> np.ndarray:
        edits, words = sums[..., 0], sums[..., 1]
        return 100 * np.where(words > 0, edits / np.where(words > 0, words, 1), np.sign(edits))


class MeanMetric(Metric):
    """A metric of sentences, of which a corpus has the mean. The statistics are the score and 1."""

    columns = 2
    digits = 4

    def scores(self, sums: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return sums[..., 0] / sums[..., 1]

    @staticmethod
    def _as_statistics(scores: Sequence[float]) -> np.ndarray:
        return np.stack([np.asarray(scores, dtype=np.float64), np.ones(len(scores))], axis=1)


class Ribes(MeanMetric):
    """RIBES (Isozaki et al. 2010), 0 to 1, of lower-cased words; see `ribes`.

    Args:
        tokenize: as of `Bleu`.
    """

    name = "RIBES"

    def __init__(self, tokenize: str = "none"):
        self._tokenize = tokenize
        self._words = Bleu(tokenize=tokenize).words

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        return self._as_statistics(
            [
                sentence_ribes(self._words(hypothesis), [self._words(reference) for reference in of_sentence])
                for hypothesis, of_sentence in zip(hypotheses, references, strict=True)
            ]
        )

    def signature(self, references: int = 1) -> str:
        return f"nrefs:{references}|alpha:{ALPHA:.2f}|beta:{BETA:.2f}|case:lc|tok:{self._tokenize}"


METRICS = {
    "BLEU": Bleu,
    "chrF": lambda lowercase, tokenize: Chrf(lowercase),
    "chrF++": lambda lowercase, tokenize: Chrf(lowercase, 2),
    "TER": lambda lowercase, tokenize: Ter(),
    "RIBES": lambda lowercase, tokenize: Ribes(tokenize),
}
"""Name -> function of (lowercase, tokenize) that makes the metric."""

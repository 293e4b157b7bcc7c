"""BLEU from counts that add up: sacrebleu's, of every sentence, so that any part of a corpus is scored by a sum."""

from collections.abc import Sequence

import numpy as np
from sacrebleu.metrics.bleu import BLEU, BLEUScore

_ORDER = 4


class Bleu:
    """Corpus BLEU with sacrebleu's defaults.

    Args:
        lowercase: whether letter case does not count (`sacrebleu -lc`).
        tokenize: how text becomes words, one of sacrebleu's; `none` takes what white space separates.

    Raises:
        ValueError: the tokenizer needs a package that is missing.
    """

    def __init__(self, lowercase: bool = False, tokenize: str = "none"):
        try:
            self._metric = BLEU(lowercase=lowercase, tokenize=tokenize, force=True)
            # The effective order is of no matter for counts, but without it sacrebleu warns of every sentence.
            self._counter = BLEU(lowercase=lowercase, tokenize=tokenize, force=True, effective_order=True)
        except (ImportError, RuntimeError) as error:
            raise ValueError(f"--tokenize {tokenize}: {' '.join(str(error).split())}") from None

    def statistics(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        """Counts of each sentence; the counts of a corpus are their sum.

        Args:
            hypotheses: N texts.
            references: of each of the N, one or more texts.

        Returns:
            (N, 10) integers: words of the hypothesis, words of its closest reference, n-grams of the hypothesis that
            are right (n = 1..4), all n-grams of the hypothesis (n = 1..4).
        """
        rows = np.zeros((len(hypotheses), 2 + 2 * _ORDER), dtype=np.int64)
        for row, hypothesis, of_sentence in zip(rows, hypotheses, references, strict=True):
            found = self._counter.sentence_score(hypothesis, of_sentence)
            row[:] = [found.sys_len, found.ref_len, *found.counts, *found.totals]
        return rows

    def score(self, counts: np.ndarray) -> BLEUScore:
        """BLEU of a corpus, 0 to 100 in `score`, from the sum of its statistics: (10,) integers."""
        numbers = counts.tolist()
        return BLEU.compute_bleu(
            correct=numbers[2 : 2 + _ORDER],
            total=numbers[2 + _ORDER :],
            sys_len=numbers[0],
            ref_len=numbers[1],
            smooth_method=self._metric.smooth_method,
        )

    def words(self, text: str) -> list[str]:
        """The words that BLEU counts, lower-cased whatever the setting."""
        return self._metric.tokenizer(text.lower().rstrip()).split()

    def signature(self, references: int = 1) -> str:
        """sacrebleu's signature of the score, for so many references a sentence."""
        # sacrebleu knows the number of references after it has scored something
        self._metric.corpus_score(["a"], [["a"]] * references)
        return str(self._metric.get_signature())

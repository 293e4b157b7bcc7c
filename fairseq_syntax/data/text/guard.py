"""Detection of raw text that was not prepared as the training text was."""

import logging
import math
import re
from collections.abc import Iterable, Mapping

logger = logging.getLogger(__name__)

_SINGLE = re.compile(r"(?<!\S)\u2581?\w(@@)?(?!\S)")

ENOUGH = 300
"""Number of tokens before the first warning."""
UNKNOWN, MORE = 0.1, 0.05
"""Limit of the share of unknown tokens, and of the excess of other shares, besides three standard errors."""
CAUSES = {
    "unknown": "is it of another language, in another case, or cut in another way?",
    "single characters": "is it of another language or script, with escapes (&apos;), or cut into subwords already?",
}


def shares(texts: Iterable[str]) -> dict[str, float]:
    """Share of single letters and digits among the pieces of sentences, by name."""
    total = single = 0
    for text in texts:
        total += len(text.split())
        single += len(_SINGLE.findall(text))
    return {"single characters": single / max(total, 1)}


class Guard:
    """Counter of the tokens of raw text that warns once if a kind is far more frequent than in training.

    `usual` are the shares of the training text, see `shares`; without them, only unknown tokens count.
    """

    def __init__(self, usual: Mapping[str, float]):
        self.usual = usual
        self._texts: list[str] = []
        self._total = self._unknown = 0

    def count(self, texts: list[str], unknown: int) -> None:
        """Count the pieces of sentences, `unknown` of which are unknown."""
        if self._total >= ENOUGH:
            return
        self._texts += texts
        self._unknown += unknown
        self._total = sum(len(text.split()) for text in self._texts)
        if self._total < ENOUGH:
            return
        now = shares(self._texts)
        limits = {"unknown": (self._unknown / self._total, UNKNOWN)}
        for name in self.usual.keys() & now.keys():
            before = self.usual[name]
            limits[name] = now[name], before + MORE + 3 * math.sqrt(before * (1 - before) / self._total)
        for name, (share, most) in limits.items():
            if share > most:
                usual = f", in training {100 * self.usual[name]:.0f} %" if name in self.usual else ""
                logger.warning(
                    "%.0f %% of the tokens of this text are %s%s: %s", 100 * share, name, usual, CAUSES[name]
                )

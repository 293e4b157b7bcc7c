"""What tells that raw text is not prepared as the training text was."""

import logging
import math
import re
from collections.abc import Iterable, Mapping

logger = logging.getLogger(__name__)

_SINGLE = re.compile(r"(?<!\S)\u2581?\w(@@)?(?!\S)")

ENOUGH = 300
"""Tokens before anything is said."""
UNKNOWN, MORE = 0.1, 0.05
"""Share of unknown tokens, and what other shares may exceed those of training by, besides three standard errors."""
CAUSES = {
    "unknown": "is it of another language, in another case, or cut in another way?",
    "single characters": "is it of another language or script, with escapes (&apos;), or cut into subwords already?",
}


def shares(texts: Iterable[str]) -> dict[str, float]:
    """Of sentences in pieces: single characters, letters and digits, per piece."""
    total = single = 0
    for text in texts:
        total += len(text.split())
        single += len(_SINGLE.findall(text))
    return {"single characters": single / max(total, 1)}


class Guard:
    """Counts the tokens of raw text, and warns once of what is far more frequent than in training.

    `usual` are the shares of the training text, see `shares`; where they are not known, only unknown tokens
    count.
    """

    def __init__(self, usual: Mapping[str, float]):
        self.usual = usual
        self._texts: list[str] = []
        self._total = self._unknown = 0

    def count(self, texts: list[str], unknown: int) -> None:
        """Count sentences in pieces, with so many unknown ones among them."""
        if self._total >= ENOUGH:
            return
        self._texts += texts
        self._unknown += unknown
        self._total = sum(len(text.split()) for text in self._texts)
        if self._total < ENOUGH:
            return
        now = shares(self._texts)
        found = {"unknown": (self._unknown / self._total, UNKNOWN)}
        for name in self.usual.keys() & now.keys():
            before = self.usual[name]
            found[name] = now[name], before + MORE + 3 * math.sqrt(before * (1 - before) / self._total)
        for name, (share, most) in found.items():
            if share > most:
                usual = f", in training {100 * self.usual[name]:.0f} %" if name in self.usual else ""
                logger.warning(
                    "%.0f %% of the tokens of this text are %s%s: %s", 100 * share, name, usual, CAUSES[name]
                )

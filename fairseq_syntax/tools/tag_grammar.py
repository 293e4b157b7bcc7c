"""Which tags depend on which: the grammar of a treebank or of predicted trees (Tran & Bisk 2018, Table 4)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..trees.conllu import ROOT


@dataclass(frozen=True)
class Grammar:
    """Counts of arcs by the tags of head and child."""

    tags: list[str]  # G tags in alphabetical order
    # (G, G) number of arcs, [tag of the head, tag of the child]. Roots have no head and are not counted.
    counts: np.ndarray

    @classmethod
    def of(cls, heads: np.ndarray, tags: Sequence[str]) -> "Grammar":
        """Count arcs of (K,) heads of a corpus, as in `flat_trees`, and K tags."""
        names, number = np.unique(np.asarray(tags, dtype=str), return_inverse=True)
        child = np.flatnonzero(np.asarray(heads) != ROOT)
        pairs = number[np.asarray(heads)[child]] * len(names) + number[child]
        counts = np.bincount(pairs, minlength=len(names) ** 2).reshape(len(names), len(names))
        return cls([str(name) for name in names], counts)

    def share(self, head: str, child: str) -> float:
        """Percentage of the dependents of words tagged `head` that are tagged `child`; NaN if it has no dependent."""
        if head not in self.tags:
            return float("nan")
        row = self.counts[self.tags.index(head)]
        hits = row[self.tags.index(child)] if child in self.tags else 0
        return 100 * float(hits / row.sum()) if row.sum() else float("nan")

    def frequent(self, number: int) -> list[tuple[str, str]]:
        """The `number` most frequent (head tag, child tag), the most frequent first."""
        order = np.argsort(-self.counts.ravel(), kind="stable")[:number]
        pairs = zip(*np.unravel_index(order, self.counts.shape), strict=True)
        return [(self.tags[head], self.tags[child]) for head, child in pairs if self.counts[head, child]]

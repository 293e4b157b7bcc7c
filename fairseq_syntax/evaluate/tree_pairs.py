"""Shares of sentences whose translation follows the tree, given two trees and a reference for each."""

import json
from dataclasses import asdict, dataclass

import numpy as np

from .contrast import group_tables, share
from .tables import format_table

_FORMAT = 1
# names of measures in tables and records
BOTH_TRANSLATIONS = "both translations"
BOTH_SCORES = "both scores"


@dataclass
class TreePairs:
    """Translations and scores by one system, for N sentences with two trees each, the sentence's own first.

    Attributes:
        name: name of the system.
        digest: digest of the pairs.
        references, translations: (N, 2) texts, one for each tree.
        scores: (N, 2, 2) natural log-probabilities, [sentence, tree, reference].
        details: see `minimal_pairs.Pairs`.
    """

    name: str
    digest: str
    references: list[list[str]]
    translations: list[list[str]]
    scores: list[list[list[float]]]
    details: dict[str, list[str]]

    def measures(self) -> dict[str, np.ndarray]:
        """Name of a measure -> (N,) whether it holds for each sentence."""
        references, outputs = np.array(self.references, dtype=object), np.array(self.translations, dtype=object)
        scores = np.array(self.scores)
        right = references == outputs
        higher = np.stack([scores[:, 0, 0] > scores[:, 0, 1], scores[:, 1, 1] > scores[:, 1, 0]], axis=1)
        return {
            "translation under the tree = its reference": right[:, 0],
            "translation under the other tree = its reference": right[:, 1],
            BOTH_TRANSLATIONS: right.all(1),
            "some translation = the reference of the other tree": (references[:, ::-1] == outputs).any(1),
            "the same translation under both": outputs[:, 0] == outputs[:, 1],
            "its reference has the higher score, under the tree": higher[:, 0],
            "its reference has the higher score, under the other": higher[:, 1],
            BOTH_SCORES: higher.all(1),
        }

    def as_json(self) -> str:
        """The record as JSON: all attributes, and the number of sentences for which each measure is true."""
        counts = {name: int(hits.sum()) for name, hits in self.measures().items()}
        summary = {"format": _FORMAT, "pairs": len(self.scores), "counts": counts}
        return json.dumps({**summary, **asdict(self)}, ensure_ascii=False, indent=1) + "\n"


def tables(record: TreePairs, columns: dict[str, list[str]], form: str) -> str:
    """Tables of all measures, and of the measures for both trees by group, in a `TableFormat`.

    Args:
        columns: see `contrast.pair_groups`.
    """
    measures = record.measures()
    rows = [(name, len(hits), int(hits.sum()), *share(hits)) for name, hits in measures.items()]
    shown = [format_table(["", "pairs", "number", "%", "low", "high"], rows, form)]
    both = {name: measures[name] for name in (BOTH_TRANSLATIONS, BOTH_SCORES)}
    return "\n\n".join([*shown, *group_tables(columns, both, form)])

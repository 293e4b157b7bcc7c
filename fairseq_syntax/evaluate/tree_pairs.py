"""How often a model follows the tree: over sentences of which two trees, and the translation of each, are known."""

import json
from dataclasses import asdict, dataclass

import numpy as np

from .contrast import groups_of, share
from .tables import format_table

_FORMAT = 1
# what can be true of a sentence; tables and records call it so
GIVEN = "translation under the tree = its reference"
OTHER = "translation under the other tree = its reference"
BOTH_TRANSLATIONS = "both translations"
SAME = "the same translation under both"
BOTH_SCORES = "both scores"


@dataclass
class TreePairs:
    """What a system made of N sentences under two trees each, the given tree first.

    Attributes:
        name: of the system.
        digest: of the pairs.
        references, translations: (N, 2) texts, one for each tree.
        scores: (N, 2, 2) log-probabilities, natural logarithms: [sentence, tree, reference].
        details: see `minimal_pairs.Pairs`.
    """

    name: str
    digest: str
    references: list[list[str]]
    translations: list[list[str]]
    scores: list[list[list[float]]]
    details: dict[str, list[str]]

    def measures(self) -> dict[str, np.ndarray]:
        """What can be true of a sentence -> (N,) whether it is."""
        expected, found = np.array(self.references, dtype=object), np.array(self.translations, dtype=object)
        scores = np.array(self.scores)
        right = expected == found
        higher = np.stack([scores[:, 0, 0] > scores[:, 0, 1], scores[:, 1, 1] > scores[:, 1, 0]], axis=1)
        return {
            GIVEN: right[:, 0],
            OTHER: right[:, 1],
            BOTH_TRANSLATIONS: right.all(1),
            "some translation = the reference of the other tree": (expected[:, ::-1] == found).any(1),
            SAME: found[:, 0] == found[:, 1],
            "its reference has the higher score, under the tree": higher[:, 0],
            "its reference has the higher score, under the other": higher[:, 1],
            BOTH_SCORES: higher.all(1),
        }

    def as_json(self) -> str:
        """The record: all attributes, and how many sentences each measure is true of."""
        counts = {name: int(hits.sum()) for name, hits in self.measures().items()}
        summary = {"format": _FORMAT, "pairs": len(self.scores), "counts": counts}
        return json.dumps({**summary, **asdict(self)}, ensure_ascii=False, indent=1) + "\n"


def tree_pairs_of(content: dict) -> TreePairs:
    """The record in what `as_json` has written; KeyError, TypeError or ValueError if it is not one."""
    if content["format"] != _FORMAT:
        raise ValueError(f"format {content['format']}")
    return TreePairs(**{name: content[name] for name in TreePairs.__dataclass_fields__})


def tables(record: TreePairs, columns: dict[str, list[str]], form: str) -> str:
    """How often each measure is true, and the measures of both trees by group.

    Args:
        record: of N sentences.
        columns: see `contrast.groups_of`.
        form: a `TableFormat`.
    """
    measures = record.measures()
    rows = [(name, len(hits), int(hits.sum()), *share(hits)) for name, hits in measures.items()]
    shown = [format_table(["", "pairs", "number", "%", "low", "high"], rows, form)]
    both = [measures[BOTH_TRANSLATIONS], measures[BOTH_SCORES]]
    for name, parts in groups_of(columns, tell=True).items():
        header = [name, "pairs", BOTH_TRANSLATIONS, "low", "high", BOTH_SCORES, "low", "high"]
        by_group = [(label, len(part), *(x for hits in both for x in share(hits[part]))) for label, part in parts]
        shown.append(format_table(header, by_group, form))
    return "\n\n".join(shown)

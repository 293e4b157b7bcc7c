"""Attachment accuracy of trees against a treebank (Tran & Bisk 2018, Sec. 6.2 and Table 3).

Punctuation (UPOS `PUNCT` of the treebank) is removed from the gold and from the predicted tree in the same way: a word
whose head is punctuation moves to its nearest ancestor that is not; without one it becomes a root (`flat_trees`).
Of the K words that remain,

- DA is the share whose predicted head is the gold head. Being the root counts like having a head: a gold root is right
  if it is predicted to be one.
- UA is the share whose predicted arc is right, whichever way it points: an arc between i and j is right if the gold
  tree has i -> j or j -> i. A root is right as in DA. Two predicted arcs between the same two words (a cycle, which a
  tree has not) count once.
- UAS is the share of all words, punctuation included, whose head is right: the usual unlabelled attachment score.

The paper does not define its scores. In this form, L and R on today's English EWT and German GSD test sets are
33.5/41.2 10.3/41.7 and 34.1/41.3 7.8/40.4; the paper has 34.0/40.5 7.8/40.9 and 34.4/42.8 8.6/41.5, of earlier
releases. That L + R in DA exceeds UA by about the roots that the other baseline hits shows that roots do count there.
"""

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..trees.conllu import ROOT, Sentence
from .flat_trees import flatten, left_branching, lengths_without, remove, right_branching

logger = logging.getLogger(__name__)

PUNCTUATION = "PUNCT"

TREES = "trees"  # the name of the scored trees in a record

_FORMAT = 1


def directed_hits(gold: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """(K,) whether the head of each word is right; both (K,) heads as in `flat_trees`."""
    return gold == predicted


def undirected_hits(gold: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """(K,) whether the predicted arc of each word is right, whichever way it points; both (K,) heads."""
    words = np.arange(len(gold))
    has_head = predicted != ROOT
    reversed_arc = has_head & (gold[predicted] == words)
    # of two arcs between the same words, the one that the gold tree has is counted
    twice = has_head & (predicted[predicted] == words)
    return (gold == predicted) | (reversed_arc & ~twice)


@dataclass(frozen=True)
class Accuracy:
    """Shares of words, in percent; see the module for their definitions."""

    directed: float
    undirected: float
    uas: float


class Treebank:
    """Gold trees of S sentences, and the scores of other trees over the same words.

    Sentences without a tree, and those with fewer than `min_words` words that are not punctuation, are left out of
    every score.

    Attributes:
        kept: (S,) whether each sentence takes part.
        words: number N of words of these, punctuation included.
        scored: number K of words without punctuation.
        heads: (K,) gold heads without punctuation, as in `flat_trees`.
        upos, deprels: (K,) tags and labels of these words.
        digest: of the sentences that take part, with their trees.
    """

    def __init__(self, sentences: Sequence[Sentence], min_words: int = 1):
        counts = [sum(tag != PUNCTUATION for tag in sentence.upos) for sentence in sentences]
        self.kept = np.array(
            [s.is_parsed and count >= max(min_words, 1) for s, count in zip(sentences, counts, strict=True)], dtype=bool
        )
        kept = [sentence for sentence, keep in zip(sentences, self.kept, strict=True) if keep]
        text = json.dumps([[sentence.forms, sentence.heads, sentence.upos, sentence.deprels] for sentence in kept])
        self.digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        self._all_heads, self._all_lengths = flatten([sentence.heads for sentence in kept])
        tags = np.array([tag for sentence in kept for tag in sentence.upos], dtype=object)
        labels = np.array([label for sentence in kept for label in sentence.deprels], dtype=object)
        self._punctuation = tags == PUNCTUATION
        if len(tags) and not self._punctuation.any():
            logger.warning(
                f"no word of the treebank has the UPOS {PUNCTUATION}, so punctuation counts as words; tag it, unless "
                "there is none"
            )
        self.upos, self.deprels = tags[~self._punctuation], labels[~self._punctuation]
        self.heads = remove(self._all_heads, self._punctuation)
        self.lengths = lengths_without(self._all_lengths, self._punctuation)

    @property
    def words(self) -> int:
        return len(self._all_heads)

    @property
    def scored(self) -> int:
        return len(self.heads)

    def without_punctuation(self, trees: Sequence[Sequence[int]]) -> np.ndarray:
        """Heads (K,) of predicted trees, given for all S sentences, after the removal."""
        return remove(self._flat(trees), self._punctuation)

    def baselines(self) -> dict[str, np.ndarray]:
        """Heads (K,) of L and R over the words that are not punctuation (see `flat_trees`)."""
        return {"L": left_branching(self.lengths), "R": right_branching(self.lengths)}

    def accuracy(self, trees: Sequence[Sequence[int]]) -> Accuracy:
        """Scores of predicted trees: heads of all S sentences, over their J words each, `ROOT` for roots."""
        return self._accuracy(self.without_punctuation(trees), self._flat(trees))

    def baseline_accuracy(self) -> dict[str, Accuracy]:
        """Scores of L and R. Their UAS is that of the same baseline over all words, punctuation included."""
        over_all = {"L": left_branching(self._all_lengths), "R": right_branching(self._all_lengths)}
        return {name: self._accuracy(heads, over_all[name]) for name, heads in self.baselines().items()}

    def _accuracy(self, scored: np.ndarray, over_all: np.ndarray) -> Accuracy:
        hits = directed_hits(self.heads, scored), undirected_hits(self.heads, scored), self._all_heads == over_all
        return Accuracy(*(100 * float(hit.mean()) if len(hit) else 0.0 for hit in hits))

    def _flat(self, trees: Sequence[Sequence[int]]) -> np.ndarray:
        if len(trees) != len(self.kept):
            raise ValueError(f"{len(trees)} trees for {len(self.kept)} sentences")
        heads, lengths = flatten([tree for tree, keep in zip(trees, self.kept, strict=True) if keep])
        if not np.array_equal(lengths, self._all_lengths):
            raise ValueError("the trees are not over the words of the treebank")
        return heads

    def recall_by_relation(self, predicted: np.ndarray) -> dict[str, tuple[int, float, float]]:
        """How many words of each gold relation are attached right by (K,) heads, the most frequent relation first.

        Returns relation without its subtype (`nmod:poss` is `nmod`) -> (number of words, % with the right head, % whose
        gold arc is predicted in either direction). The root is a relation like the others.
        """
        relations = np.array([label.split(":")[0] for label in self.deprels], dtype=object)
        names, number = np.unique(relations.astype(str), return_inverse=True)
        counts = np.bincount(number, minlength=len(names))
        directed = np.bincount(number, directed_hits(self.heads, predicted), len(names))
        undirected = np.bincount(number, undirected_hits(predicted, self.heads), len(names))
        return {
            str(names[i]): (int(counts[i]), 100 * directed[i] / counts[i], 100 * undirected[i] / counts[i])
            for i in np.argsort(-counts, kind="stable")
        }

    def scores(self, predicted: Sequence[Sequence[int]] | None = None) -> dict[str, dict]:
        """All scores of predicted trees, if there are some, and of L and R.

        Returns:
            TREES, L and R -> `DA`, `UA`, `UAS`, and `relations`: relation -> `words`, `DA`, `UA`.
        """
        given = predicted is not None
        accuracy = ({TREES: self.accuracy(predicted)} if given else {}) | self.baseline_accuracy()
        heads = ({TREES: self.without_punctuation(predicted)} if given else {}) | self.baselines()
        return {
            name: {
                **{"DA": found.directed, "UA": found.undirected, "UAS": found.uas},
                "relations": {
                    relation: {"words": words, "DA": directed, "UA": undirected}
                    for relation, (words, directed, undirected) in self.recall_by_relation(heads[name]).items()
                },
            }
            for name, found in accuracy.items()
        }

    def record(self, predicted: Sequence[Sequence[int]], found: str) -> str:
        """These scores as JSON, with what they are of.

        Args:
            predicted: see `accuracy`.
            found: how the trees were found; records that differ in it cannot be put together.
        """
        sizes = {"sentences": int(self.kept.sum()), "words": self.words, "scored": self.scored}
        content = {"format": _FORMAT, "digest": f"{self.digest} {found}", **sizes, "scores": self.scores(predicted)}
        return json.dumps(content, indent=1) + "\n"

"""Evaluation of trees against a treebank: attachment (Tran & Bisk 2018, Sec. 6.2, Table 3).

Punctuation (UPOS `PUNCT` of the treebank) is removed from gold and predicted trees alike: a word whose head is
punctuation is attached to its nearest ancestor that is not, or else becomes a root (`remove`). Scores are

- DA, directed accuracy: the share of the K remaining words with the right head, or rightly predicted as roots.
- UA, undirected accuracy: the share of the K words with an arc that the gold tree has in either direction, or rightly
  predicted as roots. Two predicted arcs between the same words (a cycle) count once.
- UAS, the unlabelled attachment score: the share of all words, punctuation included, with the right head.

The paper does not define its scores. With these definitions, L and R on the current English EWT and German GSD test
sets are 33.5/41.2 10.3/41.7 and 34.1/41.3 7.8/40.4; the paper has 34.0/40.5 7.8/40.9 and 34.4/42.8 8.6/41.5 on earlier
releases. There, L + R in DA exceeds UA by about the roots that the other baseline hits, so roots do count.

A corpus of N words is one array of heads: `heads[i]` is the position of word i's head in the corpus, or `ROOT` (-1).
`lengths` has the number of words of each sentence.
"""

import logging
from collections.abc import Sequence

import numpy as np

from ..trees.conllu import ROOT, Sentence

logger = logging.getLogger(__name__)

PUNCTUATION = "PUNCT"

TREES = "trees"  # key of the evaluated trees, beside L and R


def flatten(trees: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """The heads of all sentences as one array (N,) of positions in the corpus, and the lengths of the sentences."""
    lengths = np.array([len(heads) for heads in trees], dtype=np.int64)
    heads = np.concatenate([np.asarray(heads, dtype=np.int64) for heads in trees]) if len(trees) else np.empty(0, int)
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.where(heads == ROOT, ROOT, heads + starts), lengths


def remove(heads: np.ndarray, removed: np.ndarray) -> np.ndarray:
    """The heads (K,) of the remaining words as positions among them, in O(N log N).

    Words are attached to their nearest remaining ancestor. Words without one become roots, and so do words that lead
    into a cycle of removed words, since predicted heads need not form a tree. A sentence may have several roots.
    """
    removed = np.asarray(removed, dtype=bool)
    # the last entry is the root, which index -1 also finds
    ancestor = np.append(np.where(removed, heads, np.arange(len(heads))), ROOT)
    for _ in range(len(heads).bit_length()):  # every round doubles the number of steps skipped
        ancestor = ancestor[ancestor]
    head = ancestor[heads[~removed]]
    number = np.append(np.where(removed, ROOT, np.cumsum(~removed) - 1), ROOT)
    return number[head]


def left_branching(lengths: np.ndarray) -> np.ndarray:
    """Heads (N,) of the baseline L: the head of every word is the next one, the last word is the root."""
    heads = np.arange(1, lengths.sum() + 1)
    heads[np.cumsum(lengths)[lengths > 0] - 1] = ROOT
    return heads


def right_branching(lengths: np.ndarray) -> np.ndarray:
    """Heads (N,) of the baseline R: the head of every word is the one before, the first word is the root."""
    heads = np.arange(-1, lengths.sum() - 1)
    heads[(np.cumsum(lengths) - lengths)[lengths > 0]] = ROOT
    return heads


def undirected_hits(gold: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Whether the predicted arc of each word is right in either direction: (K,)."""
    words = np.arange(len(gold))
    has_head = predicted != ROOT
    reversed_arc = has_head & (gold[predicted] == words)
    # of two arcs between the same words, only the one in the gold tree counts
    twice = has_head & (predicted[predicted] == words)
    return (gold == predicted) | (reversed_arc & ~twice)


class Treebank:
    """The gold trees of S sentences, with which predicted trees are compared.

    Sentences without a parse, or with fewer than `min_words` words other than punctuation, are left out.

    Attributes:
        kept: (S,) whether each sentence is scored.
        words: number N of words in these sentences.
        scored: number K of words other than punctuation.
        heads: (K,) gold heads without punctuation.
        deprels: (K,) their labels.
    """

    def __init__(self, sentences: Sequence[Sentence], min_words: int = 1):
        counts = [sum(tag != PUNCTUATION for tag in sentence.upos) for sentence in sentences]
        self.kept = np.array(
            [s.is_parsed and count >= max(min_words, 1) for s, count in zip(sentences, counts, strict=True)], dtype=bool
        )
        kept = [sentence for sentence, keep in zip(sentences, self.kept, strict=True) if keep]
        self._all_heads, self._all_lengths = flatten([sentence.heads for sentence in kept])
        tags = np.array([tag for sentence in kept for tag in sentence.upos], dtype=object)
        labels = np.array([label for sentence in kept for label in sentence.deprels], dtype=object)
        self._punctuation = tags == PUNCTUATION
        if len(tags) and not self._punctuation.any():
            logger.warning(
                f"no word of the treebank has the UPOS {PUNCTUATION}, so punctuation counts as words; tag it, unless "
                "there is none"
            )
        self.deprels = labels[~self._punctuation]
        self.heads = remove(self._all_heads, self._punctuation)
        sentence = np.repeat(np.arange(len(kept)), self._all_lengths)
        self.lengths = np.bincount(sentence[~self._punctuation], minlength=len(kept))

    @property
    def words(self) -> int:
        return len(self._all_heads)

    @property
    def scored(self) -> int:
        return len(self.heads)

    def without_punctuation(self, trees: Sequence[Sequence[int]]) -> np.ndarray:
        """The heads (K,) of predicted trees for all S sentences, without punctuation."""
        return remove(self._flat(trees), self._punctuation)

    def baselines(self) -> dict[str, np.ndarray]:
        """The heads (K,) of the baselines L and R, without punctuation."""
        return {"L": left_branching(self.lengths), "R": right_branching(self.lengths)}

    def _flat(self, trees: Sequence[Sequence[int]]) -> np.ndarray:
        if len(trees) != len(self.kept):
            raise ValueError(f"{len(trees)} trees for {len(self.kept)} sentences")
        heads, lengths = flatten([tree for tree, keep in zip(trees, self.kept, strict=True) if keep])
        if not np.array_equal(lengths, self._all_lengths):
            raise ValueError("the trees are not over the words of the treebank")
        return heads

    def scores(self, predicted: Sequence[Sequence[int]] | None = None) -> dict[str, dict]:
        """All scores of predicted trees, if any, and of L and R, whose UAS is that of the baseline over all words.

        Returns TREES, L and R -> `DA`, `UA`, `UAS` in percent, and `relations`: gold relation without subtypes ->
            `words`, `DA` and `UA` (the share of gold arcs that are predicted in either direction), the most frequent
            relation first.
        """
        heads = {"L": left_branching(self._all_lengths), "R": right_branching(self._all_lengths)}
        scored = self.baselines()
        if predicted is not None:
            heads = {TREES: self._flat(predicted), **heads}
            scored[TREES] = self.without_punctuation(predicted)
        return {name: self._scores(scored[name], heads[name]) for name in heads}

    def _scores(self, scored: np.ndarray, over_all: np.ndarray) -> dict:
        """Scores of heads: `scored` (K,) without punctuation, `over_all` (N,) with it."""
        directed, reached = self.heads == scored, undirected_hits(scored, self.heads)
        hits = {"DA": directed, "UA": undirected_hits(self.heads, scored), "UAS": self._all_heads == over_all}
        relations = np.array([label.split(":")[0] for label in self.deprels], dtype=str)
        names, number, counts = np.unique(relations, return_inverse=True, return_counts=True)
        right, either = (100 * np.bincount(number, hit, len(names)) / counts for hit in (directed, reached))
        by_relation = {
            str(names[i]): {"words": int(counts[i]), "DA": float(right[i]), "UA": float(either[i])}
            for i in np.argsort(-counts, kind="stable")
        }
        shares = {name: 100 * float(hit.mean()) if len(hit) else 0.0 for name, hit in hits.items()}
        return {**shares, "relations": by_relation}

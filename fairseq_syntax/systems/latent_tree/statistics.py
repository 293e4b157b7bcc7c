"""Latent constituent trees over characters in numbers (Bradbury & Socher 2017, Sec. 4): their shape, their agreement
with branching and random trees, the words that are constituents, and the attention between constituents.

The root, which no policy opens, is not counted as a constituent. Shares and scores are percentages; NaN where there is
nothing to count.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import entr

from ...trees.characters import SPACE
from .transitions import NONE, Action, Constituents

# --- trees to compare with -------------------------------------------------------------------------------------------


def pad(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """(B, T) actions of B sentences, padded with NOP."""
    counts = np.array([len(row) for row in rows], dtype=int)
    flat = np.concatenate([np.asarray(row, dtype=int) for row in rows]) if len(rows) else np.empty(0, int)
    return _rows(flat, counts)


def _rows(flat: np.ndarray, counts: np.ndarray) -> np.ndarray:
    actions = np.full((len(counts), counts.max(initial=1)), int(Action.NOP))
    actions[np.arange(actions.shape[1]) < counts[:, None]] = flat
    return actions


def right_branching(lengths: np.ndarray) -> np.ndarray:
    """(B, T) actions of the trees (a (b (c d))) over (B,) lengths: the root and n - 2 constituents over n symbols."""
    return _actions([np.append(np.tile((2, 0), n - 1), 0) if n > 1 else _flat(n) for n in lengths])


def left_branching(lengths: np.ndarray) -> np.ndarray:
    """(B, T) actions of the trees (((a b) c) d)."""
    return _actions([np.repeat((2, 0), (n - 1, n)) if n > 1 else _flat(n) for n in lengths])


def random_trees(lengths: np.ndarray, counts: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """(B, T) actions of random trees: all trees with (B,) `lengths` symbols and `counts` constituents are equally
    probable.

    A tree is written as the numbers of children of its nodes in the order of opening, 0 for symbols. Among the
    rotations of n zeros and k + 1 positive numbers with the sum n + k, exactly one is a tree (the cycle lemma of
    Dvoretzky & Motzkin 1947), so the tree is uniform if the numbers are. Constituents of one child can be drawn, as by
    a policy; there is no limit of depth. `counts` are without the root, and 0 for a sentence without symbols.
    """
    return _actions([_random_children(int(n), int(k), random) for n, k in zip(lengths, counts, strict=True)])


def _random_children(n: int, k: int, random: np.random.Generator) -> np.ndarray:
    if not n:
        return _flat(n)
    cuts = 1 + np.sort(random.choice(n + k - 1, k, replace=False))
    word = np.zeros(n + k + 1, dtype=int)
    word[random.choice(n + k + 1, k + 1, replace=False)] = np.diff(cuts, prepend=0, append=n + k)
    return np.roll(word, -1 - (word - 1).cumsum().argmin())


def _flat(n: int) -> np.ndarray:
    """Children of a root and its n symbols."""
    return np.append(n, np.zeros(n, dtype=int))


def _actions(words: Sequence[np.ndarray]) -> np.ndarray:
    """(B, T) actions of trees, each given by the numbers of children of its nodes in the order of opening."""
    sizes = np.array([len(word) for word in words], dtype=int)
    children = np.concatenate(words) if len(words) else np.empty(0, int)
    nodes = len(children)
    root = np.zeros(nodes, dtype=bool)
    root[sizes.cumsum() - sizes] = True
    # Nodes still to come, before each node and after the last. After the last descendant of a node, there is for the
    # first time one fewer than before the node; this position is found in the order of (to come, position).
    to_come = np.append(0, (children - 1).cumsum()) + len(words)
    places = np.sort(to_come * (nodes + 1) + np.arange(nodes + 1))
    ends = places[np.searchsorted(places, (to_come[:-1] - 1) * (nodes + 1) + np.arange(nodes) + 1)] % (nodes + 1)
    closing = np.flatnonzero(root | (children > 0))[::-1]  # the innermost first
    opening = np.where(root, int(Action.NOP), np.where(children > 0, int(Action.NT), int(Action.GEN)))
    # what closes the root is the end of the sentence
    flat = np.insert(opening, ends[closing], np.where(root[closing], int(Action.GEN), int(Action.REDUCE)))
    inner = np.add.reduceat(children > 0, sizes.cumsum() - sizes) if nodes else sizes
    symbols = sizes - np.maximum(inner, 1)
    return _rows(flat[flat != Action.NOP], 2 * sizes - symbols - 1)


# --- shape -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """The shape of the trees of some sentences."""

    height: float  # mean height of a tree; 1 with the root alone
    highest: int  # the greatest height
    per_symbol: float  # constituents per symbol
    children: float  # mean number of children of a constituent, symbols and constituents
    unary: float  # share of constituents that have one child
    flat: float  # share of sentences with the root alone
    right: float  # share of constituents that are the last child, among those with a sibling
    left: float  # the same for the first child
    capped: float  # share of sentences in which the budget of actions forbade a constituent; NaN if not known


def shape(trees: Constituents, capped: Sequence[bool] | None = None) -> Shape:
    """The shape of trees; `capped`: for each, whether the budget of actions forbade a constituent, if known."""
    root = trees.parent == NONE
    children = trees.terminals + trees.nonterminals
    inner = np.flatnonzero(~root)
    branching = inner[children[trees.parent[inner]] > 1]
    around = trees.parent[branching]
    return Shape(
        _mean(trees.height[root]),
        int(trees.height[root].max(initial=0)),
        _ratio(len(inner), trees.lengths.sum()),
        _mean(children[inner]),
        100 * _mean(children[inner] == 1),
        100 * _mean(trees.nonterminals[root] == 0),
        100 * _mean(trees.end[branching] == trees.end[around]),
        100 * _mean(trees.start[branching] == trees.start[around]),
        float("nan") if capped is None else 100 * _mean(np.array(capped, dtype=bool)),
    )


def mean_shape(shapes: Sequence[Shape]) -> Shape:
    """The means of shapes of the same sentences, and the highest tree of all."""
    table = np.array([tuple(vars(item).values()) for item in shapes])
    means = dict(zip(vars(shapes[0]), table.mean(axis=0).tolist(), strict=True))
    return Shape(**means | {"highest": max(item.highest for item in shapes)})


def _mean(values: np.ndarray) -> float:
    return _ratio(values.sum(), len(values))


def _ratio(part, whole) -> float:
    return float(part / whole) if whole else float("nan")


# --- agreement ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Counts:
    """Numbers of items in both of two sets, predicted, and gold; counts of several samples can be added."""

    hits: int = 0
    predicted: int = 0
    gold: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.hits + other.hits, self.predicted + other.predicted, self.gold + other.gold)

    @classmethod
    def of(cls, predicted: np.ndarray, gold: np.ndarray) -> "Counts":
        """Counts of two sets of numbers, each without repetitions."""
        return cls(int(np.isin(predicted, gold, assume_unique=True).sum()), len(predicted), len(gold))

    precision = property(lambda self: 100 * _ratio(self.hits, self.predicted), doc="Percentage; NaN without any.")
    recall = property(lambda self: 100 * _ratio(self.hits, self.gold), doc="Percentage; NaN without any.")
    f1 = property(lambda self: 200 * _ratio(self.hits, self.predicted + self.gold), doc="Percentage; 0 without hits.")


def span_counts(predicted: Constituents, gold: Constituents) -> Counts:
    """Spans of two symbols or more, but not of whole sentences, that two trees of the same sentences share.

    A right-branching tree over n > 1 symbols has n - 2 of them.
    """
    return Counts.of(*(_pairs(_spans(trees, _nontrivial(trees))) for trees in (predicted, gold)))


def _nontrivial(trees: Constituents) -> np.ndarray:
    size = trees.end - trees.start
    return (size > 1) & (size < trees.lengths[trees.row])


def _spans(trees: Constituents, which: np.ndarray) -> np.ndarray:
    """(K, 2) starts and ends of these constituents in the concatenated symbols of all sentences."""
    offset = (trees.lengths.cumsum() - trees.lengths)[trees.row]
    return np.stack((trees.start + offset, trees.end + offset), axis=1)[which]


def _pairs(spans: np.ndarray) -> np.ndarray:
    """One number for each different span, made of start and end."""
    return np.unique((spans[:, 0].astype(np.int64) << 32) | spans[:, 1])


# --- words --------------------------------------------------------------------------------------------------------


class Text:
    """Positions of words in the concatenated symbols of sentences, spaces left out.

    Args:
        sentences: the symbols of each.
        words: the lengths of each sentence's words, spaces not counted; None: words are the longest sequences of
            symbols without a space.

    Attributes:
        before: (N + 1,) symbols that are not spaces, before each symbol and at the end.
        words: (W,) where words start.
    """

    def __init__(self, sentences: Sequence[Sequence[str]], words: Sequence[Sequence[int]] | None = None):
        lengths = np.array([len(symbols) for symbols in sentences], dtype=int)
        space = np.array([symbol == SPACE for symbols in sentences for symbol in symbols], dtype=bool)
        self.before = np.append(0, (~space).cumsum())
        starts = np.append(0, lengths.cumsum())
        edges = self.before[starts]  # of sentences
        self.total = int(edges[-1])
        if words is None:
            # a word starts after a space, or where its sentence does
            after = np.insert(space, 0, True)[:-1]
            after[starts[:-1][lengths > 0]] = True
            self.words = self.before[:-1][after & ~space]
        else:
            flat = np.array([length for given in words for length in given], dtype=int)
            self.words = flat.cumsum() - flat

    def strip(self, spans: np.ndarray) -> np.ndarray:
        """(K, 2) spans of all symbols as spans without spaces; spans of nothing but spaces are left out."""
        stripped = self.before[spans]
        return stripped[stripped[:, 0] < stripped[:, 1]]


@dataclass(frozen=True)
class Segmentation:
    """Agreement of constituents with words. A segment is a constituent of symbols alone, stripped of spaces."""

    words: Counts = Counts()  # segments against words
    inside: Counts = Counts()  # all constituents against words; only `recall` is meaningful

    def __add__(self, other: "Segmentation") -> "Segmentation":
        return Segmentation(self.words + other.words, self.inside + other.inside)


def segmentation(trees: Constituents, text: Text) -> Segmentation:
    """Score the constituents of the sentences of a text.

    A right-branching tree has one segment, the last two symbols; so its segments find next to nothing, while its
    constituents find the last word of each sentence.
    """
    words = _pairs(np.stack((text.words, np.append(text.words, text.total)[1:]), axis=1))
    inner = trees.parent != NONE
    segments, all_spans = (
        _pairs(text.strip(_spans(trees, which))) for which in (inner & (trees.nonterminals == 0), inner)
    )
    return Segmentation(Counts.of(segments, words), Counts.of(all_spans, words))


# --- attention ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Attention:
    """Attention of the constituents of one side over those of the other, as the coverage loss sees it (eq. 2)."""

    constituents: int  # that attend
    highest: float  # mean of the highest weight of a constituent that attends
    entropy: float  # mean entropy of its weights, in nats
    # parts of the loss, mean over sentences: from the total weight of each source constituent, which should be 1 (0 for
    # the root, which the target's root consumes); from the highest weight that each gets, and that each target
    # constituent gives, the root left out
    total: float
    attended: float
    attending: float
    covered: float  # share of attended constituents, the roots left out, whose sum is between 0.5 and 1.5


def attention_summary(weights: Iterable[np.ndarray]) -> Attention:
    """Numbers about attention: of each sentence, weights (J, I) whose rows add up to 1; column 0 is the root."""
    highest, entropy, losses, sums = [], [], [], []
    for alpha in weights:
        total = alpha.sum(axis=0)
        inner = alpha[:, 1:]
        highest.append(alpha.max(axis=1))
        entropy.append(entr(alpha).sum(axis=1))
        sums.append(total[1:])
        due = np.arange(len(total)) > 0
        # without constituents to take the greatest of, there is no loss
        attended = ((1 - inner.max(axis=0, initial=0)) ** 2).mean() if inner.shape[1] else 0.0
        attending = ((1 - inner.max(axis=1)) ** 2).mean() if inner.size else 0.0
        losses.append((((due - total) ** 2).mean(), attended, attending))
    highest, entropy, sums = (np.concatenate(items or [np.empty(0)]) for items in (highest, entropy, sums))
    means = np.mean(losses, axis=0).tolist() if losses else [float("nan")] * 3
    return Attention(len(highest), _mean(highest), _mean(entropy), *means, 100 * _mean((sums >= 0.5) & (sums <= 1.5)))

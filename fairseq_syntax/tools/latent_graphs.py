"""Latent graphs in numbers: how sure they are, and what of a treebank is in them (Hashimoto & Tsuruoka 2017, Sec. 6.2).

A graph of a sentence of J words is an array (J, J + 1), [dependent, head], of probabilities: column 0 is ROOT, column h
is word h - 1. Rows add up to 1, and no word is its own head. So heads are numbered as in CoNLL-U.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import entr
from torch.nn.utils.rnn import pad_sequence

from ..systems.parser.model import LatentGraphParserModel
from ..trees.conllu import Sentence
from ..trees.well_formed import are_trees
from .flat_trees import flatten
from .latent_trees import CutSentence, TreeInducer
from .sentences import encode_line
from .treebank import PUNCTUATION, directed_hits


def edges(graph: np.ndarray, threshold: float) -> np.ndarray:
    """(E, 2) dependents and heads, as indices of the graph, of arcs above the threshold; most probable heads first."""
    dependents, heads = np.nonzero(graph > threshold)
    order = np.lexsort((-graph[dependents, heads], dependents))
    return np.stack((dependents[order], heads[order]), axis=1)


@dataclass(frozen=True)
class Sharpness:
    """How sure graphs are of the heads of words."""

    entropy: float  # mean over the words of the entropy of their heads, in nats
    # the same in percent of log N, of which N, the words of the sentence, are the possible heads: the others and
    # ROOT. Sentences of one word, which leave no choice, are left out; NaN without others.
    share: float
    top: float  # mean probability of the most probable head
    trees: float  # percentage of graphs of which the most probable heads form a tree with one root


def sharpness(graphs: Sequence[np.ndarray]) -> Sharpness:
    """Sharpness of graphs (J, J + 1), each with a word or more, of which there must be one."""
    lengths = np.array([len(graph) for graph in graphs])
    entropies = np.concatenate([entr(graph).sum(axis=1) for graph in graphs])
    most = np.repeat(np.log(lengths), lengths)
    choice = most > 0
    share = 100 * float((entropies[choice] / most[choice]).mean()) if choice.any() else float("nan")
    top = np.concatenate([graph.max(axis=1) for graph in graphs])
    return Sharpness(float(entropies.mean()), share, float(top.mean()), 100 * float(greedy_trees(graphs).mean()))


def greedy_trees(graphs: Sequence[np.ndarray]) -> np.ndarray:
    """(graphs,) whether the most probable heads form a tree with one root."""
    # the order of `are_trees`: ROOT behind the words
    best = [torch.from_numpy(np.roll(graph, -1, axis=1)).argmax(dim=1) for graph in graphs]
    lengths = torch.tensor([len(heads) + 1 for heads in best])
    heads = pad_sequence(best, batch_first=True)
    return are_trees(torch.nn.functional.pad(heads, (0, 1)), lengths).numpy()


@dataclass(frozen=True)
class Relation:
    """How much of a gold relation is found."""

    name: str  # without its subtype
    words: int  # that have it in the treebank
    right: int  # those of them whose head is right
    share: float  # right, in percent of the right ones of all relations
    recall: float  # right, in percent of words


class Scores:
    """Trees against gold trees of the same words.

    Punctuation (UPOS `PUNCT`) is only not counted: a word whose head is punctuation keeps it. So do Chen & Manning
    (EMNLP 2014), whom the paper follows; `attachment.Treebank` instead takes it out of the trees.

    Attributes:
        uas: percentage of words whose head is right.
        uas_without_punctuation: the same of words that are not punctuation; NaN if there are none.
    """

    def __init__(self, gold: Sequence[Sentence], trees: Sequence[Sequence[int]]):
        heads, lengths = flatten([sentence.heads for sentence in gold])
        found, given = flatten(trees)
        if not np.array_equal(lengths, given):
            raise ValueError("the trees are not over the words of the treebank")
        hits = directed_hits(heads, found)
        counted = np.array([tag != PUNCTUATION for sentence in gold for tag in sentence.upos], dtype=bool)
        labels = np.array([label.split(":")[0] for sentence in gold for label in sentence.deprels], dtype=str)
        self._hits, self._labels = hits[counted], labels[counted]
        self.uas = _percent(hits)
        self.uas_without_punctuation = _percent(self._hits)

    def relations(self) -> list[Relation]:
        """Gold relations (`nmod:poss` is `nmod`) of the words that are not punctuation, most right ones first."""
        names, number = np.unique(self._labels, return_inverse=True)
        words = np.bincount(number, minlength=len(names))
        right = np.bincount(number[self._hits], minlength=len(names))
        shares, recalls = 100 * right / max(right.sum(), 1), 100 * right / words
        return [
            Relation(str(names[i]), int(words[i]), int(right[i]), float(shares[i]), float(recalls[i]))
            for i in np.lexsort((-words, -right))
        ]


def _percent(hits: np.ndarray) -> float:
    return 100 * float(hits.mean()) if len(hits) else float("nan")


@torch.no_grad()
def own_labels(inducer: TreeInducer, source: CutSentence) -> list[str] | None:
    """The most probable label of the arc of each word, or None of a model that has no names for them.

    Of a word in pieces, the probabilities are summed over these. The inducer was given the words of the source before.
    """
    model = inducer.loaded.model
    if not isinstance(model, LatentGraphParserModel):
        return None
    tokens = encode_line(inducer.loaded.task.source_dictionary, source.pieces)[None].to(inducer.loaded.device)
    graph = model(tokens, torch.tensor([tokens.shape[1]], device=tokens.device))
    starts = np.flatnonzero(np.diff(source.word_of_token, prepend=-1))
    of_words = np.add.reduceat(graph.labels[0, :-1].double().cpu().numpy(), starts, axis=0)
    return [model.labels[number] for number in of_words.argmax(axis=1)]

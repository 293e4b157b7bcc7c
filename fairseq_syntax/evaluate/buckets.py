"""Buckets of sentences, by their length, a property of their trees, or labels from the user.

Buckets below a minimum size are merged with a neighbour.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..trees.alignment import fit_tree
from ..trees.conllu import Sentence, read_conllu
from ..trees.subwords import without_joiners
from ..trees.text import read_lines
from .corpus import Corpus, numbered, texts

RELATION = "relation:"
LABEL = "label:"
KINDS = {"length": "source words", "depth": "tree depth", RELATION + "NAME": "NAME"}
"""Kind of bucket -> its name in tables."""


class Source(NamedTuple):
    """Number of words of N source sentences, and their trees; None if unknown."""

    words: Sequence[int] | None = None
    parses: list[Sentence] | None = None


class Bucket(NamedTuple):
    """Range of the values ("11-20", or ">50" for the last bucket if it is open), and indices (n,) of its sentences."""

    label: str
    sentences: np.ndarray


@dataclass(frozen=True)
class Scale:
    """Boundaries and names of buckets.

    Attributes:
        edges: ascending numbers; bucket i holds the values from edge i to below edge i + 1, which may be infinite.
        names: names of the buckets; empty if they are ranges.
    """

    edges: tuple[float, ...]
    names: tuple[str, ...] = ()

    def label(self, first: int, last: int) -> str:
        """Label of the buckets `first` to `last`, merged into one."""
        if self.names:
            names = self.names[first : last + 1]
            return "all" if 1 < len(names) == len(self.names) else ", ".join(names)
        low, high = self.edges[first], self.edges[last + 1] - 1
        if high == np.inf:
            return f">{low - 1}" if first else "all"
        return str(low) if low == high else f"{low}-{high}"


def make_buckets(values: np.ndarray, scale: Scale, minimum: int) -> list[Bucket]:
    """Sort sentences into buckets, and merge buckets of fewer than `minimum` sentences with their smaller neighbour.

    Args:
        values: (N,); sentences with NaN are left out.
        scale: edges, of which the first is not above any value.
        minimum: smallest bucket, unless only one is left.
    """
    numbers = np.where(np.isnan(values), -1, np.digitize(values, scale.edges) - 1)
    sizes = {i: int((numbers == i).sum()) for i in np.unique(numbers[numbers >= 0]).tolist()}
    runs = [[i] for i in sizes]  # numbers of merged buckets

    def size(run: int) -> int:
        return sum(sizes[i] for i in runs[run])

    while len(runs) > 1 and min(map(size, range(len(runs)))) < minimum:
        small = min(range(len(runs)), key=size)
        left = min((i for i in (small - 1, small + 1) if 0 <= i < len(runs)), key=size)
        left = min(small, left)
        runs[left : left + 2] = [runs[left] + runs[left + 1]]
    return [Bucket(scale.label(run[0], run[-1]), np.flatnonzero(np.isin(numbers, run))) for run in runs]


def lengths(longest: int) -> Scale:
    """Buckets of 10 words up to `longest`, above which one bucket is open."""
    return Scale((*range(1, longest + 1, 10), longest + 1, np.inf))


# --- kinds of buckets -----------------------------------------------------------------------------------------------


def labelled(path: str, numbers: Sequence[int]) -> tuple[np.ndarray, Scale]:
    """The index (N,) of each sentence's label, and a scale with one bucket per label, in alphabetical order.

    Args:
        path: file with the label of every sentence, one per line.
        numbers: N numbers of sentences, from 0.

    Raises ValueError: the number of lines is wrong.
    """
    labels = texts(numbered(read_lines(path)), numbers, path, "label")
    names, places = np.unique([label or "none" for label in labels], return_inverse=True)
    return places.astype(np.float64), Scale(tuple(range(len(names) + 1)), tuple(names.tolist()))


def read_parses(path: str | Path, numbers: Sequence[int], sources: Sequence[str] | None) -> list[Sentence]:
    """The trees of some sentences of a CoNLL-U file, plain or gzipped.

    Args:
        numbers: N numbers of sentences, from 0.
        sources: N texts, compared with the words of the trees in lower case; None to skip this check.

    Raises ValueError as `read_conllu` does, or if the number of trees or the words of a tree are wrong.
    """
    trees = texts(dict(enumerate(read_conllu(path))), numbers, path, "tree")
    for number, source, tree in zip(numbers, sources or [], trees, strict=sources is not None):
        if "<unk>" not in source + "".join(tree.forms):  # fairseq may have joined it to the preceding word
            words = without_joiners(source.lower().split())
            lower = replace(tree, forms=[form.lower() for form in tree.forms])
            fit_tree(lower, words, f"{path}:{tree.line}: sentence {number + 1}")
    return trees


def read_source(corpus: Corpus, parse: str | None) -> Source:
    """Lengths of the source sentences, and their trees from a CoNLL-U file; None for what is unknown."""
    parses = read_parses(parse, corpus.numbers, corpus.sources) if parse else None
    if corpus.sources is not None:
        return Source([len(text.split()) for text in corpus.sources], parses)
    # "im" is one word, as in the text
    return Source([len(tree.collapse_ranges()) for tree in parses] if parses else None, parses)


def title(kind: str) -> str:
    """Name of a kind of buckets in tables: a relation, or the name of the file of labels up to its first dot."""
    if kind.startswith(LABEL):
        return Path(kind.removeprefix(LABEL)).name.partition(".")[0]
    return kind.removeprefix(RELATION) if kind.startswith(RELATION) else KINDS[kind]


def measure(kind: str, source: Source, numbers: Sequence[int] = (), longest: int = 50) -> tuple[np.ndarray, Scale]:
    """Values (N,) of the sentences for a kind of buckets, NaN without a parse, and the `Scale` of these values.

    Args:
        kind: one of `KINDS`, or `label:FILE`.
        numbers: N numbers of sentences, from 0, for `labelled`.
        longest: for lengths, the limit above which one bucket is open.

    Raises ValueError: the source lacks the lengths or trees that this kind needs, or see `labelled`.
    """
    if kind.startswith(LABEL):
        return labelled(kind.removeprefix(LABEL), numbers)
    if kind == "length":
        if source.words is None:
            raise ValueError("--by length: the source is not known; give --source or --parse")
        return np.maximum(np.array(source.words), 1.0), lengths(longest)
    parses = source.parses or []
    known = [tree.is_parsed for tree in parses]
    if not any(known):
        raise ValueError(f"--by {kind}: trees are needed; give --parse FILE.conllu with parses")
    if kind == "depth":  # words on the longest path from a root downwards
        depths = [max(tree.depths(), default=0) if tree.is_parsed else np.nan for tree in parses]
        return np.array(depths), Scale(tuple(range(int(np.nanmax(depths)) + 2)))
    start = f"{kind.removeprefix(RELATION)}:"  # `acl` includes `acl:relcl`
    present = [any(f"{label}:".startswith(start) for label in tree.deprels) for tree in parses]
    if not any(present):
        raise ValueError(f"--by {kind}: no tree has this relation; check its name")
    return np.where(known, present, np.nan), Scale((0, 1, 2), ("absent", "present"))

"""Latent constituents in numbers: their shapes, what they agree with, and their attention."""

from collections.abc import Callable, Sequence

import numpy as np

from ..evaluate.tables import format_table
from ..systems.latent_tree.statistics import (
    Counts,
    Segmentation,
    Shape,
    Text,
    attention_summary,
    left_branching,
    mean_shape,
    pad,
    random_trees,
    right_branching,
    segmentation,
    shape,
    span_counts,
)
from ..systems.latent_tree.transitions import NONE, Constituents, constituents
from ..systems.latent_tree.tree_files import Tree, TreeRecord
from ..trees.characters import SPACE, to_characters
from ..trees.conllu import TreeFormatError
from ..trees.text import read_lines

UNKNOWN = "<unk>"
"""What stands in a tree for a character that is not in the dictionary."""


Table = Callable[[str], str]
"""A table, as text of a `TableFormat`."""


def describe(
    pairs: Sequence[TreeRecord], side: str | None, words: str | None, samples: int, seed: int, name: str
) -> tuple[list[Table], list[str]]:
    """Tables of shapes, agreement with control trees, words and attention; and what they are about.

    Args:
        pairs: trees of sentences and of their translations, with the attention between them.
        side: `source` or `target`; None for both, and the attention.
        words: a file with the words of the side, see `read_words`.
        samples, seed: of random trees.
        name: of the file of trees, for messages.

    Raises:
        ValueError: the trees or the words cannot be read, or are not of the same text.
        OSError: a file is missing.
    """
    sides = [_Side(each, pairs, words, samples, seed, name) for each in ([side] if side else ["source", "target"])]
    header = ["side", "trees", "height", "highest", "per symbol", "children", "% unary", "% flat"]
    tables = [
        _table([*header, "% right", "% left", "% capped"], sides, _Side.shapes),
        _table(["side", "trees", "right F1", "left F1", "random F1"], sides, _Side.agreement),
        _table(["side", "segments", "P", "R", "F1", "any R"], sides, _Side.words),
    ]
    if not side:
        found = attention_summary(pair.attention for pair in pairs)
        header = ["constituents", "max alpha", "entropy", "total", "attended", "attending", "% covered"]
        numbers = (found.highest, found.entropy, found.total, found.attended, found.attending)
        row = [found.constituents, *map(_exact, numbers), found.covered]
        tables.append(lambda form: format_table(header, [row], form))
    notes = [
        f"{each.name}: {len(each.trees)} sentences, {each.lengths.sum()} symbols, "
        f"{len(each.found) - len(each.trees)} constituents; {len(pairs) - len(each.trees)} sentences without a symbol "
        "left out"
        for each in sides
    ]
    return tables, notes


def _table(header: list[str], sides: Sequence["_Side"], rows: Callable[["_Side"], list[list]]) -> Table:
    content = [[side.name, *row] for side in sides for row in rows(side)]
    return lambda form: format_table(header, content, form)


def _exact(value: float) -> str:
    """More digits than tables have, for what is small."""
    return "-" if value != value else f"{value:.3f}"


class _Side:
    """The trees of source or target, and those that they are compared with."""

    def __init__(self, name: str, pairs: Sequence[TreeRecord], words: str | None, samples: int, seed: int, path: str):
        all_trees = {pair.sentence: getattr(pair, name) for pair in pairs}
        kept = {sentence: tree for sentence, tree in all_trees.items() if tree.symbols}
        of_words = read_words(words, kept, path) if words else None
        self.name = name
        self.trees = list(kept.values())
        if not self.trees:
            raise ValueError(f"{path}: no tree of the {name} has a symbol; there is nothing to describe")
        self.text = Text([tree.symbols for tree in self.trees], of_words)
        self.lengths = np.array([len(tree.symbols) for tree in self.trees])
        self.found = constituents(pad([tree.actions for tree in self.trees]))
        self.right, self.left = (constituents(make(self.lengths)) for make in (right_branching, left_branching))
        counts = np.bincount(self.found.row[self.found.parent != NONE], minlength=len(self.trees))
        random = np.random.default_rng(seed)
        self.draws = [constituents(random_trees(self.lengths, counts, random)) for _ in range(samples)]

    def shapes(self) -> list[list]:
        """Rows of the first table."""
        capped = [tree.capped for tree in self.trees]
        shapes = {
            "found": shape(self.found, None if None in capped else capped),
            "random": mean_shape([shape(draw) for draw in self.draws]),
        }
        return [[name, *self._shape(found)] for name, found in shapes.items()]

    def _shape(self, found: Shape) -> list:
        numbers = (found.unary, found.flat, found.right, found.left, found.capped)
        return [found.height, found.highest, _exact(found.per_symbol), found.children, *numbers]

    def agreement(self) -> list[list]:
        """Rows of the second table; draws are not compared with one another."""
        return [
            ["found", *(self._f1([self.found], given) for given in ([self.right], [self.left], self.draws))],
            ["random", *(self._f1(self.draws, [given]) for given in (self.right, self.left)), float("nan")],
        ]

    def _f1(self, found: Sequence[Constituents], given: Sequence[Constituents]) -> float:
        return sum((span_counts(one, other) for one in found for other in given), Counts()).f1

    def words(self) -> list[list]:
        """Rows of the third table."""
        scores = {
            "found": segmentation(self.found, self.text),
            "random": sum((segmentation(draw, self.text) for draw in self.draws), Segmentation()),
            "right": segmentation(self.right, self.text),
            "left": segmentation(self.left, self.text),
        }
        return [
            [name, score.words.precision, score.words.recall, score.words.f1, score.inside.recall]
            for name, score in scores.items()
        ]


def read_words(path: str, trees: dict[int, Tree], name: str) -> list[list[int]]:
    """Lengths in characters of the words of trees, from a text with spaces between words; line N is sentence N.

    Raises TreeFormatError: a line is missing, or its characters are not those of the tree.
    """
    lines = list(read_lines(path))
    result = []
    for sentence, tree in trees.items():
        if sentence >= len(lines):
            raise TreeFormatError(
                f"{path}: has {len(lines)} lines, but {name} has a sentence {sentence}; give the text that was "
                "translated, with a line for every sentence"
            )
        # as in the text that was translated
        words = ["".join(word.split()) for word in to_characters(lines[sentence]).split(SPACE)]
        given = "".join(words)
        own = [symbol for symbol in tree.symbols if symbol != SPACE]
        if len(own) != len(given) or any(a not in (b, UNKNOWN) for a, b in zip(own, given, strict=True)):
            raise TreeFormatError(
                f"{path}:{sentence + 1}: {lines[sentence][:60]!r} does not have the characters of sentence {sentence} "
                f"of {name}, {''.join(own)[:60]!r}; give the same text with spaces between words"
            )
        result.append([len(word) for word in words if word])
    return result

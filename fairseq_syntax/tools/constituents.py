"""Statistics of latent constituents: shapes, agreement with other trees and with words, attention."""

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
"""Symbol in a tree for a character that is not in the dictionary."""

Table = Callable[[str], str]
"""Function from a `TableFormat` to the text of a table."""


def describe(
    pairs: Sequence[TreeRecord], side: str | None, words: str | None, samples: int, seed: int, name: str
) -> tuple[list[Table], list[str]]:
    """Tables of shapes, agreement with control trees, words and attention, and a note on the size of each side.

    Args:
        pairs: trees of sentences and of their translations, with the attention between them.
        side: `source` or `target`; None for both, and for attention.
        words: file with the words of the side, see `read_words`.
        samples, seed: number and random seed of samples of random trees.
        name: name of the file of trees, for messages.

    Raises ValueError: the words cannot be read, or are not of the same text.
    """
    names = [side] if side else ["source", "target"]
    sides = [_Side(side_name, pairs, words, samples, seed, name) for side_name in names]
    header = ["side", "trees", "height", "highest", "per symbol", "children", "% unary", "% flat"]
    tables = [
        _table([*header, "% right", "% left", "% capped"], sides, _Side.shapes),
        _table(["side", "trees", "right F1", "left F1", "random F1"], sides, _Side.agreement),
        _table(["side", "segments", "P", "R", "F1", "any R"], sides, _Side.words),
    ]
    if not side:
        attention = attention_summary(pair.attention for pair in pairs)
        header = ["constituents", "max alpha", "entropy", "total", "attended", "attending", "% covered"]
        numbers = (attention.highest, attention.entropy, attention.total, attention.attended, attention.attending)
        row = [attention.constituents, *map(_exact, numbers), attention.covered]
        tables.append(lambda form: format_table(header, [row], form))
    notes = [
        f"{trees.name}: {len(trees.trees)} sentences, {trees.lengths.sum()} symbols, "
        f"{len(trees.latent) - len(trees.trees)} constituents; {len(pairs) - len(trees.trees)} sentences without a "
        "symbol left out"
        for trees in sides
    ]
    return tables, notes


def _table(header: list[str], sides: Sequence["_Side"], rows: Callable[["_Side"], list[list]]) -> Table:
    content = [[side.name, *row] for side in sides for row in rows(side)]
    return lambda form: format_table(header, content, form)


def _exact(value: float) -> str:
    """A small number, with more decimals than in other cells."""
    return "-" if value != value else f"{value:.3f}"


class _Side:
    """The trees of the source or target side, and the control trees."""

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
        self.latent = constituents(pad([tree.actions for tree in self.trees]))
        self.right, self.left = (constituents(make(self.lengths)) for make in (right_branching, left_branching))
        counts = np.bincount(self.latent.row[self.latent.parent != NONE], minlength=len(self.trees))
        random = np.random.default_rng(seed)
        self.draws = [constituents(random_trees(self.lengths, counts, random)) for _ in range(samples)]

    def shapes(self) -> list[list]:
        """Rows of the table of shapes."""
        capped = [tree.capped for tree in self.trees]
        shapes = {
            "found": shape(self.latent, None if None in capped else capped),
            "random": mean_shape([shape(draw) for draw in self.draws]),
        }
        return [[name, *self._shape(means)] for name, means in shapes.items()]

    def _shape(self, means: Shape) -> list:
        numbers = (means.unary, means.flat, means.right, means.left, means.capped)
        return [means.height, means.highest, _exact(means.per_symbol), means.children, *numbers]

    def agreement(self) -> list[list]:
        """Rows of the table of agreement; random trees are not compared with each other."""
        return [
            ["found", *(self._f1([self.latent], controls) for controls in ([self.right], [self.left], self.draws))],
            ["random", *(self._f1(self.draws, [controls]) for controls in (self.right, self.left)), float("nan")],
        ]

    def _f1(self, trees: Sequence[Constituents], controls: Sequence[Constituents]) -> float:
        return sum((span_counts(tree, control) for tree in trees for control in controls), Counts()).f1

    def words(self) -> list[list]:
        """Rows of the table of words."""
        scores = {
            "found": segmentation(self.latent, self.text),
            "random": sum((segmentation(draw, self.text) for draw in self.draws), Segmentation()),
            "right": segmentation(self.right, self.text),
            "left": segmentation(self.left, self.text),
        }
        return [
            [name, score.words.precision, score.words.recall, score.words.f1, score.inside.recall]
            for name, score in scores.items()
        ]


def read_words(path: str, trees: dict[int, Tree], name: str) -> list[list[int]]:
    """Lengths of the words of trees in characters, from a text with spaces between words; line N is sentence N.

    Raises TreeFormatError: a line is missing, or its characters differ from those of the tree.
    """
    lines = list(read_lines(path))
    result = []
    for sentence, tree in trees.items():
        if sentence >= len(lines):
            raise TreeFormatError(
                f"{path}: has {len(lines)} lines, but {name} has a sentence {sentence}; give the text that was "
                "translated, with a line for every sentence"
            )
        # as in the translated text
        words = ["".join(word.split()) for word in to_characters(lines[sentence]).split(SPACE)]
        characters = "".join(words)
        symbols = [symbol for symbol in tree.symbols if symbol != SPACE]
        if len(symbols) != len(characters) or any(
            a not in (b, UNKNOWN) for a, b in zip(symbols, characters, strict=True)
        ):
            raise TreeFormatError(
                f"{path}:{sentence + 1}: {lines[sentence][:60]!r} does not have the characters of sentence {sentence} "
                f"of {name}, {''.join(symbols)[:60]!r}; give the same text with spaces between words"
            )
        result.append([len(word) for word in words if word])
    return result

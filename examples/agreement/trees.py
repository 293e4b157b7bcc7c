"""Dependency trees: the builder's nodes, the flat words they become, and CoNLL-U text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Word:
    """One word of a sentence; ``id`` and ``head`` count from 1, and head 0 marks the root."""

    id: int
    form: str
    upos: str
    head: int
    deprel: str


@dataclass
class Node:
    """A word with its dependents to the left and to the right, in order: a projective tree."""

    form: str
    upos: str
    deprel: str
    left: list[Node] = field(default_factory=list)
    right: list[Node] = field(default_factory=list)

    def in_order(self) -> Iterator[Node]:
        """The nodes of the subtree in the order of the sentence."""
        for child in self.left:
            yield from child.in_order()
        yield self
        for child in self.right:
            yield from child.in_order()


def flatten(root: Node) -> list[Word]:
    """The words of the sentence that ``root`` heads, with heads given by position."""
    nodes = list(root.in_order())
    position = {id(node): index for index, node in enumerate(nodes, start=1)}
    head = {id(root): 0}
    for node in nodes:
        for child in node.left + node.right:
            head[id(child)] = position[id(node)]
    return [Word(position[id(node)], node.form, node.upos, head[id(node)], node.deprel) for node in nodes]


def text(words: Iterable[Word]) -> str:
    """The sentence as plain text, its words separated by single spaces."""
    return " ".join(word.form for word in words)


def to_conllu(words: Iterable[Word]) -> str:
    """The sentence as ten-column CoNLL-U, with the blank line that ends it."""
    lines = [f"{word.id}\t{word.form}\t_\t{word.upos}\t_\t_\t{word.head}\t{word.deprel}\t_\t_" for word in words]
    return "\n".join(lines) + "\n\n"


def from_conllu(lines: Iterable[str], place: str) -> Iterator[list[Word]]:
    """The sentences of CoNLL-U text; comments, multiword ranges and empty nodes are skipped.

    ``place`` names the source in error messages. Raises ValueError for a line that is not CoNLL-U.
    """
    words: list[Word] = []
    for number, line in enumerate(lines, start=1):
        line = line.rstrip("\n")
        if not line:
            if words:
                yield words
            words = []
            continue
        if line.startswith("#"):
            continue
        columns = line.split("\t")
        if len(columns) != 10:
            raise ValueError(
                f"{place}, line {number}: {len(columns)} columns; expected the 10 tab-separated "
                "columns of CoNLL-U; check that the file is CoNLL-U"
            )
        if "-" in columns[0] or "." in columns[0]:
            continue
        # Python converts no more than some thousands of digits
        if columns[0] != str(len(words) + 1) or not re.fullmatch("[0-9]{1,9}", columns[6]):
            raise ValueError(
                f"{place}, line {number}: ID {columns[0][:20]!r} and HEAD {columns[6][:20]!r}; expected "
                f"{len(words) + 1} and a whole number; parse or repair the file first"
            )
        words.append(Word(int(columns[0]), columns[1], columns[3], int(columns[6]), columns[7]))
    if words:
        yield words

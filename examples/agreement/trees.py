"""Dependency trees: the builder's nodes, the flat words they become, and CoNLL-U text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fairseq_syntax.trees.conllu import read_conllu


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


def from_conllu(path: str | Path) -> Iterator[list[Word]]:
    """The sentences of a CoNLL-U file. Raises ValueError for one that is not CoNLL-U."""
    for sentence in read_conllu(path):
        rows = zip(sentence.forms, sentence.upos, sentence.heads, sentence.deprels, strict=True)
        yield [Word(i, form, upos, head + 1, deprel) for i, (form, upos, head, deprel) in enumerate(rows, start=1)]

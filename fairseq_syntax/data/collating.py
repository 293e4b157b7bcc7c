"""Inputs of models that are made from the arrays of each sentence, and batched.

A model names its inputs in `syntax_inputs`; the batch then holds `net_input["src_syntax"]`, a `SourceSyntax`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import torch

from ..trees.conllu import UNPARSED
from ..trees.distances import PAD_DISTANCE, expand_distances, tree_distances
from ..trees.piece_parents import NO_PARENT, parent_first_pieces, parent_positions, piece_heads

# fairseq's dictionaries begin with <s>, <pad>, </s>, <unk>
PAD, EOS, UNK = 1, 2, 3


class SourceSyntax(TypedDict, total=False):
    """The trees of a batch, aligned to the columns of `src_tokens` (B, T), whatever the padding side.

    It has the keys that the model names. Positions are columns of the batch; EOS is the last token of a sentence.
    """

    parents: torch.Tensor
    """(B, T) int32: twice the middle position of the head word; -1 without a parse and at padding."""
    parent_pieces: torch.Tensor
    """(B, T) int32: position of the first piece of the head word; -1 without a parse and at padding."""
    piece_heads: torch.Tensor
    """(B, T) int32: position of the head of each piece, EOS for roots; -1 without a parse and at padding."""
    word_starts: torch.Tensor
    """(B, T) int32: 1 on the first piece of every word and on EOS, else 0."""
    distances: torch.Tensor
    """(B, T, T) uint8: arcs between the words of two tokens; `PAD_DISTANCE` at padding."""
    deprels: torch.Tensor
    """(B, T) int32: label of the word of each token, an index of its dictionary; 1 at padding."""
    upos: torch.Tensor
    """(B, T) int32: part of speech of the word of each token, in the same way."""


class StrictSyntax(dict):
    """A `SourceSyntax`, perhaps empty, whose missing keys raise a ValueError with advice."""

    def __missing__(self, name: str):
        raise ValueError(
            f"the model needs {name} of the source (src_syntax[{name!r}]); use --task syntax_translation and data of "
            "fairseq-syntax preprocess"
        )


@dataclass(frozen=True)
class TokenSyntax:
    """The tree of one sentence, aligned to its tokens."""

    words: np.ndarray  # (T,) word of each token; EOS, the last, is word J
    heads: np.ndarray  # (J,) head of each word, 0-based, -1 root, -2 no parse
    deprels: np.ndarray | None = None  # (J,) dictionary indices; None where the data has none
    upos: np.ndarray | None = None  # likewise
    # (J+1, J+1) if they were read from disk; otherwise computed from the heads when needed
    distances: np.ndarray | None = None
    parents: np.ndarray | None = None  # (T,) doubled parent positions likewise

    def __len__(self) -> int:
        return len(self.words)

    def without_parse(self, missing: Mapping[str, int]) -> "TokenSyntax":
        """The same words without a parse.

        Args:
            missing: "deprels"/"upos" -> dictionary index of `_`, where the sentence has these.
        """
        tags = {name: np.full(len(self.heads), index) for name, index in missing.items()}
        return TokenSyntax(self.words, np.full(len(self.heads), UNPARSED), **tags)


@dataclass(frozen=True)
class SyntaxInput:
    """A kind of input: the function that makes it, and its value at padding."""

    arrays: tuple[str, ...]  # names of the stored arrays it needs
    make: Callable[[TokenSyntax], np.ndarray]  # sentence -> (T,) or (T, T) array
    padding: int  # value at padding
    # values are token positions: they move with left padding. Negative ones (no parse) do not.
    is_position: bool = False
    scale: int = 1  # positions are stored times this
    dtype: torch.dtype = torch.int32  # of the batch


def _parents(syntax: TokenSyntax) -> np.ndarray:
    parents = syntax.parents
    if parents is None:
        parents = parent_positions(syntax.heads, syntax.words)
    return np.where(parents == NO_PARENT, -1, parents.astype(np.int32))


def _distances(syntax: TokenSyntax) -> np.ndarray:
    distances = syntax.distances
    if distances is None:
        distances = tree_distances(syntax.heads)
    return expand_distances(distances, syntax.words)


def _token_tags(tags: np.ndarray | None, syntax: TokenSyntax) -> np.ndarray:
    assert tags is not None  # arrays that an input needs are there
    return np.append(tags, EOS)[syntax.words]


INPUTS: dict[str, SyntaxInput] = {
    "parents": SyntaxInput(("words", "heads", "parents"), _parents, -1, is_position=True, scale=2),
    "parent_pieces": SyntaxInput(
        ("words", "heads"), lambda s: parent_first_pieces(s.heads, s.words), -1, is_position=True
    ),
    "piece_heads": SyntaxInput(("words", "heads"), lambda s: piece_heads(s.heads, s.words), -1, is_position=True),
    "word_starts": SyntaxInput(("words",), lambda s: np.diff(s.words, prepend=-1) > 0, 0),
    "distances": SyntaxInput(("words", "heads", "distances"), _distances, PAD_DISTANCE, dtype=torch.uint8),
    "deprels": SyntaxInput(("words", "deprels"), lambda s: _token_tags(s.deprels, s), PAD),
    "upos": SyntaxInput(("words", "upos"), lambda s: _token_tags(s.upos, s), PAD),
}


def collate_syntax(sentences: list[TokenSyntax], names: Iterable[str], columns: int, left_pad: bool) -> SourceSyntax:
    """Batch the inputs `names`, keys of `INPUTS`, of B sentences in the order of the batch's rows.

    Args:
        columns: T of the batch.
        left_pad: whether padding comes before the tokens.
    """
    batch: SourceSyntax = {}
    for name in names:
        kind = INPUTS[name]
        values = [kind.make(sentence) for sentence in sentences]
        shape = (len(values),) + (columns,) * values[0].ndim
        out = torch.full(shape, kind.padding, dtype=kind.dtype)
        array = out.numpy()
        for row, value in zip(array, values, strict=True):
            length = len(value)
            start = columns - length if left_pad else 0
            if kind.is_position and start:
                value = np.where(value < 0, value, value + kind.scale * start)
            row[(slice(start, start + length),) * value.ndim] = value
        batch[name] = out  # type: ignore[literal-required]
    return batch

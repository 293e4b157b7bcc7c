"""Invariants of the arrays of a split.

Checksums are compared with the manifest whenever data are loaded. The values (the map from tokens to words, heads,
parents, distances and tags) are checked by `fairseq-syntax preprocess --check` only.
"""

from collections.abc import Mapping

import numpy as np
from fairseq.data.indexed_dataset import data_file_path

from ..trees.conllu import ROOT, UNPARSED, TreeFormatError, find_cycle
from ..trees.piece_parents import parent_positions
from .arrays import ARRAY_TYPES, TAG_DICTIONARIES, ArrayReader
from .binarize import packed_distances

_CHUNK = 4096
"""Sentences whose distances are computed together."""

MISFIT = "the text was changed after the trees were added: run fairseq-syntax preprocess --only-syntax --overwrite"
"""Advice for trees that do not fit the binarized text."""


def check_sizes(text_sizes, tree_sizes, place: str) -> None:
    """Raise TreeFormatError unless text and trees have the same number of tokens in each sentence, EOS included."""
    if len(text_sizes) != len(tree_sizes):
        raise TreeFormatError(
            f"{place}: {len(text_sizes)} sentences in the binarized text, but {len(tree_sizes)} in the trees; {MISFIT}"
        )
    wrong = np.flatnonzero(np.asarray(text_sizes) != np.asarray(tree_sizes))
    if len(wrong):
        i = int(wrong[0])
        raise TreeFormatError(
            f"{place}, line {i + 1}: {text_sizes[i] - 1} tokens in the binarized text, but {tree_sizes[i] - 1} in the "
            f"trees; {MISFIT}"
        )


def check_trees(readers: Mapping[str, ArrayReader], tags: Mapping[str, int]) -> None:
    """Raise TreeFormatError, naming file and sentence, unless the arrays describe trees.

    Args:
        readers: name -> array of the same split; at least "words" and "heads".
        tags: name -> number of tags in the dictionary.
    """
    for name, reader in readers.items():
        if reader.dtype != ARRAY_TYPES[name]:
            _refuse(reader, None, f"values of type {reader.dtype.__name__}, not {ARRAY_TYPES[name].__name__}")
        if len(reader) != len(readers["words"]):
            _refuse(reader, None, f"{len(reader)} sentences, but {len(readers['words'])} in {readers['words'].prefix}")
        if name in tags and len(reader.values) and int(reader.values.max()) >= tags[name]:
            _refuse(reader, None, f"a tag beyond the {tags[name]} of the dictionary")
    for first in range(0, len(readers["heads"]), _CHUNK):
        sentences = range(first, min(first + _CHUNK, len(readers["heads"])))
        heads = [readers["heads"][i] for i in sentences]
        for i, tree in zip(sentences, heads, strict=True):
            _check_tree(readers, i, tree)
        if "distances" in readers:
            for i, packed in zip(sentences, packed_distances(heads), strict=True):
                if not np.array_equal(packed, readers["distances"][i]):
                    _refuse(readers["distances"], i, "distances that do not follow from the heads")


def _check_tree(readers: Mapping[str, ArrayReader], i: int, heads: np.ndarray) -> None:
    words = readers["words"][i]
    steps = np.diff(words.astype(np.int32), prepend=-1, append=len(heads) + 1)
    if not np.isin(steps, (0, 1)).all() or not (steps[-2:] == 1).all():
        _refuse(readers["words"], i, "words that do not go 0, 0, 1, …")
    if (heads >= len(heads)).any() or ((heads < ROOT).any() and not (heads == UNPARSED).all()):
        _refuse(readers["heads"], i, "a head that is not one of its words")
    if find_cycle(heads.tolist()):
        _refuse(readers["heads"], i, "heads that form a cycle")
    if "parents" in readers and not np.array_equal(readers["parents"][i], parent_positions(heads, words)):
        _refuse(readers["parents"], i, "parents that do not follow from the heads")
    for name in TAG_DICTIONARIES.keys() & readers.keys():
        if len(readers[name][i]) != len(heads):
            _refuse(readers[name], i, f"{len(readers[name][i])} tags of {len(heads)} words")


def _refuse(reader: ArrayReader, sentence: int | None, what: str) -> None:
    where = "" if sentence is None else f" in sentence {sentence}"
    raise TreeFormatError(
        f"{data_file_path(reader.prefix)}: damaged: {what}{where}; copy it again, or run fairseq-syntax preprocess "
        "--only-syntax --overwrite again"
    )

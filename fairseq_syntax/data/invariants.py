"""What must hold for the arrays of a split.

The checksums of the manifest are compared whenever data are loaded; what the values mean, the map from tokens to words,
heads that form trees, parents, distances and tags, when `fairseq-syntax preprocess --check` asks.
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

CHANGED = "the text was changed after the trees were added: run fairseq-syntax preprocess --only-syntax --overwrite"
"""What to do where trees do not fit the text that was binarized."""


def check_sizes(of_text, of_trees, place: str) -> None:
    """Raise TreeFormatError unless trees are of this very text: of as many tokens in each sentence, EOS included."""
    if len(of_text) != len(of_trees):
        raise TreeFormatError(
            f"{place}: {len(of_text)} sentences in the binarized text, but {len(of_trees)} in the trees; {CHANGED}"
        )
    wrong = np.flatnonzero(np.asarray(of_text) != np.asarray(of_trees))
    if len(wrong):
        i = int(wrong[0])
        raise TreeFormatError(
            f"{place}, line {i + 1}: {of_text[i] - 1} tokens in the binarized text, but {of_trees[i] - 1} in the "
            f"trees; {CHANGED}"
        )


def check_trees(readers: Mapping[str, ArrayReader], tags: Mapping[str, int]) -> None:
    """Raise TreeFormatError, naming file and sentence, unless arrays are those of trees.

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

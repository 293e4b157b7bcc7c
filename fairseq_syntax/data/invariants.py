"""What must hold for the arrays of a split.

Types and lengths are checked whenever data are loaded, beside the checksums of the manifest; what the values mean, the
map from tokens to words, heads that form trees, parents and distances, when `fairseq-syntax preprocess --check` asks.
"""

from collections.abc import Mapping

import numpy as np
from fairseq.data.indexed_dataset import data_file_path

from ..trees.conllu import ROOT, UNPARSED, TreeFormatError, find_cycle
from ..trees.piece_parents import parent_positions
from .arrays import ARRAY_TYPES, ArrayReader
from .binarize import packed_distances

_CHUNK = 4096
"""Sentences whose distances are computed together."""

CHANGED = "the text was changed after the trees were added: run fairseq-syntax preprocess --only-syntax --overwrite"
"""What to do where trees do not fit the text that was binarized."""


def check_sizes(of_text, of_trees, place: str, advice: str = CHANGED) -> None:
    """Raise TreeFormatError unless trees are of this very text: of as many tokens in each sentence, EOS included."""
    if len(of_text) != len(of_trees):
        raise TreeFormatError(
            f"{place}: {len(of_text)} sentences in the binarized text, but {len(of_trees)} in the trees; {advice}"
        )
    wrong = np.flatnonzero(np.asarray(of_text) != np.asarray(of_trees))
    if len(wrong):
        i = int(wrong[0])
        raise TreeFormatError(
            f"{place}, line {i + 1}: {of_text[i] - 1} tokens in the binarized text, but {of_trees[i] - 1} in the "
            f"trees; {advice}"
        )


def check_arrays(readers: Mapping[str, ArrayReader], tags: Mapping[str, int] | None = None) -> None:
    """Raise TreeFormatError, naming file and sentence, unless arrays have the types and lengths of trees.

    Args:
        readers: name -> array of the same split; at least "words" and "heads".
        tags: name -> number of tags in the dictionary.
    """
    for name, reader in readers.items():
        if reader.dtype != ARRAY_TYPES[name]:
            _refuse(reader, None, f"values of type {reader.dtype.__name__}, not {ARRAY_TYPES[name].__name__}")
    _check_sizes(readers)
    for name, size in (tags or {}).items():
        if name in readers and len(readers[name].values) and int(readers[name].values.max()) >= size:
            _refuse(readers[name], None, f"a tag beyond the {size} of the dictionary")


def check_trees(readers: Mapping[str, ArrayReader]) -> None:
    """Raise TreeFormatError, naming file and sentence, unless the values are those of trees; after `check_arrays`."""
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
    steps = np.diff(words.astype(np.int32), prepend=-1)
    if not np.isin(steps, (0, 1)).all() or words[-1] != len(heads) or steps[-1] != 1:
        _refuse(readers["words"], i, "words that do not go 0, 0, 1, …")
    unparsed = heads == UNPARSED
    if (heads >= len(heads)).any() or ((heads < ROOT).any() and not unparsed.all()):
        _refuse(readers["heads"], i, "a head that is not one of its words")
    if find_cycle(heads.tolist()):
        _refuse(readers["heads"], i, "heads that form a cycle")
    if "parents" in readers and not np.array_equal(readers["parents"][i], parent_positions(heads, words)):
        _refuse(readers["parents"], i, "parents that do not follow from the heads")


def _check_sizes(readers: Mapping[str, ArrayReader]) -> None:
    lengths = {name: len(reader) for name, reader in readers.items()}
    if len(set(lengths.values())) > 1:
        raise TreeFormatError(
            f"{readers['words'].prefix}: the arrays hold different numbers of sentences ({lengths}); "
            "run fairseq-syntax preprocess --only-syntax --overwrite again"
        )
    tokens, words = (readers[name].sizes.astype(np.int64) for name in ("words", "heads"))
    expected = {
        "words": np.maximum(tokens, 1),
        "heads": np.minimum(words, tokens - 1),
        "parents": tokens,
        "distances": (words + 1) * words // 2,
        "deprels": words,
        "upos": words,
    }
    for name, reader in readers.items():
        wrong = np.flatnonzero(reader.sizes != expected[name])
        if len(wrong):
            i = int(wrong[0])
            _refuse(reader, i, f"{reader.sizes[i]} values for {tokens[i] - 1} tokens and {words[i]} words")


def _refuse(reader: ArrayReader, sentence: int | None, what: str) -> None:
    where = "" if sentence is None else f" in sentence {sentence}"
    raise TreeFormatError(
        f"{data_file_path(reader.prefix)}: damaged: {what}{where}; copy it again, or run fairseq-syntax preprocess "
        "--only-syntax --overwrite again"
    )

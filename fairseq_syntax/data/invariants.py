"""What must hold for the arrays of a split, told for thousands of sentences at once.

Types and lengths are checked whenever data are loaded, beside the checksums of the manifest; what the values mean, the
map from tokens to words, heads that form trees, parents and distances, when `fairseq-syntax preprocess --check` asks
for it, or a file has no checksum.
"""

from collections.abc import Iterator, Mapping

import numpy as np
from fairseq.data.indexed_dataset import data_file_path

from ..trees.conllu import ROOT, UNPARSED, TreeFormatError
from ..trees.piece_parents import NO_PARENT
from .arrays import ARRAY_TYPES, ArrayReader
from .binarize import packed_distances

_CHUNK = 4096
"""Sentences at a time: what is computed for them stays in the cache."""

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
    for first, last in _chunks(readers["words"]):
        _check_chunk(readers, first, last)
    if "distances" in readers:
        _check_distances(readers)


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


def _check_chunk(readers: Mapping[str, ArrayReader], first: int, last: int) -> None:
    """Check word map, heads and parents of some sentences. EOS counts as a word, as it does on disk."""
    tokens = readers["words"].sizes[first:last].astype(np.int32)
    nodes = readers["heads"].sizes[first:last].astype(np.int32) + 1
    # where each sentence begins among tokens and words of the chunk, for each of these
    token_start, node_start = (np.cumsum(sizes, dtype=np.int32) - sizes for sizes in (tokens, nodes))
    sentences = np.arange(last - first, dtype=np.int32)
    sentence_of_token, sentence_of_node = np.repeat(sentences, tokens), np.repeat(sentences, nodes)

    def refuse(name: str, sentence_of: np.ndarray, wrong: np.ndarray, what: str) -> None:
        if wrong.any():
            _refuse(readers[name], first + int(sentence_of[np.argmax(wrong)]), what)

    words = readers["words"].between(first, last).astype(np.int32)
    steps = np.diff(words, prepend=0)
    steps[token_start] = words[token_start]
    ends = token_start + tokens - 1
    wrong = (steps < 0) | (steps > 1)
    wrong[token_start] |= (words[token_start] != 0) & (tokens > 1)
    wrong[ends] |= (words[ends] != nodes - 1) | ((steps[ends] != 1) & (tokens > 1))
    refuse("words", sentence_of_token, wrong, "words that do not go 0, 0, 1, …")

    heads = np.full(len(sentence_of_node), ROOT, dtype=np.int32)
    eos = node_start + nodes - 1
    is_word = np.ones(len(heads), dtype=bool)
    is_word[eos] = False
    heads[is_word] = readers["heads"].between(first, last)
    bare = np.zeros(last - first, dtype=bool)
    bare[sentence_of_node[heads == UNPARSED]] = True
    unparsed = bare[sentence_of_node]
    wrong = (heads < UNPARSED) | (heads >= nodes[sentence_of_node] - 1) | ((heads != UNPARSED) & unparsed & is_word)
    refuse("heads", sentence_of_node, wrong, "a head that is not one of its words")

    root = eos[sentence_of_node]
    head = heads + node_start[sentence_of_node]
    up = np.where(heads >= 0, head, root)
    for _ in range(int(nodes.max()).bit_length()):
        up = up[up]
        if (up == root).all():
            break
    refuse("heads", sentence_of_node, up != root, "heads that form a cycle")

    if "parents" in readers:
        position = np.arange(len(words), dtype=np.int32) - token_start[sentence_of_token]
        node_of_token = words + node_start[sentence_of_token]
        begins = np.flatnonzero(np.diff(node_of_token, prepend=-1))
        middle = position[begins] + position[np.append(begins[1:], len(words)) - 1]
        doubled = middle[np.where(heads >= 0, head, np.arange(len(heads), dtype=np.int32))]
        doubled[unparsed] = NO_PARENT
        wrong = doubled[node_of_token] != readers["parents"].between(first, last)
        refuse("parents", sentence_of_token, wrong, "parents that do not follow from the heads")


def _check_distances(readers: Mapping[str, ArrayReader]) -> None:
    heads, distances = readers["heads"], readers["distances"]
    for first, last in _chunks(heads):
        flat = np.concatenate(packed_distances([heads[i] for i in range(first, last)]))
        wrong = np.flatnonzero(flat != distances.between(first, last))
        if len(wrong):
            sentence = np.searchsorted(distances.starts, distances.starts[first] + wrong[0], side="right") - 1
            _refuse(distances, int(sentence), "distances that do not follow from the heads")


def _chunks(reader: ArrayReader) -> Iterator[tuple[int, int]]:
    for first in range(0, len(reader), _CHUNK):
        yield first, min(first + _CHUNK, len(reader))


def _refuse(reader: ArrayReader, sentence: int | None, what: str) -> None:
    where = "" if sentence is None else f" in sentence {sentence}"
    raise TreeFormatError(
        f"{data_file_path(reader.prefix)}: damaged: {what}{where}; copy it again, or run fairseq-syntax preprocess "
        "--only-syntax --overwrite again"
    )

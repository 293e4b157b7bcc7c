"""Conversion of text and trees to arrays on disk, in one parallel pass over a split."""

import collections
import itertools
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import data_file_path

from ..trees.alignment import Example, explain_misfit, fit_tree, pair_examples
from ..trees.conllu import TreeFormatError, parse_block
from ..trees.distances import pack_distances, tree_distances
from ..trees.piece_parents import parent_positions
from ..trees.subwords import split_words
from ..trees.text import SYMBOLS
from .arrays import ARRAY_TYPES, TAG_DICTIONARIES, ArrayWriter

CHUNK = 1000
"""Maximum sentences that a worker converts at a time."""

CHUNK_ENTRIES = 2**25
"""Approximate entries of the distance matrices of a chunk, which ends with the sentence that exceeds them."""

CHUNK_TAGS = 2**20
"""Tags that get their final indices at a time."""

MAX_TOKENS = 2**15 - 1
"""Tokens of a sentence, EOS included: twice a position must fit into `parents`."""

MAX_TAGS = 60000
"""Different tags of a split: their indices must fit into 16 bits."""


@dataclass(frozen=True)
class BinarizeOptions:
    """Options for the conversion of a split."""

    subword_type: str  # a `SubwordType`
    distances: bool = True  # whether to store distance matrices
    allow_unparsed: bool = False  # whether sentences without a parse are accepted (and counted) rather than an error


class SplitCounts(NamedTuple):
    """Counts of a split, as in the manifest."""

    sentences: int
    tokens: int
    words: int
    unparsed: int


def convert(
    examples: list[Example], text_path: str, trees_path: str, options: BinarizeOptions
) -> tuple[dict, dict, SplitCounts]:
    """Convert some sentences to arrays.

    Returns name -> (flat values, sizes), where tags are indices into the chunk's own vocabulary; tag name -> that
    vocabulary with its counts; counts. Raises TreeFormatError: a tree is broken, does not fit its line or is missing;
    the line is too long or ends inside a word; or a tag is a symbol of fairseq's.
    """
    lists: dict[str, list[np.ndarray]] = {name: [] for name in ARRAY_TYPES if options.distances or name != "distances"}
    tags: dict[str, list[str]] = {name: [] for name in TAG_DICTIONARIES}
    unparsed = 0
    for example in examples:
        place = f"{text_path}:{example.line}"
        tokens = example.text.split()
        if len(tokens) >= MAX_TOKENS:
            raise TreeFormatError(f"{place}: {len(tokens)} tokens; a sentence has at most {MAX_TOKENS - 1}, split it")
        words, word_ids = split_words(tokens, options.subword_type, place)
        if example.tree:
            place += f" ({trees_path}:{example.tree_line})"
        tree, owners = fit_tree(parse_block(example.tree, trees_path, example.tree_line), words, place)
        if not tree.is_parsed and not options.allow_unparsed:
            raise TreeFormatError(
                f"{place}: the sentence has no parse; parse it, or give --allow-unparsed to translate such "
                "sentences without syntax"
            )
        unparsed += not tree.is_parsed
        heads = np.array(tree.heads, dtype=np.int64)
        token_words = np.array([*(owners[word] for word in word_ids), len(heads)])
        lists["words"].append(token_words)
        lists["heads"].append(heads)
        lists["parents"].append(parent_positions(heads, token_words))
        for name in TAG_DICTIONARIES:
            tags[name] += getattr(tree, name)
            if symbols := SYMBOLS.intersection(getattr(tree, name)):
                raise TreeFormatError(
                    f"{trees_path}:{example.tree_line}: {TAG_DICTIONARIES[name].upper()} is {min(symbols)}, which is a "
                    "symbol of fairseq's dictionaries; rename the tag"
                )
    if options.distances:
        lists["distances"] = packed_distances(lists["heads"])
    vocabularies = {name: collections.Counter(tags[name]) for name in TAG_DICTIONARIES}
    for name in TAG_DICTIONARIES:
        numbers = {tag: number for number, tag in enumerate(vocabularies[name])}
        lists[name] = [np.array([numbers[tag] for tag in tags[name]], dtype=np.int64)]
    sizes = {name: np.array([len(array) for array in arrays]) for name, arrays in lists.items()}
    sizes.update(dict.fromkeys(TAG_DICTIONARIES, sizes["heads"]))
    arrays = {name: (np.concatenate(values).astype(ARRAY_TYPES[name]), sizes[name]) for name, values in lists.items()}
    counts = SplitCounts(len(examples), int(sizes["words"].sum()), int(sizes["heads"].sum()), unparsed)
    return arrays, vocabularies, counts


def packed_distances(heads: list[np.ndarray]) -> list[np.ndarray]:
    """Packed distances (`pack_distances`) of trees, each (J,) heads; equal lengths are computed together."""
    by_length = collections.defaultdict(list)
    for i, tree in enumerate(heads):
        by_length[len(tree)].append(i)
    packed: dict[int, np.ndarray] = {}
    for same in by_length.values():
        batch = np.concatenate([heads[i] for i in same]).reshape(len(same), -1)
        for i, row in zip(same, pack_distances(tree_distances(batch)), strict=True):
            packed[i] = row
    return [packed[i] for i in range(len(heads))]


class SplitWriter:
    """Writer of a split's arrays under a path prefix; tags stay provisional until `finish`."""

    def __init__(self, prefix: str, options: BinarizeOptions):
        self.prefix = prefix
        self.options = options
        self.tag_counts: dict[str, collections.Counter] = {name: collections.Counter() for name in TAG_DICTIONARIES}
        self._vocabularies: dict[str, dict[str, int]] = {name: {} for name in TAG_DICTIONARIES}

    def write(self, text_path: Path, trees_path: Path, workers: int, progress) -> SplitCounts:
        """Convert a split, in this process if `workers` is 1; `progress.update(n)` counts finished sentences.

        Raises TreeFormatError: see `pair_examples` and `convert`.
        """
        names = [n for n in ARRAY_TYPES if self.options.distances or n != "distances"]
        total = SplitCounts(0, 0, 0, 0)
        with explain_misfit(text_path), ExitStack() as stack:
            writers = {
                name: stack.enter_context(closing(ArrayWriter(f"{self.prefix}.{name}", ARRAY_TYPES[name])))
                for name in names
            }
            chunks = _chunked(pair_examples(text_path, trees_path))
            jobs = ((chunk, str(text_path), str(trees_path), self.options) for chunk in chunks)
            for arrays, vocabularies, counts in _map_in_order(convert, jobs, workers):
                for name in TAG_DICTIONARIES:
                    values, sizes = arrays[name]
                    arrays[name] = (self._provisional(name, values, vocabularies[name]), sizes)
                for name in names:
                    writers[name].append(*arrays[name])
                total = SplitCounts(*map(sum, zip(total, counts, strict=True)))
                progress.update(counts.sentences)
        return total

    def _provisional(self, name: str, values: np.ndarray, counts: collections.Counter) -> np.ndarray:
        vocabulary = self._vocabularies[name]
        table = np.array([vocabulary.setdefault(tag, len(vocabulary)) for tag in counts], dtype=np.int64)
        if len(vocabulary) > MAX_TAGS:
            raise TreeFormatError(f"more than {MAX_TAGS} different {name}; is it the right column of the trees?")
        self.tag_counts[name].update(counts)
        return table[values] if len(values) else values

    def finish(self, dictionaries: dict[str, Dictionary]) -> None:
        """Replace provisional tags by their dictionary indices (unknown ones by `<unk>`), in place."""
        for name in TAG_DICTIONARIES:
            path = data_file_path(f"{self.prefix}.{name}")
            if Path(path).stat().st_size:
                table = np.array([dictionaries[name].index(tag) for tag in self._vocabularies[name]])
                values = np.memmap(path, ARRAY_TYPES[name], mode="r+")
                for start in range(0, len(values), CHUNK_TAGS):
                    part = slice(start, start + CHUNK_TAGS)
                    values[part] = table[values[part]]
                values.flush()


def tag_dictionary(counts: collections.Counter) -> Dictionary:
    """A fairseq dictionary of tags, the most frequent first (ties in alphabetical order)."""
    dictionary = Dictionary()
    for tag, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        dictionary.add_symbol(tag, count)
    return dictionary


def _chunked(examples: Iterator[Example]) -> Iterator[list[Example]]:
    chunk, entries = [], 0
    for example in examples:
        chunk.append(example)
        entries += len(example.tree) ** 2
        if len(chunk) == CHUNK or entries > CHUNK_ENTRIES:
            yield chunk
            chunk, entries = [], 0
    if chunk:
        yield chunk


def _map_in_order(function, jobs, workers: int):
    """`function(*job)` for every job, in order, with a bounded number of jobs under way."""
    if workers <= 1:
        yield from itertools.starmap(function, jobs)
        return
    with ProcessPoolExecutor(workers) as pool:
        pending: collections.deque[Future] = collections.deque()
        try:
            for job in jobs:
                pending.append(pool.submit(function, *job))
                if len(pending) >= 3 * workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()

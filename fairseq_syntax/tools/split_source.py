"""The source side of a split of a data directory: its words, subwords, unknown words and trees."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from fairseq.data.data_utils import infer_language_pair

from ..data.arrays import ArrayReader, split_prefix, tag_dictionary_path
from ..data.token_files import load_dictionary, split_languages, token_reader
from ..evaluate.buckets import Source
from ..evaluate.generated import check_count
from ..evaluate.tree_measures import Parse, check_words
from ..trees.conllu import Sentence


def read_source(data: str, split: str, numbers: Sequence[int], sources: Sequence[str] | None = None) -> Source:
    """What a data directory knows of sentences.

    Args:
        data: the directory.
        split: as files are called, `test1`, say.
        numbers: of N sentences, from 0.
        sources: see `read_parses`.

    Raises:
        ValueError: there is no such split, it has other sentences, or files are damaged.
        OSError: a file is missing.
    """
    source, target = infer_language_pair(data) if Path(data).is_dir() else (None, None)
    prefix = split_languages(data, split, source, target).get(source) if source else None
    reader = token_reader(prefix) if prefix else None
    if reader is None:
        raise ValueError(f"--data {data}: has no split {split} (or not in fairseq's mmap format); see --subset")
    check_count(len(reader), numbers, f"--data {data}", f"sources in {split}", "see --subset")
    dictionary = load_dictionary(Path(data, f"dict.{source}.txt"))
    tokens = [reader[number][:-1] for number in numbers]
    found = Source(
        pieces=np.array([len(row) for row in tokens]),
        unknown=np.array([int((row == dictionary.unk()).sum()) for row in tokens]),
    )
    arrays = split_prefix(data, split, source, target)
    if arrays is None:
        return found
    words, heads, deprels, upos = (ArrayReader(f"{arrays}.{name}") for name in ("words", "heads", "deprels", "upos"))
    tags = [load_dictionary(tag_dictionary_path(data, source, name)) for name in ("deprels", "upos")]
    found.parses = []
    for number, row in zip(numbers, tokens, strict=True):
        labels, kinds = (
            [symbols[int(tag)] for tag in array[number]] for symbols, array in zip(tags, (deprels, upos), strict=True)
        )
        forms = words_of_pieces([dictionary[int(token)] for token in row], words[number].tolist(), len(labels))
        parse = Sentence(forms, heads[number].tolist(), labels, kinds)
        if sources is not None:
            check_words(parse, sources[len(found.parses)].split(), f"--data {data}: sentence {number + 1}")
        found.parses.append(Parse(parse, ["_"] * len(forms)))
    found.words = np.array([len(parse.sentence) for parse in found.parses])
    return found


def words_of_pieces(pieces: Sequence[str], word_of_piece: Sequence[int], count: int) -> list[str]:
    """`count` words from their pieces, without the marks of either way to cut; further numbers of words are EOS's."""
    forms = [""] * count
    for piece, word in zip(pieces, word_of_piece, strict=False):
        forms[word] += piece.removesuffix("@@").removeprefix("▁")
    return forms

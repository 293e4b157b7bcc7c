"""Vectors of words and n-grams from text files, as word2vec, GloVe and charNgram2vec write them."""

import gzip
import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Dict, Optional

import numpy as np
import torch
from torch import Tensor

from .word_representation import WordRepresentation, initialise

logger = logging.getLogger(__name__)


def read_vectors(path: str, size: int, wanted: Optional[Collection[str]] = None) -> Dict[str, np.ndarray]:
    """token -> (d,) float32, from a file of one `token v1 … vd` a line; the fields are separated by single blanks.

    Tokens may contain blanks, and bytes that are not UTF-8 do no harm. A first line of two integers, as word2vec writes
    it, is not an entry. A token that comes again keeps its first vector. Lines that do not end in d finite numbers are
    passed over, and counted in the log. Of `wanted` tokens alone, best given as a set, the vectors are kept.

    Raises ValueError: not a file of vectors, or the first entry, or a word2vec header, has another size; the message
    names the line; OSError: no such file.
    """
    vectors: Dict[str, np.ndarray] = {}
    wrong = []  # numbers of lines
    opened = gzip.open if str(path).endswith(".gz") else open
    first = True
    with opened(path, "rt", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip(" \r\n")
            if not line:
                continue
            if number == 1 and _is_header(line):
                _check_size(int(line.split(" ")[1]), size, path, number)
                continue
            if first:
                width = _width(line)
                if not width:
                    raise ValueError(
                        f"{path}:{number}: {_excerpt(line)!r} is not a line of a file of vectors (a word, then {size} "
                        "numbers, separated by single blanks); give another file"
                    )
                _check_size(width, size, path, number)
                first = False
            token, *fields = line.rsplit(" ", size)
            if (wanted is not None and token not in wanted and len(fields) == size) or token in vectors:
                continue
            vector = _numbers(fields)
            if vector is None or len(vector) != size:
                wrong.append(number)
            else:
                vectors[token] = vector
    if wrong:
        logger.warning(
            f"{path}: {len(wrong)} lines do not end in {size} numbers, the first of them line {wrong[0]}; passed over"
        )
    return vectors


def _is_header(line: str) -> bool:
    """Whether a first line is `entries size`; integers of ASCII, for a token may be any other digit."""
    fields = line.split(" ")
    return len(fields) == 2 and all(field.isascii() and field.isdigit() for field in fields)


def _width(line: str) -> int:
    """How many numbers a line ends in, its first field not counted."""
    width = 0
    for field in reversed(line.split(" ")[1:]):
        if _numbers([field]) is None:
            break
        width += 1
    return width


def _excerpt(line: str) -> str:
    """The beginning of a line, as a message can show it."""
    line = line.encode("utf-8", "replace").decode("utf-8")
    return line if len(line) <= 40 else f"{line[:40]}…"


def _numbers(fields: Sequence[str]) -> Optional[np.ndarray]:
    """Finite numbers, or None."""
    try:
        numbers = np.array(fields, dtype=np.float32)
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None


def _check_size(found: int, size: int, path: str, number: int) -> None:
    if found != size:
        raise ValueError(
            f"{path}:{number}: vectors of {found} numbers, but the table has {size} columns; give a file of vectors of "
            f"size {size}, or make the model's word and n-gram vectors {found} wide"
        )


def fill_rows(
    weight: Tensor, strings: Sequence[Optional[str]], vectors: Mapping[str, np.ndarray], name: str = "vectors"
) -> int:
    """Copy vectors, string -> (d,), into the rows of a table (R, d) of these strings, without a gradient; log how many.

    Other rows stay, and those of None. Returns how many rows were filled. Raises ValueError: not R strings, or a vector
    is not of size d.
    """
    if len(strings) != len(weight):
        raise ValueError(f"{name}: {len(strings)} strings for a table of {len(weight)} rows; give one for each row")
    rows = [row for row, string in enumerate(strings) if string is not None and string in vectors]
    for row in rows:
        if len(vectors[strings[row]]) != weight.shape[1]:
            raise ValueError(
                f"{name}: the vector of {strings[row]!r} has {len(vectors[strings[row]])} numbers, but the table has "
                f"{weight.shape[1]} columns; give vectors of that size"
            )
    if rows:
        found = torch.stack([torch.as_tensor(vectors[strings[row]]) for row in rows])
        with torch.no_grad():
            weight[torch.tensor(rows, device=weight.device)] = found.to(weight)
    wanted = sum(string is not None for string in strings)
    logger.info(f"{name}: {len(rows)} of {wanted} rows have a vector ({100 * len(rows) / max(1, wanted):.1f} %)")
    return len(rows)


def load_vectors(
    representation: WordRepresentation, word_vectors: Optional[str] = None, ngram_vectors: Optional[str] = None
) -> None:
    """Start the tables of a word representation from files.

    A table whose file is given starts at U[-1/d1, 1/d1] where the file has no vector, as in the authors' code. One
    without a file stays as it is. N-grams have keys such as `3gram-cat`; words are in lower case if they are looked up
    so.

    Raises ValueError: a file is missing, or has no vector that is of use; see also `read_vectors`.
    """
    words, ngrams = representation.words, representation.ngrams
    of_rows = [None if row == words.padding_idx else symbol for row, symbol in enumerate(representation.row_symbols)]
    of_ngrams = [None, *representation.vocabulary.keys]
    given = (
        ("--lgp-word-vectors", "word", word_vectors, words, of_rows),
        ("--lgp-ngram-vectors", "n-gram", ngram_vectors, ngrams, of_ngrams),
    )
    for option, what, path, table, strings in given:
        if not path:
            continue
        if not Path(path).is_file() or not Path(path).stat().st_size:
            raise ValueError(f"{option} {path}: no such file of vectors, or it is empty")
        vectors = read_vectors(path, representation.size, {string for string in strings if string is not None})
        initialise(table, 1 / representation.size)
        # they would stay random, for vectors that a file is given for are not trained unless the user says so
        if not fill_rows(table.weight, strings, vectors, path):
            raise ValueError(
                f"{option} {path}: has a vector of no {what} of the data; give vectors of this language, in the case "
                "of --lgp-word-case"
            )

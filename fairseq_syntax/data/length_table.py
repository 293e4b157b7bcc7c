"""Lengths of the sentences in a data directory, and the table made of them.

`length_prior.<s>-<t>.npz` holds `table`, float32, log-probabilities of target lengths given source lengths, and `meta`,
a JSON text about its origin.
"""

import json
from pathlib import Path

import numpy as np
from fairseq.data.data_utils import load_indexed_dataset

from ..files import staged
from .token_files import check_tokens, load_dictionary, split_languages

FORMAT_VERSION = 1


def split_lengths(data_path: str | Path, split: str, source: str, target: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Lengths of a split's sentences, whichever language its file names put first; None if it is absent.

    Returns ((pairs,) source, (pairs,) target) in tokens, EOS not counted. Raises ValueError: one language of the split
    is absent, or the sides differ in size; FileNotFoundError: a dictionary is missing.
    """
    prefixes = split_languages(data_path, split, source, target)
    if not prefixes:
        return None
    words = {language: load_dictionary(Path(data_path, f"dict.{language}.txt")) for language in (source, target)}
    readers = check_tokens(data_path, split, source, target, words)
    if target not in prefixes:
        raise ValueError(f"{prefixes[source]}: found, but not its counterpart in {target}; preprocess again")
    first, second = (
        # fairseq unmaps the file, and with it the sizes, when the data set is collected
        readers[side].sizes if side in readers else np.array(load_indexed_dataset(prefixes[side], words[side]).sizes)
        for side in (source, target)
    )
    return first - 1, second - 1


def length_table_path(data_path: str | Path, source: str | None, target: str | None) -> Path:
    """Path of the table of a data directory."""
    return Path(data_path, f"length_prior.{source}-{target}.npz")


def write_length_table(path: str | Path, table: np.ndarray, meta: dict, follow: bool = True) -> None:
    """Write a table (X, Y) of log-probabilities; `meta` has at least "source" and "target", the languages.

    `follow` is that of `files.staged`.
    """
    with staged(path, follow) as partial, open(partial, "wb") as file:
        np.savez_compressed(
            file,
            table=np.asarray(table, dtype=np.float32),
            meta=np.array(json.dumps({"format_version": FORMAT_VERSION, **meta}, sort_keys=True)),
        )


def read_length_table(path: str | Path, source: str, target: str) -> np.ndarray:
    """Read the log-probabilities, (X, Y) float32, of the table for these languages.

    Raises FileNotFoundError: there is none; the message names the command that makes it; ValueError: it is not one,
    or of other languages.
    """
    path = Path(path)
    beside_data = path == length_table_path(path.parent, source, target)
    command = f"fairseq-syntax length-prior {path.parent if beside_data else 'DATA'} -s {source} -t {target}"
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no table of lengths; make it with {command}")
    try:
        with np.load(path, allow_pickle=False) as file:
            table, meta = file["table"], json.loads(str(file["meta"]))
        fits = (meta["format_version"], meta["source"], meta["target"]) == (FORMAT_VERSION, source, target)
        table = table.astype(np.float32, casting="same_kind", copy=False)
        fits &= table.ndim == 2 and table.size > 0 and bool(np.isfinite(table).all())
    except Exception:  # zipfile, zlib and NumPy raise various errors, depending on the bytes
        fits = False
    if not fits:
        raise ValueError(
            f"{path}: not a table of lengths of {target} given {source} in format {FORMAT_VERSION}; make it again with "
            f"{command} --overwrite"
        )
    return table

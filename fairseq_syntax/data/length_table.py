"""Lengths of the sentences in a data directory, and the table made of them.

`length_prior.<s>-<t>.npz` holds `table`, float32, log-probabilities of target lengths given source lengths, and `meta`,
a JSON text that says how it was made.
"""

import json
from pathlib import Path

import numpy as np
from fairseq.data.indexed_dataset import infer_dataset_impl, make_dataset

from ..files import staged
from .token_files import load_dictionary, split_languages, token_reader

FORMAT_VERSION = 1


def split_lengths(data_path: str | Path, split: str, source: str, target: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Lengths of a split's sentences, whichever way round the languages stand in its name; None if it is absent.

    Returns ((pairs,) source, (pairs,) target) in tokens, EOS not counted. Raises ValueError: one language of the split
    is absent, or the sides differ in size.
    """
    prefixes = split_languages(data_path, split, source, target)
    if not prefixes:
        return None
    for language, other in ((source, target), (target, source)):
        if language not in prefixes:
            path = prefixes[other].removesuffix(other) + language
            raise ValueError(f"{path}: no such data, though the other language is there")
    first, second = (_lengths(prefixes[language], data_path, language) for language in (source, target))
    if len(first) != len(second):
        raise ValueError(
            f"{prefixes[source]}: {len(first)} sentences, but {len(second)} in {prefixes[target]}; "
            "preprocess the data again"
        )
    return first, second


def _lengths(prefix: str, data_path: str | Path, language: str) -> np.ndarray:
    path = Path(data_path, f"dict.{language}.txt")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: not found; not a directory that fairseq-preprocess wrote")
    reader = token_reader(prefix)
    if reader is not None:
        return reader.sizes - 1
    # a name of its own: fairseq unmaps the file, and with it the sizes, when the data set is collected
    dataset = make_dataset(prefix, infer_dataset_impl(prefix), dictionary=load_dictionary(path))
    return np.array(dataset.sizes) - 1


def length_table_path(data_path: str | Path, source: str, target: str) -> Path:
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
    """(X, Y) float32 log-probabilities of a table for these languages.

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
    except Exception:  # what zipfile, zlib and NumPy raise depends on the bytes
        fits = False
    if not fits:
        raise ValueError(
            f"{path}: not a table of lengths of {target} given {source} in format {FORMAT_VERSION}; make it again with "
            f"{command} --overwrite"
        )
    return table

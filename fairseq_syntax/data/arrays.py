"""Arrays on disk: a pair of files for each quantity and split, in fairseq's mmap format.

`<split>.<s>-<t>.<s>.<name>.{bin,idx}` holds one flat array per sentence, in the order of the split. The manifest
`syntax-<s>-<t>.json`, written last, lists and describes them; see docs/data-format.md.
"""

import json
import struct
from pathlib import Path

import numpy as np
from fairseq.data.indexed_dataset import (
    MMapIndexedDataset,
    _code_to_dtype,
    _dtype_header_code,
    data_file_path,
    index_file_path,
)

from ..trees.conllu import TreeFormatError
from ..trees.subwords import SubwordType

FORMAT_VERSION = 1

_HEADER = struct.Struct("<9sQBQ")  # magic, version, type, number of sentences
_AGAIN = "copy it again, or run fairseq-syntax preprocess again with --overwrite"

# name -> type on disk. fairseq's mmap format has no float32, hence doubled positions.
ARRAY_TYPES = {
    "words": np.uint16,  # (T,) word of each token, EOS last
    "heads": np.int16,  # (J,) head of each word, -1 root, -2 no parse
    "parents": np.uint16,  # (T,) 2 x middle position of the head word
    "distances": np.uint8,  # strict upper triangle of (J+1, J+1), EOS last
    "deprels": np.uint16,  # (J,) index in dict.<s>.deprel.txt
    "upos": np.uint16,  # (J,) index in dict.<s>.upos.txt
}

TAG_DICTIONARIES = {"deprels": "deprel", "upos": "upos"}
"""Array of tags -> infix of the file name of its dictionary."""


def tag_dictionary_path(data_path: str | Path, source: str, name: str) -> Path:
    """Path of the dictionary of the tags `name`, "deprels" or "upos"."""
    return Path(data_path, f"dict.{source}.{TAG_DICTIONARIES[name]}.txt")


class ArrayWriter:
    """Writer of an array file, named without `.bin`/`.idx`, that appends many sentences at a time."""

    def __init__(self, prefix: str | Path, dtype: type):
        self.prefix = str(prefix)
        self.dtype = dtype
        self._sizes: list[np.ndarray] = []
        self._data = open(data_file_path(self.prefix), "wb")

    def append(self, values: np.ndarray, sizes: np.ndarray) -> None:
        """Append sentences: the concatenation of their values, and the number of values of each."""
        self._data.write(np.ascontiguousarray(values, dtype=self.dtype).tobytes())
        self._sizes.append(np.asarray(sizes, dtype="<i4"))

    def close(self) -> None:
        """Write the index; the pair of files is complete after that."""
        self._data.close()
        sizes = np.concatenate([np.empty(0, "<i4"), *self._sizes])
        # not by fairseq's writer, which makes a Python integer of every number
        with open(index_file_path(self.prefix), "wb") as index:
            magic = MMapIndexedDataset.Index._HDR_MAGIC
            index.write(_HEADER.pack(magic, 1, _dtype_header_code(self.dtype), len(sizes)))
            index.write(sizes.tobytes())
            index.write(_pointers(sizes, self.dtype).tobytes())


def _pointers(sizes: np.ndarray, dtype: type) -> np.ndarray:
    """Offsets of the sentences, in bytes."""
    pointers = np.zeros(len(sizes), "<i8")
    np.cumsum(sizes[:-1], out=pointers[1:])
    pointers *= dtype().itemsize
    return pointers


def _mapped(path: str | Path, dtype: type) -> np.ndarray:
    """The values of a file that is not empty; as a plain array, because slicing a memmap is slower."""
    return np.asarray(np.memmap(path, dtype, mode="r"))


def read_index(path: str | Path) -> tuple[type, np.ndarray, np.ndarray]:
    """Read an index file of fairseq's mmap format; the arrays are memory-mapped.

    Returns the type of values, their number by sentence, and where each sentence begins, in bytes. Raises
    FileNotFoundError: no such file; TreeFormatError: it is damaged.
    """
    if Path(path).stat().st_size >= _HEADER.size:
        content = _mapped(path, np.uint8)
        magic, version, code, count = _HEADER.unpack(content[: _HEADER.size].tobytes())
        valid = magic == MMapIndexedDataset.Index._HDR_MAGIC and version == 1 and code in _code_to_dtype
        if valid and len(content) == _HEADER.size + 12 * count:
            dtype = _code_to_dtype[code]
            middle = _HEADER.size + 4 * count
            sizes, pointers = content[_HEADER.size : middle].view("<i4"), content[middle:].view("<i8")
            if (sizes >= 0).all() and np.array_equal(pointers, _pointers(sizes, dtype)):
                return dtype, sizes, pointers
    raise TreeFormatError(f"{path}: damaged, or not an index in fairseq's mmap format; {_AGAIN}")


class ArrayReader:
    """Reader of an array file, indexed by sentence.

    Unlike fairseq's reader, it keeps the type on disk (not int64), returns a new array at every access (not a cached
    one), and does not read the whole file at the start.

    Attributes:
        values, sizes: of all sentences; mapped, and not to be changed.
    """

    def __init__(self, prefix: str | Path):
        self.prefix = str(prefix)
        self._open()

    def _open(self) -> None:
        index, path = Path(index_file_path(self.prefix)), Path(data_file_path(self.prefix))
        self.dtype, self.sizes, self._pointers = read_index(index)
        if not path.is_file():
            raise TreeFormatError(f"{path}: not found, though {index.name} is there; {_AGAIN}")
        size = path.stat().st_size
        promised = int(self._pointers[-1]) + int(self.sizes[-1]) * self.dtype().itemsize if len(self) else 0
        if size != promised:
            raise TreeFormatError(f"{path}: {size} bytes, but the index expects {promised}; {_AGAIN}")
        # an empty file cannot be mapped
        self.values = _mapped(path, self.dtype) if size else np.empty(0, self.dtype)

    def __getstate__(self) -> dict:
        return {"prefix": self.prefix}

    def __setstate__(self, state: dict) -> None:
        self.prefix = state["prefix"]
        self._open()

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, index: int) -> np.ndarray:
        start = self._pointers[index] // self.dtype().itemsize
        return np.array(self.values[start : start + self.sizes[index]])

    @property
    def starts(self) -> np.ndarray:
        """Offset of each sentence in `values`; computed at every call."""
        return self._pointers // self.dtype().itemsize


def split_prefix(data_path: str | Path, split: str, source: str, target: str) -> Path | None:
    """Path prefix of a split's source side; None if it has no trees."""
    prefix = Path(data_path, f"{split}.{source}-{target}.{source}")
    return prefix if Path(index_file_path(f"{prefix}.words")).is_file() else None


def manifest_path(data_path: str | Path, source: str, target: str) -> Path:
    """Path of the manifest of a data directory.

    No dot but the last: fairseq infers the languages from names like `x.en-de.y`.
    """
    return Path(data_path, f"syntax-{source}-{target}.json")


def read_manifest(data_path: str | Path, source: str, target: str) -> dict | None:
    """The manifest, or None when the directory has no syntax.

    Raises TreeFormatError: it is damaged, or of a newer format.
    """
    path = manifest_path(data_path, source, target)
    if not path.is_file():
        return None
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        manifest = None
    match manifest:
        case {
            "format_version": 1,
            "source_lang": str(first),
            "target_lang": str(second),
            "subword_type": str(subword_type),
            "splits": dict(),
            "sha256": dict(sums),
        } if (first, second) == (source, target) and subword_type in list(SubwordType):
            if all(isinstance(value, str) for value in sums.values()):
                return manifest
    raise TreeFormatError(
        f"{path}: not a manifest of {source} and {target} in format {FORMAT_VERSION}; run fairseq-syntax preprocess "
        "--overwrite, or update fairseq-syntax"
    )

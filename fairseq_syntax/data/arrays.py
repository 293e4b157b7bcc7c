"""Arrays on disk: one file pair a quantity and split, in fairseq's own mmap format.

`<split>.<s>-<t>.<s>.<name>.{bin,idx}` holds one flat array a sentence, in the order of the split. The manifest
`syntax-<s>-<t>.json`, written last, says what is there; docs/data-format.md describes everything.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
from fairseq.data.indexed_dataset import MMapIndexedDataset, data_file_path, index_file_path

from ..trees.conllu import TreeFormatError

FORMAT_VERSION = 1

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
"""Arrays of tags, and how the files of their dictionaries are called."""


def tag_dictionary_path(data_path: str | Path, source: str, name: str) -> Path:
    """Where the dictionary of the tags `name` ("deprels" or "upos") stands."""
    return Path(data_path, f"dict.{source}.{TAG_DICTIONARIES[name]}.txt")


class ArrayWriter:
    """Writes one array file. Sentences are appended in bulk: flat values and their counts.

    Args:
        prefix: path without `.bin`/`.idx`.
        dtype: a NumPy type that the format knows.
    """

    def __init__(self, prefix: str | Path, dtype: type):
        self.prefix = str(prefix)
        self.dtype = dtype
        self._sizes: list[np.ndarray] = []
        self._data = open(data_file_path(self.prefix), "wb")

    def append(self, values: np.ndarray, sizes: np.ndarray) -> None:
        """Append sentences: `values` is their concatenation, `sizes` how many values each has."""
        self._data.write(np.ascontiguousarray(values, dtype=self.dtype).tobytes())
        self._sizes.append(np.asarray(sizes, dtype=np.int64))

    def close(self) -> None:
        """Write the index; the pair of files is complete after that."""
        self._data.close()
        sizes = np.concatenate(self._sizes).tolist() if self._sizes else []
        with MMapIndexedDataset.Index.writer(index_file_path(self.prefix), self.dtype) as index:
            index.write(sizes)


class ArrayReader:
    """Reads one array file by sentence.

    Unlike fairseq's reader it keeps the type on disk (that one casts to int64), hands out fresh arrays (that one
    shares cached ones), and does not read the whole file once at the start.
    """

    def __init__(self, prefix: str | Path):
        self.prefix = str(prefix)
        self._open()

    def _open(self) -> None:
        path = Path(data_file_path(self.prefix))
        # fairseq's index, if there is no such file, complains once more when it is collected
        index = MMapIndexedDataset.Index(str(Path(index_file_path(self.prefix)).resolve(strict=True)))
        self.dtype = index.dtype
        self.sizes = np.array(index.sizes, dtype=np.int64)
        self._starts = np.concatenate([[0], np.cumsum(self.sizes)])
        # an empty file cannot be mapped
        empty = path.stat().st_size == 0
        self._values = np.empty(0, self.dtype) if empty else np.memmap(path, self.dtype, mode="r")
        if len(self._values) != self._starts[-1]:
            raise TreeFormatError(
                f"{path}: {len(self._values)} values where the index promises {self._starts[-1]}; "
                "run fairseq-syntax-preprocess --only-syntax --overwrite again"
            )

    def __getstate__(self) -> dict:
        return {"prefix": self.prefix}

    def __setstate__(self, state: dict) -> None:
        self.prefix = state["prefix"]
        self._open()

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, index: int) -> np.ndarray:
        return np.array(self._values[self._starts[index] : self._starts[index + 1]])


def split_prefix(data_path: str | Path, split: str, source: str, target: str) -> Path | None:
    """Path prefix of a split's source side, whichever way round the languages stand in its name; None if absent."""
    for pair in (f"{source}-{target}", f"{target}-{source}"):
        prefix = Path(data_path, f"{split}.{pair}.{source}")
        if Path(index_file_path(f"{prefix}.words")).is_file():
            return prefix
    return None


def manifest_path(data_path: str | Path, source: str, target: str) -> Path:
    """Where the manifest of a data directory stands.

    No dot but the last: fairseq infers the languages from names like `x.en-de.y`.
    """
    return Path(data_path, f"syntax-{source}-{target}.json")


def read_manifest(data_path: str | Path, source: str, target: str) -> dict | None:
    """The manifest, or None when the directory has no syntax.

    Raises:
        TreeFormatError: it is not readable, or of a newer format than this version knows.
    """
    path = manifest_path(data_path, source, target)
    if not path.is_file():
        return None
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        version = manifest["format_version"]
    except (ValueError, KeyError, TypeError) as error:
        raise TreeFormatError(
            f"{path}: not a manifest ({error!r}); run fairseq-syntax-preprocess --only-syntax --overwrite again"
        ) from None
    if version > FORMAT_VERSION:
        raise TreeFormatError(
            f"{path}: format version {version}, but this fairseq-syntax reads up to {FORMAT_VERSION}; "
            "update fairseq-syntax or preprocess again"
        )
    return manifest


def checksum(path: str | Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""Arrays on disk: one file pair a quantity and split, in fairseq's own mmap format.

`<split>.<s>-<t>.<s>.<name>.{bin,idx}` holds one flat array a sentence, in the order of the split. The manifest
`syntax-<s>-<t>.json`, written last, says what is there; docs/data-format.md describes everything.
"""

import hashlib
import json
import struct
from pathlib import Path

import numpy as np
from fairseq.data.indexed_dataset import MMapIndexedDataset, _code_to_dtype, data_file_path, index_file_path

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

COUNTS = ("sentences", "tokens", "words", "unparsed")
"""What the manifest counts in every split, among others."""

TAG_DICTIONARIES = {"deprels": "deprel", "upos": "upos"}
"""Arrays of tags, and how the files of their dictionaries are called."""


def tag_dictionary_path(data_path: str | Path, source: str, name: str) -> Path:
    """Where the dictionary of the tags `name` ("deprels" or "upos") stands."""
    return Path(data_path, f"dict.{source}.{TAG_DICTIONARIES[name]}.txt")


class ArrayWriter:
    """Writes an array file, named without `.bin`/`.idx`. Sentences come in bulk: flat values and their counts."""

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


def read_index(path: str | Path) -> tuple[type, np.ndarray]:
    """The type of the values that an index file of fairseq's mmap format describes, and their number by sentence.

    Raises FileNotFoundError: no such file; TreeFormatError: it is damaged.
    """
    content = Path(path).read_bytes()
    if len(content) >= _HEADER.size:
        magic, version, code, count = _HEADER.unpack_from(content)
        known = magic == MMapIndexedDataset.Index._HDR_MAGIC and version == 1 and code in _code_to_dtype
        if known and len(content) == _HEADER.size + 12 * count:
            dtype = _code_to_dtype[code]
            sizes = np.frombuffer(content, "<i4", count, _HEADER.size).astype(np.int64)
            pointers = np.frombuffer(content, "<i8", count, _HEADER.size + 4 * count)
            if (sizes >= 0).all() and (pointers == (np.cumsum(sizes) - sizes) * dtype().itemsize).all():
                return dtype, sizes
    raise TreeFormatError(f"{path}: damaged, or no index of fairseq's mmap format; {_AGAIN}")


class ArrayReader:
    """Reads one array file by sentence.

    Unlike fairseq's reader it keeps the type on disk (that one casts to int64), hands out fresh arrays (that one
    shares cached ones), and does not read the whole file once at the start.

    Attributes:
        values, sizes: of all sentences.
        starts: where in `values` each begins; one more than there are sentences.
    """

    def __init__(self, prefix: str | Path):
        self.prefix = str(prefix)
        self._open()

    def _open(self) -> None:
        index, path = Path(index_file_path(self.prefix)), Path(data_file_path(self.prefix))
        self.dtype, self.sizes = read_index(index)
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)])
        if not path.is_file():
            raise TreeFormatError(f"{path}: not found, though {index.name} is there; {_AGAIN}")
        size, promised = path.stat().st_size, int(self.starts[-1]) * self.dtype().itemsize
        if size != promised:
            raise TreeFormatError(f"{path}: {size} bytes where the index promises {promised}; {_AGAIN}")
        # an empty file cannot be mapped
        self.values = np.memmap(path, self.dtype, mode="r") if size else np.empty(0, self.dtype)

    def __getstate__(self) -> dict:
        return {"prefix": self.prefix}

    def __setstate__(self, state: dict) -> None:
        self.prefix = state["prefix"]
        self._open()

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, index: int) -> np.ndarray:
        return np.array(self.values[self.starts[index] : self.starts[index + 1]])


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

    Raises TreeFormatError: it is damaged, or of a newer format than this version knows.
    """
    path = manifest_path(data_path, source, target)
    if not path.is_file():
        return None
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise _no_manifest(path, repr(error)[:100]) from None
    version = manifest.get("format_version") if isinstance(manifest, dict) else None
    if type(version) is not int or version < 1:
        raise _no_manifest(path, "no format_version")
    if version > FORMAT_VERSION:
        raise TreeFormatError(
            f"{path}: format version {version}, but this fairseq-syntax reads up to {FORMAT_VERSION}; "
            "update fairseq-syntax or preprocess again"
        )
    wrong = _wrong_field(manifest)
    if wrong:
        raise _no_manifest(path, f"{wrong} is missing or wrong")
    # data of a source only are of a target None
    languages = [str(manifest[name]) for name in ("source_lang", "target_lang")]
    if languages != [str(source), str(target)]:
        raise _no_manifest(path, f"it is of {languages[0]} and {languages[1]}")
    return manifest


def _wrong_field(manifest: dict) -> str | None:
    """The first field that is not of the shape that docs/data-format.md gives it."""
    for name in ("source_lang", "target_lang"):
        # only-source data have no target
        if not isinstance(manifest.get(name), str) and not (name == "target_lang" and name in manifest):
            return name
    if manifest.get("subword_type") not in list(SubwordType):
        return "subword_type"
    for name in ("splits", "sha256"):
        if not isinstance(manifest.get(name), dict):
            return name
    for split, entry in manifest["splits"].items():
        # the first versions did not count everything
        counts = [entry.get(name, 0) for name in COUNTS] if isinstance(entry, dict) else [None]
        if any(type(count) is not int or count < 0 for count in counts):
            return f"splits.{split}"
    if not all(isinstance(value, str) for value in manifest["sha256"].values()):
        return "sha256"
    return None


def _no_manifest(path: Path, reason: str) -> TreeFormatError:
    return TreeFormatError(
        f"{path}: not a manifest ({reason}); delete it and run fairseq-syntax preprocess --only-syntax --overwrite"
    )


def checksum(path: str | Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

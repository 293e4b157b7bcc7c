"""Everything that can be told about a data directory without the text it was made of."""

from collections.abc import Iterator
from pathlib import Path

from fairseq.data import Dictionary

from ..files import checksum
from ..trees.conllu import TreeFormatError
from .arrays import (
    ARRAY_TYPES,
    TAG_DICTIONARIES,
    ArrayReader,
    manifest_path,
    read_manifest,
    split_prefix,
    tag_dictionary_path,
)
from .collating import EOS, INPUTS
from .dataset import SplitSyntax
from .invariants import check_distances, check_sizes
from .length_table import length_table_path, read_length_table
from .token_files import check_tokens, load_dictionary, split_languages


class DataCheck:
    """What is wrong with a data directory of two languages, and what is in it.

    Attributes:
        faults: messages, each naming the file; filled by `run`.
        summary: one line a split.
    """

    def __init__(self, data_path: str | Path, source: str, target: str):
        self.path = Path(data_path)
        self.source, self.target = source, target
        self.faults: list[str] = []
        self.summary: list[str] = []

    def run(self) -> None:
        """Check everything."""
        manifest = self._try(read_manifest, self.path, self.source, self.target, result=True)
        if manifest is None:
            if not self.faults:
                self.faults.append(
                    f"{manifest_path(self.path, self.source, self.target)}: not found: the directory has no trees, or "
                    "they were not finished; run fairseq-syntax preprocess --only-syntax"
                )
            return
        pair = self.source, self.target
        found = {language for split in manifest["splits"] for language in split_languages(self.path, split, *pair)}
        dictionaries = {
            language: self._try(load_dictionary, self.path / f"dict.{language}.txt", result=True)
            for language in sorted({self.source} | found)  # there may be no target
        }
        tags = {
            name: self._try(load_dictionary, tag_dictionary_path(self.path, self.source, name), result=True)
            for name in TAG_DICTIONARIES
        }
        if all(dictionaries.values()) and all(tags.values()):
            for split, entry in manifest["splits"].items():
                self._try(self._check_split, split, entry, dictionaries, tags)
        table = length_table_path(self.path, self.source, self.target)
        if table.is_file():
            self._try(read_length_table, table, self.source, self.target)
        for fault in self._checksums(manifest):
            # what is said already of a file says more
            name = fault.split(":")[0]
            if not any(name in known for known in self.faults):
                self.faults.append(fault)

    def _try(self, check, *args, result: bool = False):
        """Call a check and keep its message; its result, or else whether there was no message."""
        try:
            found = check(*args)
        except (ValueError, OSError) as error:
            missing = error.filename if isinstance(error, FileNotFoundError) else None
            self.faults.append(f"{missing}: not found; preprocess again" if missing else str(error))
            return None if result else False
        return found if result else True

    def _check_split(self, split: str, entry: dict, dictionaries: dict, tags: dict[str, Dictionary]) -> None:
        tokens = check_tokens(self.path, split, self.source, self.target, dictionaries)
        for language, reader in tokens.items():
            _check_ends(reader, f"dict.{language}.txt")
        prefix = split_prefix(self.path, split, self.source, self.target)
        if prefix is None:
            raise TreeFormatError(
                f"{self.path / split}.*.words.idx: not found, though the manifest lists the split; run "
                "fairseq-syntax preprocess --only-syntax --overwrite"
            )
        syntax = SplitSyntax(prefix, INPUTS, self.path, {name: len(tag) for name, tag in tags.items()})
        syntax.check_counts(entry, split, manifest_path(self.path, self.source, self.target))
        if self.source in tokens:
            check_sizes(tokens[self.source].sizes, syntax.sizes, f"split {split!r}")
        if "distances" in syntax.readers:
            check_distances(syntax.readers)
        counts = ", ".join(f"{count:,} {name}" for name, count in syntax.counts().items())
        self.summary.append(f"{split}: {counts}; arrays: {', '.join(n for n in ARRAY_TYPES if n in syntax.readers)}")

    def _checksums(self, manifest: dict) -> Iterator[str]:
        listed = manifest["sha256"]
        for name, expected in sorted(listed.items()):
            path = self.path / name
            if Path(name).name != name:
                yield f"{path}: listed in the manifest, but not a file of this directory; preprocess again"
            elif not path.is_file():
                yield f"{path}: not found, though the manifest lists it; copy it again, or preprocess again"
            elif checksum(path) != expected:
                yield f"{path}: changed since it was written; copy it again, or preprocess again"
        pairs = (f"{self.source}-{self.target}", f"{self.target}-{self.source}")
        patterns = (f"*.{pair}.{self.source}.{name}.???" for pair in pairs for name in ARRAY_TYPES)
        arrays = (path for pattern in patterns for path in self.path.glob(pattern))
        for path in sorted({*arrays} - {self.path / name for name in listed}):
            yield f"{path}: not in the manifest; run fairseq-syntax preprocess --only-syntax --overwrite"


def _check_ends(reader: ArrayReader, dictionary: str) -> None:
    """Raise TreeFormatError unless every sentence ends with EOS."""
    if (reader.sizes < 1).any() or (reader.values[reader.starts + reader.sizes - 1] != EOS).any():
        raise TreeFormatError(
            f"{reader.prefix}.bin: damaged, or of another dictionary than {dictionary}: a sentence does not end with "
            "</s>; preprocess again, or copy it again"
        )

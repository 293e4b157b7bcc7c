"""Check of a data directory, as far as it goes without the text that it was made of."""

from collections.abc import Iterator
from pathlib import Path

from fairseq.data import Dictionary

from ..files import checksum
from .arrays import (
    ARRAY_TYPES,
    TAG_DICTIONARIES,
    manifest_path,
    read_manifest,
    tag_dictionary_path,
)
from .collating import INPUTS
from .invariants import check_trees
from .length_table import length_table_path, read_length_table
from .splits import open_syntax
from .token_files import CHANGED, check_tokens, load_dictionary, split_languages


class DataCheck:
    """Check of a data directory of two languages.

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
        pair = self.source, self.target
        manifest = self._try(read_manifest, self.path, *pair)
        if manifest is None:
            if not self.faults:
                self.faults.append(
                    f"{manifest_path(self.path, *pair)}: not found: the directory has no trees; run "
                    "fairseq-syntax preprocess --only-syntax"
                )
            return
        languages = {language for split in manifest["splits"] for language in split_languages(self.path, split, *pair)}
        dictionaries = {
            language: self._try(load_dictionary, self.path / f"dict.{language}.txt")
            for language in sorted({self.source} | languages)  # there may be no target
        }
        tags = {
            name: self._try(load_dictionary, tag_dictionary_path(self.path, self.source, name))
            for name in TAG_DICTIONARIES
        }
        if all(dictionaries.values()) and all(tags.values()):
            for split in manifest["splits"]:
                self._try(self._check_split, split, manifest, dictionaries, tags)
        table = length_table_path(self.path, *pair)
        if table.is_file():
            self._try(read_length_table, table, *pair)
        for fault in self._checksums(manifest):
            # an earlier message about the same file says more
            name = fault.split(":")[0]
            if not any(name in earlier for earlier in self.faults):
                self.faults.append(fault)

    def _try(self, check, *args):
        """The result of a check, or None after an error, whose message is kept."""
        try:
            return check(*args)
        except (ValueError, OSError) as error:
            missing = error.filename if isinstance(error, FileNotFoundError) else None
            self.faults.append(f"{missing}: not found; preprocess again" if missing else str(error))
            return None

    def _check_split(self, split: str, manifest: dict, dictionaries: dict, tags: dict[str, Dictionary]) -> None:
        pair = self.source, self.target
        check_tokens(self.path, split, *pair, dictionaries)
        syntax = open_syntax(self.path, split, pair, manifest, INPUTS, {name: len(tag) for name, tag in tags.items()})
        check_trees(syntax.readers)
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
                yield f"{path}: {CHANGED}"
        pairs = (f"{self.source}-{self.target}", f"{self.target}-{self.source}")
        patterns = (f"*.{pair}.{self.source}.{name}.???" for pair in pairs for name in ARRAY_TYPES)
        arrays = (path for pattern in patterns for path in self.path.glob(pattern))
        for path in sorted({*arrays} - {self.path / name for name in listed}):
            yield f"{path}: not in the manifest; run fairseq-syntax preprocess --only-syntax --overwrite"

"""A run of `fairseq-syntax preprocess`: all files of a data directory, or none."""

import argparse
import itertools
import json
import logging
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import Value
from pathlib import Path
from threading import Event

import fairseq_cli.preprocess as fairseq_preprocess
from fairseq.data import Dictionary
from fairseq.file_chunker_utils import ChunkLineIterator

from ..files import checksum, link_or_copy, staged_directory
from ..progress import progress_bar
from ..trees.alignment import find_trees
from ..trees.conllu import MAX_WORDS
from ..trees.subwords import check_length
from ..trees.text import TreeFormatError, refuse_returns, refuse_symbols, token_lines
from .arrays import ARRAY_TYPES, FORMAT_VERSION, TAG_DICTIONARIES, manifest_path, read_manifest, tag_dictionary_path
from .binarize import BinarizeOptions, SplitCounts, SplitWriter, tag_dictionary
from .length_table import length_table_path
from .text.recipe import RECIPE, Recipe, read_recipe
from .token_files import check_text, load_dictionary, split_languages, symbols_of, token_reader

logger = logging.getLogger("fairseq_syntax.preprocess")


@dataclass
class Preprocessing:
    """Conversion of the text and trees of some splits to a data directory.

    Attributes:
        source, target: codes of the languages.
        splits: name of each split, as fairseq-preprocess has it -> prefix of its text.
        destination: the data directory.
        binarize: function of a folder, and of the lines of each split on both sides, that writes the files of
            fairseq-preprocess; None if the data directory has them.
        options: for the conversion of trees to arrays.
        syntax_dicts: data directory whose dictionaries of tags are used.
        max_words: length of the longest sentence.
        workers: number of processes.
        overwrite: whether files of the data directory may be replaced.
        recipe: of raw text; None for prepared text.
    """

    source: str
    target: str
    splits: dict[str, str]
    destination: Path
    binarize: Callable[[Path, Mapping[str, int]], None] | None
    options: BinarizeOptions
    syntax_dicts: str | None = None
    max_words: int = MAX_WORDS
    workers: int = 1
    overwrite: bool = False
    recipe: Recipe | None = None

    def run(self) -> None:
        """Make a new data directory, which includes files kept from the old one, and replace `destination` by it.

        Raises TreeFormatError: bad text or trees; FileExistsError: `destination` holds data already, which may not be
        replaced; FileNotFoundError: a file is missing.
        """
        if self.destination.exists() and not self.destination.is_dir():
            raise FileExistsError(f"{self.destination}: is a file; name a directory with --destdir")
        with staged_directory(self.destination) as self.staging:
            lines = {split: self._check_input(prefix) for split, prefix in self.splits.items()}
            self._warn_repeated_text()
            self._check_destination()
            # trees first: those that do not fit the text are found in seconds
            writers, counts = self._binarize_trees()
            if self.binarize:
                self.binarize(self.staging, lines)
            else:
                self._check_binarized()
            self._finish_tags(writers)
            if self.recipe is not None:
                self.recipe.write(self.staging)
            kept = self._kept_files()
            text = json.dumps(self._new_manifest(counts, kept), indent=1, ensure_ascii=False, sort_keys=True) + "\n"
            (self.staging / self._manifest.name).write_text(text, encoding="utf-8")
            for path in kept:
                link_or_copy(path, self.staging / path.name)
        logger.info("Wrote preprocessed data to %s", self.destination)

    # --- checks of the input and of the old data ----------------------------------------------------------------

    @property
    def _manifest(self) -> Path:
        return manifest_path(self.destination, self.source, self.target)

    @cached_property
    def _old(self) -> dict:
        """The manifest of the old data."""
        return read_manifest(self.destination, self.source, self.target) or {}

    @property
    def _stays(self) -> bool:
        """True if trees of other splits stay in the data directory."""
        return bool(self._old.get("splits", {}).keys() - self.splits.keys())

    def _prefix(self, directory: Path, split: str) -> str:
        return str(directory / f"{split}.{self.source}-{self.target}.{self.source}")

    def _text(self, prefix: str) -> Path:
        return Path(f"{prefix}.{self.source}")

    def _texts(self, prefix: str) -> list[Path]:
        """Files of a text that are read: both sides, or only the source if the text is binarized already."""
        return [self._text(prefix), *([Path(f"{prefix}.{self.target}")] if self.binarize else [])]

    def _trees(self, prefix: str) -> Path:
        text = self._text(prefix)
        return find_trees(f"{text}.conllu", f"make them with fairseq-syntax parse --input {text}")

    def _check_input(self, prefix: str) -> int:
        """Check the input before hours of work; returns the number of lines on all sides."""
        texts = self._texts(prefix)
        for text in texts:
            if not text.is_file():
                raise FileNotFoundError(f"{text}: no such text; check the prefixes and languages")
        lines = [self._count_lines(text, is_source=text is texts[0]) for text in texts]
        if len(set(lines)) > 1:
            for text in texts:
                refuse_returns(text)
            raise TreeFormatError(
                f"{texts[0]}: {lines[0]} lines, but {texts[1]} has {lines[1]}; each translation must be on "
                "the same line as its source"
            )
        self._trees(prefix)
        return sum(lines)

    def _count_lines(self, path: Path, is_source: bool) -> int:
        """Check the lines of a text, and count them as fairseq does, which may loop for ever if a text is not UTF-8.

        Raises TreeFormatError: the text is not UTF-8, has symbols of fairseq as words, or, if `is_source`, a sentence
        is longer than `max_words`.
        """
        number = empty = 0
        for number, line in token_lines(path):
            refuse_symbols(line, f"{path}:{number}")
            empty += not line.strip()
            if is_source:
                check_length(line, self.options.subword_type, self.max_words, f"{path}:{number}")
        if empty:
            logger.warning("%s: %d of %d lines are empty", path, empty, number)
        return number

    def _warn_repeated_text(self) -> None:
        """Warn if two files hold the same text, because a test on training text measures nothing."""
        first: dict[str, Path] = {}
        for path in itertools.chain.from_iterable(map(self._texts, self.splits.values())):
            other = first.setdefault(checksum(path), path)
            if other != path and path.stat().st_size:
                logger.warning("%s and %s are the same text", other, path)

    def _check_destination(self) -> None:
        """Raise an OSError if old data would be replaced without `overwrite`."""
        destination = self.destination
        for name in TAG_DICTIONARIES:
            path = tag_dictionary_path(self.syntax_dicts or destination, self.source, name)
            if "train" not in self.splits and not path.is_file():
                raise FileNotFoundError(f"{path}: no such dictionary; give the training data to --syntax-dicts")
        if not self.binarize:
            taken = [s for s in self.splits if Path(f"{self._prefix(destination, s)}.words.idx").exists()]
            if taken and not self.overwrite:
                raise FileExistsError(
                    f"{destination}: splits {', '.join(taken)} have trees already; give --overwrite to replace them"
                )
        elif destination.exists() and any(destination.iterdir()) and not self.overwrite:
            raise FileExistsError(
                f"{destination}: exists and is not empty; give --overwrite to replace its contents, or "
                "--only-syntax to add trees to it"
            )

    # --- new files ----------------------------------------------------------------------------------------------

    def _binarize_trees(self) -> tuple[dict[str, SplitWriter], dict[str, SplitCounts]]:
        """Write the arrays, with provisional tags; returns the writer and the counts of each split."""
        writers, counts = {}, {}
        for split, prefix in self.splits.items():
            text, trees = self._text(prefix), self._trees(prefix)
            writers[split] = SplitWriter(self._prefix(self.staging, split), self.options)
            total = text.read_bytes().count(b"\n")
            with progress_bar(desc=f"{split}: arrays of trees", total=total, unit=" sentences") as progress:
                counts[split] = writers[split].write(text, trees, self.workers, progress)
            numbers = ", ".join(f"{count} {name}" for name, count in counts[split]._asdict().items())
            logger.info("[%s] %s: %s", self.source, trees, numbers)
            share = 100 * counts[split].unparsed / max(counts[split].sentences, 1)
            if share > 1:
                message = "[%s] %s: %.1f %% of the sentences have no parse and will be read without syntax"
                logger.warning(message, self.source, trees, share)
        return writers, counts

    def _check_binarized(self) -> None:
        """Raise an error unless the text that gets trees is the one that was binarized."""
        for split, prefix in self.splits.items():
            tokens = split_languages(self.destination, split, self.source, self.target)
            if self.source not in tokens:
                raise FileNotFoundError(f"{self.destination}: {split} is not binarized there; leave --only-syntax out")
            if reader := token_reader(tokens[self.source]):  # or it was copied as text
                dictionary = load_dictionary(self.destination / f"dict.{self.source}.txt")
                check_text(reader, dictionary, self._text(prefix))

    def _finish_tags(self, writers: dict[str, SplitWriter]) -> None:
        """Write the dictionaries and arrays of tags; warn of tags that are in no dictionary."""
        dictionaries = self._tag_dictionaries(writers)
        for split, writer in writers.items():
            writer.finish(dictionaries)
            for name, dictionary in dictionaries.items():
                counts = writer.tag_counts[name]
                unknown = [tag for tag, _ in counts.most_common() if dictionary.index(tag) == dictionary.unk()]
                if unknown:
                    share = 100 * sum(counts[tag] for tag in unknown) / counts.total()
                    message = "[%s] %.1f %% of the %s of split %r are unknown (%s)"
                    logger.warning(message, self.source, share, name, split, ", ".join(unknown[:3]))

    def _tag_dictionaries(self, writers: dict[str, SplitWriter]) -> dict[str, Dictionary]:
        dictionaries = {}
        for name in TAG_DICTIONARIES:
            path = tag_dictionary_path(self.syntax_dicts or self.destination, self.source, name)
            # the other splits hold indices of this dictionary
            keep = not self.binarize and self._stays and path.is_file()
            if self.syntax_dicts or keep or "train" not in writers:
                dictionaries[name] = load_dictionary(path)
            else:
                dictionaries[name] = tag_dictionary(writers["train"].tag_counts[name])
            dictionaries[name].save(str(self.staging / path.name))
        return dictionaries

    def _new_manifest(self, counts: dict[str, SplitCounts], kept: list[Path]) -> dict:
        """The new manifest, with entries of other splits that stay."""
        subword_type = self.options.subword_type
        if self._stays and self._old["subword_type"] != subword_type:
            raise TreeFormatError(
                f"{self._manifest}: the other splits have --subword-type {self._old['subword_type']}, not "
                f"{subword_type}; use the same for all"
            )
        splits = {
            split: {
                "text": str(self._text(prefix)),
                "trees": str(self._trees(prefix)),
                "distances": self.options.distances,
                "allow_unparsed": self.options.allow_unparsed,
                **counts[split]._asdict(),
            }
            for split, prefix in self.splits.items()
        }
        made = [path for path in self.staging.iterdir() if path.is_file() and path.suffix != ".log"]
        if not self.binarize:  # the text of the new trees, and its dictionaries
            text = (f"dict.{self.source}.txt", f"dict.{self.target}.txt", *(f"{split}." for split in self.splits))
            made += [path for path in kept if path.name.startswith(text)]
        files = {path.name: checksum(path) for path in made}
        listed = self._old.get("sha256", {})
        return {
            "format_version": FORMAT_VERSION,
            "source_lang": self.source,
            "target_lang": self.target,
            "subword_type": subword_type,
            "splits": self._old.get("splits", {}) | splits,
            "sha256": {path.name: listed[path.name] for path in kept if path.name in listed} | files,
        }

    # --- old files beside them ----------------------------------------------------------------------------------

    def _kept_files(self) -> list[Path]:
        """Old files that stay: those of other splits, other languages and other programs.

        Raises TreeFormatError: they were made with a dictionary or a recipe that would be replaced.
        """
        made = {self._manifest.name, *(path.name for path in self.staging.iterdir())}
        old = sorted(self.destination.iterdir()) if self.destination.exists() else []
        kept = [path for path in old if path.name not in made and not self._is_stale(path.name)]
        # name of a dictionary or of the recipe -> pattern of the ends of the names of files that were made with it
        ends = {f"dict.{side}.txt": rf"{re.escape(side)}(\.idx)?" for side in (self.source, self.target)}
        for array, tag in TAG_DICTIONARIES.items():
            ends[f"dict.{self.source}.{tag}.txt"] = rf"{re.escape(self.source)}\.{array}\.idx"
        for name, end in {**ends, RECIPE: r"[^.]+(\.idx)?"}.items():
            users = [path.name for path in kept if re.fullmatch(rf"[^.]+\.[^.]+-[^.]+\.{end}", path.name)]
            replaced = users and (name in made or self._is_stale(name))
            if replaced and not _same(self.staging / name, self.destination / name):
                raise TreeFormatError(
                    f"{self.destination}: {name} would change, but {users[0]} was made with it; give all splits at "
                    "once, another --destdir, or the dictionaries that are there (--srcdict, --tgtdict, --syntax-dicts)"
                )
            if replaced and (self.destination / name).is_file():  # with the counts whose checksum other manifests have
                shutil.copy2(self.destination / name, self.staging / name)
        return kept

    def _is_stale(self, name: str) -> bool:
        """True if an old file came from input that has now been converted again."""
        arrays = "" if self.binarize else rf"{re.escape(self.source)}\.({'|'.join(ARRAY_TYPES)})\."
        pair = re.escape(f"{self.source}-{self.target}")
        split_file = re.match(rf"({'|'.join(self.splits)})(\.align)?\.{pair}\.{arrays}", name)
        tables = [length_table_path("", *both).name for both in itertools.permutations((self.source, self.target))]
        training_file = name in (RECIPE, *tables) or name.split(".")[0] == "codes"
        return bool(split_file or (training_file and self.binarize and "train" in self.splits))


def _same(new: Path, old: Path) -> bool:
    """True if two dictionaries have the same symbols, whatever their counts, or two recipes are equal."""
    if new.name == RECIPE:
        return read_recipe(new.parent) == read_recipe(old.parent)
    return symbols_of(new) == symbols_of(old)


def binarize_text(options: Mapping, splits: Mapping[str, str], folder: Path, lines: Mapping[str, int]) -> None:
    """Write dictionaries and token ids into a folder, as fairseq-preprocess does.

    Args:
        options: of fairseq-preprocess, by name.
        splits, lines: name of a split -> prefix of its text, and number of lines in all its files.
    """
    changed = {"destdir": str(folder), "trainpref": splits.get("train")}
    for kind in ("valid", "test"):
        prefixes = [prefix for split, prefix in splits.items() if split.startswith(kind)]
        changed[f"{kind}pref"] = ",".join(prefixes) or None
    log = fairseq_preprocess.logger
    handlers = list(log.handlers)

    def name_destination(record: logging.LogRecord) -> bool:
        message = record.getMessage()
        record.msg, record.args = message.replace(str(folder), options["destdir"]), ()
        # too early: the trees are still to come
        return not message.startswith("Wrote preprocessed data")

    log.addFilter(name_destination)
    # words are counted first, unless all dictionaries are given
    counted = not options["srcdict"] or not (options["tgtdict"] or options["joined_dictionary"])
    try:
        with _lines_read(sum(lines.values()) + counted * lines.get("train", 0)):
            fairseq_preprocess.main(argparse.Namespace(**{**options, **changed}))
    finally:
        log.removeFilter(name_destination)
        for handler in set(log.handlers) - set(handlers):
            log.removeHandler(handler)
            handler.close()


@contextmanager
def _lines_read(total: int) -> Iterator[None]:
    """Show a progress bar of the lines that fairseq reads, in all of its processes."""
    read, ended, lines_of = Value("q", 0), Event(), ChunkLineIterator.__iter__

    def counting(chunk: ChunkLineIterator) -> Iterator[str]:
        for line in lines_of(chunk):
            with read.get_lock():
                read.value += 1
            yield line

    def watch() -> None:
        while not ended.wait(1):
            bar.update(read.value - bar.n)

    with progress_bar(desc="text: token ids", total=total, unit=" lines") as bar, ThreadPoolExecutor(1) as thread:
        ChunkLineIterator.__iter__ = counting
        thread.submit(watch)
        try:
            yield
        finally:
            ChunkLineIterator.__iter__ = lines_of
            ended.set()

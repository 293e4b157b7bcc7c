"""A run of `fairseq-syntax preprocess`: all files of a data directory, or none."""

import argparse
import collections
import filecmp
import itertools
import json
import logging
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import fairseq_cli.preprocess as fairseq_preprocess
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import index_file_path

from ..files import checksum, link_or_copy, staged_directory
from ..progress import progress_bar
from ..trees.alignment import find_trees
from ..trees.subwords import check_length
from ..trees.text import TreeFormatError, refuse_returns, refuse_symbols, token_lines
from .arrays import (
    ARRAY_TYPES,
    FORMAT_VERSION,
    TAG_DICTIONARIES,
    ArrayReader,
    manifest_path,
    read_index,
    read_manifest,
    tag_dictionary_path,
)
from .binarize import Options, SplitCounts, SplitWriter, tag_dictionary
from .invariants import check_sizes
from .length_table import length_table_path
from .text.recipe import FILE as RECIPE
from .text.recipe import Recipe, read_recipe
from .token_files import check_text, load_dictionary, split_languages

logger = logging.getLogger("fairseq_syntax.preprocess")


class Preprocessing:
    """Text and trees of some splits, on their way into a data directory, by the checked options of `cli.preprocess`."""

    def __init__(self, args: argparse.Namespace, recipe: Recipe | None = None):
        self.args, self.recipe = args, recipe
        self.source, self.target = args.source_lang, args.target_lang
        self.destination = Path(args.destdir)
        self.manifest = manifest_path(self.destination, self.source, self.target)
        # split -> prefix of its text; splits are named as fairseq-preprocess names them
        self.splits = {"train": args.trainpref} if args.trainpref else {}
        for name, prefixes in (("valid", args.validpref), ("test", args.testpref)):
            for k, prefix in enumerate(prefixes.split(",") if prefixes else []):
                self.splits[f"{name}{k or ''}"] = prefix

    def run(self) -> None:
        """Make a whole new data directory, with what stays of the old one, and replace `--destdir` by it.

        Raises TreeFormatError: bad text or trees; FileExistsError: `--destdir` holds data already and `--overwrite` is
        not given; FileNotFoundError: a file is missing.
        """
        if self.destination.exists() and not self.destination.is_dir():
            raise FileExistsError(f"{self.destination}: is a file; name a directory with --destdir")
        with staged_directory(self.destination) as self.staging:
            for prefix in self.splits.values():
                self._check_input(prefix)
            self._check_repeated_text()
            self._check_destination()
            # first, because they may not fit the text, which is known in seconds
            writers, counts = self._binarize_trees()
            if not self.args.only_syntax:
                self._binarize_text()
            self._check_binarized()
            self._finish_tags(writers)
            if self.recipe is not None:
                self._same_recipe(self.recipe).write(self.staging)
            self._check_other_languages()
            manifest = self._new_manifest(counts)
            text = json.dumps(manifest, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
            (self.staging / self.manifest.name).write_text(text, encoding="utf-8")
            self._keep_old_files()
        logger.info("Wrote preprocessed data to %s", self.destination)

    # --- what there is already ----------------------------------------------------------------------------------

    @cached_property
    def _old(self) -> dict:
        """The manifest of the old data."""
        return read_manifest(self.destination, self.source, self.target) or {}

    @property
    def _stays(self) -> bool:
        """Whether the old data has trees of splits that are not made again."""
        return bool(self._old.get("splits", {}).keys() - self.splits.keys())

    @cached_property
    def pair(self) -> str:
        """The languages as in file names: the other way round if the text that gets trees was binarized so."""
        if self.args.only_syntax:
            prefixes = split_languages(self.destination, next(iter(self.splits)), self.source, self.target)
            if self.source in prefixes:
                return Path(prefixes[self.source]).name.split(".")[1]
        return f"{self.source}-{self.target}"

    def _prefix(self, directory: Path, split: str) -> str:
        return str(directory / f"{split}.{self.pair}.{self.source}")

    def _text(self, prefix: str) -> Path:
        return Path(f"{prefix}.{self.source}")

    def _trees(self, prefix: str) -> Path:
        text = self._text(prefix)
        plain = f"{text}.{self.args.trees_suffix}"
        return find_trees(
            plain,
            f"make them with fairseq-syntax parse --input {text} --subword-type {self.args.subword_type} "
            f"--output {plain}; for models that need no trees, run fairseq-preprocess",
        )

    def _check_input(self, prefix: str) -> None:
        """Raise an error for what is missing before hours of work, not after."""
        args = self.args
        texts = [self._text(prefix)]
        if self.target and not args.only_source and not args.only_syntax:
            texts.append(Path(f"{prefix}.{self.target}"))
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

    def _count_lines(self, path: Path, is_source: bool) -> int:
        """Lines of a text as fairseq counts them; fairseq itself may loop for ever over a text that is not UTF-8.

        Raises TreeFormatError: the text is not text, has symbols of fairseq as words, or, if `is_source`, a sentence
        is longer than `--max-words`.
        """
        number = empty = 0
        for number, line in token_lines(path):
            refuse_symbols(line, f"{path}:{number}")
            empty += not line.strip()
            if is_source:
                check_length(line, self.args.subword_type, self.args.max_words, f"{path}:{number}")
        if empty:
            logger.warning("%s: %d of %d lines are empty", path, empty, number)
        return number

    def _check_repeated_text(self) -> None:
        """Warn of a text that is given twice: of splits, which measure nothing then, or of the two languages."""
        args = self.args
        texts = [self._text(prefix) for prefix in self.splits.values()]
        if self.target and not args.only_source and not args.only_syntax:
            texts += [Path(f"{prefix}.{self.target}") for prefix in self.splits.values()]
        by_size = collections.defaultdict(list)
        for path in texts:
            by_size[path.stat().st_size].append(path)
        for same in by_size.values():
            for first, second in itertools.combinations(same, 2):
                if first.stat().st_size and filecmp.cmp(first, second, shallow=False):
                    logger.warning("%s and %s are the same text", first, second)

    def _check_destination(self) -> None:
        """Raise an OSError if old data must stay, or are needed and missing."""
        destination, overwrite = self.destination, self.args.overwrite
        if self.args.only_syntax:
            if not destination.is_dir():
                raise FileNotFoundError(f"{destination}: no such data directory; leave --only-syntax out")
            taken = [s for s in self.splits if Path(f"{self._prefix(destination, s)}.words.idx").exists()]
            if taken and not overwrite:
                raise FileExistsError(
                    f"{destination}: splits {', '.join(taken)} have trees already; give --overwrite to replace them"
                )
        elif destination.exists() and any(destination.iterdir()) and not overwrite:
            raise FileExistsError(
                f"{destination}: exists and is not empty; give --overwrite to replace its contents, or "
                "--only-syntax to add trees to it"
            )

    # --- new files ----------------------------------------------------------------------------------------------

    def _binarize_text(self) -> None:
        args, staging = argparse.Namespace(**vars(self.args)), str(self.staging)
        args.destdir = staging
        handlers = list(fairseq_preprocess.logger.handlers)

        def name_destination(record: logging.LogRecord) -> bool:
            message = record.getMessage()
            record.msg, record.args = message.replace(staging, self.args.destdir), ()
            # not yet: trees are still to come
            return not message.startswith("Wrote preprocessed data")

        fairseq_preprocess.logger.addFilter(name_destination)
        try:
            fairseq_preprocess.main(args)
        finally:
            fairseq_preprocess.logger.removeFilter(name_destination)
            for handler in set(fairseq_preprocess.logger.handlers) - set(handlers):
                fairseq_preprocess.logger.removeHandler(handler)
                handler.close()

    def _binarize_trees(self) -> tuple[dict[str, SplitWriter], dict[str, SplitCounts]]:
        """Write the arrays, with provisional tags; returns the writer and the counts of each split."""
        args = self.args
        options = Options(
            args.subword_type,
            not args.no_distances,
            args.allow_unparsed,
            args.allow_broken,
            tuple(args.control_tokens),
        )
        writers, counts = {}, {}
        for split, prefix in self.splits.items():
            text, trees = self._text(prefix), self._trees(prefix)
            writers[split] = SplitWriter(self._prefix(self.staging, split), options)
            total = text.read_bytes().count(b"\n")
            with progress_bar(desc=f"{split}: arrays of trees", total=total, unit=" sentences") as progress:
                counts[split] = writers[split].write(text, trees, args.workers, progress)
            said = ", ".join(f"{count} {name}" for name, count in counts[split]._asdict().items())
            logger.info("[%s] %s: %s", self.source, trees, said)
            share = 100 * counts[split].unparsed / max(counts[split].sentences, 1)
            if share > 1:
                message = "[%s] %s: %.1f %% of the sentences have no parse and will be read without syntax"
                logger.warning(message, self.source, trees, share)
        return writers, counts

    def _check_binarized(self) -> None:
        """Raise an error unless there are as many tokens in the arrays as in the binarized text."""
        args = self.args
        tokens = self.destination if args.only_syntax else self.staging
        for split, prefix in self.splits.items() if args.dataset_impl == "mmap" else ():
            text = self._text(prefix)
            index = Path(index_file_path(self._prefix(tokens, split)))
            if not index.is_file():
                raise FileNotFoundError(f"{index}: split {split!r} is not binarized there; leave --only-syntax out")
            sizes = ArrayReader(f"{self._prefix(self.staging, split)}.words").sizes
            check_sizes(read_index(index)[1], sizes, str(text), "give the text that was binarized")
            if args.only_syntax:
                dictionary = load_dictionary(self.destination / f"dict.{self.source}.txt")
                check_text(ArrayReader(self._prefix(tokens, split)), dictionary, text)

    def _finish_tags(self, writers: dict[str, SplitWriter]) -> None:
        """Write the dictionaries of tags, and the arrays of tags by them."""
        dictionaries = self._tag_dictionaries(writers)
        for split, writer in writers.items():
            self._check_tags(split, writer, dictionaries)
            writer.finish(dictionaries)

    def _tag_dictionaries(self, writers: dict[str, SplitWriter]) -> dict[str, Dictionary]:
        args, dictionaries = self.args, {}
        for name in TAG_DICTIONARIES:
            path = tag_dictionary_path(args.syntax_dicts or self.destination, self.source, name)
            # the indices of splits that stay must stay right
            keep = args.only_syntax and self._stays and path.is_file()
            if args.syntax_dicts or keep or "train" not in writers:
                if not path.is_file():
                    raise FileNotFoundError(
                        f"{path}: no such dictionary; give --trainpref, or the training data with --syntax-dicts"
                    )
                dictionaries[name] = load_dictionary(path)
            else:
                dictionaries[name] = tag_dictionary(writers["train"].tag_counts.get(name, collections.Counter()))
            dictionaries[name].save(str(self.staging / path.name))
        if args.only_syntax and self._stays and not self._same_tags():
            raise TreeFormatError(
                f"--syntax-dicts {args.syntax_dicts}: other splits of {self.destination} use other dictionaries; leave "
                "it out, or give all splits at once"
            )
        return dictionaries

    def _check_tags(self, split: str, writer: SplitWriter, dictionaries: dict[str, Dictionary]) -> None:
        """Warn of labels and tags that no dictionary has; TreeFormatError if these are most of the training data."""
        for name, dictionary in dictionaries.items():
            share, unknown = writer.unknown_tags(name, dictionary)
            if not unknown:
                continue
            message = f"{share:.1f} % of the {name} of split {split!r} are unknown ({', '.join(unknown[:3])})"
            if split == "train" and share > 50:
                raise TreeFormatError(
                    f"{self._trees(self.splits[split])}: {message}: other splits have those of another parser; give "
                    "all splits at once, without --syntax-dicts"
                )
            logger.warning("[%s] %s", self.source, message)

    def _new_manifest(self, counts: dict[str, SplitCounts]) -> dict:
        """The new manifest; with --only-syntax, entries of other splits stay."""
        args, old = self.args, self._old
        if not args.only_syntax and not (self._same_tags() and self._same_words()):
            old = {}
        if old.get("splits", {}).keys() - self.splits.keys() and old.get("subword_type") != args.subword_type:
            raise TreeFormatError(
                f"{self.manifest}: the other splits have --subword-type {old.get('subword_type')}, not "
                f"{args.subword_type}; use the same for all"
            )
        if old.get("splits", {}).keys() - self.splits.keys() and old.get("control_tokens", []) != args.control_tokens:
            raise TreeFormatError(
                f"{self.manifest}: the other splits have --control-tokens {' '.join(old.get('control_tokens', []))}, "
                f"not {' '.join(args.control_tokens)}; use the same for all"
            )
        splits = {
            split: {
                "text": str(self._text(prefix)),
                "trees": str(self._trees(prefix)),
                "distances": not args.no_distances,
                "allow_unparsed": args.allow_unparsed,
                "allow_broken": args.allow_broken,
                **counts[split]._asdict(),
            }
            for split, prefix in self.splits.items()
        }
        files = {p.name: checksum(p) for p in self.staging.iterdir() if p.is_file() and p.suffix != ".log"}
        kept = {name: value for name, value in old.get("sha256", {}).items() if not self._is_stale(name)}
        return {
            "format_version": FORMAT_VERSION,
            "source_lang": self.source,
            "target_lang": self.target,
            "subword_type": args.subword_type,
            **({"control_tokens": args.control_tokens} if args.control_tokens else {}),
            "splits": old.get("splits", {}) | splits,
            "sha256": kept | files,
        }

    # --- old files beside them ----------------------------------------------------------------------------------

    def _same_tags(self) -> bool:
        """Whether the new dictionaries of tags are those that the data has."""
        directories = self.staging, self.destination
        pairs = ([tag_dictionary_path(d, self.source, name) for d in directories] for name in TAG_DICTIONARIES)
        return all(old.is_file() and new.read_bytes() == old.read_bytes() for new, old in pairs)

    def _same_words(self) -> bool:
        """Whether the new dictionaries number words as those that the data has."""
        names = (f"dict.{language}.txt" for language in (self.source, self.target))
        pairs = ([directory / name for directory in (self.staging, self.destination)] for name in names)
        return all(
            new.is_file() == old.is_file() and (not new.is_file() or _symbols(new) == _symbols(old))
            for new, old in pairs
        )

    def _check_other_languages(self) -> None:
        """Raise TreeFormatError if data of other languages need a dictionary or a recipe that would be replaced."""
        made = {RECIPE: ""} if self._is_stale(RECIPE) else {}
        made |= {p.name: checksum(p) for p in sorted([*self.staging.glob("dict.*"), *self.staging.glob(RECIPE)])}
        for path in sorted(set(self.destination.glob("syntax-*.json")) - {self.manifest}):
            try:
                listed = json.loads(path.read_text(encoding="utf-8"))["sha256"]
                changed = [name for name, value in made.items() if listed.get(name, value) != value]
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue  # nothing can be trained on them
            if changed:
                raise TreeFormatError(
                    f"{self.destination}: {', '.join(changed)} would change, but the data of {path.name} depend on "
                    "them; give another --destdir, or those dictionaries (--srcdict, --tgtdict, --syntax-dicts) and "
                    "that tokenizer, case, subwords and parser"
                )

    def _same_recipe(self, new: Recipe) -> Recipe:
        """That of the data, if it says the same of this direction: both directions depend on the file as it is."""
        try:
            old = read_recipe(self.destination)
            return old if old and old.between(self.source, self.target) in (new, replace(new, shares={})) else new
        except ValueError:  # damaged, or of other languages
            return new

    def _is_stale(self, name: str) -> bool:
        """Whether a file of the old data does not fit the new ones."""
        split, *parts = name.split(".")
        array = len(parts) == 4 and parts[:2] == [self.pair, self.source] and parts[2] in ARRAY_TYPES
        if self.args.only_syntax:
            return array and split in self.splits
        if name == RECIPE or split == "codes":
            return "train" in self.splits
        if name in (length_table_path("", *pair).name for pair in itertools.permutations((self.source, self.target))):
            return "train" in self.splits
        # other splits hold indices of the old dictionaries
        return (
            (parts[:1] == [self.pair] and len(parts) > 1 and (split in self.splits or not self._same_words()))
            or (array and not self._same_tags())
            or (split in self.splits and parts[:2] == ["align", self.pair])
        )

    def _keep_old_files(self) -> None:
        """Link old files that still fit, and those of other programs, into the new directory."""
        made = {path.name for path in self.staging.iterdir()}
        removed = set()
        for path in self.destination.iterdir() if self.destination.exists() else ():
            if path.name in made:
                continue
            if not self._is_stale(path.name):
                link_or_copy(path, self.staging / path.name)
            elif path.match(f"*.{self.pair}.*.*"):
                removed.add(path.name.split(".")[0])
        if removed - self.splits.keys():
            message = "%s: removed, because made with other dictionaries: %s"
            logger.warning(message, self.destination, ", ".join(sorted(removed - self.splits.keys())))


def _symbols(path: Path) -> list[bytes]:
    return [line.rpartition(b" ")[0] for line in path.read_bytes().split(b"\n")]

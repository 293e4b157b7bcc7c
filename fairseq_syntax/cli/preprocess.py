"""fairseq-syntax preprocess: binarize text as fairseq-preprocess does, and its trees beside it."""

import argparse
import collections
import json
import logging
import os
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path

import fairseq_cli.preprocess as fairseq_preprocess
from fairseq import options as fairseq_options
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import index_file_path
from tqdm import tqdm

from ..data.arrays import (
    ARRAY_TYPES,
    FORMAT_VERSION,
    TAG_DICTIONARIES,
    checksum,
    manifest_path,
    read_index,
    read_manifest,
    tag_dictionary_path,
)
from ..data.binarize import Options, SplitWriter, check_lengths, tag_dictionary
from ..data.length_table import length_table_path
from ..data.publishing import JOURNAL, finish_publishing, locked, publish, staging_directories, write_json
from ..data.token_files import load_dictionary
from ..trees.conllu import MAX_WORDS, TreeFormatError, numbered_lines
from ..trees.subwords import SubwordType, check_length

logger = logging.getLogger("fairseq_syntax.preprocess")

_DESCRIPTION = """\
Binarize a parallel corpus and the dependency trees of its source side. Takes all options of fairseq-preprocess.
For a prefix P and source language s, the (sub)words are read from P.s and their trees from P.s.conllu or
P.s.conllu.gz; they must agree word for word."""

_EXAMPLE = """\
example:
  fairseq-syntax preprocess --source-lang en --target-lang de --trainpref bpe/train --validpref bpe/valid \\
      --testpref bpe/test --destdir data-bin --joined-dictionary --workers 2
  fairseq-syntax preprocess --only-syntax --source-lang en --target-lang de --testpref bpe/test --destdir data-bin"""


def build_parser() -> argparse.ArgumentParser:
    """fairseq-preprocess's options and ours."""
    parser = fairseq_options.get_preprocessing_parser()
    parser.prog = "fairseq-syntax preprocess"
    parser.description = _DESCRIPTION
    parser.epilog = _EXAMPLE
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    group = parser.add_argument_group("Syntax")
    group.add_argument(
        "--trees-suffix",
        default="conllu",
        metavar="SUFFIX",
        help="trees of P.s are in P.s.SUFFIX or P.s.SUFFIX.gz (default: conllu)",
    )
    group.add_argument(
        "--subword-type",
        choices=[str(kind) for kind in SubwordType],
        default=str(SubwordType.subword_nmt),
        help="how words are cut: subword_nmt (pieces end in @@; also right for plain words), sentencepiece "
        "(words begin with ▁), none (one token, one word) (default: subword_nmt)",
    )
    group.add_argument(
        "--only-syntax",
        action="store_true",
        help="add trees to a --destdir that is binarized already; give the same text again",
    )
    group.add_argument(
        "--no-distances",
        action="store_true",
        help="do not store the distance matrices; they are then computed when an example is read, with the same result",
    )
    group.add_argument(
        "--syntax-dicts",
        metavar="DIR",
        help="take the dictionaries of labels and tags from this data directory; default: made from --trainpref, "
        "without which --destdir must have them",
    )
    group.add_argument(
        "--allow-unparsed",
        action="store_true",
        help="accept sentences whose HEAD column is _ throughout; they are counted and translated without syntax",
    )
    group.add_argument(
        "--allow-broken",
        nargs="?",
        type=float,
        const=1.0,
        default=0.0,
        metavar="PERCENT",
        help="accept up to PERCENT of the trees of a split (1 without a value) that are broken or do not fit their "
        "sentence; these are counted and translated without syntax (default: 0, every one is an error)",
    )
    group.add_argument(
        "--max-words",
        type=int,
        default=MAX_WORDS,
        metavar="N",
        help="words of the longest sentence that is accepted; distances are a table of their square (default: "
        f"{MAX_WORDS})",
    )
    group.add_argument("--overwrite", action="store_true", help="replace what --destdir holds already")
    return parser


def main(argv: list[str] | None = None) -> None:
    """Entry point. Exit status: 0, 1 for bad data, 2 for bad usage, 130 after Ctrl-C."""
    parser = build_parser()
    args = parser.parse_args(argv)
    if not args.source_lang or not (args.target_lang or args.only_source):
        parser.error("give --source-lang and --target-lang")
    if not (args.trainpref or args.validpref or args.testpref):
        parser.error("give at least one of --trainpref, --validpref, --testpref")
    if args.only_syntax and args.dict_only:
        parser.error("--only-syntax and --dict-only exclude each other")
    if args.dataset_impl not in ("mmap", "raw"):
        parser.error(f"--dataset-impl {args.dataset_impl}: choose mmap or raw")
    if not 0 <= args.allow_broken <= 100:
        parser.error(f"--allow-broken {args.allow_broken:g}: give 0 to 100")
    if args.max_words < 1:
        parser.error(f"--max-words {args.max_words}: give 1 or more")
    if args.workers < 1:
        parser.error(f"--workers {args.workers}: give 1 or more")
    if args.joined_dictionary and args.srcdict and args.tgtdict:
        parser.error("--joined-dictionary: give --srcdict or --tgtdict, not both")
    if not args.trainpref and not args.only_syntax:
        known = [args.srcdict, args.only_source or args.tgtdict]
        if not (any if args.joined_dictionary else all)(known):
            parser.error("without --trainpref, give the dictionaries of the training data: --srcdict and --tgtdict")
    try:
        with _log_to_stderr():
            run(args)
    except (TreeFormatError, OSError) as error:
        print(f"fairseq-syntax preprocess: {error}", file=sys.stderr)
        sys.exit(1)
    except BrokenProcessPool:
        print("fairseq-syntax preprocess: a worker was killed (out of memory?); lower --workers", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print(
            "fairseq-syntax preprocess: interrupted; nothing was written, or, if files were being moved to --destdir, "
            "the next run with it finishes that",
            file=sys.stderr,
        )
        sys.exit(130)


@contextmanager
def _log_to_stderr() -> Iterator[None]:
    """In the place of the handlers that fairseq installs when it is imported, which write to stdout."""
    root, handler = logging.getLogger(), logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s | %(message)s"))
    handlers, level = root.handlers, root.level
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.handlers = handlers
        root.setLevel(level)


def run(args: argparse.Namespace) -> None:
    """Everything into a staging directory, then by renaming into `--destdir`: all or nothing.

    Raises:
        TreeFormatError: bad text or trees.
        FileExistsError: `--destdir` holds data already and `--overwrite` is not given.
        FileNotFoundError: a file is missing.
    """
    destination = Path(args.destdir)
    splits = _splits(args)
    manifest = manifest_path(destination, args.source_lang, args.target_lang)
    if destination.exists() and not destination.is_dir():
        raise FileExistsError(f"{destination}: is a file; name a directory with --destdir")
    finish_publishing(destination)
    _check_inputs(args, splits)
    if args.only_syntax:
        if not destination.is_dir():
            raise FileNotFoundError(f"{destination}: no such data directory; leave --only-syntax out")
        taken = [s for s in splits if Path(f"{_prefix(args, destination, s)}.words.idx").exists()]
        if taken and not args.overwrite:
            raise FileExistsError(
                f"{destination}: splits {', '.join(taken)} have trees already; give --overwrite to replace them"
            )
    else:
        if destination.exists() and any(destination.iterdir()) and not args.overwrite:
            raise FileExistsError(
                f"{destination}: exists and is not empty; give --overwrite to replace what it holds, or "
                "--only-syntax to add trees to it"
            )
    if args.dict_only and any(destination.glob("*.idx")):
        raise FileExistsError(
            f"{destination}: holds text that was binarized with the dictionaries there; name another --destdir"
        )
    for left in staging_directories(destination):
        if left.exists():
            with locked(left):
                logger.info("%s: left by an interrupted run, removed", left)
                shutil.rmtree(left)
    beside, inside = staging_directories(destination)
    # files can be renamed within a file system only, and nothing be made in a folder that others own
    shut_in = destination.exists() and (os.path.ismount(destination.resolve()) or not os.access(beside.parent, os.W_OK))
    staging = inside if args.only_syntax or shut_in else beside
    staging.mkdir(parents=True)
    with locked(staging):
        try:
            if not args.only_syntax:
                _binarize_text(args, staging)
            if not args.dict_only:
                entry = _binarize_trees(args, splits, staging, destination)
                write_json(staging / manifest.name, entry)
            _check_others(staging, destination, manifest.name)
            stale = _stale(args, staging, destination) if destination.is_dir() else set()
            publish(staging, destination, manifest.name, stale)
            logger.info("Wrote preprocessed data to %s", destination)
        except BaseException:
            if not (staging / JOURNAL).exists():
                shutil.rmtree(staging, ignore_errors=True)
            raise


def _splits(args: argparse.Namespace) -> dict[str, str]:
    """Split name -> text prefix, named as fairseq-preprocess names them."""
    splits = {"train": args.trainpref} if args.trainpref else {}
    for name, prefixes in (("valid", args.validpref), ("test", args.testpref)):
        for k, prefix in enumerate(prefixes.split(",") if prefixes else []):
            splits[f"{name}{k or ''}"] = prefix
    return splits


def _prefix(args: argparse.Namespace, directory: Path, split: str) -> str:
    return str(directory / f"{split}.{args.source_lang}-{args.target_lang}.{args.source_lang}")


def _text_path(args: argparse.Namespace, prefix: str) -> Path:
    return Path(f"{prefix}.{args.source_lang}")


def _trees_path(args: argparse.Namespace, prefix: str) -> Path:
    plain = Path(f"{prefix}.{args.source_lang}.{args.trees_suffix}")
    return plain if plain.exists() else plain.with_name(plain.name + ".gz")


def _check_inputs(args: argparse.Namespace, splits: dict[str, str]) -> None:
    """Say what is missing before hours of work, not after."""
    for prefix in splits.values():
        texts = [_text_path(args, prefix)]
        if args.target_lang and not args.only_source and not args.only_syntax:
            texts.append(Path(f"{prefix}.{args.target_lang}"))
        for text in texts:
            if not text.is_file():
                raise FileNotFoundError(f"{text}: no such text; check the prefixes and languages")
        lines = [_count_lines(args, text, check=text is texts[0] and not args.dict_only) for text in texts]
        if len(set(lines)) > 1:
            raise TreeFormatError(
                f"{texts[0]}: {lines[0]} lines, but {texts[1]} has {lines[1]}; a translation must stand on the line "
                "of its source"
            )
        if not args.dict_only and not _trees_path(args, prefix).is_file():
            plain = f"{texts[0]}.{args.trees_suffix}"
            raise FileNotFoundError(
                f"{plain}: no such trees (nor {Path(plain).name}.gz); make them with "
                f"fairseq-syntax parse --input {texts[0]} --subword-type {args.subword_type} --output {plain}; "
                "data of models that need no trees are made with fairseq-preprocess"
            )


def _count_lines(args: argparse.Namespace, path: Path, check: bool) -> int:
    """Lines of a text as fairseq counts them; fairseq itself may loop for ever over a text that is not UTF-8.

    Raises:
        TreeFormatError: the text is no text, or, with `check`, a sentence is longer than `--max-words`.
    """
    number = 0
    with open(path, encoding="utf-8") as lines:
        for number, line in numbered_lines(lines, str(path)):
            if check:
                check_length(line, args.subword_type, args.max_words, f"{path}:{number}")
    return number


def _binarize_text(args: argparse.Namespace, staging: Path) -> None:
    destination, args.destdir = args.destdir, str(staging)
    handlers = list(fairseq_preprocess.logger.handlers)

    def name_destination(record: logging.LogRecord) -> bool:
        message = record.getMessage()
        record.msg, record.args = message.replace(str(staging), destination), ()
        # not yet: trees are still to come
        return not message.startswith("Wrote preprocessed data")

    fairseq_preprocess.logger.addFilter(name_destination)
    try:
        fairseq_preprocess.main(args)
    finally:
        args.destdir = destination
        fairseq_preprocess.logger.removeFilter(name_destination)
        for handler in set(fairseq_preprocess.logger.handlers) - set(handlers):
            fairseq_preprocess.logger.removeHandler(handler)
            handler.close()


def _binarize_trees(args: argparse.Namespace, splits: dict[str, str], staging: Path, destination: Path) -> dict:
    options = Options(args.subword_type, not args.no_distances, args.allow_unparsed, args.allow_broken)
    tokens = destination if args.only_syntax else staging
    writers, counts = {}, {}
    for split, prefix in splits.items():
        text, trees = _text_path(args, prefix), _trees_path(args, prefix)
        writers[split] = SplitWriter(_prefix(args, staging, split), options)
        with tqdm(desc=f"{split} trees", unit=" sentences", disable=None, mininterval=1) as progress:
            counts[split] = writers[split].write(text, trees, args.workers, progress)
        if args.dataset_impl == "mmap":
            index = Path(index_file_path(_prefix(args, tokens, split)))
            if not index.is_file():
                raise FileNotFoundError(f"{index}: split {split!r} is not binarized there; leave --only-syntax out")
            check_lengths(_prefix(args, staging, split), read_index(index)[1], text)
        logger.info("[%s] %s: %s", args.source_lang, trees, counts[split]._asdict())
        share = 100 * counts[split].unparsed / max(counts[split].sentences, 1)
        if share > 1:
            logger.warning(
                "[%s] %s: %.1f %% of the sentences have no parse and will be read without syntax",
                args.source_lang,
                trees,
                share,
            )
    dictionaries = _tag_dictionaries(args, writers, staging, destination)
    for writer in writers.values():
        writer.finish(dictionaries)
    return _manifest(args, splits, counts, staging, destination)


def _tag_dictionaries(args, writers, staging: Path, destination: Path) -> dict[str, Dictionary]:
    dictionaries = {}
    for name in TAG_DICTIONARIES:
        given = tag_dictionary_path(args.syntax_dicts or destination, args.source_lang, name)
        # the indices of splits that stay must stay right
        keep = args.only_syntax and _stays(args, writers, destination) and given.is_file()
        if args.syntax_dicts or keep or "train" not in writers:
            if not given.is_file():
                raise FileNotFoundError(
                    f"{given}: no such dictionary; give --trainpref, or the training data with --syntax-dicts"
                )
            dictionaries[name] = load_dictionary(given)
        else:
            counts = writers["train"].tag_counts.get(name, collections.Counter())
            dictionaries[name] = tag_dictionary(counts)
        dictionaries[name].save(str(staging / given.name))
    if args.only_syntax and _stays(args, writers, destination) and not _same_tags(args, staging, destination):
        raise TreeFormatError(
            f"--syntax-dicts {args.syntax_dicts}: other splits of {destination} use other dictionaries; leave it out, "
            "or give all splits at once"
        )
    return dictionaries


def _same_tags(args, staging: Path, destination: Path) -> bool:
    """Whether the new dictionaries of tags are those that the data has."""
    paths = [(tag_dictionary_path(d, args.source_lang, n) for d in (staging, destination)) for n in TAG_DICTIONARIES]
    return all(old.is_file() and new.read_bytes() == old.read_bytes() for new, old in paths)


def _same_words(args, staging: Path, destination: Path) -> bool:
    """Whether the new dictionaries number words as those that the data has."""
    names = (f"dict.{language}.txt" for language in (args.source_lang, args.target_lang))
    pairs = ([d / name for d in (staging, destination)] for name in names)
    return all(
        new.is_file() == old.is_file() and (not new.is_file() or _symbols(new) == _symbols(old)) for new, old in pairs
    )


def _symbols(path: Path) -> list[bytes]:
    return [line.rpartition(b" ")[0] for line in path.read_bytes().split(b"\n")]


def _stays(args, writers, destination: Path) -> bool:
    """Whether the data has trees of splits that are not made again now."""
    old = read_manifest(destination, args.source_lang, args.target_lang) or {}
    return bool(old.get("splits", {}).keys() - writers.keys())


def _manifest(args, splits, counts, staging: Path, destination: Path) -> dict:
    """The new manifest; with --only-syntax, entries of other splits stay."""
    path = manifest_path(destination, args.source_lang, args.target_lang)
    old = read_manifest(destination, args.source_lang, args.target_lang) or {}
    if not args.only_syntax and not (
        _same_tags(args, staging, destination) and _same_words(args, staging, destination)
    ):
        old = {}
    if old.get("splits", {}).keys() - splits.keys() and old.get("subword_type") != args.subword_type:
        raise TreeFormatError(
            f"{path}: the other splits have --subword-type {old.get('subword_type')}, not {args.subword_type}; "
            "use the same for all"
        )
    files = {p.name: checksum(p) for p in staging.iterdir() if p.is_file() and p.suffix != ".log"}
    kept = {name: value for name, value in old.get("sha256", {}).items() if not _is_replaced(args, splits, name)}
    return {
        "format_version": FORMAT_VERSION,
        "source_lang": args.source_lang,
        "target_lang": args.target_lang,
        "subword_type": args.subword_type,
        "splits": {
            **old.get("splits", {}),
            **{
                split: {
                    "text": str(_text_path(args, prefix)),
                    "trees": str(_trees_path(args, prefix)),
                    "distances": not args.no_distances,
                    "allow_unparsed": args.allow_unparsed,
                    "allow_broken": args.allow_broken,
                    **counts[split]._asdict(),
                }
                for split, prefix in splits.items()
            },
        },
        "sha256": kept | files,
    }


def _check_others(staging: Path, destination: Path, manifest: str) -> None:
    """Raise TreeFormatError if data of other languages in the directory need what would be replaced: a dictionary."""
    made = {path.name: checksum(path) for path in sorted(staging.glob("dict.*"))}
    for path in sorted(set(destination.glob("syntax-*.json")) - {destination / manifest}):
        try:
            listed = json.loads(path.read_text(encoding="utf-8"))["sha256"]
            changed = [name for name, found in made.items() if listed.get(name, found) != found]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue  # nothing can be trained on them
        if changed:
            raise TreeFormatError(
                f"{destination}: {', '.join(changed)} would change, by which data of {path.name} were made; give "
                "another --destdir, or those dictionaries (--srcdict, --tgtdict, --syntax-dicts)"
            )


def _is_replaced(args, splits, name: str) -> bool:
    """Whether a file of the data belongs to what is made now, or was made of it."""
    split, *parts = name.split(".")
    pair = f"{args.source_lang}-{args.target_lang}"
    if args.only_syntax:
        return split in splits and len(parts) == 4 and parts[0] == pair and parts[2] in ARRAY_TYPES
    if name == length_table_path("", args.source_lang, args.target_lang).name:
        return "train" in splits
    return split in splits and ((parts[:1] == [pair] and len(parts) > 1) or parts[:2] == ["align", pair])


def _stale(args: argparse.Namespace, staging: Path, destination: Path) -> set[str]:
    """Files that the new ones replace without having the same name: none may stay beside what it does not fit."""
    splits, pair = _splits(args), f"{args.source_lang}-{args.target_lang}"
    stale = {path.name for path in destination.iterdir() if _is_replaced(args, splits, path.name)}
    if args.only_syntax or args.dict_only:
        return stale
    # splits that are not made again hold indices of the old dictionaries
    if not _same_tags(args, staging, destination):
        for array in ARRAY_TYPES:
            stale |= {path.name for path in destination.glob(f"*.{pair}.{args.source_lang}.{array}.???")}
    if not _same_words(args, staging, destination):
        old = {path.name for path in destination.glob(f"*.{pair}.*")}
        others = sorted({name.split(".")[0] for name in old} - splits.keys())
        if others:
            logger.warning("%s: made with other dictionaries of words, removed: %s", destination, ", ".join(others))
        stale |= old
    return stale


if __name__ == "__main__":
    main()

"""Splits of data directories: checks before fairseq loads them, and their trees."""

import itertools
import logging
import re
from pathlib import Path

from fairseq import utils
from fairseq.data import ConcatDataset

from ..files import checksum
from ..trees.conllu import TreeFormatError
from .arrays import TAG_DICTIONARIES, manifest_path, read_manifest, split_prefix, tag_dictionary_path
from .dataset import SplitSyntax
from .invariants import check_trees
from .token_files import AGAIN, CHANGED, check_tokens, parts_of, split_languages, symbols_of

logger = logging.getLogger(__name__)


def check_directories(data: str) -> None:
    """Raise an error unless `data`, fairseq's list of data directories, has the same dictionaries in all."""
    if not data:
        raise ValueError("no data directory is given; name the one that preprocessing wrote")
    paths = utils.split_paths(data)
    for path in paths:
        if not Path(path).is_dir():
            raise FileNotFoundError(
                f"{path}: no such data directory; make it with fairseq-syntax preprocess --destdir {path}"
            )
    if not any(Path(paths[0]).glob("dict.*.txt")):
        raise FileNotFoundError(
            f"{paths[0]}: no dict.*.txt; not a directory that fairseq-preprocess or fairseq-syntax preprocess wrote"
        )
    # all directories are read with the dictionaries of the first
    for used in Path(paths[0]).glob("dict.*.txt"):
        for path in (Path(folder, used.name) for folder in paths[1:]):
            if symbols_of(path) not in (None, symbols_of(used)):
                raise TreeFormatError(
                    f"{path}: other symbols, or in another order, than in {used}, which all data directories must "
                    f"match; preprocess {path.parent} again with the dictionaries of {used.parent} (--srcdict, "
                    "--tgtdict, --syntax-dicts)"
                )


def check_split(task, split: str, epoch: int, combine: bool) -> str:
    """Check the binarized text of a split before a task of translation loads it; returns the split's directory.

    Args:
        task: with `cfg` and dictionaries of `translation`.
        combine: whether train1, train2, … are read with train.

    Raises TreeFormatError: fairseq could not read it, or should not.
    """
    paths = utils.split_paths(task.cfg.data)
    # the same rotation as fairseq's
    data_path = paths[(epoch - 1) % len(paths)] if split == task.cfg.train_subset else paths[0]
    source, target = task.cfg.source_lang, task.cfg.target_lang
    listed = (read_manifest(data_path, source, target) or {}).get("sha256", ())
    for name in listed:
        in_split = name.startswith(f"{split}.") or (combine and re.match(rf"{re.escape(split)}\d+\.", name))
        # our own arrays are checked when they are opened
        if in_split and name.count(".") < 4 and not Path(data_path, name).is_file():
            raise TreeFormatError(
                f"{Path(data_path, name)}: not found, though {manifest_path('', source, target)} lists it; {AGAIN}"
            )
    dictionaries = {source: task.source_dictionary, target: task.target_dictionary}
    for name in itertools.takewhile(lambda name: split_languages(data_path, name, source, target), parts_of(split)):
        check_tokens(data_path, name, source, target, dictionaries)
        if not combine:
            break
    return data_path


def load_syntax(task, data_path: str, split: str, combine: bool) -> SplitSyntax | ConcatDataset | None:
    """The trees of a split, with those of train1, train2, … if these are read with it.

    Args:
        task: a `task.SyntaxTranslationTask`, whose models set the inputs needed.
        data_path, combine: as in `check_split`.

    Returns None if nothing is needed, or there are no trees and the models can do without. Raises TreeFormatError:
    trees are missing, damaged, or of other dictionaries.
    """
    inputs = task.required_inputs | task.optional_inputs
    if not inputs:
        return None
    source, target = task.cfg.source_lang, task.cfg.target_lang
    manifest = read_manifest(data_path, source, target)
    if manifest is None or split_prefix(data_path, split, source, target) is None:
        if not task.required_inputs:
            return None
        raise TreeFormatError(
            f"{data_path}: split {split!r} has no trees, but the model needs {', '.join(sorted(task.required_inputs))}"
            f"; run fairseq-syntax preprocess --only-syntax --source-lang {source} --target-lang {target} "
            f"--trainpref … --validpref … --testpref … --destdir {data_path}"
        )
    tags = {name: len(task.syntax_dictionary(name)) for name in TAG_DICTIONARIES.keys() & inputs}
    parts = []
    for name in itertools.takewhile(lambda name: split_prefix(data_path, name, source, target), parts_of(split)):
        parts.append(open_syntax(data_path, name, (source, target), manifest, inputs, tags))
        count, size = parts[-1].unparsed, len(parts[-1])
        rate = 100 * count / max(size, 1)
        logger.info("%s: split %r: %d of %d sentences have no parse (%.2f%%)", data_path, name, count, size, rate)
        if not combine:
            break
    if len(parts) == 1:
        return parts[0]
    return ConcatDataset(parts, [task.cfg.upsample_primary] + [1] * (len(parts) - 1))


def open_syntax(data_path, split: str, languages: tuple[str, str], manifest: dict, inputs, tags) -> SplitSyntax:
    """Open the trees of a split after comparing their checksums with the manifest.

    Args:
        inputs: see `SplitSyntax`.
        tags: see `check_trees`.

    Raises TreeFormatError: they are missing, damaged or replaced.
    """
    prefix = f"{data_path}/{split}.{'-'.join(languages)}.{languages[0]}"
    syntax = SplitSyntax(prefix, inputs, data_path)
    paths = [Path(f"{prefix}.{name}.{end}") for name in syntax.readers for end in ("bin", "idx")]
    paths += [tag_dictionary_path(data_path, languages[0], name) for name in tags]
    for path in paths:
        if path.name in manifest["sha256"] and manifest["sha256"][path.name] != checksum(path):
            raise TreeFormatError(f"{path}: {CHANGED}")
    if not all(path.name in manifest["sha256"] for path in paths):  # copied there by hand, as train1
        check_trees(syntax.readers, tags)
    return syntax

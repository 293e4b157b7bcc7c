"""A split of a data directory, looked at before fairseq loads it."""

import itertools
import re
from pathlib import Path

from fairseq import utils

from ..trees.conllu import TreeFormatError
from .arrays import manifest_path, read_manifest
from .publishing import check_published
from .token_files import AGAIN, check_tokens, split_languages


def check_split(task, split: str, epoch: int, combine: bool) -> str:
    """The directory of a split, which fairseq can read; call it before a task of translation loads one.

    Args:
        task: with `cfg` and dictionaries of `translation`.
        combine: whether train1, train2, … are read with train.

    Raises:
        TreeFormatError: fairseq could not read it, or should not.
    """
    paths = utils.split_paths(task.cfg.data)
    # the same rotation as fairseq's
    data_path = paths[(epoch - 1) % len(paths)] if split == task.cfg.train_subset else paths[0]
    check_published(data_path)
    source, target = task.cfg.source_lang, task.cfg.target_lang
    listed = (read_manifest(data_path, source, target) or {}).get("sha256", ())
    for name in listed:
        of_split = name.startswith(f"{split}.") or (combine and re.match(rf"{re.escape(split)}\d+\.", name))
        # our arrays are looked at when they are asked for
        if of_split and name.count(".") < 4 and not Path(data_path, name).is_file():
            raise TreeFormatError(
                f"{Path(data_path, name)}: not found, though {manifest_path('', source, target)} lists it; {AGAIN}"
            )
    dictionaries = {source: task.source_dictionary, target: task.target_dictionary}
    names = (f"{split}{number or ''}" for number in itertools.count())
    for name in itertools.takewhile(lambda name: split_languages(data_path, name, source, target), names):
        check_tokens(data_path, name, source, target, dictionaries)
        if not combine:
            break
    return data_path

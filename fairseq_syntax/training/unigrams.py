"""Counts of target words in binarized training data.

fairseq's dictionaries do not have them: they give `</s>` and `<unk>` a count of 1, and may be made from other text.
"""

import itertools
from collections.abc import Iterator

import numpy as np
import torch
from fairseq import utils
from fairseq.data import Dictionary
from fairseq.data.data_utils import load_indexed_dataset

from ..data.token_files import parts_of, split_languages, token_reader

_BLOCK_TOKENS = 1 << 22
_BLOCK_SENTENCES = 1 << 14


def _prefixes(data_path: str, split: str, source: str, target: str) -> list[str]:
    """Path prefixes of the target side of `split`, `split1`, …, on which fairseq trains together."""
    languages = (split_languages(data_path, name, source, target) for name in parts_of(split))
    # a missing target side raises an error when it is read
    return [
        sides.get(target) or sides[source].removesuffix(source) + target
        for sides in itertools.takewhile(bool, languages)
    ]


def _read(prefix: str, dictionary: Dictionary, impl: str | None) -> Iterator[np.ndarray]:
    """Arrays of the ids of a binarized text."""
    reader = token_reader(prefix)
    if reader is not None:
        starts = range(0, len(reader.values), _BLOCK_TOKENS)
        return (reader.values[start : start + _BLOCK_TOKENS] for start in starts)
    sentences = load_indexed_dataset(prefix, dictionary, impl)
    if sentences is None:
        raise FileNotFoundError(f"{prefix}: no binarized text of the target side; binarize the data again")
    return _blocks(sentences)


def _blocks(sentences) -> Iterator[np.ndarray]:
    for start in range(0, len(sentences), _BLOCK_SENTENCES):
        numbers = range(start, min(start + _BLOCK_SENTENCES, len(sentences)))
        if getattr(sentences, "supports_prefetch", False):
            sentences.prefetch(numbers)
        yield torch.cat([sentences[i] for i in numbers]).numpy()


def _count_directory(data_path: str, split: str, task) -> np.ndarray:
    cfg, vocabulary = task.cfg, len(task.target_dictionary)
    prefixes = _prefixes(data_path, split, cfg.source_lang, cfg.target_lang)
    if not prefixes:
        raise FileNotFoundError(
            f"{data_path}: no split {split!r} of {cfg.source_lang}-{cfg.target_lang}, whose target words "
            "--criterion blackout has to count"
        )
    texts = [_read(prefix, task.target_dictionary, cfg.dataset_impl) for prefix in prefixes]
    # fairseq upsamples the first of several texts
    times = [max(int(cfg.upsample_primary), 1) if len(texts) > 1 else 1] + [1] * (len(texts) - 1)
    counts = np.zeros(vocabulary, dtype=np.int64)
    for prefix, blocks, repeated in zip(prefixes, texts, times, strict=True):
        for block in blocks:
            block_counts = np.bincount(block, minlength=vocabulary)
            if len(block_counts) > vocabulary:
                raise ValueError(
                    f"{prefix}: holds word number {len(block_counts) - 1}, but dict.{cfg.target_lang}.txt ends at "
                    f"{vocabulary - 1}; it was binarized with another dictionary (--tgtdict)"
                )
            counts += repeated * block_counts
    return counts


def count_target_words(task) -> np.ndarray:
    """Counts (V,), int64, of the target words in the training data, over all directories and all parts of the split.

    `</s>` counts once per sentence, and `<unk>` for every unknown word. They are counted whenever a training begins.

    Raises ValueError: the task does not derive from `translation`, or the data do not fit its dictionary;
    FileNotFoundError: there are no training data.
    """
    cfg = getattr(task, "cfg", None)
    needed = ("data", "source_lang", "target_lang", "train_subset", "dataset_impl", "upsample_primary")
    if not all(hasattr(cfg, name) for name in needed):
        raise ValueError(
            f"--criterion blackout counts the target words of parallel data, which the task {type(task).__name__} "
            "does not have; use --task translation or syntax_translation"
        )
    directories = utils.split_paths(cfg.data)
    return sum(_count_directory(directory, cfg.train_subset, task) for directory in directories)

"""Counts of target words in binarized training data.

fairseq's dictionaries do not have them: they give `</s>` and `<unk>` a count of 1, and may be made from other text.
"""

from collections.abc import Iterator
from itertools import takewhile

import numpy as np
import torch
from fairseq import utils
from fairseq.data.data_utils import load_indexed_dataset

from ..data.token_files import check_tokens, parts_of, split_languages

_BLOCK = 1 << 22
"""Tokens that are counted at a time."""


def _texts(data_path: str, task) -> Iterator[np.ndarray]:
    """The target ids of the training set, then of train1, train2, …, which fairseq trains on together."""
    cfg = task.cfg
    source, target = cfg.source_lang, cfg.target_lang
    words = {source: task.source_dictionary, target: task.target_dictionary}
    names = takewhile(lambda name: split_languages(data_path, name, source, target), parts_of(cfg.train_subset))
    for name in names:
        readers = check_tokens(data_path, name, source, target, words)
        if target in readers:
            yield readers[target].values
        else:
            prefix = split_languages(data_path, name, source, target)[target]
            sentences = load_indexed_dataset(prefix, words[target], cfg.dataset_impl)
            if getattr(sentences, "supports_prefetch", False):
                sentences.prefetch(range(len(sentences)))
            yield torch.cat([sentences[i] for i in range(len(sentences))]).numpy()


def _count_directory(data_path: str, task) -> np.ndarray:
    cfg, vocabulary = task.cfg, len(task.target_dictionary)
    texts = list(_texts(data_path, task))
    if not texts:
        raise FileNotFoundError(
            f"{data_path}: no split {cfg.train_subset!r} of {cfg.source_lang}-{cfg.target_lang}, whose target words "
            "--criterion blackout has to count"
        )
    # fairseq upsamples the first of several texts
    times = [max(int(cfg.upsample_primary), 1) if len(texts) > 1 else 1] + [1] * (len(texts) - 1)
    counts = np.zeros(vocabulary, dtype=np.int64)
    for ids, repeated in zip(texts, times, strict=True):
        for start in range(0, len(ids), _BLOCK):
            counts += repeated * np.bincount(ids[start : start + _BLOCK], minlength=vocabulary)
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
    return sum(_count_directory(directory, task) for directory in utils.split_paths(cfg.data))

"""Scores of given translations by any model, as `fairseq-generate --score-reference` has them; the source is parsed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from fairseq import utils
from fairseq.data import Dictionary
from fairseq.dataclass.configs import GenerationConfig
from tqdm import tqdm

from .loaded_model import Loaded


@dataclass(frozen=True)
class ForcedScores:
    """Of N pairs of a source and a translation."""

    total: np.ndarray  # (N,) log-probability of the translation, its end included; natural logarithm
    tokens: np.ndarray  # (N,) tokens of the translation, its end included
    unknown: np.ndarray  # (N,) how many of them the model does not know

    @property
    def mean(self) -> np.ndarray:
        """(N,) log-probability of a token."""
        return self.total / self.tokens


def forced_scores(
    loaded: Loaded,
    sources: Sequence[str],
    targets: Sequence[Sequence[str]],
    places: Sequence[str],
    max_tokens: int = 4000,
) -> ForcedScores:
    """Scores of the K translations of each of M sources, side by side; those of about one length share a batch.

    Args:
        loaded: the model; if it needs trees, its task parses the sources as it does for fairseq-interactive.
        sources, targets: sentences as the model reads and writes them: pieces, separated by spaces.
        places: of each source, for messages.
        max_tokens: of a batch, padding included, on either side; one source makes a batch in any case.

    Raises ValueError: a sentence is longer than the model reads; TreeFormatError: a source cannot be parsed.
    """
    task = loaded.task
    if hasattr(task, "learn_source_words"):
        task.learn_source_words(sources)
    of_source = [_encode(task.source_dictionary, source) for source in sources]
    # trees are given out in the order of the sentences, so all are asked for at once
    if hasattr(task, "attach_syntax"):
        task.attach_syntax(sources, of_source)
    of_target = [[_encode(task.target_dictionary, text) for text in texts] for texts in targets]
    _check_lengths(loaded, of_source, of_target, places)
    each = len(of_target[0])
    flat = [ids for texts in of_target for ids in texts]
    dataset = task.build_dataset_for_inference(
        [ids for ids in of_source for _ in range(each)], [len(ids) for ids in of_source for _ in range(each)]
    )
    dataset.tgt = flat
    config = GenerationConfig()
    config.score_reference = True
    generator = task.build_generator([loaded.model], config)
    total = np.empty(len(flat))
    with tqdm(total=len(of_source), unit="pair", disable=None) as bar:
        for batch in _batches(
            [max(len(s), *map(len, t)) for s, t in zip(of_source, of_target, strict=True)], each, max_tokens
        ):
            sample = loaded.to_device(dataset.collater([dataset[each * i + k] for i in batch for k in range(each)]))
            for number, found in zip(
                sample["id"].tolist(), task.inference_step(generator, [loaded.model], sample), strict=True
            ):
                total[number] = found[0]["positional_scores"].double().sum().item()
            bar.update(len(batch))
    unknown = task.target_dictionary.unk()
    return ForcedScores(
        total, np.array([len(ids) for ids in flat]), np.array([int((ids == unknown).sum()) for ids in flat])
    )


def _encode(dictionary: Dictionary, text: str) -> torch.Tensor:
    return dictionary.encode_line(text, add_if_not_exist=False).long()


def _batches(lengths: Sequence[int], each: int, max_tokens: int) -> Iterator[list[int]]:
    """Numbers of sources that share a batch, the longest first: memory that is not enough is soon found out."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and each * (len(batch) + 1) * lengths[batch[0]] > max_tokens:
            yield batch
            batch = []
        batch.append(i)
    yield batch


def _check_lengths(loaded: Loaded, sources, targets, places: Sequence[str]) -> None:
    most = utils.resolve_max_positions(loaded.task.max_positions(), loaded.model.max_positions())
    most = most if isinstance(most, tuple) else (most, most)
    for source, texts, place in zip(sources, targets, places, strict=True):
        for side, length, longest in (("source", len(source), most[0]), ("target", max(map(len, texts)), most[1])):
            if length > longest:
                raise ValueError(
                    f"{place}: the {side} has {length - 1} tokens and the end of the sentence, but the model reads "
                    f"{longest}; leave it out"
                )

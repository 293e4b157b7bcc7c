"""Scores of given translations by any model, as `fairseq-generate --score-reference` has them; the source is parsed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from fairseq.dataclass.configs import GenerationConfig
from torch import Tensor
from tqdm import tqdm

from .loaded_model import Loaded
from .sentences import as_dataset, batches, check_lengths, encode, encode_line


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
    of_source = encode(loaded, sources)
    of_target = [[encode_line(task.target_dictionary, text) for text in texts] for texts in targets]
    check_lengths(
        loaded, [(len(s), max(map(len, texts))) for s, texts in zip(of_source, of_target, strict=True)], places
    )
    each = len(of_target[0])
    flat = [ids for texts in of_target for ids in texts]
    total = total_scores(loaded, [ids for ids in of_source for _ in range(each)], flat, max_tokens, each)
    unknown = task.target_dictionary.unk()
    return ForcedScores(
        total, np.array([len(ids) for ids in flat]), np.array([int((ids == unknown).sum()) for ids in flat])
    )


def total_scores(
    loaded: Loaded, of_source: Sequence[Tensor], of_target: Sequence[Tensor], max_tokens: int, each: int = 1
) -> np.ndarray:
    """(N,) log-probabilities of N given translations, their ends included; natural logarithm.

    Args:
        of_source: N sentences, token ids that carry their trees.
        of_target: their translations, token ids with EOS.
        max_tokens, each: see `batches`.
    """
    task = loaded.task
    config = GenerationConfig()
    config.score_reference = True
    generator = task.build_generator([loaded.model], config)
    total = np.empty(len(of_target))
    lengths = [max(map(len, pair)) for pair in zip(of_source, of_target, strict=True)]
    with tqdm(total=len(of_target) // each, unit="pair", disable=None) as bar:
        for sample in batches(loaded, as_dataset(loaded, of_source, of_target), lengths, max_tokens, each):
            numbers = sample["id"].tolist()
            for number, found in zip(numbers, task.inference_step(generator, [loaded.model], sample), strict=True):
                total[number] = found[0]["positional_scores"].double().sum().item()
            bar.update(len(numbers) // each)
    return total

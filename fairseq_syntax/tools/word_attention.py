"""Attention from target words to source words, in a decoder that is forced to produce a given translation."""

from collections.abc import Sequence

import torch
from torch import Tensor

from .models import Loaded, NothingToShow


def join_attention(weights: Tensor, of_source: Tensor, of_target: Tensor) -> Tensor:
    """Attention between words, summed over the pieces of a source word and averaged over those of a target word.

    Args:
        weights: (B, S, T) attention of target tokens to source tokens.
        of_source: (B, T) word of each source token, from 0; -1 for EOS and padding.
        of_target: (B, S) word of each target token, likewise.

    Returns (B, I, J) attention of target words to source words, 0 for padding. A row adds up to 1 minus the attention
    to EOS.
    """
    source, target = (_members(words).to(weights) for words in (of_source, of_target))  # (B, T, J), (B, S, I)
    sizes = target.sum(dim=1).clamp(min=1).unsqueeze(2)  # (B, I, 1)
    return target.transpose(1, 2) @ weights @ source / sizes


def _members(words: Tensor) -> Tensor:
    """Whether each token belongs to each word: (B, T, J)."""
    count = int(words.max()) + 1 if words.numel() else 0
    return words.unsqueeze(2) == torch.arange(count, device=words.device)


@torch.no_grad()
def source_attention(loaded: Loaded, sample: dict) -> dict:
    """The extra output of a decoder for a translation, in a batch of its own: "attn" (1, S, T), and more.

    Raises NothingToShow: the model has no attention to the source; ValueError: the data have no translations.
    """
    if sample.get("target") is None:
        raise ValueError("the split has no target side; preprocess it with both languages")
    extra = loaded.model(**sample["net_input"])[1]
    extra = extra if isinstance(extra, dict) else {"attn": extra}  # fairseq's LSTM returns only the weights
    weights = extra.get("attn")
    weights = weights[0] if isinstance(weights, list) and weights else weights
    if not isinstance(weights, Tensor):
        raise NothingToShow(f"{loaded.path}: the architecture {loaded.architecture} returns no attention to the source")
    return {**extra, "attn": weights}


def word_attention(
    loaded: Loaded, source: Tensor, target: Tensor, of_source: Sequence[int], of_target: Sequence[int]
) -> Tensor:
    """Attention (I, J) between the words of an encoded sentence and its translation, see `join_attention`.

    Args:
        of_source, of_target: word of each token, without special symbols.
    """
    [sample] = loaded.batches(loaded.as_dataset([source], [target]), [1], 1)
    weights = source_attention(loaded, sample)["attn"].float().cpu()
    task = loaded.task
    sides = (task.source_dictionary, source, of_source), (task.target_dictionary, target, of_target)
    return join_attention(weights, *(_of_tokens(*side) for side in sides))[0]


def _of_tokens(dictionary, ids: Tensor, words: Sequence[int]) -> Tensor:
    """The word of each token (1, T), -1 for special symbols, which a search may also write inside a translation."""
    special, numbers = {dictionary.bos(), dictionary.pad(), dictionary.eos()}, iter(words)
    return torch.tensor([[-1 if i in special else next(numbers) for i in ids.tolist()]])

"""Attention from target words to source words, in forced decoding of a translation."""

from collections.abc import Sequence

import torch
from torch import Tensor

from .loaded_model import LoadedModel, NothingToShow


def join_attention(weights: Tensor, source_words: Tensor, target_words: Tensor) -> Tensor:
    """Attention between words, summed over the pieces of a source word and averaged over those of a target word.

    Args:
        weights: (B, S, T) attention of target tokens to source tokens.
        source_words: (B, T) word of each source token, from 0; -1 for EOS and padding.
        target_words: (B, S) word of each target token, likewise.

    Returns (B, I, J) attention of target words to source words, 0 for padding. A row adds up to 1 minus the attention
    to EOS.
    """
    source, target = (_members(words).to(weights) for words in (source_words, target_words))  # (B, T, J), (B, S, I)
    sizes = target.sum(dim=1).clamp(min=1).unsqueeze(2)  # (B, I, 1)
    return target.transpose(1, 2) @ weights @ source / sizes


def _members(words: Tensor) -> Tensor:
    """Membership of tokens in words: (B, T, J), True where a token is a piece of a word."""
    count = int(words.max()) + 1 if words.numel() else 0
    return words.unsqueeze(2) == torch.arange(count, device=words.device)


@torch.no_grad()
def source_attention(loaded: LoadedModel, sample: dict) -> dict:
    """Extra output of the decoder for a batch of a sentence and its translation: "attn" (1, S, T), and more.

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
    loaded: LoadedModel, source: Tensor, target: Tensor, source_words: Sequence[int], target_words: Sequence[int]
) -> Tensor:
    """Attention (I, J) between the words of an encoded sentence and its translation, see `join_attention`.

    Args:
        source_words, target_words: word of each token, without special symbols.
    """
    [sample] = loaded.batches(loaded.as_dataset([source], [target]), [1], 1)
    weights = source_attention(loaded, sample)["attn"].float().cpu()
    task = loaded.task
    sides = (task.source_dictionary, source, source_words), (task.target_dictionary, target, target_words)
    return join_attention(weights, *(_token_words(*side) for side in sides))[0]


def _token_words(dictionary, ids: Tensor, words: Sequence[int]) -> Tensor:
    """Word of each token (1, T), -1 for special symbols, which may also be inside a translation from a search."""
    special, numbers = {dictionary.bos(), dictionary.pad(), dictionary.eos()}, iter(words)
    return torch.tensor([[-1 if i in special else next(numbers) for i in ids.tolist()]])

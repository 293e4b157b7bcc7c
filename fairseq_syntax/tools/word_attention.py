"""Attention from target words to source words, in a decoder that is forced to produce a given translation."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from ..systems.recurrent.rotation import Rotation
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


def word_of_tokens(words: Sequence[Sequence[int]], tokens: Tensor, ends: set[int]) -> Tensor:
    """The word of each token, (B, T); -1 for special symbols, on either side.

    Args:
        words: word of each piece of B sentences, without special symbols.
        tokens: (B, T) token ids.
        ends: ids of special symbols: BOS, EOS and padding.
    """
    result = torch.full_like(tokens, -1)
    real = torch.stack([tokens != sign for sign in sorted(ends)]).all(dim=0)
    result[real] = torch.tensor([word for row in words for word in row], dtype=result.dtype, device=result.device)
    return result


@torch.no_grad()
def token_attention(loaded: Loaded, sample: dict, layer: int | None, head: int | None) -> Tensor:
    """Attention (B, S, T) of target tokens to source tokens for the translations of a batch.

    Args:
        layer, head: layer and head of a Transformer's decoder, from 0; None for the mean over all.

    Raises ValueError: the model has no such attention.
    """
    layers = [x.encoder_attn for x in getattr(loaded.model.decoder, "layers", ()) if hasattr(x, "encoder_attn")]
    if not layers:
        if layer is not None or head is not None:
            raise ValueError(f"--layer and --head: {loaded.architecture} has only one attention; leave them out")
        return source_attention(loaded, sample)["attn"]
    heads = layers[0].num_heads
    for name, index, count in (("layer", layer, len(layers)), ("head", head, heads)):
        if index is not None and not 0 <= index < count:
            raise ValueError(f"--{name} {index}: the decoder has {name}s 0 to {count - 1}")
    with _recorded(layers if layer is None else [layers[layer]]) as recorded:
        loaded.model(**sample["net_input"])
    weights = torch.stack(recorded)  # (L, H, B, S, T)
    return (weights if head is None else weights[:, [head]]).float().mean(dim=(0, 1))


@contextmanager
def _recorded(layers) -> Iterator[list[Tensor]]:
    """Collect the weights (H, B, S, T) from fairseq's attention layers, one after the other."""
    weights: list[Tensor] = []

    def ask(module, args, kwargs):
        return args, {**kwargs, "need_weights": True, "need_head_weights": True}

    def keep(module, args, output):
        weights.append(output[1])

    handles = [layer.register_forward_pre_hook(ask, with_kwargs=True) for layer in layers]
    handles += [layer.register_forward_hook(keep) for layer in layers]
    try:
        yield weights
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def source_attention(loaded: Loaded, sample: dict) -> dict:
    """The extra output of a decoder for the translations of a batch: "attn" (B, S, T), and more.

    Raises NothingToShow: the model has no attention to the source; ValueError: the data have no translations.
    """
    if sample.get("target") is None:
        raise ValueError("the split has no target side; preprocess it with both languages")
    extra = loaded.model(**sample["net_input"])[1]
    if isinstance(extra, Tensor):
        # fairseq's LSTM returns only the weights, and moves padding to the right
        rotation = Rotation(sample["net_input"]["src_tokens"].eq(loaded.task.source_dictionary.pad()))
        extra = {"attn": rotation.back(extra.transpose(1, 2)).transpose(1, 2)}
    extra = extra if isinstance(extra, dict) else {}
    weights = extra.get("attn")
    weights = weights[0] if isinstance(weights, list) and weights else weights
    if not isinstance(weights, Tensor):
        raise NothingToShow(f"{loaded.path}: the architecture {loaded.architecture} returns no attention to the source")
    return {**extra, "attn": weights}


def word_attention(
    loaded: Loaded,
    sample: dict,
    words: tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]],
    layer: int | None = None,
    head: int | None = None,
) -> Iterator[tuple[int, Tensor]]:
    """Attention between the words of each pair in a batch.

    Args:
        sample: a batch with translations.
        words: word of each piece, for all sources and all targets, by the number of the pair.
        layer, head: see `token_attention`.

    Yields the number of a pair and its weights (I, J), see `join_attention`. Raises ValueError: the model has no such
    attention.
    """
    numbers = sample["id"].tolist()
    sides = []
    for dictionary, tokens, of_piece in zip(
        (loaded.task.source_dictionary, loaded.task.target_dictionary),
        (sample["net_input"]["src_tokens"], sample["target"]),
        words,
        strict=True,
    ):
        ends = {dictionary.bos(), dictionary.pad(), dictionary.eos()}
        sides.append(word_of_tokens([of_piece[i] for i in numbers], tokens, ends))
    joined = join_attention(token_attention(loaded, sample, layer, head), *sides).cpu()
    sizes = [(side.max(dim=1).values + 1).tolist() for side in sides]
    for number, source, target, weights in zip(numbers, *sizes, joined, strict=True):
        yield number, weights[:target, :source]

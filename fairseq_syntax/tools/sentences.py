"""Sentences on their way through a model: as token ids with their trees, in batches, to translations."""

from collections.abc import Iterator, Sequence

import torch
from fairseq import utils
from fairseq.data import Dictionary, LanguagePairDataset
from fairseq.dataclass.configs import GenerationConfig
from fairseq.tokenizer import tokenize_line
from torch import Tensor
from tqdm import tqdm

from ..trees.subwords import SPACE, SubwordType, join_subwords
from .loaded_model import Loaded


def encode(loaded: Loaded, sources: Sequence[str]) -> list[Tensor]:
    """Token ids of source sentences, EOS included; they carry their trees if the model needs these.

    Args:
        loaded: the model; its task parses the sentences as it does for fairseq-interactive.
        sources: sentences as the model reads them: pieces, separated by spaces.

    Raises:
        TreeFormatError: a sentence cannot be parsed.
    """
    task = loaded.task
    if hasattr(task, "learn_source_words"):
        task.learn_source_words(sources)
    ids = [encode_line(task.source_dictionary, source) for source in sources]
    # trees are given out in the order of the sentences, so all are asked for at once
    if hasattr(task, "attach_syntax"):
        task.attach_syntax(sources, ids)
    return ids


def encode_line(dictionary: Dictionary, line: str | Sequence[str]) -> Tensor:
    """Token ids of a line or of its pieces, EOS included. Text such as `</s>` is an unknown word, not a sign.

    A piece stays one, though it were a kind of space.
    """
    split = tokenize_line if isinstance(line, str) else list
    ids = dictionary.encode_line(line, line_tokenizer=split, add_if_not_exist=False).long()
    ids[:-1][ids[:-1] < dictionary.nspecial] = dictionary.unk()
    return ids


def check_lengths(loaded: Loaded, lengths: Sequence[tuple[int, int]], places: Sequence[str]) -> None:
    """Raise ValueError if a source or target is longer than the model reads.

    Args:
        lengths: tokens of each, EOS included; 0 for none.
        places: of the sentences, for messages.
    """
    most = utils.resolve_max_positions(loaded.task.max_positions(), loaded.model.max_positions())
    most = most if isinstance(most, tuple) else (most, most)
    for pair, place in zip(lengths, places, strict=True):
        for side, length, longest in zip(("source", "target"), pair, most, strict=True):
            if length > longest:
                raise ValueError(
                    f"{place}: the {side} has {length - 1} tokens and the end of the sentence, but the model reads "
                    f"{longest}; leave it out"
                )


def as_dataset(
    loaded: Loaded, of_source: Sequence[Tensor], of_target: Sequence[Tensor] | None = None
) -> LanguagePairDataset:
    """Encoded sentences, with their translations if there are some, as fairseq batches them."""
    dataset = loaded.task.build_dataset_for_inference(list(of_source), [len(ids) for ids in of_source])
    if of_target is not None:
        dataset.tgt = list(of_target)
    return dataset


def batches(
    loaded: Loaded, dataset: LanguagePairDataset, lengths: Sequence[int], max_tokens: int, each: int = 1
) -> Iterator[dict]:
    """Batches of sentences of about one length, the longest first: memory that is not enough is soon found out.

    Args:
        lengths: tokens of each sentence, of the longer side.
        max_tokens: of a batch, padding included; one sentence makes a batch in any case.
        each: so many sentences, one after the other, share a batch.
    """
    groups = [range(start, start + each) for start in range(0, len(lengths), each)]
    groups.sort(key=lambda group: -max(lengths[i] for i in group))
    chosen: list[int] = []
    longest = 0
    for group in groups:
        if chosen and (len(chosen) + each) * longest > max_tokens:
            yield loaded.to_device(dataset.collater([dataset[i] for i in chosen]))
            chosen = []
        longest = longest if chosen else max(lengths[i] for i in group)
        chosen += group
    if chosen:
        yield loaded.to_device(dataset.collater([dataset[i] for i in chosen]))


def translate(
    loaded: Loaded, dataset: LanguagePairDataset, lengths: Sequence[int], config: GenerationConfig, max_tokens: int
) -> list[dict]:
    """The best hypothesis of each sentence of a dataset, as fairseq's generator returns it.

    Args:
        lengths, max_tokens: see `batches`.
        config: of the search, e.g. `beam`, `max_len_a`, `max_len_b`.
    """
    found: list[dict] = [{} for _ in lengths]
    generator = loaded.task.build_generator([loaded.model], config)
    with tqdm(total=len(lengths), unit="sent", disable=None) as bar:
        for sample in batches(loaded, dataset, lengths, max_tokens):
            numbers = sample["id"].tolist()
            hypotheses = loaded.task.inference_step(generator, [loaded.model], sample)
            for number, best in zip(numbers, hypotheses, strict=True):
                found[number] = best[0]
            bar.update(len(numbers))
    return found


def pieces_of(dictionary: Dictionary, ids: Tensor) -> list[str]:
    """The pieces of a sentence, without the signs at its ends."""
    signs = {dictionary.bos(), dictionary.pad(), dictionary.eos()}
    return [dictionary[i] for i in ids.tolist() if i not in signs]


def words_of(pieces: Sequence[str], subword_type: str) -> tuple[list[str], list[int]]:
    """Words, and the word of each piece, as `join_subwords`; also of what a search has left in the middle of a word.

    Raises:
        ValueError: a piece spans several words.
    """
    pieces = list(pieces)
    if subword_type == SubwordType.subword_nmt and pieces:
        pieces[-1] = pieces[-1].removesuffix("@@")
    if pieces and not "".join(pieces).strip(SPACE):
        return [" ".join(pieces)], [0] * len(pieces)
    return join_subwords(pieces, subword_type)


@torch.no_grad()
def forced(loaded: Loaded, sample: dict):
    """What a decoder that is given the translations returns: (scores (B, S, V), extras)."""
    return loaded.model(**sample["net_input"])

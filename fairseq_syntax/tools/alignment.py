"""Word alignments from the attention of a decoder that is given a translation, or its own."""

import copy
import sys
from argparse import Namespace

import torch
from fairseq.data import LanguagePairDataset
from fairseq.dataclass.configs import GenerationConfig

from ..trees.text import TreeFormatError, read_lines
from .loaded_model import Loaded, load
from .preparation import choose_parser, preparation
from .sentences import as_dataset, batches, check_lengths, encode, encode_line, pieces_of, translate, words_of
from .word_attention import pharaoh, word_attention

Pieces = list[list[str]]


@torch.no_grad()
def align(args: Namespace) -> tuple[list[str], list[str]]:
    """(links of every pair; the words of the translations, if they are the model's own).

    Args:
        args: options of `cli.align`.

    Raises:
        ValueError: the model has no such attention, or texts do not fit it.
        OSError: a file is missing.
    """
    loaded = load(args.path, args.data, args.cpu)
    if loaded.task.target_dictionary is None:
        raise ValueError(f"{args.path}: {loaded.architecture} translates nothing; give a model that translates")
    subword_type = loaded.subword_type(args.subword_type)
    read = _read_files if args.source else _read_split
    dataset, sources, targets, places = read(loaded, args)
    if args.translate:
        config = GenerationConfig(beam=args.beam, max_len_a=args.max_len_a, max_len_b=args.max_len_b)
        lengths = [len(dataset[i]["source"]) for i in range(len(dataset))]
        check_lengths(loaded, [(length, 0) for length in lengths], places)
        found = translate(loaded, dataset, lengths, config, args.max_tokens)
        dataset = copy.copy(dataset)
        dataset.tgt = [best["tokens"].cpu() for best in found]
        targets = [pieces_of(loaded.task.target_dictionary, ids) for ids in dataset.tgt]
    elif dataset.tgt is None:
        raise ValueError(f"--subset {args.subset or 'test'}: has no translations; give --translate FILE")
    lengths = [(len(source) + 1, len(target) + 1) for source, target in zip(sources, targets, strict=True)]
    check_lengths(loaded, lengths, places)
    words = [[words_of(pieces, subword_type) for pieces in side] for side in (sources, targets)]
    of_piece = tuple([numbers for _, numbers in side] for side in words)
    links = [""] * len(sources)
    for sample in batches(loaded, dataset, [max(pair) for pair in lengths], args.max_tokens):
        for number, weights in word_attention(loaded, sample, of_piece, args.layer, args.head):
            links[number] = pharaoh(weights)
    return links, [" ".join(text) for text, _ in words[1]] if args.translate else []


def _read_split(loaded: Loaded, args: Namespace) -> tuple[LanguagePairDataset, Pieces, Pieces, list[str]]:
    """The pairs of a split: as a dataset, the pieces of both sides, and places for messages."""
    subset = args.subset or "test"
    dataset = loaded.load_split(subset)
    sides = []
    for side, dictionary in (("source", loaded.task.source_dictionary), ("target", loaded.task.target_dictionary)):
        known = dataset.tgt is not None or side == "source"
        ids = [dataset[i][side] for i in range(len(dataset))] if known else []
        sides.append([pieces_of(dictionary, row) for row in ids])
        unknown = sum(int((row == dictionary.unk()).sum()) for row in ids)
        if unknown and (side == "source" or not args.translate):
            print(
                f"fairseq-syntax align: {unknown} pieces of the {side} are unknown, and taken as ends of words; give "
                "the text with --source for its own words",
                file=sys.stderr,
            )
    return dataset, *sides, [f"{subset}, sentence {i}" for i in range(len(dataset))]


def _read_files(loaded: Loaded, args: Namespace) -> tuple[LanguagePairDataset, Pieces, Pieces, list[str]]:
    """The pairs of two files, as `_read_split`; without translations, if these are to be the model's own."""
    cfg = loaded.task.cfg
    choose_parser(loaded, args)
    texts = []
    for side, (path, language) in enumerate(((args.source, cfg.source_lang), (args.target, cfg.target_lang))):
        prepare = preparation(args, side, language)
        texts.append([prepare(line) for line in read_lines(path)] if path else [])
    if args.target and len(texts[0]) != len(texts[1]):
        raise TreeFormatError(
            f"{args.source} has {len(texts[0])} lines and {args.target} {len(texts[1])}; give a translation a line"
        )
    places = [f"{args.source}:{number}" for number in range(1, len(texts[0]) + 1)]
    target = [encode_line(loaded.task.target_dictionary, text) for text in texts[1]] if args.target else None
    dataset = as_dataset(loaded, encode(loaded, texts[0]), target)
    return dataset, *([text.split() for text in side] for side in texts), places

"""fairseq-syntax align: align the words of sentences and their translations, by attention.

The output has one line per pair in Pharaoh format: i-j links source word i to target word j, from 0. Every target word
is linked to the source word that it attends to most when it is predicted. Attention is summed over the subwords of a
source word, and averaged over those of a target word; EOS and padding are left out.

The decoder is forced to produce the translation from the split, from --target or, with --translate, its own best one.
In a Transformer's decoder, attention is averaged over heads and layers unless you choose one.

examples:
  fairseq-syntax align data-bin --path pascal.pt --subset test --output test.align
  fairseq-syntax align data-bin --path pascal.pt --subset test --layer 0 --translate test.hyp.de
  fairseq-syntax align data-bin --path transformer.pt --source news.en --target news.de
"""

import argparse
import copy
import sys
from contextlib import ExitStack
from dataclasses import dataclass

from ..files import STDIO, written
from ..trees.text import TreeFormatError, read_lines
from . import verb


@dataclass
class Pairs:
    """N sentences and their translations as a model reads them.

    Attributes:
        dataset: fairseq's dataset of the pairs.
        sources, targets: N lists of pieces each; no targets if the model is to translate.
        places: N places, for messages.
    """

    dataset: object
    sources: list[list[str]]
    targets: list[list[str]]
    places: list[str]


@dataclass
class Alignment:
    """Alignments of N pairs.

    Attributes:
        links: N lines in Pharaoh format.
        translations: N aligned translations, with pieces joined into words.
    """

    links: list[str]
    translations: list[str]


def align(
    loaded,
    pairs: Pairs,
    translate: bool = False,
    subword_type: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    max_tokens: int = 4000,
    **search,
) -> Alignment:
    """Align the words of pairs.

    Args:
        loaded: the model, from `models.load`.
        translate: whether to align the model's own translations.
        subword_type: segmentation of the text; None for that of the model's data.
        layer, head: layer and head of a Transformer's decoder, from 0; None for the mean over all.
        max_tokens: largest batch, in tokens.
        search: options for `Loaded.translate`.

    Raises ValueError: the model has no such attention, or a sentence is too long.
    """
    from .models import pieces_of, words_of
    from .word_attention import word_attention

    if loaded.task.target_dictionary is None:
        raise ValueError(f"{loaded.path}: {loaded.architecture} does not translate; give a model that does")
    types = [loaded.subword_type(subword_type, target) for target in (False, True)]
    dataset, sources, targets = pairs.dataset, pairs.sources, pairs.targets
    if translate:
        lengths = [len(dataset[i]["source"]) for i in range(len(dataset))]
        loaded.check_lengths([(length, 0) for length in lengths], pairs.places)
        hyps = loaded.translate(dataset, lengths, max_tokens, **search)
        dataset = copy.copy(dataset)
        dataset.tgt = [hyp["tokens"].cpu() for hyp in hyps]
        targets = [pieces_of(loaded.task.target_dictionary, ids) for ids in dataset.tgt]
    elif dataset.tgt is None:
        raise ValueError("--subset: has no translations; give --translate FILE")
    lengths = [(len(source) + 1, len(target) + 1) for source, target in zip(sources, targets, strict=True)]
    loaded.check_lengths(lengths, pairs.places)
    words = [[words_of(pieces, type) for pieces in side] for side, type in zip((sources, targets), types, strict=True)]
    of_piece = tuple([numbers for _, numbers in side] for side in words)
    links = [""] * len(sources)
    for sample in loaded.batches(dataset, [max(pair) for pair in lengths], max_tokens):
        for number, weights in word_attention(loaded, sample, of_piece, layer, head):
            links[number] = pharaoh(weights)
    return Alignment(links, [" ".join(text) for text, _ in words[1]])


def pharaoh(weights) -> str:
    """Links `i-j` of each target word j to the source word i that it attends to most, for weights (target, source)."""
    if not weights.numel():
        return ""
    return " ".join(f"{i}-{j}" for j, i in enumerate(weights.argmax(dim=1).tolist()))


def read_split(loaded, subset: str, translate: bool = False) -> Pairs:
    """The pairs of a split of the model's data; `translate` as in `align`."""
    from .models import pieces_of

    dataset, task = loaded.load_split(subset), loaded.task
    dictionaries = task.source_dictionary, task.target_dictionary
    sides = [
        [pieces_of(dictionary, row) for row in ids or ()]
        for dictionary, ids in zip(dictionaries, (dataset.src, dataset.tgt), strict=True)
    ]
    for side, pieces, dictionary in zip(("source", "target"), sides, dictionaries, strict=True):
        unknown = sum(row.count(dictionary.unk_word) for row in pieces)
        if unknown and (side == "source" or not translate):
            print(
                f"fairseq-syntax align: {unknown} pieces of the {side} are unknown and taken as ends of words; to "
                "keep the words of the text, give it with --source",
                file=sys.stderr,
            )
    return Pairs(dataset, *sides, [f"{subset}, sentence {i}" for i in range(len(dataset))])


def read_files(loaded, source: str, target: str | None) -> Pairs:
    """The pairs of two files, or the sentences of one file for the model to translate.

    Raises TreeFormatError: the numbers of lines differ, or a source cannot be parsed.
    """
    from .models import encode_line

    texts = [
        [loaded.pieces(line, path is target) for line in read_lines(path)] if path else [] for path in (source, target)
    ]
    if target and len(texts[0]) != len(texts[1]):
        raise TreeFormatError(
            f"{source} has {len(texts[0])} lines and {target} {len(texts[1])}; give a translation for every line"
        )
    ids = [encode_line(loaded.task.target_dictionary, text) for text in texts[1]] if target else None
    dataset = loaded.as_dataset(loaded.encode(texts[0]), ids)
    places = [f"{source}:{number}" for number in range(1, len(texts[0]) + 1)]
    return Pairs(dataset, *([text.split() for text in side] for side in texts), places)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verb.add_checkpoint_arguments(parser)
    add = parser.add_argument
    add("--subset", help="split of DATA (default: test, unless --source is given)")
    add("--source", metavar="FILE", help="source text, instead of a split")
    add("--target", metavar="FILE", help="translations of --source")
    add("--translate", metavar="FILE", help="align the model's own translations, and write them to this file")
    add("--output", default=STDIO, metavar="FILE", help="alignments; - is stdout (default)")
    add("--layer", type=int, metavar="N", help="decoder layer of a Transformer, from 0 (default: mean over all)")
    add("--head", type=int, metavar="N", help="attention head of these layers, from 0 (default: mean over all)")
    verb.add_shared(parser, "--subword-type")
    verb.add_parsers(parser)
    verb.add_search(parser)
    verb.add_shared(parser, "--max-tokens", "--overwrite")


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    verb.check_checkpoint_arguments(parser, args)
    if args.subset and args.source:
        parser.error("give --subset or --source, not both")
    if bool(args.target) == bool(args.translate) if args.source else bool(args.target):
        parser.error("--source needs --target or --translate, not both; --target needs --source")


def run(args: argparse.Namespace) -> None:
    from .models import load

    loaded = load(args.path, args.data, args.cpu)
    loaded.choose_parser(args.parser, verb.parser_options(args))
    if args.source:
        pairs = read_files(loaded, args.source, args.target)
    else:
        pairs = read_split(loaded, args.subset or "test", bool(args.translate))
    alignment = align(
        loaded,
        pairs,
        bool(args.translate),
        args.subword_type,
        args.layer,
        args.head,
        args.max_tokens,
        **verb.search_of(args),
    )
    outputs = {args.translate: alignment.translations, args.output: alignment.links}
    with ExitStack() as stack:  # both files, or none
        for path, lines in outputs.items():
            if path:
                out = stack.enter_context(written(path))
                out.writelines(f"{line}\n" for line in lines)
                out.flush()


main = verb.Verb(__doc__, add_arguments, run, check, outputs=("output", "translate"))

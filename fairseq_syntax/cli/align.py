"""fairseq-syntax align: word alignments of sentences and their translations, from a model's attention.

A line for each pair, in their order, in the format of Pharaoh: links i-j of word i of the source and word j of the
translation, from 0. Every word of the translation has one link, to the word of the source that it attends to most when
it is predicted: pieces are joined to words, the attention to the pieces of a source word is summed, that of the pieces
of a target word averaged. The ends of sentences, and padding, take no part.

The decoder is given the translation: that of the split, that of --target, or, with --translate, the best one that it
finds itself. Attention is averaged over the heads and layers of a Transformer's decoder, or is of those that are given;
recurrent models have one attention.

examples:
  fairseq-syntax align data-bin --path pascal.pt --subset test --output test.align
  fairseq-syntax align data-bin --path pascal.pt --subset test --layer 0 --translate test.hyp.de
  fairseq-syntax align data-bin --path transformer.pt --source news.en --target news.de --bpe subword_nmt \\
      --bpe-codes codes
"""

import argparse

from ..files import STDIO, refuse_existing, written
from .common.arguments import (
    add_checkpoint_arguments,
    add_max_tokens,
    add_parsers,
    add_preparation,
    add_search,
    add_subword_type,
    check_preparation,
)
from .common.verb import Verb


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint_arguments(parser)
    add = parser.add_argument
    add("--subset", help="split of DATA (default: test, or --source)")
    add("--source", metavar="FILE", help="sentences, one a line, instead of a split")
    add("--target", metavar="FILE", help="their translations")
    add("--translate", metavar="FILE", help="align the model's own translations, and write their words to this file")
    add("--output", default=STDIO, metavar="FILE", help="alignments; - is stdout (the default)")
    add("--layer", type=int, metavar="N", help="of a Transformer's decoder, from 0 (default: the mean of all)")
    add("--head", type=int, metavar="N", help="of these layers, from 0 (default: the mean of all)")
    add_subword_type(parser)
    add_preparation(parser)
    add_parsers(parser)
    add_search(parser)
    add_max_tokens(parser)
    add("--overwrite", action="store_true", help="replace the outputs if they exist")


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if args.subset and args.source:
        parser.error("give --subset or --source, not both")
    if bool(args.target) == bool(args.translate) if args.source else bool(args.target):
        parser.error("--target goes with --source, which needs it, or --translate instead")
    if not args.source and (args.bpe or args.tokenizer or args.lowercase):
        parser.error("--bpe, --tokenizer and --lowercase are for --source; a split is cut already")
    check_preparation(parser, args)


def run(args: argparse.Namespace) -> None:
    """Write an alignment for each pair.

    Raises:
        ValueError: the model has no such attention, or texts do not fit it.
        OSError: a file is missing.
    """
    from ..inspection.alignment import align

    refuse_existing([args.output, args.translate], args.overwrite)
    links, translations = align(args)
    if args.translate:
        with written(args.translate) as out:
            out.writelines(f"{line}\n" for line in translations)
    with written(args.output) as out:
        out.writelines(f"{line}\n" for line in links)


main = Verb(__doc__, add_arguments, run, check)

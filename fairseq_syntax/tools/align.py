"""fairseq-syntax align: align words of sentences and their translations, from attention.

One line per pair, in Pharaoh format: i-j links source word i to target word j, from 0. Every target word gets one link,
to the source word that it attends to most when it is predicted. Attention is summed over the subwords of a source word,
and averaged over those of a target word; EOS and padding are left out.

The decoder is given the translation: that of the split, that of --target or, with --translate, its own best one.
Attention is the mean over the heads and layers of a Transformer's decoder, unless you choose some; recurrent models
have one attention.

examples:
  fairseq-syntax align data-bin --path pascal.pt --subset test --output test.align
  fairseq-syntax align data-bin --path pascal.pt --subset test --layer 0 --translate test.hyp.de
  fairseq-syntax align data-bin --path transformer.pt --source news.en --target news.de --bpe subword_nmt \\
      --bpe-codes codes
"""

import argparse

from ..files import STDIO, refuse_existing, written
from .verb import (
    Verb,
    add_checkpoint_arguments,
    add_max_tokens,
    add_overwrite,
    add_parsers,
    add_preparation,
    add_search,
    add_subword_type,
    check_preparation,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint_arguments(parser)
    add = parser.add_argument
    add("--subset", help="split of DATA (default: test, unless --source is given)")
    add("--source", metavar="FILE", help="source text, instead of a split")
    add("--target", metavar="FILE", help="its translations")
    add("--translate", metavar="FILE", help="align the model's own translations, and write these to this file")
    add("--output", default=STDIO, metavar="FILE", help="alignments; - is stdout (default)")
    add("--layer", type=int, metavar="N", help="decoder layer of a Transformer, from 0 (default: mean of all)")
    add("--head", type=int, metavar="N", help="attention head of these layers, from 0 (default: mean of all)")
    add_subword_type(parser)
    add_preparation(parser)
    add_parsers(parser)
    add_search(parser)
    add_max_tokens(parser)
    add_overwrite(parser)


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if args.subset and args.source:
        parser.error("give --subset or --source, not both")
    if bool(args.target) == bool(args.translate) if args.source else bool(args.target):
        parser.error("--target goes with --source, which needs it, or --translate instead")
    if not args.source and (args.bpe or args.tokenizer or args.lowercase):
        parser.error("--bpe, --tokenizer and --lowercase are for --source; a split is already segmented")
    check_preparation(parser, args)


def run(args: argparse.Namespace) -> None:
    """Write an alignment for each pair.

    Raises:
        ValueError: the model has no such attention, or texts do not fit it.
        OSError: a file is missing.
    """
    from .alignment import align

    refuse_existing([args.output, args.translate], args.overwrite)
    links, translations = align(args)
    if args.translate:
        with written(args.translate) as out:
            out.writelines(f"{line}\n" for line in translations)
    with written(args.output) as out:
        out.writelines(f"{line}\n" for line in links)


main = Verb(__doc__, add_arguments, run, check)

"""fairseq-syntax parse: parse tokenised text, one sentence per line, into CoNLL-U.

Each line is a sentence, its tokens separated by spaces; an empty line gets an empty tree. Trees are kept in the folder
OUTPUT.chunks until all are there. To resume an interrupted run, repeat the command; to start over, delete the folder.

In four processes, or on four machines:
  for i in 0 1 2 3; do
    fairseq-syntax parse --input train.en --output train.en.$i.conllu.gz --shard $i/4 &
  done; wait
  cat train.en.[0-3].conllu.gz > train.en.conllu.gz

With Stanza models of your own, for text that is already segmented into subwords:
  fairseq-syntax parse --input train.bpe.en --output train.bpe.en.conllu.gz \\
    --subword-type subword_nmt --parser-tagger tagger.pt --parser-model parser.pt

With a parser trained by fairseq-train (--task dependency_parsing --arch lgp_parser), and with spaCy:
  fairseq-syntax parse --input train.en --output train.en.conllu.gz --parser checkpoint \\
    --parser-model checkpoint_best.pt
  fairseq-syntax parse --input train.en --output train.en.conllu.gz --parser spacy \\
    --parser-model en_core_web_sm
"""

import argparse
import re

from ..data.parsers import load_parser
from ..files import STDIO
from ..preparation.parsing import parse, parser_settings
from .verb import Verb, add_parsers, add_shared, parser_options, positive


def _shard(text: str) -> tuple[int, int]:
    match = re.fullmatch("([0-9]+)/([0-9]+)", text)
    if not match or int(match[1]) >= int(match[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is no shard; those of n are 0/n to n-1/n")
    return int(match[1]), int(match[2])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--input", default=STDIO, metavar="FILE", help="text, plain or .gz; - is stdin (default)")
    add("--output", default=STDIO, metavar="FILE", help="CoNLL-U; - is stdout (default), which cannot be resumed")
    add_parsers(parser, with_model=False)
    help = "segmentation of the text; subwords are joined before parsing (default: none)"
    add_shared(parser, "--subword-type", default="none", help=help)
    add("--shard", type=_shard, default=(0, 1), metavar="I/N", help="parse part I of N, from 0")
    add(
        "--chunk",
        type=positive,
        default=500,
        metavar="N",
        help="sentences that are parsed and kept together (default: 500)",
    )
    add_shared(parser, "--max-words", "--overwrite")


def run(args: argparse.Namespace) -> None:
    options = parser_options(args)
    parser = load_parser(args.parser, options)
    settings = parser_settings(args.parser, options) if args.output != STDIO else None
    parse(args.input, args.output, parser, settings, args.subword_type, args.shard, args.chunk, args.max_words)


main = Verb(__doc__, add_arguments, run, outputs=("output",), inputs=lambda args: [args.input])

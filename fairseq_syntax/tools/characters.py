"""fairseq-syntax characters: split text into characters, or join them again.

Characters are separated by spaces, and the space itself is written ▁: "Eine Gruppe" becomes
"E i n e ▁ G r u p p e". A run of whitespace counts as one space, and is dropped at the ends of a line; a ▁ in the text
becomes _. Every line stays one line.

example:
  fairseq-syntax characters --input train.de.gz --output characters/train.de
  fairseq-preprocess -s de -t en --trainpref characters/train --validpref characters/valid --padding-factor 1 \\
      --destdir data-bin
  fairseq-syntax characters --restore --dedup adjacent < hypotheses > text
"""

import argparse

from ..files import STDIO, written
from ..progress import progress_bar
from .verb import Verb, add_shared, input_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--input",
        nargs="+",
        default=[STDIO],
        metavar="FILE",
        help="text, plain or .gz; several files are concatenated; - is stdin (default)",
    )
    add("--output", default=STDIO, metavar="FILE", help="text, gzipped if it ends in .gz; - is stdout (default)")
    add("--restore", action="store_true", help="join characters into text")
    add(
        "--dedup",
        choices=["none", "adjacent", "seen"],
        default="none",
        help="with --restore: remove repeated bigrams, directly after the same bigram (adjacent) or anywhere after it "
        "(seen) (default: none)",
    )
    add_shared(parser, "--overwrite")


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if args.dedup != "none" and not args.restore:
        parser.error("--dedup is for translations; give --restore, too")


def run(args: argparse.Namespace) -> None:
    from ..trees.characters import remove_repeats, to_characters, to_text

    with written(args.output) as file:
        for path in args.input:
            # no progress bar between lines on a terminal
            hidden = args.output == STDIO
            for line in progress_bar(input_lines(path), unit="line", desc=path, disable=hidden):
                text = remove_repeats(to_text(line), args.dedup) if args.restore else to_characters(line)
                file.write(f"{text}\n")


main = Verb(__doc__, add_arguments, run, check, outputs=("output",))

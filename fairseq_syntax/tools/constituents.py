"""fairseq-syntax constituents: statistics and pictures of latent constituent trees (Bradbury & Socher 2017, Sec. 4).

The trees are those that fairseq-generate writes with --rnng-tree-output.

examples:
  fairseq-generate data-bin --user-dir "$(fairseq-syntax dir)" --task tree_translation --path checkpoint_best.pt \\
      --rnng-tree-output trees.txt
  fairseq-syntax constituents stats trees.txt
  fairseq-syntax constituents draw trees.txt --sentence 0 5 --draw pictures
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from ..files import refuse_existing
from ..trees.text import TreeFormatError, numbered_lines
from .verb import PICTURES, Verb, add_format, add_overwrite, input_name, is_picture, open_input, positive

_STATS = """\
The root, which spans the whole sentence, does not count as a constituent. Sentences without symbols are left out. Rows
"random" are trees with the same numbers of symbols and constituents, all of them equally probable, and are means, or
sums, over several samples; "right" is (a (b (c d))), "left" (((a b) c) d).

Shape:
  height, highest   mean and maximum height of a tree; the root alone has height 1
  per symbol        constituents per symbol, spaces included
  children          mean number of children of a constituent
  % unary           constituents with one child
  % flat            sentences with the root alone
  % right, % left   constituents that are the last or the first child, where there are two children or more
  % capped          sentences in which the budget of actions ruled out a constituent; - if the file does not say
F1 of spans: against the trees of the column. A span has two symbols or more, and is not the whole sentence.
Words: gold words are sequences of characters without a space, or those of --words. Segments are constituents that
contain no other, stripped of spaces.
  P, R, F1          segments against words, over all sentences
  any R             recall of words by all constituents
Attention from constituents of the target to those of the source, without --side:
  max alpha         mean of the highest weight of a target constituent
  entropy           mean entropy of its weights, in nats
  total, attended, attending
                    the parts of the coverage loss, mean over sentences: from the total weight that each source
                    constituent gets (ideally 1; 0 for the root), from the highest weight that each gets, and from the
                    highest that each target constituent gives; the last two leave out the root
  % covered         source constituents, without roots, whose total weight is between 0.5 and 1.5

examples:
  fairseq-syntax constituents stats trees.txt
  fairseq-syntax constituents stats trees.txt --side source --words words.ja --format markdown"""

_DRAW = """\
In a tree, a bar is a constituent, which reaches from its first child to its last; the thick bar is the root. The source
is above the translation. Attention is a heat map with a row for each target constituent and a column for each source
constituent, in the order in which they are opened.

examples:
  fairseq-syntax constituents draw trees.txt --sentence 0 5 --draw pictures
  fairseq-syntax constituents draw trees.txt --sentence 5 --draw attention.pdf --kind attention"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The two commands and their options."""
    form = argparse.RawDescriptionHelpFormatter
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", help="stats or draw")

    stats = commands.add_parser("stats", description="Statistics.", epilog=_STATS, formatter_class=form)
    add = stats.add_argument
    _add_trees(stats, _run_stats)
    add(
        "--side",
        choices=["source", "target"],
        help="trees of one side only (default: both, and the attention between them)",
    )
    add(
        "--words",
        metavar="FILE",
        help="words of --side: text with spaces between words, plain or .gz; line N, from 0, has the characters of "
        "sentence N, where <unk> is any character",
    )
    add("--samples", type=positive, default=5, metavar="N", help="samples of everything random (default: 5)")
    add("--seed", type=int, default=1, help="random seed (default: 1)")
    add_format(stats)

    draw = commands.add_parser("draw", description="Pictures.", epilog=_DRAW, formatter_class=form)
    add = draw.add_argument
    _add_trees(draw, _run_draw)
    add("--sentence", type=int, nargs="+", required=True, metavar="N", help="sentences to draw, numbered as in TS-N")
    add(
        "--draw",
        required=True,
        metavar="PATH",
        help="one picture (.svg, .png or .pdf), or a folder, for pictures N-trees and N-attention",
    )
    add(
        "--kind",
        nargs="+",
        choices=["trees", "attention"],
        help="what to draw (default: trees in a picture, everything in a folder)",
    )
    add("--type", choices=[suffix[1:] for suffix in PICTURES], help="format of the pictures in a folder (default: svg)")
    add_overwrite(draw)


def _add_trees(parser: argparse.ArgumentParser, run: Callable) -> None:
    # what is wrong beyond single options is said with the usage of the command, too
    parser.set_defaults(refuse=parser.error, run=run)
    parser.add_argument("trees", metavar="TREES", help="output of --rnng-tree-output, plain or .gz; - is stdin")


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if args.command == "stats":
        if args.words and not args.side:
            args.refuse("--words: has the words of one side; say which with --side")
        if args.seed < 0:
            args.refuse(f"--seed {args.seed}: give a number from 0")
    elif is_picture(args.draw):
        args.kind = args.kind or ["trees"]
        if len({*args.sentence}) * len({*args.kind}) > 1:
            args.refuse(f"--draw {args.draw}: holds one picture; give a folder for several")
        if args.type:
            args.refuse(f"--type is for a folder of pictures; {args.draw} is one")


def read_pairs(path: str) -> list:
    """The trees in a file, which may be gzipped, or `-`; see `read_tree_file`."""
    from ..systems.latent_tree.tree_files import read_tree_file

    name = input_name(path)
    with open_input(path) as lines:
        return read_tree_file(numbered_lines(lines, name), name)


def _run_stats(args: argparse.Namespace) -> None:
    from .constituent_tables import print_tables

    print_tables(read_pairs(args.trees), args)


def _run_draw(args: argparse.Namespace) -> None:
    """Draw trees and attention of sentences."""
    from ..pictures.figures import save_figure
    from ..systems.latent_tree.drawing import draw_node_attention, draw_trees

    kinds = {"trees": draw_trees, "attention": draw_node_attention}
    ids, pictures = list(dict.fromkeys(args.sentence)), list(dict.fromkeys(args.kind or kinds))
    one = is_picture(args.draw)
    paths = {
        (number, picture): args.draw if one else Path(args.draw) / f"{number}-{picture}.{args.type or 'svg'}"
        for number in ids
        for picture in pictures
    }
    refuse_existing([str(path) for path in paths.values()], args.overwrite)
    pairs = {pair.sentence: pair for pair in read_pairs(args.trees)}
    for number in ids:
        if number not in pairs:
            raise TreeFormatError(
                f"--sentence {number}: {args.trees} has no such sentence; it has {len(pairs)}, with numbers from "
                f"{min(pairs)} to {max(pairs)}"
            )
    for (number, picture), path in paths.items():
        pair = pairs[number]
        if picture == "attention" and not len(pair.attention) and not args.kind:
            # nobody asked for it
            print(f"sentence {number}: the target has no constituent, so there is no attention", file=sys.stderr)
            continue
        save_figure(kinds[picture](pair, f"{Path(args.trees).name} {number}"), path)
        print(path, file=sys.stderr)


def run(args: argparse.Namespace) -> None:
    """Print the tables, or draw trees and attention."""
    args.run(args)


main = Verb(__doc__, add_arguments, run, check)

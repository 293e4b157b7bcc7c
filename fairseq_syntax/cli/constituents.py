"""fairseq-syntax constituents: the trees that a translation has been made with (Bradbury & Socher 2017, Sec. 4)."""

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ..evaluate.tables import format_table
from ..inspection.checkpoints import positive
from ..pictures.figures import save_figure
from ..systems.latent_tree.characters import SPACE, to_characters
from ..systems.latent_tree.constituents import NONE, Constituents, constituents
from ..systems.latent_tree.control_trees import left_branching, pad, random_trees, right_branching
from ..systems.latent_tree.drawing import draw_node_attention, draw_trees
from ..systems.latent_tree.statistics import (
    Counts,
    Segmentation,
    Shape,
    Text,
    attention_summary,
    mean_shape,
    segment_scores,
    segmentation,
    shape,
    shuffled_segments,
    span_counts,
)
from ..systems.latent_tree.tree_files import Tree, TreeRecord, read_tree_file
from ..trees.text import TreeFormatError, numbered_lines, read_lines
from .attachment import add_format
from .inputs import input_name, open_input
from .outputs import PICTURES, exit_status, is_picture, refuse_existing

UNKNOWN = "<unk>"
"""What stands in a tree for a character that is not in the dictionary."""

_KINDS = {"trees": draw_trees, "attention": draw_node_attention}

_DESCRIPTION = "Latent constituent trees over characters, as --rnng-tree-output has written them: numbers and pictures."

_EPILOG = """\
examples:
  fairseq-generate data-bin --user-dir "$(fairseq-syntax dir)" --task tree_translation --path checkpoint_best.pt \\
      --rnng-tree-output trees.txt
  fairseq-syntax constituents stats trees.txt
  fairseq-syntax constituents draw trees.txt --ids 0 5 --output pictures"""

_STATS = """\
The root, which holds the whole sentence, is not counted as a constituent. Sentences without a symbol are left out.
Rows "random" are trees of the same numbers of symbols and constituents, each such tree equally probable; "right" is
(a (b (c d))), "left" (((a b) c) d); "shuffled" has the segments of "found" and the symbols between them in a random
order. What is random is the mean, or the sum, of several draws.

Shape:
  height, highest   of a tree, which is 1 with the root alone: mean and greatest
  per symbol        constituents per symbol, spaces and all
  children          mean number of children of a constituent
  % unary           of constituents that have one child
  % flat            of sentences with the root alone
  % right, % left   of the constituents in constituents or roots with two children or more, that are the last or the
                    first child
  % capped          of sentences in which the budget of actions forbade a constituent; - if the file does not say
F1 of spans: against the trees that the column names. A span holds two symbols or more, and not the whole sentence.
Words: gold words are sequences of characters without a space, or those of --gold. Segments are constituents without
constituents in them; spaces at the ends are stripped off.
  P, R, F1          of segments against words, over all sentences
  any R             recall of words by constituents of all kinds
  edge P, R, F1     places between two characters where a segment starts or ends, against those where a word does
Attention, of the constituents of the target over those of the source, without --side:
  max alpha         mean greatest weight of a constituent of the target
  entropy           mean entropy of its weights, in nats
  total, attended, attending
                    the parts of the coverage loss, mean over sentences: of the sums of weights that constituents of the
                    source get (1 is due, 0 of the root), of the greatest that each gets, and of the greatest that each
                    of the target gives; the root is left out of the latter two
  % covered         of constituents of the source, without the roots, whose sum is between 0.5 and 1.5

examples:
  fairseq-syntax constituents stats trees.txt
  fairseq-syntax constituents stats trees.txt --side source --gold words.ja --format markdown"""

_DRAW = """\
In a tree, a bar is a constituent, as wide as its first and last child are apart, and the thick bar is the root. The
source is above the translation. Attention is a heat map: a row is a constituent of the target, a column one of the
source, and both are in the order of opening.

examples:
  fairseq-syntax constituents draw trees.txt --ids 0 5 --output pictures
  fairseq-syntax constituents draw trees.txt --ids 5 --output attention.pdf --pictures attention"""


def build_parser() -> argparse.ArgumentParser:
    """The program's options."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="fairseq-syntax constituents", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=form
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", help="stats or draw")

    stats = commands.add_parser("stats", description="Numbers.", epilog=_STATS, formatter_class=form)
    add = stats.add_argument
    _add_trees(stats)
    add("--side", choices=["source", "target"], help="trees of one side only (default: both, and the attention)")
    add(
        "--gold",
        metavar="FILE",
        help="the words of --side: text with spaces between words, also .gz; line N, from 0, is sentence N and has the "
        f"characters of its tree, where {UNKNOWN} is any character",
    )
    add("--draws", type=positive, default=5, metavar="N", help="draws of everything random (default: 5)")
    add("--seed", type=int, default=1, help="of the draws (default: 1)")
    add_format(stats)

    draw = commands.add_parser("draw", description="Pictures.", epilog=_DRAW, formatter_class=form)
    add = draw.add_argument
    _add_trees(draw)
    add("--ids", type=int, nargs="+", required=True, metavar="N", help="numbers of sentences, as in TS-N")
    add(
        "--output",
        required=True,
        metavar="PATH",
        help="one picture, if it ends in .svg, .png or .pdf; else a folder, for pictures N-trees and N-attention",
    )
    add(
        "--pictures",
        nargs="+",
        choices=list(_KINDS),
        help="what to draw (default: the trees in a file, everything in a folder)",
    )
    add("--type", choices=[suffix[1:] for suffix in PICTURES], help="of the pictures in a folder (default: svg)")
    add("--overwrite", action="store_true", help="replace pictures that exist")
    return parser


def _add_trees(parser: argparse.ArgumentParser) -> None:
    # what is wrong beyond single options is said with the usage of the command, too
    parser.set_defaults(refuse=parser.error)
    parser.add_argument("trees", metavar="TREES", help="what --rnng-tree-output has written, also .gz; - is stdin")


def main(argv: list[str] | None = None) -> int:
    """Entry point. Exit status: 0, 1 for bad data, 2 for bad usage."""
    parser = build_parser()
    args = parser.parse_args(argv)
    logging.basicConfig(level="WARNING", force=True)
    if args.command == "stats":
        if args.gold and not args.side:
            args.refuse("--gold: has the words of one side; say which with --side")
        if args.seed < 0:
            args.refuse(f"--seed {args.seed}: give a number from 0")
        return exit_status(parser.prog, lambda: run_stats(args))
    if is_picture(args.output):
        args.pictures = args.pictures or ["trees"]
        if len({*args.ids}) * len({*args.pictures}) > 1:
            args.refuse(f"--output {args.output}: holds one picture; give a folder for several")
        if args.type:
            args.refuse(f"--type: {args.output} says what it is; --type is of use with a folder")
    return exit_status(parser.prog, lambda: run_draw(args))


def read_pairs(path: str) -> list[TreeRecord]:
    """The trees in a file, which may be gzipped, or `-`; see `read_tree_file`."""
    name = input_name(path)
    with open_input(path) as lines:
        return read_tree_file(numbered_lines(lines, name), name)


# --- numbers ------------------------------------------------------------------------------------------------------


def run_stats(args: argparse.Namespace) -> None:
    """Print the tables.

    Raises:
        ValueError: the trees or the words cannot be read, or are not of the same text.
        OSError: a file is missing.
    """
    pairs = read_pairs(args.trees)
    sides = [_Side(name, pairs, args) for name in ([args.side] if args.side else ["source", "target"])]
    header = ["side", "trees", "height", "highest", "per symbol", "children", "% unary", "% flat"]
    _print([*header, "% right", "% left", "% capped"], sides, _Side.shapes, args)
    _print(["side", "trees", "right F1", "left F1", "random F1"], sides, _Side.agreement, args)
    header = ["side", "segments", "P", "R", "F1", "any R", "edge P", "edge R", "edge F1"]
    _print(header, sides, _Side.words, args, last=bool(args.side))
    if not args.side:
        found = attention_summary(pair.attention for pair in pairs)
        header = ["constituents", "max alpha", "entropy", "total", "attended", "attending", "% covered"]
        numbers = (found.highest, found.entropy, found.total, found.attended, found.attending)
        print(format_table(header, [[found.constituents, *map(_exact, numbers), found.covered]], args.format))
    for side in sides:
        kept = len(side.trees)
        print(
            f"{side.name}: {kept} sentences, {side.lengths.sum()} symbols, {len(side.found) - kept} constituents; "
            f"{len(pairs) - kept} sentences without a symbol left out",
            file=sys.stderr,
        )


def _print(
    header: list[str],
    sides: "Sequence[_Side]",
    rows: "Callable[[_Side], list[list]]",
    args: argparse.Namespace,
    last: bool = False,
) -> None:
    print(format_table(header, [[side.name, *row] for side in sides for row in rows(side)], args.format))
    if not last:
        print()


def _exact(value: float) -> str:
    """More digits than tables have, for what is small."""
    return "-" if value != value else f"{value:.3f}"


class _Side:
    """The trees of source or target, and those that they are compared with."""

    def __init__(self, name: str, pairs: Sequence[TreeRecord], args: argparse.Namespace):
        all_trees = {pair.sentence: getattr(pair, name) for pair in pairs}
        kept = {sentence: tree for sentence, tree in all_trees.items() if tree.symbols}
        words = read_words(args.gold, kept, args.trees) if args.gold else None
        self.name = name
        self.trees = list(kept.values())
        if not self.trees:
            raise ValueError(f"{args.trees}: no tree of the {name} has a symbol; there is nothing to describe")
        self.text = Text([tree.symbols for tree in self.trees], words)
        self.lengths = np.array([len(tree.symbols) for tree in self.trees])
        self.found = constituents(pad([tree.actions for tree in self.trees]))
        self.right, self.left = (constituents(make(self.lengths)) for make in (right_branching, left_branching))
        counts = np.bincount(self.found.row[self.found.parent != NONE], minlength=len(self.trees))
        self.random = np.random.default_rng(args.seed)
        self.draws = [constituents(random_trees(self.lengths, counts, self.random)) for _ in range(args.draws)]

    def shapes(self) -> list[list]:
        """Rows of the first table."""
        capped = [tree.capped for tree in self.trees]
        shapes = {
            "found": shape(self.found, None if None in capped else capped),
            "random": mean_shape([shape(draw) for draw in self.draws]),
        }
        return [[name, *self._shape(found)] for name, found in shapes.items()]

    def _shape(self, found: Shape) -> list:
        numbers = (found.unary, found.flat, found.right, found.left, found.capped)
        return [found.height, found.highest, _exact(found.per_symbol), found.children, *numbers]

    def agreement(self) -> list[list]:
        """Rows of the second table; draws are not compared with one another."""
        return [
            ["found", *(self._f1([self.found], given) for given in ([self.right], [self.left], self.draws))],
            ["random", *(self._f1(self.draws, [given]) for given in (self.right, self.left)), float("nan")],
        ]

    def _f1(self, found: Sequence[Constituents], given: Sequence[Constituents]) -> float:
        return sum((span_counts(one, other) for one in found for other in given), Counts()).f1

    def words(self) -> list[list]:
        """Rows of the third table."""
        shuffled = (segment_scores(shuffled_segments(self.found, self.random), self.text) for _ in self.draws)
        scores = {
            "found": segmentation(self.found, self.text),
            "shuffled": sum(shuffled, Segmentation()),
            "random": sum((segmentation(draw, self.text) for draw in self.draws), Segmentation()),
            "right": segmentation(self.right, self.text),
            "left": segmentation(self.left, self.text),
        }
        return [
            [name, *(_prf(score.words)), score.inside.recall, *(_prf(score.boundaries))]
            for name, score in scores.items()
        ]


def _prf(counts: Counts) -> tuple[float, float, float]:
    return counts.precision, counts.recall, counts.f1


def read_words(path: str, trees: dict[int, Tree], name: str) -> list[list[int]]:
    """Lengths in characters of the words of trees, from a text with spaces between words.

    Args:
        path: of the text; line N, from 0, is sentence N.
        trees: by number of sentence.
        name: of their file, for messages.

    Returns:
        Those of each tree.

    Raises:
        TreeFormatError: a line is missing, or its characters are not those of the tree.
    """
    lines = list(read_lines(path))
    result = []
    for sentence, tree in trees.items():
        if sentence >= len(lines):
            raise TreeFormatError(
                f"{path}: has {len(lines)} lines, but {name} has a sentence {sentence}; give the text that was "
                "translated, with a line for every sentence"
            )
        # as in the text that was translated
        words = ["".join(word.split()) for word in to_characters(lines[sentence]).split(SPACE)]
        given = "".join(words)
        own = [symbol for symbol in tree.symbols if symbol != SPACE]
        if len(own) != len(given) or any(a not in (b, UNKNOWN) for a, b in zip(own, given, strict=True)):
            raise TreeFormatError(
                f"{path}:{sentence + 1}: {lines[sentence][:60]!r} does not have the characters of sentence {sentence} "
                f"of {name}, {''.join(own)[:60]!r}; give the same text with spaces between words"
            )
        result.append([len(word) for word in words if word])
    return result


# --- pictures -----------------------------------------------------------------------------------------------------


def run_draw(args: argparse.Namespace) -> None:
    """Draw trees and attention of sentences.

    Raises:
        ValueError: the trees cannot be read, a sentence is not there or has no attention, or a picture exists.
        OSError: a file is missing.
    """
    ids, pictures = list(dict.fromkeys(args.ids)), list(dict.fromkeys(args.pictures or _KINDS))
    one = is_picture(args.output)
    paths = {
        (number, picture): args.output if one else Path(args.output) / f"{number}-{picture}.{args.type or 'svg'}"
        for number in ids
        for picture in pictures
    }
    refuse_existing([str(path) for path in paths.values()], args.overwrite)
    pairs = {pair.sentence: pair for pair in read_pairs(args.trees)}
    for number in ids:
        if number not in pairs:
            raise TreeFormatError(
                f"--ids {number}: {args.trees} has no such sentence; it has {len(pairs)}, with numbers from "
                f"{min(pairs)} to {max(pairs)}"
            )
    for (number, picture), path in paths.items():
        pair = pairs[number]
        if picture == "attention" and not len(pair.attention) and not args.pictures:
            # nobody asked for it
            print(f"sentence {number}: the target has no constituent, so there is no attention", file=sys.stderr)
            continue
        save_figure(_KINDS[picture](pair, f"{Path(args.trees).name} {number}"), path)
        print(path, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

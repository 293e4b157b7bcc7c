"""fairseq-syntax perturb: damage the trees of a CoNLL-U file on purpose, to see how much a model depends on them.

Shares are exact over the whole file, to within one word, as far as possible: the head in a one-word sentence cannot
change. Trees keep exactly one root; words, UPOS, comments and multi-word ranges are kept, and sentences
without a parse stay that way. The same input, options and seed give the same bytes. UAS against the input,
punctuation included, is printed on stderr.

  --reattach   other heads for a share of the words: all sets of words that can change are equally likely, and then, all
               trees in which the words of the set, and no others, have other heads; labels stay with their words
  --trees      random: all trees over the words are equally likely; left: the head of each word is the next one; right:
               the previous one. Labels are shuffled

examples:
  fairseq-syntax perturb --input test.en.conllu --output test-70.en.conllu --reattach 0.3 --seed 1
  fairseq-syntax perturb --input train.en.conllu.gz --output random/train.en.conllu.gz --trees random
"""

import argparse
import sys
from collections.abc import Iterator
from functools import partial

from ..files import written
from ..progress import progress_bar
from ..trees.conllu import Sentence, TreeFormatError, format_sentence, parse_block, read_blocks
from ..trees.perturbation import KINDS, Perturbation, root_of
from .verb import Verb, add_shared, input_name, number, open_input


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--input", required=True, metavar="FILE", help="CoNLL-U, plain or .gz; - is stdin")
    add("--output", required=True, metavar="FILE", help="CoNLL-U, gzipped if it ends in .gz; - is stdout")
    ways = parser.add_mutually_exclusive_group()
    share = partial(number, most=1, kind="share from 0 to 1; 0.3 is 30 %")
    ways.add_argument("--reattach", type=share, metavar="P", help="share of words that get another head, 0 to 1")
    ways.add_argument("--trees", choices=list(KINDS), help="replace the trees with these")
    add("--seed", type=int, default=1, help="random seed (default: 1)")
    add_shared(parser, "--overwrite")


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if args.reattach is None and args.trees is None:
        parser.error("give --reattach or --trees")


def _read(path: str) -> Iterator[Sentence]:
    """Read the trees of a file. Raises TreeFormatError: a tree has no root, or several."""
    name = input_name(path)
    with open_input(path) as lines:
        for start, block in read_blocks(lines, name):
            sentence = parse_block(block, name, start)
            if sentence.is_parsed and sentence.forms:
                root_of(sentence.heads, f"{name}:{start}")
            yield sentence


def run(args: argparse.Namespace) -> None:
    sentences, same, perturbation = 0, [], Perturbation(args.reattach or 0.0, args.seed)
    with written(args.output) as out, progress_bar(unit="sent") as bar:
        for sentences, before in enumerate(_read(args.input), 1):
            after = perturbation(sentences - 1, before, args.trees)
            same += [a == b for a, b in zip(before.heads, after.heads, strict=True) if before.is_parsed]
            out.write(format_sentence(after))
            bar.update()
        if not sentences:
            raise TreeFormatError(f"{input_name(args.input)}: has no sentences; give a CoNLL-U file")
    uas = 100 * sum(same) / max(len(same), 1)
    print(f"fairseq-syntax perturb: UAS {uas:.2f} of {len(same)} words, {sentences} sentences", file=sys.stderr)
    quota = perturbation.reattach
    if quota.taken + 1 < quota.share * quota.seen:
        print(
            f"fairseq-syntax perturb: --reattach {quota.share:g}: only {quota.taken / quota.seen:.4f} of the words can "
            "be changed",
            file=sys.stderr,
        )


main = Verb(__doc__, add_arguments, run, check, outputs=("output",))

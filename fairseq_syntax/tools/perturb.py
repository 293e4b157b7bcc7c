"""fairseq-syntax perturb: damage the trees of a CoNLL-U file on purpose, to see how much a model depends on them.

Shares are exact over the whole file, to within one word or sentence, as far as possible: the head in a one-word
sentence cannot change. Trees keep exactly one root; words, UPOS, comments and multi-word ranges are kept, and sentences
without a parse stay that way. The same input, options and seed give the same bytes. UAS and LAS against the input,
punctuation included, are printed on stderr.

  --reattach   other heads for a share of the words: all sets of words that can change are equally likely, and then, all
               trees in which the words of the set, and no others, have other heads; labels stay with their words
  --trees      random: all trees over the words are equally likely; left: the head of each word is the next one; right:
               the previous one. Labels are shuffled
  --trees-of   heads and labels of another parser's trees of the same words

examples:
  fairseq-syntax perturb --input test.en.conllu --output test-70.en.conllu --reattach 0.3 --seed 1
  fairseq-syntax perturb --input train.en.conllu.gz --output random/train.en.conllu.gz --trees random
  fairseq-syntax perturb --input gold.conllu --output half.conllu --trees-of parser.conllu --share 0.5
"""

import argparse
import random
import sys
from collections.abc import Iterator
from itertools import islice

from ..files import written
from ..progress import progress_bar
from ..trees.alignment import align_tree
from ..trees.conllu import Sentence, TreeFormatError, format_sentence, parse_block, read_blocks
from ..trees.perturbation import KINDS, Perturbation, Quota, root_of
from .verb import Verb, add_shared, input_name, number, open_input

_BLOCK = 1000  # sentences in a block, in each of which --share is exact


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--input", required=True, metavar="FILE", help="CoNLL-U, plain or .gz; - is stdin")
    add("--output", required=True, metavar="FILE", help="CoNLL-U, gzipped if it ends in .gz; - is stdout")
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--reattach", type=_share, metavar="P", help="share of words that get another head, 0 to 1")
    ways.add_argument("--trees", choices=list(KINDS), help="replace the trees with these")
    ways.add_argument("--trees-of", metavar="FILE", help="replace the trees with those of this CoNLL-U file")
    add("--share", type=_share, metavar="P", help="share of sentences that --trees or --trees-of replaces (default: 1)")
    add("--seed", type=int, default=1, help="random seed (default: 1)")
    add_shared(parser, "--overwrite")


def _share(text: str) -> float:
    return number(text, 1, "share from 0 to 1; 0.3 is 30 %")


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if all(way is None for way in (args.reattach, args.trees, args.trees_of)):
        parser.error("give --reattach, --trees or --trees-of")
    if args.share is not None and not (args.trees or args.trees_of):
        parser.error("--share is for --trees and --trees-of; give the share of words with --reattach")


def perturb(
    path: str,
    reattach: float = 0.0,
    trees: str | None = None,
    trees_of: str | None = None,
    share: float = 1.0,
    seed: int = 1,
) -> tuple[Iterator[tuple[Sentence, Sentence]], Perturbation]:
    """Pairs of each sentence before and after the damage, and the `Perturbation` that counts it.

    Args:
        path: CoNLL-U file; - is stdin.
        reattach: share of words.
        trees: one of `KINDS`, to replace the trees of a share of the sentences.
        trees_of: CoNLL-U file of the same words, with trees to replace them.
        share: share of sentences whose trees are replaced.

    Raises TreeFormatError while pairs are read: a tree is invalid, or its replacement does not fit.
    """
    perturbation = Perturbation(reattach, seed)
    chosen = _chosen(path, trees, trees_of, share if trees or trees_of else 0.0, seed)
    return ((s, perturbation(number, s, replacement)) for number, (s, replacement) in enumerate(chosen)), perturbation


def _chosen(
    path: str, trees: str | None, trees_of: str | None, share: float, seed: int
) -> Iterator[tuple[Sentence, Sentence | str | None]]:
    """Sentences with the replacements of their trees, or None."""
    sentences, replacements, quota = _read(path), _read(trees_of) if trees_of else None, Quota(share)
    for start in range(0, sys.maxsize, _BLOCK):
        block = list(islice(sentences, _BLOCK))
        due = quota.due(len(block))
        quota.taken += due
        chosen = set(random.Random(f"{seed} sentences {start}").sample(range(len(block)), due))
        for i, sentence in enumerate(block):
            replacement = trees if replacements is None else _other(sentence, path, next(replacements, None), trees_of)
            yield sentence, replacement if i in chosen else None
        if len(block) < _BLOCK:
            break
    if replacements is not None and next(replacements, None) is not None:
        raise TreeFormatError(f"{trees_of}: has more sentences than {input_name(path)}; give trees of the same text")


def _read(path: str) -> Iterator[Sentence]:
    """The trees of a file, each with one root."""
    name = input_name(path)
    with open_input(path) as lines:
        for start, block in read_blocks(lines, name):
            sentence = parse_block(block, name, start)
            if sentence.is_parsed and sentence.forms:
                root_of(sentence.heads, f"{name}:{start}")
            yield sentence


def _other(sentence: Sentence, path: str, replacement: Sentence | None, trees_of: str) -> Sentence:
    """The replacement of a tree, over the words of the sentence."""
    place = f"{input_name(path)}:{sentence.line}"
    if replacement is None:
        raise TreeFormatError(f"{trees_of}: ends before {place}; give trees of the same text")
    replacement = align_tree(replacement, sentence.forms, f"{place} ({trees_of}:{replacement.line})")
    if sentence.is_parsed and not replacement.is_parsed:
        raise TreeFormatError(
            f"{trees_of}:{replacement.line}: no parse to replace that of the input; parse the sentence"
        )
    return replacement


def run(args: argparse.Namespace) -> None:
    from ..evaluate.treebank import Attachment

    share = 1.0 if args.share is None else args.share
    pairs, perturbation = perturb(args.input, args.reattach or 0.0, args.trees, args.trees_of, share, args.seed)
    comparison = Attachment()
    with written(args.output) as out, progress_bar(unit="sent") as bar:
        for before, after in pairs:
            comparison.add(before, after)
            out.write(format_sentence(after))
            bar.update()
        if not comparison.sentences:
            raise TreeFormatError(f"{input_name(args.input)}: has no sentences; give a CoNLL-U file")
    print(f"fairseq-syntax perturb: {comparison}", file=sys.stderr)
    quota = perturbation.reattach
    if quota.taken + 1 < quota.share * quota.seen:
        print(
            f"fairseq-syntax perturb: --reattach {quota.share:g}: only {quota.taken / quota.seen:.4f} of the words can "
            "be changed",
            file=sys.stderr,
        )


main = Verb(__doc__, add_arguments, run, check, outputs=("output",))

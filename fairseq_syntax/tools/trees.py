"""fairseq-syntax trees: write or draw the latent trees of a translation model.

Text has one sentence per line, tokens separated by spaces; every line gives a tree, empty ones too. Without --bpe,
tokens are what the model reads, and are joined into words as --subword-type says. Of CoNLL-U input, words, comments,
multi-word ranges and UPOS are kept; the only labels are root and dep (unspecified).

examples:
  fairseq-syntax trees data-bin --path checkpoint_best.pt --input test.en --bpe subword_nmt --bpe-codes codes.en \\
      --output test.en.conllu
  fairseq-syntax trees data-bin --path checkpoint_best.pt --subset test --draw tree.svg --sentence 3
  fairseq-syntax trees --input treebank.conllu --draw tree.svg --sentence 3
"""

import argparse
import dataclasses
import sys
from itertools import islice

from tqdm import tqdm

from ..files import STDIO, refuse_existing, written
from ..trees.conllu import Sentence, TreeFormatError, find_cycle, format_sentence
from ..trees.universal_dependencies import universal_labels
from .verb import (
    Verb,
    add_input_arguments,
    add_overwrite,
    add_tree_arguments,
    check_input_arguments,
    check_tree_arguments,
    is_conllu,
    picture,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_tree_arguments(parser)
    add = parser.add_argument
    add_input_arguments(parser)
    add(
        "--output",
        metavar="FILE",
        help="CoNLL-U, gzipped if it ends in .gz; - is stdout (default: stdout, or nothing with --draw)",
    )
    add(
        "--draw",
        type=picture,
        metavar="PICTURE",
        help="draw the tree of one sentence (.svg, .png or .pdf), with that of the CoNLL-U, if it has one, below the "
        "words; without a model, draw the tree of the CoNLL-U",
    )
    add_overwrite(parser)


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    check_tree_arguments(parser, args)
    check_input_arguments(parser, args)
    if (args.input is None) == (args.subset is None):
        parser.error("give --input or --subset")
    if not args.path and not (args.draw and args.input and is_conllu(args.input) and not args.output):
        parser.error("give DATA and --path; without a model there is only --input FILE.conllu --draw PICTURE")


def run(args: argparse.Namespace) -> None:
    """Find the trees and write them."""
    from .latent_trees import TreeInducer, load_with_trees
    from .model_input import nth, read_text, read_trees

    refuse_existing([args.output, args.draw], args.overwrite)
    if not args.path:
        tree = nth(read_trees(args), args.sentence or 0)
        if not tree.is_parsed:
            raise TreeFormatError(f"{args.input}:{tree.line}: the sentence has no tree (HEAD is _)")
        _draw(args, tree, tree.heads, labels=tree.deprels)
        return
    loaded = load_with_trees(args)
    inducer = TreeInducer(loaded, args.decoder, args.evidence, args.batch_size)
    sentences = read_text(args, loaded)
    if args.draw:
        # the one sentence first: a number that does not exist should not take long
        if args.output:
            sentences = list(sentences)
        sentence, source = nth(sentences, args.sentence or 0)
        given = {}
        if sentence.is_parsed and len(sentence):
            given = {"gold": sentence.heads, "gold_labels": sentence.deprels}
        _draw(args, sentence, inducer([source])[0], f"{loaded.name}: ", **given)
    if args.output or not args.draw:
        _write(args, sentences, inducer)
    if inducer.note(args):
        print(f"fairseq-syntax trees: {inducer.note(args)}", file=sys.stderr)


def _write(args: argparse.Namespace, sentences, inducer) -> None:
    cyclic = total = 0
    sentences = iter(sentences)
    # many batches at once, so that sentences of one length meet
    with written(args.output or STDIO) as out, tqdm(unit="sent") as bar:
        while chunk := list(islice(sentences, 64 * args.batch_size)):
            trees = inducer([source for _, source in chunk], bar)
            for (sentence, _), heads in zip(chunk, trees, strict=True):
                cyclic += find_cycle(heads) is not None
                labels = universal_labels(heads, ["dep"] * len(heads))
                out.write(format_sentence(dataclasses.replace(sentence, heads=heads, deprels=labels)))
            total += len(chunk)
    if cyclic:
        print(
            f"fairseq-syntax trees: {cyclic} of {total} sentences have cycles, so that programs which demand trees "
            "will refuse them; --decoder mst has none",
            file=sys.stderr,
        )


def _draw(args: argparse.Namespace, sentence: Sentence, heads, name: str = "", **trees) -> None:
    from ..pictures.dependency_trees import draw_tree
    from ..pictures.figures import save_figure

    if not len(sentence):
        raise ValueError(f"--sentence {args.sentence or 0}: has no words; give another")
    title = f"{name}{args.subset or args.input} {args.sentence or 0}"
    if "gold" in trees:
        title += "  (below: the given tree; dashed: not in it)"
    tags = sentence.upos if any(tag != "_" for tag in sentence.upos) else None
    save_figure(draw_tree(sentence.forms, heads, tags=tags, title=title, **trees), args.draw)
    print(args.draw, file=sys.stderr)


main = Verb(__doc__, add_arguments, run, check)

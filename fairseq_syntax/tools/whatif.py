"""fairseq-syntax whatif: change the tree of a sentence, and see what changes in its translation.

The sentence comes with its tree, from CoNLL-U or a split, or is parsed (--parser). It is translated under this tree and
under others: one with other heads (--head 5=2 attaches word 5 to word 2; 0 makes it the root), or those of a file over
the same words (--trees). Printed are the trees, with a * where they differ from the first; every translation, with its
log-probability under each tree; and the source word that each word of a translation attends to most. The edited tree
must have one root.

  PASCAL, tags, DASA, SDAtt, chen17, LGP-NMT with --lgp-graph dep   read the tree
  LISA                     attends by the tree instead of its own prediction, as with --lisa-gold-parses
  SA-NMT, FA-NMT           the tree replaces the probabilities of heads (subwords attach to the first one of their word)
  LGP-NMT (latent)         the same; it still predicts labels
  UNI and SEQ of LGP-NMT, RNNGs, models without syntax              take no tree, and are refused
Models with latent trees are also shown under their own; without a parse, their own best tree is the one to change.

With --pairs, a folder of sentences that have two trees and a translation for each (examples/agreement/pairs.py makes
one): how often the translation under each tree is the reference for that tree, and how often the model prefers this
reference.

examples:
  fairseq-syntax whatif data-bin --path pascal.pt --subset test --sentence 3 --head 8=5 --draw whatif.svg
  echo 'the dog saw the cat in the garden .' | fairseq-syntax whatif data-bin --path pascal.pt --input - --head 8=5 \\
      --label 8=nmod --bpe subword_nmt --bpe-codes codes
  fairseq-syntax whatif data-bin --path pascal.pt --input one.conllu --trees other.conllu
  fairseq-syntax whatif data-bin --path pascal.pt --pairs pairs/attachment --bpe subword_nmt --bpe-codes codes \\
      --output pascal.json
"""

import argparse
import sys

from ..files import refuse_existing, written
from .verb import (
    Verb,
    add_checkpoint_arguments,
    add_format,
    add_max_tokens,
    add_overwrite,
    add_parsers,
    add_preparation,
    add_search,
    add_subword_type,
    check_preparation,
    check_subset,
    picture,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint_arguments(parser)
    add = parser.add_argument
    add("--input", metavar="FILE", help="text, or CoNLL-U if it ends in .conllu, plain or .gz; - is text from stdin")
    add("--subset", help="split of DATA, instead of --input")
    add("--pairs", metavar="FOLDER", help="instead of one sentence, count over pairs of trees and translations")
    add("--sentence", type=int, default=0, metavar="N", help="sentence of the input, from 0 (default: 0)")
    add(
        "--head",
        type=_edit,
        action="append",
        default=[],
        metavar="D=H",
        help="attach word D to word H, or make it the root (0); may be repeated",
    )
    add("--label", type=_label, action="append", default=[], metavar="D=LABEL", help="label of word D; may be repeated")
    add("--trees", metavar="FILE", help="CoNLL-U: also all its trees over the same words")
    add("--no-parse", action="store_true", help="also translate without a parse")
    add("--draw", type=picture, metavar="PICTURE", help="draw trees and attention side by side (.svg, .png or .pdf)")
    add(
        "--collapse-ranges",
        action="store_true",
        help='read multi-word tokens of CoNLL-U as one word ("im" for "in" and "dem"), as models do',
    )
    add_subword_type(parser)
    add_preparation(parser, tokenizer=False)
    add_parsers(parser)
    add_search(parser)
    add_max_tokens(parser)
    add_format(parser)
    add("--output", metavar="FILE", help="record of --pairs, as JSON; - is stdout, instead of the tables")
    add_overwrite(parser)


def _edit(text: str) -> tuple[int, int]:
    word, _, head = text.partition("=")
    if not (word.isdecimal() and head.isdecimal()):
        raise argparse.ArgumentTypeError(
            f"{text!r}: give the numbers of a word and of its head, as in 5=2; 0 is the root"
        )
    return int(word), int(head)


def _label(text: str) -> tuple[int, str]:
    word, _, label = text.partition("=")
    if not (word.isdecimal() and label and not label.isspace()):
        raise argparse.ArgumentTypeError(f"{text!r}: give the number of a word and its relation, as in 5=nmod")
    return int(word), label


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if sum(given is not None for given in (args.input, args.subset, args.pairs)) != 1:
        parser.error("give one of --input, --subset and --pairs")
    if args.pairs and (args.head or args.label or args.trees or args.draw or args.no_parse):
        parser.error("--pairs names both trees of every sentence; leave --head, --label, --trees and --draw out")
    if args.output and not args.pairs:
        parser.error("--output: a record is of --pairs; give the folder")
    for name in ("head", "label"):
        words = [word for word, _ in getattr(args, name)]
        for word in words:
            if words.count(word) > 1:
                parser.error(f"--{name}: word {word} is named twice")
    check_subset(parser, args)
    check_preparation(parser, args)


def run(args: argparse.Namespace) -> None:
    """Print the tables, draw the picture.

    Raises:
        ValueError: the model takes no tree, or edits make none.
        OSError: a file is missing.
    """
    from .given_trees import GivenTrees
    from .model_input import nth, read_text
    from .preparation import of_source
    from .whatif_work import draw, outcomes, readings, tables

    refuse_existing([args.draw, args.output], args.overwrite)
    model = GivenTrees(args)
    if args.pairs:
        _count(model, args)
        return
    sentence, source = nth(read_text(of_source(args), model.loaded), args.sentence)
    if args.subset:
        sentence = model.stored_tree(args.subset, args.sentence, sentence.forms) or sentence
    found = readings(model, args, sentence, source)
    for note in model.notes(bool(args.head), bool(args.label), [reading.tree for reading in found if reading.tree]):
        print(f"fairseq-syntax whatif: {note}", file=sys.stderr)
    results = outcomes(model, source, found, args)
    print(tables(sentence.forms, found, results, args.format))
    if args.draw:
        title = f"{model.loaded.name}: {args.subset or args.input} {args.sentence}"
        draw(args.draw, title, sentence.forms, found, results)
        print(args.draw, file=sys.stderr)


def _count(model, args: argparse.Namespace) -> None:
    from ..evaluate.contrast import known
    from ..evaluate.minimal_pairs import find_pairs, read_pairs
    from ..evaluate.tree_pairs import tables
    from .whatif_pairs import count

    files, details = find_pairs(args.pairs)
    pairs = read_pairs(**files, details=details)
    record = count(model, args, pairs)
    if args.output:
        with written(args.output) as out:
            out.write(record.as_json())
    if args.output != "-":
        print(tables(record, known(pairs), args.format))


main = Verb(__doc__, add_arguments, run, check)

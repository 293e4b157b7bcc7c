"""fairseq-syntax attachment: score latent trees against a treebank (Tran & Bisk 2018, Table 3).

For DA and UA, punctuation (UPOS PUNCT) is removed from both trees: a word whose head is punctuation moves to its
nearest ancestor that is not, or becomes a root if there is no such ancestor.
  DA   directed: % of words with the right head; a root is right if it is predicted to be one
  UA   undirected: % of words whose arc is right in either direction; roots as in DA
  UAS  % of all words, punctuation included, with the right head
  L    baseline: the head of each word is the next one, and the last is the root
  R    baseline: the head of each word is the previous one, and the first is the root
Without DATA and --path, or --predicted, only the baselines are scored.

examples:
  fairseq-syntax attachment data-bin --path checkpoint_best.pt --gold en_ewt.test.conllu.gz --lowercase \\
      --bpe subword_nmt --bpe-codes codes.en
  fairseq-syntax attachment --predicted trees.conllu --gold en_ewt.test.conllu.gz --by deprel
"""

import argparse
import sys

from ..files import refuse_existing, written
from .verb import (
    Verb,
    add_format,
    add_overwrite,
    add_tree_arguments,
    add_treebank_arguments,
    check_treebank_arguments,
    positive,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_tree_arguments(parser)
    add_treebank_arguments(parser)
    parser.add_argument(
        "--min-words",
        type=positive,
        default=1,
        metavar="N",
        help="leave out sentences of fewer words, punctuation not counted; one-word sentences are always right "
        "(default: 1)",
    )
    parser.add_argument("--by", choices=["deprel"], help="also show the recall of each gold relation")
    add_format(parser)
    parser.add_argument(
        "--output", metavar="FILE", help="record of the scores, as JSON; - is stdout, instead of the tables"
    )
    add_overwrite(parser)


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    check_treebank_arguments(parser, args)
    if args.output and not (args.path or args.predicted):
        parser.error("--output: a record is of trees; give DATA and --path, or --predicted")


def run(args: argparse.Namespace) -> None:
    """Write the record, print the tables on stdout, the sizes on stderr."""
    from .compared_trees import read_compared
    from .treebank import Treebank

    refuse_existing([args.output], args.overwrite)
    compared = read_compared(args)
    treebank = Treebank(compared.gold, args.min_words)
    if not treebank.scored:
        raise ValueError(f"{args.gold}: no sentence with a tree and {args.min_words} or more words; give a treebank")
    if args.output:
        with written(args.output) as out:
            out.write(treebank.record(compared.predicted, f"{args.decoder} {args.evidence}" if args.path else "given"))
    if args.output != "-":
        print(_tables(compared, treebank, args))
    kept = int(treebank.kept.sum())
    short = f"fewer than {args.min_words} words" if args.min_words > 1 else "no word but punctuation"
    print(
        f"{kept} sentences, {treebank.words} words, {treebank.scored} of them not punctuation; "
        f"{len(compared.gold) - kept} sentences left out (no tree, or {short})",
        file=sys.stderr,
    )
    if compared.note:
        print(f"fairseq-syntax attachment: {compared.note}", file=sys.stderr)


def _tables(compared, treebank, args: argparse.Namespace) -> str:
    from ..evaluate.tables import format_table
    from .treebank import TREES

    found = {compared.system if name == TREES else name: of for name, of in treebank.scores(compared.predicted).items()}
    rows = [(name, *(scores[key] for key in ("DA", "UA", "UAS"))) for name, scores in found.items()]
    tables = [format_table(["system", "DA", "UA", "UAS"], rows, args.format)]
    if args.by:
        header = ["relation", "words", *(f"{score} {name}" for name in found for score in ("DA", "UA"))]
        columns = [scores["relations"] for scores in found.values()]
        rows = [
            (relation, first["words"], *(of[relation][score] for of in columns for score in ("DA", "UA")))
            for relation, first in columns[0].items()
        ]
        tables.append(format_table(header, rows, args.format))
    return "\n\n".join(tables)


main = Verb(__doc__, add_arguments, run, check)

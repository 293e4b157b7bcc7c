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

from .common.arguments import add_format, add_tree_arguments, add_treebank_arguments, check_treebank_arguments, positive
from .common.verb import Verb


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


def run(args: argparse.Namespace) -> None:
    """Print the tables on stdout, the sizes on stderr."""
    from ..evaluate.tables import format_table
    from ..inspection.attachment import Treebank
    from ..inspection.compared_trees import read_compared

    compared = read_compared(args)
    treebank = Treebank(compared.gold, args.min_words)
    if not treebank.scored:
        raise ValueError(f"{args.gold}: no sentence with a tree and {args.min_words} or more words; give a treebank")
    systems = {} if compared.predicted is None else {compared.system: treebank.accuracy(compared.predicted)}
    systems |= treebank.baseline_accuracy()
    rows = [(name, score.directed, score.undirected, score.uas) for name, score in systems.items()]
    print(format_table(["system", "DA", "UA", "UAS"], rows, args.format))
    if args.by:
        heads = {} if compared.predicted is None else {compared.system: compared.predicted}
        heads = {name: treebank.without_punctuation(trees) for name, trees in heads.items()} | treebank.baselines()
        by_system = {name: treebank.recall_by_relation(of_system) for name, of_system in heads.items()}
        header = ["relation", "words", *(f"{score} {name}" for name in heads for score in ("DA", "UA"))]
        first = next(iter(by_system.values()))
        rows = [
            (relation, first[relation][0], *(score for found in by_system.values() for score in found[relation][1:]))
            for relation in first
        ]
        print()
        print(format_table(header, rows, args.format))
    kept = int(treebank.kept.sum())
    short = f"fewer than {args.min_words} words" if args.min_words > 1 else "no word but punctuation"
    print(
        f"{kept} sentences, {treebank.words} words, {treebank.scored} of them not punctuation; "
        f"{len(compared.gold) - kept} sentences left out (no tree, or {short})",
        file=sys.stderr,
    )
    if compared.note:
        print(f"fairseq-syntax attachment: {compared.note}", file=sys.stderr)


main = Verb(__doc__, add_arguments, run, check_treebank_arguments)

"""fairseq-syntax grammar: which tags depend on which, in a treebank and in latent trees (Tran & Bisk 2018, Table 4).

For VERB:NOUN, the number is the percentage of nouns among the dependents of verbs. Tags are those of the treebank;
punctuation is removed from every tree as by fairseq-syntax attachment. L and R are its baselines: the head of each word
is the next one, or the previous one.

examples:
  fairseq-syntax grammar data-bin --path checkpoint_best.pt --gold en_ewt.test.conllu.gz --lowercase \\
      --bpe subword_nmt --bpe-codes codes.en
  fairseq-syntax grammar --predicted trees.conllu --gold en_ewt.test.conllu.gz --rules VERB:NOUN NOUN:DET
"""

import argparse
import sys

from ..trees.conllu import quoted
from .verb import Verb, add_format, add_tree_arguments, add_treebank_arguments, check_treebank_arguments, positive


def _rule(text: str) -> tuple[str, str]:
    head, separator, child = text.partition(":")
    if not (head and separator and child):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form HEAD:CHILD, such as VERB:NOUN")
    return head, child


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_tree_arguments(parser)
    add_treebank_arguments(parser)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--rules", nargs="+", type=_rule, metavar="HEAD:CHILD", help="rules to show, such as VERB:NOUN")
    group.add_argument(
        "--top",
        type=positive,
        default=20,
        metavar="N",
        help="show the most frequent rules of the treebank (default: 20)",
    )
    add_format(parser)


def run(args: argparse.Namespace) -> None:
    """Print the table on stdout, the sizes on stderr."""
    from ..evaluate.tables import format_table
    from .compared_trees import read_compared
    from .tag_grammar import Grammar
    from .treebank import Treebank

    compared = read_compared(args)
    treebank = Treebank(compared.gold)
    if not treebank.scored:
        raise ValueError(f"{args.gold}: no sentence with a tree; give a treebank")
    heads = {"gold": treebank.heads, **treebank.baselines()}
    if compared.predicted is not None:
        heads[compared.system] = treebank.without_punctuation(compared.predicted)
    grammars = {name: Grammar.of(of_system, treebank.upos) for name, of_system in heads.items()}
    gold = grammars["gold"]
    for tag in (tag for rule in args.rules or () for tag in rule):
        if tag not in gold.tags:
            known = quoted(", ".join(gold.tags), 300)[1:-1]
            raise ValueError(f"--rules: {args.gold} has no word tagged {tag!r}; its tags are {known}")
    rules = args.rules or gold.frequent(args.top)
    rows = [(*rule, *(grammar.share(*rule) for grammar in grammars.values())) for rule in rules]
    print(format_table(["head", "child", *grammars], rows, args.format))
    kept = int(treebank.kept.sum())
    print(
        f"{kept} sentences, {treebank.scored} words that are not punctuation; {len(compared.gold) - kept} sentences "
        "left out (no tree, or no word)",
        file=sys.stderr,
    )
    if compared.note:
        print(f"fairseq-syntax grammar: {compared.note}", file=sys.stderr)


main = Verb(__doc__, add_arguments, run, check_treebank_arguments)

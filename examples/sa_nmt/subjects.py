"""Do latent trees find the subject? How many subjects of a treebank are attached to their verb in other trees.

A subject is a word whose relation is nsubj (or a subtype of it), its verb is the head that the treebank gives it.
Punctuation is removed from all trees as fairseq-syntax-attachment does. The subject is found in a tree if there is an
arc between it and its verb, whichever way it points; DA counts the arcs that point as in the treebank only.

L and R are the trees in which the head of every word is the next one, or the one before. Chance is a tree drawn at
random, all trees of n words with one root being equally likely: any two words are neighbours in a share 2/n of them,
and in half of these the arc points as it should.

    python examples/sa_nmt/subjects.py --gold corpus/test.en.conllu --predicted trees.conllu
"""

import argparse
import sys

import numpy as np

from fairseq_syntax.analysis.attachment import Treebank
from fairseq_syntax.analysis.tables import format_table
from fairseq_syntax.trees.conllu import ROOT, TreeFormatError, read_conllu

RELATION = "nsubj"
BETWEEN = ((0, 0), (1, 2), (3, 5), (6, None))  # words between subject and verb, rows of the table


def subjects(treebank: Treebank, predicted: np.ndarray | None) -> tuple[list[str], list[tuple]]:
    """Header and rows of the table: all subjects, then by the number of words between subject and verb.

    Args:
        treebank: the gold trees.
        predicted: (K,) heads of other trees over its words, as `Treebank.without_punctuation` gives them.
    """
    relation = np.array([label.split(":")[0] for label in treebank.deprels], dtype=object)
    subject = np.flatnonzero((relation == RELATION) & (treebank.heads != ROOT))
    verb = treebank.heads[subject]
    between = np.abs(subject - verb) - 1
    length = np.repeat(treebank.lengths, treebank.lengths)[subject]
    systems = {} if predicted is None else {"latent": predicted}
    shares = {}
    for name, heads in (systems | treebank.baselines()).items():
        directed = heads[subject] == verb
        shares[name] = directed, directed | (heads[verb] == subject)
    shares["chance"] = 1 / length, 2 / length
    rows = []
    for low, high in ((0, None), *BETWEEN):
        here = (between >= low) & (between <= (np.inf if high is None else high))
        if here.any():
            found = [100 * float(share[here].mean()) for pair in shares.values() for share in reversed(pair)]
            rows.append((_name(low, high) if rows else "all", int(here.sum()), *found))
    header = ["words between", "subjects", *(column for name in shares for column in (name, f"{name} DA"))]
    return header, rows


def _name(low: int, high: int | None) -> str:
    if high is None:
        return f"{low} or more"
    return str(low) if low == high else f"{low} to {high}"


def main(argv: list[str] | None = None) -> int:
    """Entry point. Exit status: 0, 1 for bad data, 2 for bad usage."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", required=True, metavar="FILE", help="treebank with relations, CoNLL-U, also .gz")
    parser.add_argument("--predicted", metavar="FILE", help="trees for the same words (default: baselines alone)")
    args = parser.parse_args(argv)
    try:
        gold = list(read_conllu(args.gold))
        treebank = Treebank(gold)
        predicted = None
        if args.predicted:
            trees = list(read_conllu(args.predicted))
            if [tree.forms for tree in trees] != [tree.forms for tree in gold]:
                raise TreeFormatError(
                    f"{args.predicted}: not the sentences of {args.gold}; make trees for that very file"
                )
            predicted = treebank.without_punctuation([tree.heads for tree in trees])
        header, rows = subjects(treebank, predicted)
        if not rows:
            raise TreeFormatError(f"{args.gold}: no word has the relation {RELATION}; give a treebank with relations")
    except (ValueError, OSError) as error:
        print(f"subjects.py: {error}", file=sys.stderr)
        return 1
    print("% of subjects attached to their verb, in either direction; DA: the verb is the head")
    print(format_table(header, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())

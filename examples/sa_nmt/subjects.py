"""Do latent trees find the subject? How many subjects of a treebank are attached to their verb in other trees.

A subject is a word whose relation is nsubj (or a subtype), its verb is its head in the treebank. Punctuation is removed
as `attachment` does. The subject is found if an arc joins it and its verb; DA counts those with the verb as the head.
The second table also takes an arc between the subject and an auxiliary of its verb (aux, cop): in Universal
Dependencies the subject of "the dogs had seen it" hangs on "seen", but "had" agrees with it.

L and R are the trees in which the head of every word is the next one, or the one before. Chance is a tree drawn at
random, all trees of n words with one root being equally likely: the subject hangs on each of k other words in a share
1/n of them, and is a neighbour of one of the k in a share 1 - (1 - 1/n)^(k-1) (1 - (k+1)/n), which is 2/n for k = 1.

    python examples/sa_nmt/subjects.py --gold corpus/test.en.conllu --predicted trees.conllu
"""

import argparse
import sys

import numpy as np

from fairseq_syntax.evaluate.tables import format_table
from fairseq_syntax.evaluate.treebank import PUNCTUATION, Treebank, flatten, left_branching, remove, right_branching
from fairseq_syntax.trees.conllu import ROOT, Sentence, TreeFormatError, read_conllu

RELATION = "nsubj"
AUXILIARIES = ("aux", "cop")
BETWEEN = {"all": (0, np.inf), "0": (0, 0), "1 to 2": (1, 2), "3 to 5": (3, 5), "6 or more": (6, np.inf)}


def subjects(
    treebank: Treebank, predicted: np.ndarray | None, auxiliaries: bool = False
) -> tuple[list[str], list[tuple]]:
    """Header and rows of a table: all subjects, then by the number of words between subject and verb.

    Args:
        treebank: the gold trees.
        predicted: (K,) heads of other trees over its words, without punctuation.
        auxiliaries: whether an auxiliary of the verb is as good as the verb.
    """
    relation = np.array([label.split(":")[0] for label in treebank.deprels], dtype=object)
    subject = np.flatnonzero((relation == RELATION) & (treebank.heads != ROOT))
    verb = treebank.heads[subject]
    between = np.abs(subject - verb) - 1
    length = np.repeat(treebank.lengths, treebank.lengths)[subject]
    # the arcs looked for: of which subject, between which two words
    number, one, other = np.arange(len(subject)), subject, verb
    if auxiliaries:
        helper = np.flatnonzero(np.isin(relation, AUXILIARIES) & (treebank.heads != ROOT))
        of_subject, of_helper = np.nonzero(verb[:, None] == treebank.heads[helper])
        number = np.concatenate((number, of_subject))
        one = np.concatenate((one, subject[of_subject]))
        other = np.concatenate((other, helper[of_helper]))

    def found(arcs: np.ndarray) -> np.ndarray:
        return np.bincount(number, arcs, len(subject)) > 0

    systems = {} if predicted is None else {"latent": predicted}
    systems |= {"L": left_branching(treebank.lengths), "R": right_branching(treebank.lengths)}
    shares = {}
    for name, heads in systems.items():
        directed = heads[one] == other
        shares[name] = found(directed), found(directed | (heads[other] == one))
    k = np.bincount(number, minlength=len(subject))
    shares["chance"] = k / length, 1 - (1 - 1 / length) ** (k - 1) * (1 - (k + 1) / length)
    rows = []
    for name, (low, high) in BETWEEN.items():
        here = (between >= low) & (between <= high)
        if here.any():
            percent = [100 * float(share[here].mean()) for pair in shares.values() for share in reversed(pair)]
            rows.append((name, int(here.sum()), *percent))
    header = ["words between", "subjects", *(column for name in shares for column in (name, f"{name} DA"))]
    return header, rows


def without_punctuation(gold: list[Sentence], trees: list[list[int]]) -> np.ndarray:
    """Heads (K,) of other trees over the words of a treebank, of all its sentences that have a parse."""
    pairs = [(sentence, heads) for sentence, heads in zip(gold, trees, strict=True) if sentence.is_parsed]
    removed = [tag == PUNCTUATION for sentence, _ in pairs for tag in sentence.upos]
    return remove(flatten([heads for _, heads in pairs])[0], np.array(removed, dtype=bool))


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
                raise TreeFormatError(f"{args.predicted}: not the sentences of {args.gold}; make trees for that file")
            predicted = without_punctuation(gold, [tree.heads for tree in trees])
        tables = [subjects(treebank, predicted, auxiliaries) for auxiliaries in (False, True)]
        if not tables[0][1]:
            raise TreeFormatError(f"{args.gold}: no word has the relation {RELATION}; give a treebank with relations")
    except (ValueError, OSError) as error:
        print(f"subjects.py: {error}", file=sys.stderr)
        return 1
    print("% of subjects attached to their verb, in either direction; DA: the verb is the head")
    print(format_table(*tables[0]))
    print("\n% of subjects attached to their verb or to an auxiliary of it")
    print(format_table(*tables[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())

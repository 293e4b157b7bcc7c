"""Minimal pairs of English number from a German-English corpus, for `fairseq-syntax contrast`.

    python examples/multi30k/pairs.py --source test.de --target test.en --trees test.en.conllu.gz --output pairs/number

The trees are of the English side, the target; is/are, was/were and this/these are exchanged where the parse says the
number of the word (`examples/multi30k/number_pairs.py`).
"""

import argparse
import sys
from itertools import zip_longest
from pathlib import Path

from number_pairs import number_pairs

from fairseq_syntax.evaluate.minimal_pairs import write_pairs
from fairseq_syntax.trees.alignment import align_tree
from fairseq_syntax.trees.conllu import read_conllu
from fairseq_syntax.trees.text import TreeFormatError, read_lines


def make(source: Path, target: Path, trees: Path) -> list[dict]:
    """The rows of `write_pairs`."""
    rows = []
    for number, (foreign, english, tree) in enumerate(
        zip_longest(read_lines(source), read_lines(target), read_conllu(trees)), 1
    ):
        if None in (foreign, english, tree):
            raise TreeFormatError(f"{target}:{number}: source, target and trees have different numbers of sentences")
        words = english.split()
        tree = align_tree(tree, words, f"{target}:{number}")
        for pair in number_pairs(tree) if tree.is_parsed and foreign.strip() else ():
            other = pair.other.capitalize() if words[pair.word][0].isupper() else pair.other
            wrong = [*words[: pair.word], other, *words[pair.word + 1 :]]
            details = {"words": pair.kind, "distance": str(pair.distance), "attractors": str(pair.attractors)}
            rows.append(
                {"source": foreign.strip(), "correct": " ".join(words), "incorrect": " ".join(wrong), **details}
            )
    return rows


def main(argv: list[str] | None = None) -> int:
    """Write the folder; exit status 1 if the files do not go together."""
    parser = argparse.ArgumentParser(description="Make minimal pairs of English number from a parallel corpus.")
    parser.add_argument("--source", required=True, type=Path, metavar="FILE", help="text in the other language")
    parser.add_argument("--target", required=True, type=Path, metavar="FILE", help="English text, words by spaces")
    parser.add_argument("--trees", required=True, type=Path, metavar="FILE", help="CoNLL-U of the English text")
    parser.add_argument("--source-lang", default="de", help="of the names of the files (default: de)")
    parser.add_argument("--output", required=True, type=Path, metavar="FOLDER", help="folder of pairs to make")
    args = parser.parse_args(argv)
    try:
        rows = make(args.source, args.target, args.trees)
        write_pairs(args.output, args.source_lang, "en", rows)
    except (ValueError, OSError) as error:
        print(f"pairs.py: {error}", file=sys.stderr)
        return 1
    print(f"{args.output}: {len(rows)} pairs", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())

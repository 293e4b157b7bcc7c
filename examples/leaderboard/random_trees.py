"""Replace the trees of a CoNLL-U file by random ones, the control of the leaderboard.

    python examples/leaderboard/random_trees.py --input train.en.conllu --output random/train.en.conllu --seed 1

Every tree over a sentence's words is equally likely. The same seed gives the same trees.
"""

import argparse
import random
import sys
from pathlib import Path

from fairseq_syntax.trees.conllu import TreeFormatError, format_sentence, read_conllu
from fairseq_syntax.trees.random_trees import with_random_tree


def main(argv: list[str] | None = None) -> int:
    """Write the file; exit status 1 if the input cannot be read."""
    parser = argparse.ArgumentParser(description="Replace the trees of a CoNLL-U file by random ones.")
    parser.add_argument("--input", required=True, type=Path, metavar="FILE", help="CoNLL-U, also as .gz")
    parser.add_argument("--output", required=True, type=Path, metavar="FILE", help="CoNLL-U to write")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same trees (default: 1)")
    args = parser.parse_args(argv)
    try:
        with open(partial := args.output.with_name(args.output.name + ".partial"), "w", encoding="utf8") as out:
            for number, sentence in enumerate(read_conllu(args.input)):
                # a generator a sentence: its tree does not depend on the sentences before it
                out.write(format_sentence(with_random_tree(sentence, random.Random(f"{args.seed} {number}"))))
        partial.replace(args.output)
    except (TreeFormatError, OSError) as error:
        print(f"random_trees.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

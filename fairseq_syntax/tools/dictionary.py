"""fairseq-syntax dictionary: build an open source dictionary, which keeps the spelling of every word.

The parser inside LGP-NMT (Hashimoto & Tsuruoka 2017) reads character n-grams, even of rare and unseen words, so
binarization must not turn them into <unk>. The dictionary has the words of the training text with their counts, the
most frequent first, followed by the words that occur in the other texts only, with count 0. The model decides which
words are frequent enough for their own embeddings.

example:
  fairseq-syntax dictionary --train train.en --extra valid.en test.en --output dict.en.txt
  fairseq-preprocess -s en -t ja --trainpref train --validpref valid --testpref test --srcdict dict.en.txt \\
      --thresholdtgt 2 --destdir data-bin
"""

import argparse
import sys
from collections import Counter

from ..files import written
from ..trees.text import refuse_symbols, token_lines
from .verb import Verb, add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--train", nargs="+", required=True, metavar="FILE", help="training text, one sentence per line, plain or .gz")
    add(
        "--extra",
        nargs="+",
        default=[],
        metavar="FILE",
        help="texts to translate, such as test sets; they do not change counts",
    )
    add("--output", required=True, metavar="FILE", help="dictionary; - is stdout")
    add_shared(parser, "--overwrite")


def run(args: argparse.Namespace) -> None:
    words = open_dictionary(args.train, args.extra)
    with written(args.output) as file:
        file.writelines(f"{word} {count}\n" for word, count in words.items())
    seen = sum(count > 0 for count in words.values())
    print(
        f"fairseq-syntax dictionary: {args.output}: {seen} words of the training text, {len(words) - seen} others with "
        "count 0",
        file=sys.stderr,
    )


def open_dictionary(train: list[str], extra: list[str]) -> dict[str, int]:
    """Counts of the words of the training files, by frequency, and of new words of `extra`, which is 0.

    They are in the order of fairseq's dictionary, without dummy words up to a multiple of 8. Neither the order of lines
    nor that of training files matters, and another file at the end of `extra` leaves earlier words where they are.
    Raises ValueError: the training text has no words.
    """
    counts = sum(map(count_words, train), Counter())
    if not counts:
        raise ValueError(f"{', '.join(train)}: no words; give the training text that will be binarized")
    words = dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
    for path in extra:
        for word in sorted(count_words(path)):
            words.setdefault(word, 0)
    return words


def count_words(path: str) -> Counter:
    """Counts of the words of a text. Raises TreeFormatError as `token_lines` and `refuse_symbols` do."""
    counts: Counter = Counter()
    for number, line in token_lines(path):
        refuse_symbols(line, f"{path}:{number}")
        counts.update(line.split())
    return counts


main = Verb(__doc__, add_arguments, run, outputs=("output",))

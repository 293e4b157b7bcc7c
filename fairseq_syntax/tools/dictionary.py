"""fairseq-syntax dictionary: build an open source dictionary, which keeps the spelling of every word.

The parser inside LGP-NMT (Hashimoto & Tsuruoka 2017) reads character n-grams, also of rare and unseen words, so
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
from ..trees.text import token_lines
from .verb import Verb, add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--train", nargs="+", required=True, metavar="FILE", help="training text, one sentence per line, plain or .gz")
    add(
        "--extra",
        nargs="+",
        default=[],
        metavar="FILE",
        help="texts to translate, such as test sets; they change no counts",
    )
    add("--output", required=True, metavar="FILE", help="dictionary; - is stdout")
    add_shared(parser, "--overwrite")


def run(args: argparse.Namespace) -> None:
    dictionary = open_dictionary(args.train, args.extra)
    with written(args.output) as file:
        dictionary.save(file)
    seen = sum(count > 0 for count in dictionary.count[dictionary.nspecial :])
    unseen = len(dictionary) - dictionary.nspecial - seen
    print(
        f"fairseq-syntax dictionary: {args.output}: {seen} words of the training text, {unseen} others with count 0",
        file=sys.stderr,
    )


def open_dictionary(train: list[str], extra: list[str]):
    """A fairseq dictionary of the words of the training files, by frequency, and of new words of `extra`, with count 0.

    The order of lines and training files does not matter. Another file at the end of `extra` leaves earlier indices
    unchanged. Raises ValueError: the training text has no words.
    """
    from fairseq.data import Dictionary

    dictionary = Dictionary()
    for path in train:
        for word, count in count_words(path).items():
            dictionary.add_symbol(word, count)
    if len(dictionary) == dictionary.nspecial:
        raise ValueError(f"{', '.join(train)}: no words; give the training text that will be binarized")
    # without this factor, fairseq would add dummy words up to a multiple of 8
    dictionary.finalize(threshold=0, padding_factor=1)
    for path in extra:
        for word in sorted(count_words(path)):
            dictionary.add_symbol(word, 0)
    return dictionary


def count_words(path: str) -> Counter:
    """Counts of the words of a text, split as in fairseq. Raises TreeFormatError as `token_lines` does."""
    from fairseq.tokenizer import tokenize_line

    counts = Counter()
    for _, line in token_lines(path):
        counts.update(tokenize_line(line))
    return counts


main = Verb(__doc__, add_arguments, run, outputs=("output",))

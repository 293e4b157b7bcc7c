"""An open source dictionary for LGP-NMT, which reads the spelling of every word: dictionary.py OUTPUT TRAIN [OTHER…]

It has the words of the training text with their counts, the most frequent first, and then those of other texts alone,
with count 0. So binarization makes no word <unk>, and the model decides which are frequent enough for their own vector.
"""

import sys
from collections import Counter

from fairseq_syntax.files import written
from fairseq_syntax.trees.text import refuse_symbols, token_lines


def count_words(path: str) -> Counter:
    """Counts of the words of a text. Raises ValueError as `token_lines` and `refuse_symbols` do."""
    counts: Counter = Counter()
    for number, line in token_lines(path):
        refuse_symbols(line, f"{path}:{number}")
        counts.update(line.split())
    return counts


def main(output: str, train: str, *others: str) -> None:
    words = dict(sorted(count_words(train).items(), key=lambda item: (-item[1], item[0])))
    for path in others:
        words |= dict.fromkeys(sorted(count_words(path).keys() - words.keys()), 0)
    with written(output) as file:
        file.writelines(f"{word} {count}\n" for word, count in words.items())


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (ValueError, OSError) as error:
        sys.exit(f"dictionary.py: {error}")

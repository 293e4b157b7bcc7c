"""A language of which all is known, translated word by word.

Source words are over the letters a to h, target words over i to p, 3 to 6 letters each. In either language no word
begins with another, so that a sentence can be cut in one way only. A sentence is some words drawn at random; its
translation, the translations of the words in the same order (--order same) or from the last to the first (reversed).

For each split and each of the languages src and tgt, two files:
    train.src          characters, separated by spaces: b a d c a b e; with --spaces, b a d ▁ c a b e
    train.src.words    where the words are: bad cabe

    python examples/latent_tree/artificial.py --output corpus
"""

import argparse
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np

from fairseq_syntax.files import refuse_existing, written
from fairseq_syntax.tools.verb import exit_status
from fairseq_syntax.trees.characters import to_characters

LETTERS = {"src": "abcdefgh", "tgt": "ijklmnop"}
SHORTEST, LONGEST = 3, 6  # letters of a word


def lexicon(size: int, letters: str, random: np.random.Generator) -> list[str]:
    """Different words, none of which begins with another.

    Args:
        size: number of words.
        letters: they are of.
        random: draws the length of each word, then its letters; words that cannot be had are drawn again.
    """
    words: list[str] = []
    while len(words) < size:
        length = random.integers(SHORTEST, LONGEST + 1)
        word = "".join(random.choice(list(letters), length))
        if not any(word.startswith(known) or known.startswith(word) for known in words):
            words.append(word)
    return words


def sentences(count: int, words: int, shortest: int, longest: int, random: np.random.Generator) -> list[np.ndarray]:
    """Numbers of words: lengths are uniform, and so are words."""
    return [random.integers(0, words, random.integers(shortest, longest + 1)) for _ in range(count)]


def build_parser() -> argparse.ArgumentParser:
    """The program's options."""
    parser = argparse.ArgumentParser(
        prog="artificial.py", description="Write sentence pairs of an artificial language, and where its words are."
    )
    add = parser.add_argument
    add("--output", required=True, metavar="FOLDER", help="folder for the files")
    add("--train", type=int, default=4000, metavar="N", help="training sentences")
    add("--valid", type=int, default=200, metavar="N", help="validation sentences")
    add("--test", type=int, default=200, metavar="N", help="test sentences")
    add("--words", type=int, default=40, metavar="N", help="words of each language; at most 100")
    add("--shortest", type=int, default=2, metavar="N", help="words of a sentence, at least")
    add("--longest", type=int, default=6, metavar="N", help="words of a sentence, at most")
    add("--order", choices=["same", "reversed"], default="same", help="order of the words in the translation")
    add("--spaces", action="store_true", help="write spaces between words; without, nothing tells where they begin")
    add("--seed", type=int, default=1, metavar="N", help="the same seed gives the same files")
    add("--overwrite", action="store_true", help="replace files that exist")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Entry point. Exit status: 0, 1 if files cannot be written, 2 for bad usage."""
    parser = build_parser()
    args = parser.parse_args(argv)
    sizes = {"train": args.train, "valid": args.valid, "test": args.test}
    if min(sizes.values()) < 1 or not 1 <= args.words <= 100 or not 1 <= args.shortest <= args.longest:
        parser.error(
            "--train, --valid, --test, --words (at most 100), --shortest and, at least that, --longest: from 1"
        )
    return exit_status(parser.prog, lambda: run(args, sizes))


def run(args: argparse.Namespace, sizes: dict[str, int]) -> None:
    """Write all files.

    Raises:
        ValueError: one of them exists.
        OSError: one cannot be written.
    """
    random = np.random.default_rng(args.seed)
    lexicons = {language: lexicon(args.words, letters, random) for language, letters in LETTERS.items()}
    contents = {}
    for split, size in sizes.items():
        pairs = sentences(size, args.words, args.shortest, args.longest, random)
        for language, words in lexicons.items():
            step = -1 if args.order == "reversed" and language == "tgt" else 1
            contents[f"{split}.{language}"] = [[words[i] for i in pair[::step]] for pair in pairs]
    between = " " if args.spaces else ""
    paths = {name: str(Path(args.output) / name) for name in contents}
    refuse_existing([*paths.values(), *(f"{path}.words" for path in paths.values())], args.overwrite)
    for name, lines in contents.items():
        with written(paths[name]) as characters, written(f"{paths[name]}.words") as words:
            characters.writelines(f"{to_characters(between.join(line))}\n" for line in lines)
            words.writelines(f"{' '.join(line)}\n" for line in lines)
    lengths = {name: np.mean([len("".join(line)) for line in lines]) for name, lines in contents.items()}
    for (source, length), (_, other) in list(pairwise(lengths.items()))[::2]:
        split = source.split(".")[0]
        print(f"{split}: {sizes[split]} pairs, {length:.1f} and {other:.1f} characters a sentence", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

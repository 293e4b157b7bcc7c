"""Trees from a CoNLL-U file, parsed beforehand."""

from dataclasses import replace
from pathlib import Path

from ...trees.conllu import Sentence, TreeFormatError, quoted, read_conllu
from . import Parser, ParserOptions

READS = NEEDS = ("parser_model",)


def load(options: ParserOptions) -> Parser:
    """See `load_parser`."""
    return ConlluParser(str(options.parser_model))


class ConlluParser:
    """Parser that looks up the words of a sentence in a CoNLL-U file; takes about 3 kB of memory per tree.

    A sentence is found by its words, by its surface tokens if the file has multi-word ranges ("im" = "in" + "dem"), or
    by the parts of words that hold spaces ("10 000"). If several trees have the same words, calls of `parse` return
    them in the order of the file, and then the last one repeatedly; so a text parsed once from top to bottom gets its
    own trees.

    Raises TreeFormatError: a tree is broken.
    """

    in_turn = True

    def __init__(self, path: str | Path):
        self.path = path
        self._trees: dict[tuple[str, ...], list[Sentence]] = {}
        self._used: dict[tuple[str, ...], int] = {}
        for sentence in read_conllu(path):
            # a range of one word may change nothing; the tree must not be in the queue twice
            keys = {tuple(tree.forms): tree for tree in (replace(sentence, ranges=[]), sentence.collapse_ranges())}
            keys |= {tuple(" ".join(words).split()): tree for words, tree in keys.items()}
            for words, tree in keys.items():
                self._trees.setdefault(words, []).append(tree)

    def parse(self, sentences: list[list[str]]) -> list[Sentence]:
        """See `Parser.parse`. Raises TreeFormatError: the file has no tree over the words of a sentence."""
        return [self._tree(words) for words in sentences]

    def _tree(self, words: list[str]) -> Sentence:
        if not words:
            return Sentence([], [], [], [])
        key = tuple(words)
        if (trees := self._trees.get(key)) is None:
            raise TreeFormatError(
                f"{self.path}: no tree for the sentence {quoted(' '.join(words))}; "
                "parse the tokenised text with fairseq-syntax parse"
            )
        self._used[key] = used = self._used.get(key, 0) + 1
        return trees[min(used, len(trees)) - 1]

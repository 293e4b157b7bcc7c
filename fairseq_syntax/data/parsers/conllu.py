"""Trees of a CoNLL-U file that stands beside the text."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ...trees.conllu import (
    Sentence,
    TreeFormatError,
    block_forms,
    open_text,
    parse_block,
    quoted,
    read_blocks,
    without_parse,
)
from . import Parser, ParserOptions, Progress, moving_bar

logger = logging.getLogger(__name__)

READS = NEEDS = ("parser_model",)


def load(options: ParserOptions, lenient: bool) -> Parser:
    """See `load_parser`."""
    assert options.parser_model is not None  # see NEEDS
    return ConlluParser(options.parser_model, skip_broken=lenient)


class ConlluParser:
    """Trees from a CoNLL-U file that was made beforehand, looked up by their words; about 3 kB of memory a sentence.

    A sentence is found by its words, or by its surface tokens where the file has multi-word ranges ("im" = "in" +
    "dem"), and as well by the words between spaces where some hold spaces ("10 000"). Where the same words occur
    several times, their trees are given out in the order of the file, over all calls of `parse`, and the last one
    again and again; so a text parsed once from top to bottom gets its own trees.

    With `skip_broken`, broken trees are left out with a warning each, and their sentences have no parse; otherwise they
    raise TreeFormatError.
    """

    in_turn = True

    def __init__(self, path: str | Path, skip_broken: bool = False):
        self.path = path
        self._trees: dict[tuple[str, ...], list[Sentence]] = {}
        self._used: dict[tuple[str, ...], int] = {}
        with open_text(path) as lines:
            for start, block in read_blocks(lines, str(path)):
                try:
                    self._add(parse_block(block, str(path), start))
                except TreeFormatError as error:
                    if not skip_broken:
                        raise
                    logger.warning("left out: %s", error)
                    # instead of the tree, or an equal sentence below would lose its own
                    self._add(without_parse(block_forms(block)))

    def _add(self, sentence: Sentence) -> None:
        candidates = [replace(sentence, ranges=[])]
        if sentence.ranges:
            candidates.append(sentence.collapse_ranges())
        # a range may span one word and change nothing; it must not stand in the queue twice
        keys = {tuple(tree.forms): tree for tree in candidates}
        keys |= {tuple(" ".join(words).split()): tree for words, tree in keys.items()}
        for words, tree in keys.items():
            self._trees.setdefault(words, []).append(tree)

    def parse(self, sentences: list[list[str]], progress: Progress = False) -> list[Sentence]:
        """See `Parser.parse`. Raises TreeFormatError: the file has no tree over the words of a sentence."""
        with moving_bar(progress, len(sentences)) as advance:
            return [self._tree(words, advance) for words in sentences]

    def _tree(self, words: list[str], advance: Callable[[int], object]) -> Sentence:
        advance(1)
        if not words:
            return Sentence([], [], [], [])
        key = tuple(words)
        trees = self._trees.get(key)
        if trees is None:
            raise TreeFormatError(
                f"{self.path}: no tree for the sentence {quoted(' '.join(words))}; "
                "parse the tokenised text with fairseq-syntax parse"
            )
        used = self._used.get(key, 0)
        self._used[key] = used + 1
        return trees[min(used, len(trees) - 1)]

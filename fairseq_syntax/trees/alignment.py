"""Find the trees of a text, and align each with the words of its sentence."""

import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from .conllu import Sentence, TreeFormatError, block_forms, open_text, quoted, read_blocks
from .text import refuse_returns, token_lines


class Example(NamedTuple):
    """A line of text and the raw lines of its tree."""

    line: int
    text: str
    tree_line: int
    tree: list[str]


def find_trees(path: str | Path, advice: str) -> Path:
    """The file of trees at `path`, or at `path.gz`.

    Raises FileNotFoundError, whose message ends with `advice`, if neither exists, TreeFormatError if both do.
    """
    files = [file for file in (Path(path), Path(f"{path}.gz")) if file.is_file()]
    if not files:
        raise FileNotFoundError(f"{path}: no such trees (nor {Path(path).name}.gz); {advice}")
    if len(files) > 1:
        raise TreeFormatError(f"{path}: exists with and without .gz; delete the wrong one")
    return files[0]


def pair_examples(text_path: str | Path, trees_path: str | Path) -> Iterator[Example]:
    """Read a text and its trees in parallel. An empty line may have a tree without words, or no tree at all.

    Raises TreeFormatError: the files differ in their number of sentences, or one cannot be read.
    """
    with open_text(trees_path) as trees:
        blocks = read_blocks(trees, str(trees_path))
        start, block = next(blocks, (0, None))
        number = 0
        for number, line in token_lines(text_path):
            if block is not None and (line.strip() or not block_forms(block)):
                yield Example(number, line, start, block)
                start, block = next(blocks, (0, None))
            elif not line.strip():
                yield Example(number, line, 0, [])
            else:
                raise TreeFormatError(
                    f"{text_path}:{number}: no parse; {trees_path} ends after {number - 1} sentences: "
                    "parse exactly this text with fairseq-syntax parse"
                )
        if block is not None:
            raise TreeFormatError(
                f"{trees_path}:{start}: tree {number + 1}, but {text_path} has {number} lines; "
                "parse exactly this text with fairseq-syntax parse"
            )


@contextmanager
def explain_misfit(text_path: str | Path) -> Iterator[None]:
    """Turn a TreeFormatError into one that names a stray carriage return in the text, if there is one."""
    try:
        yield
    except TreeFormatError:
        with suppress(OSError):
            refuse_returns(text_path)
        raise


def fit_tree(sentence: Sentence, words: list[str], place: str) -> tuple[Sentence, list[int]]:
    """Find the words of a text in its tree, with its multi-word ranges collapsed if need be.

    A word of the tree that holds a space ("13 819") is several words of the text, which belong to it as pieces do.

    Returns:
        the tree, and the word of the tree that each word of the text belongs to.

    Raises:
        TreeFormatError: the words differ. The message names the `place` and the first difference from the reading
            that fits best.
    """
    if sentence.forms == words:
        return sentence, list(range(len(words)))
    misfits = []
    for tree in (sentence, sentence.collapse_ranges()):
        tokens, owners = [], []
        for number, form in enumerate(tree.forms):
            split = form.split() or [form]
            tokens += split
            owners += [number] * len(split)
        if tokens == words:
            return tree, owners
        pairs = enumerate(zip_longest(words, tokens), 1)
        misfits.append((*next((number, pair) for number, pair in pairs if pair[0] != pair[1]), len(tokens)))
    number, pair, size = max(misfits, key=lambda misfit: misfit[0])
    word, form = ("the end" if text is None else quoted(text) for text in pair)
    if None not in pair and unicodedata.normalize("NFC", pair[0]) == unicodedata.normalize("NFC", pair[1]):
        raise TreeFormatError(
            f"{place}: word {number}, {word}, is in another normal form of Unicode than in the parse ({pair[0]!a} "
            f"and {pair[1]!a}); write both in NFC: uconv -x any-nfc < OLD > NEW"
        )
    raise TreeFormatError(
        f"{place}: word {number} is {word} but the parse has {form} ({len(words)} and {size} words); parse exactly "
        "this text with fairseq-syntax parse"
    )


def align_tree(sentence: Sentence, words: list[str], place: str) -> Sentence:
    """The tree over exactly these words, see `fit_tree`. Raises TreeFormatError: there is none."""
    tree, _ = fit_tree(sentence, words, place)
    if len(tree) != len(words):
        form = next(form for form in tree.forms if len(form.split()) > 1)
        raise TreeFormatError(f"{place}: {quoted(form)} is one word of the parse but several of the text; cut it there")
    return tree

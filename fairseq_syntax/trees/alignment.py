"""Finding the trees of a text, and fitting each to the words of its sentence."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from .conllu import Sentence, TreeFormatError, block_forms, open_text, quoted, read_blocks
from .text import refuse_returns, token_lines


class Example(NamedTuple):
    """One sentence as read: its text line and the raw lines of its tree."""

    line: int
    text: str
    tree_line: int
    tree: list[str]


def find_trees(path: str | Path, advice: str) -> Path:
    """The file of trees, plain or gzipped.

    Raises FileNotFoundError, with advice: there is none; TreeFormatError: there are both.
    """
    found = [each for each in (Path(path), Path(f"{path}.gz")) if each.is_file()]
    if not found:
        raise FileNotFoundError(f"{path}: no such trees (nor {Path(path).name}.gz); {advice}")
    if len(found) > 1:
        raise TreeFormatError(f"{path}: exists with and without .gz; delete the wrong one")
    return found[0]


def pair_examples(text_path: str | Path, trees_path: str | Path) -> Iterator[Example]:
    """Read a text and its trees side by side; an empty line goes with a tree without words, or with none at all.

    Raises TreeFormatError: the files hold different numbers of sentences, or one is not readable.
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
                    "parse this very text with fairseq-syntax parse"
                )
        if block is not None:
            raise TreeFormatError(
                f"{trees_path}:{start}: tree {number + 1}, but {text_path} has {number} lines; "
                "parse this very text with fairseq-syntax parse"
            )


@contextmanager
def explain_misfit(text_path: str | Path) -> Iterator[None]:
    """Raise TreeFormatError of a carriage return inside a line, if there is one, instead of what follows from it."""
    try:
        yield
    except TreeFormatError:
        with suppress(OSError):
            refuse_returns(text_path)
        raise


def align_tree(sentence: Sentence, words: list[str], place: str) -> Sentence:
    """The tree over exactly these words: as it is, or with its multi-word ranges collapsed.

    Raises TreeFormatError at `place` of the text: the words differ; the message shows the first difference.
    """
    if sentence.forms == words:
        return sentence
    if sentence.ranges:
        collapsed = sentence.collapse_ranges()
        if collapsed.forms == words:
            return collapsed
    different = next(
        (i for i, (a, b) in enumerate(zip(sentence.forms, words, strict=False)) if a != b),
        min(len(sentence), len(words)),
    )
    of_tree = quoted(sentence.forms[different]) if different < len(sentence) else "the end"
    of_text = quoted(words[different]) if different < len(words) else "the end"
    raise TreeFormatError(
        f"{place}: word {different + 1} is {of_text} but the parse has {of_tree} "
        f"({len(words)} and {len(sentence)} words); parse this very text with fairseq-syntax parse"
    )

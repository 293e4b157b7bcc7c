"""CoNLL-U read the slow and strict way: what a file says, or that it says nothing; and what Universal Dependencies
demands of it. https://universaldependencies.org/format.html
"""

import gzip
import itertools
import re
from dataclasses import dataclass

from .forests import is_forest

_NUMBER = "[1-9][0-9]*"
_RELATION = re.compile(r"[a-z]+(:[a-z]+)?")


class Invalid(ValueError):
    """The file is not CoNLL-U."""


@dataclass
class Tree:
    """Words of a sentence, HEAD as it is written ("_" without a parse), labels, tags and ranges as (from, to, form)."""

    forms: list
    heads: list
    deprels: list
    upos: list
    xpos: list
    ranges: list
    comments: list
    line: int


def read(data: bytes, packed: bool = False) -> list[Tree]:
    """The sentences of a file."""
    found = blocks(text(data, packed))
    for (_, before), (_, block) in itertools.pairwise(found):
        named = any(re.match("# *text *= *[^ ]", line) for line in before)
        if named and all(line.startswith("#") for line in before) and not block[0].startswith("#"):
            raise Invalid("an empty line between comments and words")
    return [sentence(block, begin) for begin, block in found]


def text(data: bytes, packed: bool = False) -> str:
    """The text of a file, without a byte order mark."""
    try:
        return (gzip.decompress(data) if packed else data).decode("utf-8").removeprefix("\ufeff")
    except Exception as error:  # gzip fails in many ways
        raise Invalid(str(error)) from None


def blocks(text: str) -> list[tuple[int, list[str]]]:
    """First line and lines of each sentence."""
    found, block, begin = [], [], 1
    for number, line in enumerate([*text.split("\n"), ""], 1):
        while line.endswith("\r"):
            line = line[:-1]
        if line.strip() == "":
            if block:
                found.append((begin, block))
            block = []
        else:
            begin = begin if block else number
            block.append(line)
    return found


def sentence(block: list[str], begin: int) -> Tree:
    """The tree in some lines."""
    comments = [line for line in block if line.startswith("#")]
    rows = [line.split("\t") for line in block if not line.startswith("#")]
    if any(len(row) != 10 or not row[1] for row in rows):
        raise Invalid("columns")
    words = [row for row in rows if re.fullmatch("[0-9]+", row[0])]
    if [row[0] for row in words] != [str(i) for i in range(1, len(words) + 1)]:
        raise Invalid("ids")
    seen, covered, ranges = 0, 0, []
    for row in rows:
        if row in words and row[0] == str(seen + 1):
            seen += 1
        elif found := re.fullmatch(f"({_NUMBER})-({_NUMBER})", row[0]):
            first, last = found.groups()
            if first != str(seen + 1) or covered > seen or last not in [row[0] for row in words[seen:]]:
                raise Invalid("range")
            covered = int(last)
            ranges.append((seen + 1, covered, row[1]))
        elif not re.fullmatch(rf"{seen}\.{_NUMBER}", row[0]):
            raise Invalid("id")
    for row in words:
        if any(not tag or any(c.isspace() for c in tag) for tag in (row[3], row[7])):
            raise Invalid("tags")
    heads = [row[6] for row in words]
    if set(heads) != {"_"}:
        check_heads(heads)
    return Tree(*([row[i] for row in words] for i in (1, 6, 7, 3, 4)), ranges, comments, begin)


def check_heads(heads: list[str]) -> None:
    """Every word leads to HEAD 0."""
    valid = {str(i): i - 1 for i in range(len(heads) + 1)}
    if not all(head in valid for head in heads) or not is_forest([valid[head] for head in heads]):
        raise Invalid("head")


def check_universal(tree: Tree) -> None:
    """What the first levels of UD's own validation ask of a parsed sentence; AssertionError otherwise."""
    assert tree.heads.count("0") == 1
    assert len(tree.forms) == len(tree.heads) == len(tree.deprels) > 0
    for head, deprel in zip(tree.heads, tree.deprels, strict=True):
        assert (deprel == "root") == (head == "0"), (head, deprel)
        assert _RELATION.fullmatch(deprel), deprel
    for tag in (*tree.upos, *tree.xpos):
        assert tag and not any(c.isspace() for c in tag)

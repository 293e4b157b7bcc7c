"""Reading and writing CoNLL-U dependency trees.

Format: https://universaldependencies.org/format.html, with comments, multi-word ranges, empty nodes, several roots,
CRLF and gzip; and CoNLL-U Plus, whose columns a line `# global.columns = ID FORM …` names. Everything else raises a
`TreeFormatError` that names file, line and value.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .text import MAX_LINE, SHOWN, TreeFormatError, numbered_lines, open_text, quoted

ROOT = -1
"""Head of a root word (word-level heads are 0-based)."""
UNPARSED = -2
"""Head of every word of a sentence that has no parse (its HEAD column is `_` throughout)."""

MAX_WORDS = 4096
"""Default limit on the words of a sentence; a distance matrix has the square of this many entries."""

_COLUMNS = "ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC".split()
_RANGE = re.compile(r"([1-9][0-9]*)-([1-9][0-9]*)")
_EMPTY_NODE = re.compile(r"(0|[1-9][0-9]*)\.[1-9][0-9]*")
_OF_WORDS = re.compile(r"^# *text *= *\S", re.MULTILINE)
_DIGITS = 9  # of the largest number; Python refuses to convert several thousand
_CYCLE = 6  # words of a cycle in a message


@dataclass
class Sentence:
    """One dependency tree (or forest) over J words."""

    forms: list[str]  # J words
    heads: list[int]  # J heads, 0-based; `ROOT` (-1) for a root, `UNPARSED` (-2) for all words without a parse
    deprels: list[str]  # J dependency labels, `_` where unknown
    upos: list[str]  # J universal part-of-speech tags, `_` where unknown
    # multi-word tokens as (first word, last word, surface form), 0-based and inclusive
    ranges: list[tuple[int, int, str]] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)  # comment lines with their `#`
    line: int = 0  # 1-based line at which the sentence starts; 0 if it was not read from a file

    def __len__(self) -> int:
        return len(self.forms)

    @property
    def is_parsed(self) -> bool:
        """True if the sentence has a tree; an empty sentence has an empty tree."""
        return not self.heads or self.heads[0] != UNPARSED

    def collapse_ranges(self) -> "Sentence":
        """The same tree over surface tokens, in which each multi-word range is one node.

        "im" (= "in" + "dem") takes the head, label and tag of its word nearest the root, the first one if two are
        equally near. Any other choice could make a cycle.
        """
        if not self.ranges:
            return self
        starts = {first: (last, form) for first, last, form in self.ranges}
        nodes: list[int] = []
        members: list[list[int]] = []
        forms: list[str] = []
        word = 0
        while word < len(self):
            last, form = starts.get(word, (word, self.forms[word]))
            nodes += [len(forms)] * (last - word + 1)
            members.append(list(range(word, last + 1)))
            forms.append(form)
            word = last + 1
        heads, deprels, upos = [], [], []
        depths = self.depths()
        for words in members:
            top = min(words, key=depths.__getitem__)
            head = self.heads[top]
            heads.append(nodes[head] if head >= 0 else head)
            deprels.append(self.deprels[top])
            upos.append(self.upos[top])
        return Sentence(forms, heads, deprels, upos, [], self.comments, self.line)

    def depths(self) -> list[int]:
        """Number of words from each word up to its root, both included, in O(J): 1 for a root."""
        depths = [0] * len(self)
        for word in range(len(self)):
            path = []
            while word >= 0 and not depths[word]:
                path.append(word)
                word = self.heads[word]
            above = depths[word] if word >= 0 else 0
            for depth, below in enumerate(reversed(path), above + 1):
                depths[below] = depth
        return depths


def find_cycle(heads: list[int]) -> list[int] | None:
    """The words of a cycle in J heads (0-based, negative for none), or None if there is no cycle, in O(J)."""
    state = [0] * len(heads)  # 0 for unvisited words, otherwise the number of the walk that visited them
    for start in range(len(heads)):
        word = start
        while word >= 0 and state[word] == 0:
            state[word] = start + 1
            word = heads[word]
        if word >= 0 and state[word] == start + 1:
            cycle = [word]
            while heads[cycle[-1]] != word:
                cycle.append(heads[cycle[-1]])
            return cycle
    return None


def read_blocks(lines: Iterable[str], name: str) -> Iterator[tuple[int, list[str]]]:
    """Split CoNLL-U lines into sentences without parsing them.

    Yields the number of each sentence's first line, and its lines without line ends, in the columns of CoNLL-U. A block
    of comments only is an empty sentence. Raises TreeFormatError as `numbered_lines` does, if a sentence is longer than
    `MAX_LINE`, if an empty line parts its comments and its words, or for columns that are not those that are named.
    """
    block: list[str] = []
    columns = _COLUMNS
    start = room = 0
    torn = False  # whether the block before has comments on words, and none
    for number, line in numbered_lines(lines, name):
        line = line.rstrip("\r\n")
        if not block and line.startswith("# global.columns"):
            columns = line.partition("=")[2].split()
        elif line and not line.isspace():
            if columns != _COLUMNS and line[0] != "#":
                line = _in_order(line, columns, f"{name}:{number}")
            if not block:
                start, room = number, MAX_LINE
                if torn and line[0] != "#":
                    raise TreeFormatError(
                        f"{name}:{number - 1}: an empty line between comments of a sentence and its words; remove it"
                    )
            block.append(line)
            room -= len(line) + SHOWN  # short strings take memory, too
            if room < 0:
                raise TreeFormatError(
                    f"{name}:{start}: the sentence has not ended by line {number}; put an empty line after each"
                )
        elif block:
            torn = block[-1][0] == "#" and bool(_OF_WORDS.search("\n".join(block)))
            yield start, block
            block = []
    if block:
        yield start, block


def _in_order(line: str, columns: list[str], place: str) -> str:
    """Reorder a row with these columns to the columns of CoNLL-U."""
    values = line.split("\t")
    row = dict(zip(columns, values, strict=False))
    if len(values) != len(columns) or not {"ID", "FORM", "HEAD"} <= row.keys():
        named = f"global.columns names {len(columns)}, which must include ID, FORM and HEAD"
        raise TreeFormatError(f"{place}: {len(values)} columns ({quoted(line)}); {named}")
    return "\t".join(row.get(name, "_") for name in _COLUMNS)


def without_parse(words: list[str]) -> Sentence:
    """These words without a parse: every head is `UNPARSED`, and labels and tags are unknown."""
    unknown = ["_"] * len(words)
    return Sentence(words, [UNPARSED] * len(words), unknown, unknown)


def block_forms(block: list[str]) -> list[str]:
    """The words in the lines of one sentence, which need not be a valid tree."""
    rows = (line.split("\t") for line in block if line[0] != "#")
    return [columns[1] for columns in rows if len(columns) > 1 and columns[0].isdecimal()]


def parse_block(block: list[str], name: str = "CoNLL-U", start: int = 1) -> Sentence:
    """The tree in the lines of one sentence, as `read_blocks` yields them from the file `name`.

    Raises TreeFormatError: wrong number of columns, ids out of order, an invalid head, a cycle, a broken range, an
    empty field, or whitespace in a tag.
    """
    rows, lines, ranges = _rows(block, name, start)
    forms = [columns[1] for columns in rows]
    deprels = [columns[7] for columns in rows]
    upos = [columns[3] for columns in rows]
    check_tags("UPOS", upos, lines, name)
    check_tags("DEPREL", deprels, lines, name)
    heads = _heads([columns[6] for columns in rows], forms, lines, name)
    _check_cycles(heads, forms, lines, name)
    return Sentence(forms, heads, deprels, upos, ranges, [line for line in block if line[0] == "#"], start)


def _rows(block: list[str], name: str, start: int) -> tuple[list[list[str]], list[int], list[tuple[int, int, str]]]:
    """The columns of each word, their line numbers, and the multi-word ranges."""
    rows: list[list[str]] = []
    lines: list[int] = []
    ranges: list[tuple[int, int, str]] = []
    range_line = start
    for number, line in enumerate(block, start):
        if line[0] == "#":
            continue
        columns = line.split("\t")
        if len(columns) != len(_COLUMNS):
            hint = "" if "\t" in line else "; to make it of text, run fairseq-syntax parse"
            if hint and len(line.split()) >= len(_COLUMNS) and line.split()[0].isdecimal():
                hint = "; separate the columns by tabs, not spaces"
            raise TreeFormatError(
                f"{name}:{number}: {len(columns)} columns ({quoted(line)}); CoNLL-U has {len(_COLUMNS)}{hint}"
            )
        if not columns[1]:
            raise TreeFormatError(f"{name}:{number}: the word (FORM) is empty")
        if columns[0] == str(len(rows) + 1):
            rows.append(columns)
            lines.append(number)
        elif multiword := _range(columns, len(rows), ranges[-1][1] if ranges else -1, f"{name}:{number}"):
            ranges.append(multiword)
            range_line = number
    if ranges and ranges[-1][1] >= len(rows):
        raise TreeFormatError(
            f"{name}:{range_line}: the range ends at word {ranges[-1][1] + 1} but the sentence has {len(rows)} words"
        )
    return rows, lines, ranges


def check_tags(column: str, tags: list[str], lines: Iterable[int], name: str) -> None:
    """Raise TreeFormatError if a tag is empty or holds whitespace, which a line of a dictionary cannot hold."""
    if " ".join(tags).split() == tags:
        return
    for tag, line in zip(tags, lines, strict=True):
        if tag.split() != [tag]:
            raise TreeFormatError(
                f"{name}:{line}: {column} is {quoted(tag)}; it must not be empty (`_` means unknown) or contain "
                "whitespace"
            )


def _range(columns: list[str], length: int, last: int, place: str) -> tuple[int, int, str] | None:
    """The multi-word range of a row that is not a word, or None for an empty node.

    `length` words have been read so far, and the range before ends at word `last`, -1 without one.
    """
    number = columns[0]
    if match := _RANGE.fullmatch(number):
        start, end = match.groups()
        if start == str(length + 1) and length > last and len(end) <= _DIGITS and int(end) > length:
            return length, int(end) - 1, columns[1]
        raise TreeFormatError(
            f"{place}: range {quoted(number)[1:-1]} where word {length + 1} was expected; "
            "ranges stand before their first word and do not overlap"
        )
    if (match := _EMPTY_NODE.fullmatch(number)) and match[1] == str(length):
        return None  # empty nodes belong to enhanced dependencies only
    raise TreeFormatError(
        f"{place}: id {quoted(number)} where {length + 1} was expected; "
        "words are numbered 1, 2, 3, … and sentences end with an empty line"
    )


def _heads_of(length: int) -> dict[str, int]:
    """HEAD as written -> the 0-based head, for a sentence of `length` words. `int()` would also take "1_0" and " 1"."""
    return {str(head + 1): head for head in range(ROOT, length)}


_HEADS = _heads_of(MAX_WORDS)


def _heads(columns: list[str], forms: list[str], lines: list[int], name: str) -> list[int]:
    """0-based heads of the words of a sentence; forms and lines are for the message."""
    length = len(columns)
    if length and columns == ["_"] * length:
        return [UNPARSED] * length
    heads_of = _HEADS if length <= MAX_WORDS else _heads_of(length)
    heads = [heads_of.get(column, length) for column in columns]
    if length and max(heads) >= length:
        word = next(word for word, head in enumerate(heads) if head >= length)
        raise TreeFormatError(
            f"{name}:{lines[word]}: head {quoted(columns[word])} of word {quoted(forms[word])} is not a number from 0 "
            f"to {length}; give each word one, or `_` to every word of a sentence without a parse"
        )
    return heads


def _check_cycles(heads: list[int], forms: list[str], lines: list[int], name: str) -> None:
    if cycle := find_cycle(heads):
        steps = [f"{word + 1} {quoted(forms[word], 20)}" for word in [*cycle, cycle[0]]]
        shown = " <- ".join(steps[:_CYCLE] + ["…"] * (len(steps) > _CYCLE))
        raise TreeFormatError(
            f"{name}:{lines[min(cycle)]}: the heads form a cycle ({shown}); every word must lead to a root (head 0)"
        )


def read_conllu(path: str | Path) -> Iterator[Sentence]:
    """The trees of a CoNLL-U file, plain or gzipped, one at a time; about 2 µs per word.

    Raises TreeFormatError: see `open_text`, `read_blocks` and `parse_block`.
    """
    with open_text(path) as lines:
        for start, block in read_blocks(lines, str(path)):
            yield parse_block(block, str(path), start)


def format_sentence(sentence: Sentence) -> str:
    """A tree as CoNLL-U text, with its final empty line. An empty sentence is written as one comment."""
    lines = list(sentence.comments)
    starts = {first: (last, form) for first, last, form in sentence.ranges}
    for i, form in enumerate(sentence.forms):
        if i in starts:
            last, surface = starts[i]
            lines.append(f"{i + 1}-{last + 1}\t{surface}\t_\t_\t_\t_\t_\t_\t_\t_")
        head = "_" if sentence.heads[i] == UNPARSED else str(sentence.heads[i] + 1)
        lines.append(f"{i + 1}\t{form}\t_\t{sentence.upos[i]}\t_\t_\t{head}\t{sentence.deprels[i]}\t_\t_")
    if not lines:
        lines.append("# text =")
    return "\n".join(lines) + "\n\n"

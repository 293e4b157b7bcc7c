"""Reading and writing CoNLL-U dependency trees.

Format: https://universaldependencies.org/format.html. What the format allows is read (comments, multi-word ranges,
empty nodes, several roots, CRLF, gzip); anything else is one `TreeFormatError` that names file, line and value.
"""

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

ROOT = -1
"""Head of a root word (word-level heads are 0-based)."""
UNPARSED = -2
"""Head of every word of a sentence that has no parse (its HEAD column is `_` throughout)."""

_COLUMNS = 10
_RANGE = re.compile(r"([1-9]\d*)-([1-9]\d*)$")
_EMPTY_NODE = re.compile(r"(\d+)\.\d+$")
_INTEGER = re.compile(r"-?[0-9]+")


class TreeFormatError(ValueError):
    """A tree, or the file it stands in, is not what it should be. The message is meant for the user."""


@dataclass
class Sentence:
    """One dependency tree (or forest) over J words.

    Attributes:
        forms: J words.
        heads: J integers, 0-based; `ROOT` (-1) for a root, `UNPARSED` (-2) for all words without a parse.
        deprels: J dependency labels, `_` where unknown.
        upos: J universal part-of-speech tags, `_` where unknown.
        ranges: multi-word tokens as (first word, last word, surface form), 0-based and inclusive.
        comments: comment lines with their `#`.
        line: line of the file at which the sentence starts, 1-based; 0 when it has no file.
    """

    forms: list[str]
    heads: list[int]
    deprels: list[str]
    upos: list[str]
    ranges: list[tuple[int, int, str]] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    line: int = 0

    def __len__(self) -> int:
        return len(self.forms)

    @property
    def is_parsed(self) -> bool:
        """Whether the sentence has a tree; the empty sentence has the empty one."""
        return not self.heads or self.heads[0] != UNPARSED

    def collapse_ranges(self) -> "Sentence":
        """The same tree over surface tokens: each multi-word range becomes one node.

        ("im" = "in" + "dem") -> "im", with head, label and tag of its word nearest the root, the
        first of them at equal depth. (Any other choice can make a cycle of ranges.)
        """
        if not self.ranges:
            return self
        starts = {first: (last, form) for first, last, form in self.ranges}
        node_of_word: list[int] = []
        members: list[list[int]] = []
        forms: list[str] = []
        word = 0
        while word < len(self):
            last, form = starts.get(word, (word, self.forms[word]))
            node_of_word += [len(forms)] * (last - word + 1)
            members.append(list(range(word, last + 1)))
            forms.append(form)
            word = last + 1
        heads, deprels, upos = [], [], []
        for words in members:
            top = words[0] if len(words) == 1 else min(words, key=self._depth)
            head = self.heads[top]
            heads.append(node_of_word[head] if head >= 0 else head)
            deprels.append(self.deprels[top])
            upos.append(self.upos[top])
        return Sentence(forms, heads, deprels, upos, [], self.comments, self.line)

    def _depth(self, word: int) -> int:
        depth = 0
        while word >= 0:
            word = self.heads[word]
            depth += 1
        return depth


def find_cycle(heads: list[int]) -> list[int] | None:
    """The words of one cycle of `heads` (0-based, negative = no head), or None when there is none.

    Cost: O(J).
    """
    state = [0] * len(heads)  # 0 new, otherwise the number of the walk that saw it
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


def open_text(path: str | Path) -> IO[str]:
    """Open a UTF-8 text file (with or without a byte order mark) for reading, gzipped if the name ends in `.gz`.

    Only LF and CRLF end a line (U+2028 and friends are ordinary characters in real corpora).

    Raises:
        TreeFormatError: the file does not exist or cannot be opened.
    """
    path = Path(path)
    try:
        if path.suffix == ".gz":
            return gzip.open(path, "rt", encoding="utf-8-sig", newline="\n")
        return open(path, encoding="utf-8-sig", newline="\n")
    except OSError as error:
        raise TreeFormatError(
            f"{path}: cannot be opened ({error.strerror}); check the path and the permissions"
        ) from None


def numbered_lines(lines: Iterable[str], name: str) -> Iterator[tuple[int, str]]:
    """The lines of a text that is being decoded, with their numbers from 1.

    Args:
        lines: an open text file.
        name: what messages call it.

    Raises:
        TreeFormatError: the text is not UTF-8 or a gzip file is damaged; the message names the line.
    """
    number = 0
    try:
        for number, line in enumerate(lines, 1):
            yield number, line
    except UnicodeDecodeError as error:
        # Text is decoded ahead of the lines, so some lines of the broken chunk may not be counted yet.
        bad = number + 1 + error.object.count(b"\n", 0, error.start)
        raise TreeFormatError(f"{name}:{bad}: not UTF-8 ({error.reason}); convert the file to UTF-8") from None
    except (EOFError, OSError, zlib.error) as error:
        raise TreeFormatError(
            f"{name}:{number + 1}: cannot be read on ({error}); the file is cut off or not gzip"
        ) from None


def read_blocks(lines: Iterable[str], name: str) -> Iterator[tuple[int, list[str]]]:
    """Split CoNLL-U lines into raw sentences without looking inside.

    Yields:
        (line number of the first line, its lines without line ends), one per sentence. The tree of an empty text
        line is a block of comments only, which `format_sentence` produces; it counts as a sentence.

    Raises:
        TreeFormatError: see `numbered_lines`.
    """
    block: list[str] = []
    start = 0
    for number, line in numbered_lines(lines, name):
        line = line.rstrip("\r\n")
        if line and not line.isspace():
            if not block:
                start = number
            block.append(line)
        elif block:
            yield start, block
            block = []
    if block:
        yield start, block


def without_parse(words: list[str]) -> Sentence:
    """What stands in for the tree of a sentence that has none."""
    unknown = ["_"] * len(words)
    return Sentence(words, [UNPARSED] * len(words), unknown, unknown)


def block_forms(block: list[str]) -> list[str]:
    """The words in the lines of one sentence, as far as they can be told; heads may be anything."""
    rows = (line.split("\t") for line in block if line[0] != "#")
    return [columns[1] for columns in rows if len(columns) > 1 and columns[0].isdecimal()]


def parse_block(block: list[str], name: str = "CoNLL-U", start: int = 1) -> Sentence:
    """The tree in the lines of one sentence.

    Args:
        block: lines of one sentence, without line ends.
        name: file name for messages.
        start: line number of the first line, 1-based.

    Raises:
        TreeFormatError: wrong number of columns, ids out of order, a head that is no number or out of range, a
            cycle, a broken range; the message names file, line and value.
    """
    forms: list[str] = []
    raw_heads: list[str] = []
    deprels: list[str] = []
    upos: list[str] = []
    comments: list[str] = []
    ranges: list[tuple[int, int, str]] = []
    word_lines: list[int] = []
    range_line = start
    expected = 1
    for offset, line in enumerate(block):
        if line[0] == "#":
            comments.append(line)
            continue
        columns = line.split("\t")
        if len(columns) != _COLUMNS:
            hint = "; separate the columns by tabs, not spaces" if "\t" not in line else ""
            raise TreeFormatError(
                f"{name}:{start + offset}: {len(columns)} columns ({line[:60]!r}); CoNLL-U has {_COLUMNS}{hint}"
            )
        if columns[0] != str(expected):
            found = _RANGE.match(columns[0])
            if found:
                first, last = int(found[1]) - 1, int(found[2]) - 1
                if first != expected - 1 or last < first or (ranges and first <= ranges[-1][1]):
                    raise TreeFormatError(
                        f"{name}:{start + offset}: range {columns[0]} where word {expected} was expected; "
                        "ranges stand before their first word and do not overlap"
                    )
                ranges.append((first, last, columns[1]))
                range_line = start + offset
                continue
            found = _EMPTY_NODE.match(columns[0])
            if found and int(found[1]) == expected - 1:
                continue  # empty nodes belong to enhanced dependencies only
            raise TreeFormatError(
                f"{name}:{start + offset}: id {columns[0]!r} where {expected} was expected; "
                "words are numbered 1, 2, 3, … and sentences end with an empty line"
            )
        if not columns[1]:
            raise TreeFormatError(f"{name}:{start + offset}: the word (FORM) is empty")
        forms.append(columns[1])
        upos.append(columns[3])
        raw_heads.append(columns[6])
        deprels.append(columns[7])
        word_lines.append(start + offset)
        expected += 1
    length = len(forms)
    if ranges and ranges[-1][1] >= length:
        raise TreeFormatError(
            f"{name}:{range_line}: the range ends at word {ranges[-1][1] + 1} but the sentence has {length} words"
        )
    if all(head == "_" for head in raw_heads):
        return Sentence(forms, [UNPARSED] * length, deprels, upos, ranges, comments, start)
    # int() alone would also take "1_0", "+1" and " 1".
    bad = next((i for i, head in enumerate(raw_heads) if not _INTEGER.fullmatch(head)), None)
    if bad is not None:
        raise TreeFormatError(
            f"{name}:{word_lines[bad]}: head {raw_heads[bad]!r} of word {forms[bad]!r} is not a "
            f"number; give 0 to {length}, or `_` for every word of a sentence without a parse"
        )
    heads = [int(head) - 1 for head in raw_heads]
    if heads and (min(heads) < ROOT or max(heads) >= length):
        bad = next(i for i, head in enumerate(heads) if not ROOT <= head < length)
        raise TreeFormatError(
            f"{name}:{word_lines[bad]}: head {raw_heads[bad]} of word {forms[bad]!r} is out of range; "
            f"the sentence has {length} words"
        )
    cycle = find_cycle(heads)
    if cycle is not None:
        words = " <- ".join(f"{i + 1} {forms[i]!r}" for i in [*cycle, cycle[0]])
        raise TreeFormatError(
            f"{name}:{word_lines[min(cycle)]}: the heads form a cycle ({words}); "
            "every word must lead to a root (head 0)"
        )
    return Sentence(forms, heads, deprels, upos, ranges, comments, start)


def read_conllu(path: str | Path) -> Iterator[Sentence]:
    """The trees of a CoNLL-U file (`.gz` is unpacked on the fly), one at a time.

    Raises:
        TreeFormatError: see `open_text`, `read_blocks` and `parse_block`.

    Cost: about 2 µs a word.
    """
    with open_text(path) as lines:
        for start, block in read_blocks(lines, str(path)):
            yield parse_block(block, str(path), start)


def format_sentence(sentence: Sentence) -> str:
    """A tree as CoNLL-U text, with the empty line that ends it.

    The empty sentence is written as one comment, so that one line of text stays one tree.
    """
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

"""Text files: UTF-8, one sentence or one word per line, plain or gzipped."""

import gzip
import io
import re
import shlex
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import IO

MAX_LINE = 2**24
"""Longest line in characters; a small `.gz` with longer ones could fill the memory."""
SYMBOLS = {"<s>", "<pad>", "</s>", "<unk>"}
"""Beginning, padding, end and unknown word in the dictionaries of fairseq."""
_ROW = re.compile(r"[0-9]+([-.][0-9]+)?(\t[^\t]+){9}|# global\.columns *=.*")
_INVISIBLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
SHOWN = 60
"""Maximum characters of a field that a message quotes."""


class TreeFormatError(ValueError):
    """A tree or its file is invalid. The message is written for the user."""


def visible(text: str) -> str:
    """Escape, as \\x1b, characters that move the cursor or change the direction of writing."""
    return _INVISIBLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def quoted(text: str, most: int = SHOWN) -> str:
    """A text in quotes, cut to `most` characters."""
    return repr(text if len(text) <= most else f"{text[:most]}…")


def open_text(path: str | Path, encoding: str = "utf-8-sig", newline: str | None = "\n") -> IO[str]:
    """Open a UTF-8 text file for reading, gzipped if its name ends in `.gz`, with or without a byte order mark.

    Lines end with LF or CRLF only, because corpora contain U+2028 and its like inside sentences; with `newline` None,
    also with CR. Raises TreeFormatError: the file cannot be opened.
    """
    path = Path(path)
    try:
        if path.suffix == ".gz":
            return gzip.open(path, "rt", encoding=encoding, newline=newline)
        return open(path, encoding=encoding, newline=newline)
    except OSError as error:
        raise TreeFormatError(
            f"{path}: cannot be opened ({error.strerror}); check the path and the permissions"
        ) from None


def token_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """The lines of a text as fairseq reads them, numbered from 1: a lone carriage return ends a line, too.

    Raises TreeFormatError as `open_text` and `numbered_lines` do, or if the file begins with a byte order mark.
    """
    with open_text(path, "utf-8", None) as text:
        for number, line in numbered_lines(text, str(path)):
            if number == 1 and line.startswith("\ufeff"):
                plain = shlex.quote(str(path).removesuffix(".gz"))
                raise TreeFormatError(
                    f"{path}: begins with a byte order mark, which fairseq takes for part of a word; remove it: "
                    f"{f'gunzip {plain}.gz; ' * str(path).endswith('.gz')}sed -i '1s/^\\xEF\\xBB\\xBF//' {plain}"
                )
            yield number, line


def refuse_returns(path: str | Path) -> None:
    """Raise TreeFormatError if there is a carriage return inside a line of a text."""
    with open(path, "rb") as lines:
        for number, line in enumerate(lines, 1):
            if re.search(rb"\r[^\n]", line):
                raise TreeFormatError(
                    f"{path}:{number}: contains a carriage return, which ends a line for fairseq; replace it: "
                    "tr '\\r' ' ' < OLD > NEW"
                )


def refuse_trees(line: str, place: str) -> None:
    """Raise TreeFormatError if a line of text, without its end, is a row of CoNLL-U."""
    if _ROW.fullmatch(line):
        raise TreeFormatError(f"{place}: CoNLL-U ({quoted(line)}) where text is expected; give a sentence per line")


def refuse_spaces(line: str, place: str) -> None:
    """Raise TreeFormatError as `refuse_trees` does, or for a space other than " ", such as U+00A0."""
    refuse_trees(line, place)
    other = re.search(r"[^\S ]", line)
    if other:
        raise TreeFormatError(
            f"{place}: contains U+{ord(other[0]):04X}, a space to fairseq but not to subword-nmt; make it one: "
            "perl -CSD -pe 's/[^\\S\\n]|[\\x1c-\\x1f]/ /g' < OLD > NEW"
        )


def refuse_symbols(line: str, place: str) -> None:
    """Raise TreeFormatError if a word of a line is spelled like a symbol of fairseq's dictionaries, such as <pad>."""
    words = SYMBOLS.intersection(line.split()) if "<" in line else ()
    if words:
        raise TreeFormatError(
            f"{place}: the word {min(words)} is a symbol of fairseq's dictionaries; remove it, or write it in another "
            "way, such as &lt;…&gt;"
        )


def numbered_lines(lines: Iterable[str], name: str) -> Iterator[tuple[int, str]]:
    """The lines of an open text file, numbered from 1; messages call it `name`.

    Raises TreeFormatError: the text is not UTF-8, the gzip file is damaged, or a line is longer than `MAX_LINE`.
    """
    if hasattr(lines, "readline"):
        lines = iter(partial(lines.readline, MAX_LINE + 1), "")
    number = 0
    try:
        for number, line in enumerate(lines, 1):
            if len(line) > MAX_LINE:
                raise TreeFormatError(
                    f"{name}:{number}: a line of more than {MAX_LINE} characters; expected one sentence or one word "
                    "per line"
                )
            yield number, line
    except UnicodeDecodeError as error:
        if number == 0 and error.object.startswith(b"\x1f\x8b"):
            raise TreeFormatError(f"{name}: is gzipped; unpack it (zcat), or name a file that ends in .gz") from None
        # Text is decoded ahead of the lines, so some lines of the broken chunk may not be counted yet.
        bad = number + 1 + error.object.count(b"\n", 0, error.start)
        raise TreeFormatError(f"{name}:{bad}: not UTF-8 ({error.reason}); convert the file to UTF-8") from None
    except io.UnsupportedOperation:
        raise TreeFormatError(f"{name}: is closed") from None
    except (EOFError, OSError, zlib.error) as error:
        raise TreeFormatError(
            f"{name}:{number + 1}: cannot be read ({error}); the file is truncated or not gzip"
        ) from None


def read_lines(path: str | Path, name: str | None = None) -> Iterator[str]:
    """The lines of a text file without line ends (LF or CRLF); messages call it by its `name` or its path.

    Raises TreeFormatError as `open_text` and `numbered_lines` do.
    """
    with open_text(path) as lines:
        for _, line in numbered_lines(lines, name or str(path)):
            yield line.rstrip("\r\n")


def sentence_lines(path: str | Path) -> Iterator[str]:
    """`read_lines` of a text. Raises TreeFormatError: see there and `refuse_trees`."""
    for number, line in enumerate(read_lines(path), 1):
        refuse_trees(line, f"{path}:{number}")
        yield line

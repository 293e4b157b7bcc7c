"""Translations as fairseq-generate leaves them (S-, T-, H- and D- lines), or as plain text, a sentence a line."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..trees.text import read_lines

_RECORD = re.compile(r"([STHD])-(\d+)\t(.*)", re.DOTALL)
_NAMED = 3  # sentences that a message names


@dataclass(frozen=True)
class Entry:
    """A sentence of a file.

    Attributes:
        text: its words, or pieces; no white space around.
        line: of the file, 1-based.
        score: of a hypothesis; 0 where there is none.
    """

    text: str
    line: int
    score: float = 0.0


@dataclass
class Output:
    """What a system made of a split.

    Attributes:
        path: of the file.
        sources: the S- lines by number of sentence; empty for plain text, or where none was printed.
        references: the T- lines, in the same way.
        hypotheses: the best D- line of each sentence, or H- line where there are no D- lines; of plain text, its lines,
            counted from 0.
    """

    path: str
    sources: dict[int, Entry] = field(default_factory=dict)
    references: dict[int, Entry] = field(default_factory=dict)
    hypotheses: dict[int, Entry] = field(default_factory=dict)


def read_output(path: str | Path) -> Output:
    """Read a file of fairseq-generate or fairseq-interactive, in whatever order its sentences are, or plain text.

    Of several hypotheses (`--nbest`), which come one after another, the one with the highest score is taken. Lines of
    other kinds are passed over.

    Raises:
        ValueError: no translations, a sentence without a hypothesis, several runs in a file, a score that is not a
            number, not UTF-8.
        OSError: no such file.
    """
    lines = list(read_lines(path))
    records = [(match, number) for number, line in enumerate(lines, 1) if (match := _RECORD.fullmatch(line))]
    kinds: dict[str, dict[int, Entry]] = {kind: {} for kind in "STHD"}
    last: dict[str, int] = {}  # sentence of the preceding line of a kind
    for match, number in records:
        kind, sentence, rest = match[1], int(match[2]), match[3]
        entries = kinds[kind]
        if kind in "HD":
            entry = _hypothesis(path, number, kind, sentence, rest)
            if sentence in entries and last[kind] != sentence:
                raise ValueError(
                    f"{path}:{number}: a {kind}- line of sentence {sentence}, which line {entries[sentence].line} has "
                    "already, after those of other sentences; give the output of one run"
                )
            last[kind] = sentence
            if sentence not in entries or entry.score > entries[sentence].score:
                entries[sentence] = entry
        elif sentence in entries:
            raise ValueError(
                f"{path}:{number}: a second {kind}- line of sentence {sentence}, the first is line "
                f"{entries[sentence].line}; give the output of one run"
            )
        else:
            entries[sentence] = Entry(rest.strip(), number)
    hypotheses = kinds["D"] or kinds["H"]
    if not records:
        hypotheses = {i: Entry(line.strip(), i + 1) for i, line in enumerate(lines)}
    if not records and not lines:
        raise ValueError(f"{path}: is empty; give an output of fairseq-generate, or text with a sentence a line")
    for kind in "STH":
        for sentence, entry in kinds[kind].items():
            if sentence not in hypotheses:
                wanted = "D-" if kinds["D"] else "H- or D-"
                raise ValueError(
                    f"{path}:{entry.line}: sentence {sentence} has a {kind}- line, but no {wanted} line; "
                    "is the output complete?"
                )
    return Output(str(path), kinds["S"], kinds["T"], hypotheses)


def _hypothesis(path, number: int, kind: str, sentence: int, rest: str) -> Entry:
    score, _, text = rest.partition("\t")
    try:
        found = float(score)
    except ValueError:
        found = math.nan
    if math.isnan(found):
        raise ValueError(
            f"{path}:{number}: {kind}-{sentence} must be followed by a score, but {score[:40]!r} stands there"
        )
    return Entry(text.strip(), number, found)


def check_same_sentences(first: Output, other: Output) -> None:
    """Raise ValueError if one of two outputs has a sentence that the other has not."""
    for some, more in ((other, first), (first, other)):
        missing = sorted(more.hypotheses.keys() - some.hypotheses.keys())
        if missing:
            raise ValueError(
                f"{some.path}: no translation of {_list(missing)}, which {more.path}:"
                f"{more.hypotheses[missing[0]].line} has; give outputs of the same split"
            )


def check_same_references(first: Output, other: Output) -> None:
    """Raise ValueError if two outputs have different references (T- lines) for a sentence.

    They may differ in letter case and in unknown words, as systems have vocabularies of their own.
    """
    for sentence in sorted(first.references.keys() & other.references.keys()):
        one, two = first.references[sentence], other.references[sentence]
        known = "<unk>" not in one.text + two.text
        if known and one.text.lower() != two.text.lower():
            raise ValueError(
                f"{other.path}:{two.line}: the reference of sentence {sentence} is {two.text[:60]!r}, but in "
                f"{first.path}:{one.line} it is {one.text[:60]!r}; give outputs of the same split, and see --remove-bpe"
            )


def texts(entries: dict[int, Entry], sentences: list[int], path: str, what: str) -> list[str]:
    """The text of each sentence.

    Args:
        entries: by number of sentence.
        sentences: numbers.
        path, what: they are from, for the message.

    Raises:
        ValueError: a sentence is missing, or `entries` are more than `sentences`.
    """
    missing = [sentence for sentence in sentences if sentence not in entries]
    if missing:
        raise ValueError(f"{path}: no {what} of {_list(missing)}; it has {len(entries)} for {len(sentences)} sentences")
    more = sorted(entries.keys() - set(sentences))
    if more:
        raise ValueError(
            f"{path}:{entries[more[0]].line}: a {what} of {_list(more)}, which has no translation; it has "
            f"{len(entries)} for {len(sentences)} sentences"
        )
    return [entries[sentence].text for sentence in sentences]


def check_count(count: int, sentences: Sequence[int], path: str, what: str, remedy: str) -> None:
    """Raise ValueError unless there is one of something for each sentence; those that were not translated may have one.

    Args:
        count: how many there are.
        sentences: numbers from 0. If none is left out, `count` may not be more.
        path, what, remedy: for the message.
    """
    last = max(sentences) + 1
    if count < last or count > last == len(sentences):
        raise ValueError(f"{path}: {count} {what} for {last} sentences; {remedy}")


def _list(sentences: list[int]) -> str:
    named = ", ".join(map(str, sentences[:_NAMED]))
    rest = len(sentences) - _NAMED
    return f"sentence {named}" + (f" and {rest} more" if rest > 0 else "")

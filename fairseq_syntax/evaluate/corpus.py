"""Translations of several systems, their references and the source, from the files that have them.

Files are as fairseq-generate leaves them (S-, T-, H- and D- lines), or plain text, a sentence a line.
"""

import logging
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..trees.subwords import SubwordType
from ..trees.text import quoted, read_lines

logger = logging.getLogger(__name__)

_RECORD = re.compile(r"([STHD])-(\d+)\t(.*)", re.DOTALL)
_PIECE = re.compile(r"\S+@@(?= |$)|▁\S*")
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


# --- a corpus --------------------------------------------------------------------------------------------------------


@dataclass
class System:
    """What a system made of N sentences in K runs.

    Attributes:
        name: of the system.
        runs: K labels: seeds.
        files: K paths.
        hypotheses: K times N texts.
    """

    name: str
    runs: list[str]
    files: list[str]
    hypotheses: list[list[str]]


@dataclass
class Corpus:
    """Translations of the same N sentences by S systems.

    Attributes:
        systems: S of them.
        references: N times the references of the sentence.
        numbers: N numbers of sentences: lines of the text from 0.
        sources: N texts of the source; None where it is not known.
    """

    systems: list[System]
    references: list[list[str]]
    numbers: list[int]
    sources: list[str] | None

    def __len__(self) -> int:
        return len(self.references)

    def system(self, name: str, option: str = "--baseline") -> System:
        """The system of this name; ValueError if there is none."""
        found = next((system for system in self.systems if system.name == name), None)
        if found is None:
            names = ", ".join(system.name for system in self.systems)
            raise ValueError(f"{option} {name}: no system has this name; give one of {names}")
        return found


def read_corpus(
    systems: Mapping[str, Mapping[str, str | Path]],
    references: Sequence[str] | None = None,
    source: str | None = None,
    remove_bpe: str | None = None,
) -> Corpus:
    """Read all files, sentences in ascending order of their numbers.

    Args:
        systems: name of a system -> label of a run -> its translations, as fairseq-generate prints them, or as text.
        references: texts; None for the T- lines.
        source: text; None for the S- lines.
        remove_bpe: a `SubwordType` to join pieces to words.

    Raises:
        ValueError: outputs of different sentences, or one that is named twice; no references, or other than one
            reference and source a sentence.
        OSError: a file is missing.
    """
    for name, runs in systems.items():
        files = [Path(path).resolve() for path in runs.values()]
        for path, file in zip(runs.values(), files, strict=True):
            if files.count(file) > 1:
                raise ValueError(f"--system {name}: {path} is named twice; give the translations of each seed once")
    outputs = [_joined(read_output(path), remove_bpe) for runs in systems.values() for path in runs.values()]
    first, *others = outputs
    numbers = sorted(first.hypotheses)
    for output in others:
        check_same_sentences(first, output)
        if not references:
            check_same_references(first, output)
    for output in outputs:
        empty = sum(not entry.text for entry in output.hypotheses.values())
        if empty:
            logger.warning(f"{output.path}: {empty} of {len(numbers)} translations are empty")
        _warn_of_pieces(output.path, [entry.text for entry in output.hypotheses.values()])
    if references:
        columns = [texts(_plain(path, remove_bpe), numbers, path, "reference") for path in references]
    else:
        columns = [_references(outputs, numbers)]
    sources = _sources(outputs, numbers, source, remove_bpe)
    for what, column in [("reference", column) for column in columns] + [("source", sources or [])]:
        _warn_of_pieces(what, column)
    found = iter(outputs)
    return Corpus(
        [_system(name, list(runs), [next(found) for _ in runs], numbers) for name, runs in systems.items()],
        [list(row) for row in zip(*columns, strict=True)],
        numbers,
        sources,
    )


def _system(name: str, runs: list[str], outputs: list[Output], numbers: list[int]) -> System:
    hypotheses = [[output.hypotheses[number].text for number in numbers] for output in outputs]
    return System(name, runs, [output.path for output in outputs], hypotheses)


def _joined(output: Output, subword_type: str | None) -> Output:
    """Pieces joined to words."""
    sources, references, hypotheses = (
        _join(entries, subword_type) for entries in (output.sources, output.references, output.hypotheses)
    )
    return Output(output.path, sources, references, hypotheses)


def _sources(outputs: list[Output], numbers: list[int], path: str | None, remove_bpe: str | None) -> list[str] | None:
    """The source: of the file, or of the first output that has S- lines."""
    given = next((output for output in outputs if output.sources), None)
    if path:
        entries = _plain(path, remove_bpe)
        found = texts(entries, numbers, path, "source")
        if given:
            texts(given.sources, numbers, given.path, "source (S- line)")
            _warn_of_other_sources(path, entries, given.path, given.sources)
        return found
    return texts(given.sources, numbers, given.path, "source (S- line)") if given else None


def _warn_of_other_sources(path: str, entries: dict[int, Entry], output: str, translated: dict[int, Entry]) -> None:
    """Say where the source is not what was translated, apart from letter case, spaces and unknown words."""

    def letters(text: str) -> str:
        return "".join(text.lower().split())

    other = [
        (number, entry, translated[number])
        for number, entry in entries.items()
        if "<unk>" not in translated[number].text and letters(entry.text) != letters(translated[number].text)
    ]
    if other:
        number, one, two = other[0]
        logger.warning(
            f"{path}:{one.line}: sentence {number} is {quoted(one.text)}, but {quoted(two.text)} in the S- line "
            f"{output}:{two.line}, and {len(other)} of {len(entries)} differ; give the source that was translated, and "
            "see --remove-bpe"
        )


def _references(outputs: list[Output], numbers: list[int]) -> list[str]:
    """The T- lines of the first output that has some."""
    given = next((output for output in outputs if output.references), None)
    if given is None:
        raise ValueError(f"{outputs[0].path}: no references (T- lines); give --reference")
    found = texts(given.references, numbers, given.path, "reference (T- line)")
    unknown = sum("<unk>" in text for text in found)
    if unknown:
        logger.warning(
            f"{given.path}: {unknown} of {len(found)} references have words that the model does not know (<<unk>>) and "
            "nothing can match; give --reference"
        )
    return found


def _join(entries: dict[int, Entry], subword_type: str | None) -> dict[int, Entry]:
    """Pieces joined as fairseq does; text without pieces stays as it is."""
    if not subword_type:
        return entries
    # without a mark, fairseq would join all words of a text into one
    mark = "▁" if subword_type == SubwordType.sentencepiece else "@@"
    return {
        number: replace(entry, text=_words(entry.text, subword_type)) if mark in entry.text else entry
        for number, entry in entries.items()
    }


def _words(text: str, subword_type: str) -> str:
    if subword_type == SubwordType.sentencepiece:
        return text.replace(" ", "").replace("▁", " ").strip()
    return f"{text} ".replace("@@ ", "").rstrip()


def _plain(path: str, subword_type: str | None) -> dict[int, Entry]:
    """The sentences of a text, a line each, numbered from 0."""
    return _join({i: Entry(line.strip(), i + 1) for i, line in enumerate(read_lines(path))}, subword_type)


def _warn_of_pieces(what: str, column: list[str]) -> None:
    piece = next((match[0] for text in column if (match := _PIECE.search(text))), None)
    if piece:
        logger.warning(f"{what}: pieces such as {piece!r} are counted as words; give --remove-bpe")

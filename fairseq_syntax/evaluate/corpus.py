"""Translations of several systems, their references and the source, from the files that have them."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..trees.subwords import SubwordType
from ..trees.text import quoted, read_lines
from .generated import Entry, Output, check_same_references, check_same_sentences, read_output, texts

logger = logging.getLogger(__name__)

_PIECE = re.compile(r"\S+@@(?= |$)|▁\S*")


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

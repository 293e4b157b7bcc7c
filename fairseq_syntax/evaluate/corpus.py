"""Translations of several systems, their references and the source, from the files that have them."""

import re
import sys
from argparse import Namespace
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..trees.subwords import SubwordType
from ..trees.text import read_lines
from .generated import Entry, Output, check_same_references, check_same_sentences, read_output, texts

_PIECE = re.compile(r"\S+@@(?= |$)|▁\S*")


@dataclass
class Corpus:
    """Translations of the same N sentences by S systems.

    Attributes:
        names: of the systems, the baseline first.
        hypotheses: S times N texts.
        references: N times the references of the sentence.
        source_words: (N,) numbers of words; None without a source.
    """

    names: list[str]
    hypotheses: list[list[str]]
    references: list[list[str]]
    source_words: np.ndarray | None


def read_corpus(args: Namespace) -> Corpus:
    """Read all files, sentences in ascending order of their numbers.

    Raises:
        ValueError: outputs of different sentences, no references, or other than one reference and source a sentence.
        OSError: a file is missing.
    """
    outputs = [_joined(read_output(path), args.remove_bpe) for path in (args.baseline, *args.systems)]
    first, *others = outputs
    sentences = sorted(first.hypotheses)
    for output in others:
        check_same_sentences(first, output)
        if not args.reference:
            check_same_references(first, output)
    for output in outputs:
        empty = sum(not entry.text for entry in output.hypotheses.values())
        if empty:
            warn(f"{output.path}: {empty} of {len(sentences)} translations are empty")

    if args.reference:
        columns = [texts(_plain(path, args.remove_bpe), sentences, path, "reference") for path in args.reference]
    else:
        columns = [_references(outputs, sentences)]
    given = next((output for output in outputs if output.sources), None)
    source = None
    if args.source:
        source = texts(_plain(args.source, args.remove_bpe), sentences, args.source, "source")
    elif given:
        source = texts(given.sources, sentences, given.path, "source (S- line)")
    hypotheses = [[output.hypotheses[sentence].text for sentence in sentences] for output in outputs]
    for what, column in [("reference", column) for column in columns] + [("source", source or [])]:
        _warn_of_pieces(what, column)
    for output, column in zip(outputs, hypotheses, strict=True):
        _warn_of_pieces(output.path, column)
    return Corpus(
        args.names or _names([output.path for output in outputs]),
        hypotheses,
        [list(row) for row in zip(*columns, strict=True)],
        None if source is None else np.array([len(text.split()) for text in source]),
    )


def _references(outputs: list[Output], sentences: list[int]) -> list[str]:
    """The T- lines of the first output that has some."""
    given = next((output for output in outputs if output.references), None)
    if given is None:
        raise ValueError(f"{outputs[0].path}: no references (T- lines); give --reference")
    found = texts(given.references, sentences, given.path, "reference (T- line)")
    unknown = sum("<unk>" in text for text in found)
    if unknown:
        warn(
            f"{given.path}: {unknown} of {len(found)} references have words that the model does not know (<<unk>>) and "
            "nothing can match; give --reference"
        )
    return found


def _joined(output: Output, subword_type: str | None) -> Output:
    if not subword_type:
        return output
    return Output(
        output.path,
        _join(output.sources, subword_type),
        _join(output.references, subword_type),
        _join(output.hypotheses, subword_type),
    )


def _join(entries: dict[int, Entry], subword_type: str) -> dict[int, Entry]:
    """Pieces joined as fairseq does; text without pieces stays as it is."""
    # without a mark, fairseq would join all words of a text into one
    mark = "▁" if subword_type == SubwordType.sentencepiece else "@@"
    return {
        sentence: replace(entry, text=_words(entry.text, subword_type)) if mark in entry.text else entry
        for sentence, entry in entries.items()
    }


def _words(text: str, subword_type: str) -> str:
    if subword_type == SubwordType.sentencepiece:
        return text.replace(" ", "").replace("▁", " ").strip()
    return f"{text} ".replace("@@ ", "").rstrip()


def _plain(path: str, subword_type: str | None) -> dict[int, Entry]:
    """The sentences of a text, a line each, numbered from 0."""
    entries = {i: Entry(line.strip(), i + 1) for i, line in enumerate(read_lines(path))}
    return _join(entries, subword_type) if subword_type else entries


def _warn_of_pieces(what: str, column: list[str]) -> None:
    piece = next((match[0] for text in column if (match := _PIECE.search(text))), None)
    if piece:
        warn(f"{what}: pieces such as {piece!r} are counted as words; give --remove-bpe")


def _names(paths: list[str]) -> list[str]:
    """File names; whole paths where these are the same."""
    short = [Path(path).name.removesuffix(".generated") for path in paths]
    return short if len(set(short)) == len(short) else paths


def warn(message: str) -> None:
    """Say something on stderr."""
    print(f"fairseq-syntax compare: {message}", file=sys.stderr)

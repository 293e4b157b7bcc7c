"""Translations of several systems, their references and the source.

Files are output of fairseq-generate (S-, T-, H- and D- lines), or plain text with one sentence per line.
"""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar

import numpy as np

from ..trees.subwords import SubwordType, decode_pieces
from ..trees.text import read_lines

logger = logging.getLogger(__name__)
Line = TypeVar("Line")

_RECORD = re.compile(r"([STHD])-(\d+)\t(.*)", re.DOTALL)
_FEW = 20  # with fewer different references, other sentences cannot be told apart


@dataclass
class Output:
    """The output of a system.

    Attributes:
        path: path of the file.
        sources: number of a sentence -> S- line; empty for plain text.
        references: number of a sentence -> T- line; empty for plain text.
        hypotheses: number of a sentence -> its best D- line, or H- line if there are no D- lines; for plain text, the
            lines, numbered from 0.
    """

    path: str
    sources: dict[int, str]
    references: dict[int, str]
    hypotheses: dict[int, str]


def read_output(path: str | Path, subword_type: str | None = None) -> Output:
    """Read output of fairseq-generate or fairseq-interactive, with sentences in any order, or plain text.

    The best of several hypotheses (`--nbest`) is taken. Lines of other kinds are ignored.

    Args:
        subword_type: the `SubwordType` of pieces to be joined.

    Raises ValueError: the file cannot be read, has no translations, lacks the hypothesis of a sentence, has a score
    that is not a number, or has the output of several runs.
    """
    lines = list(read_lines(path))
    if not lines:
        raise ValueError(f"{path}: is empty; give an output of fairseq-generate, or text with a sentence a line")
    kinds: dict[str, dict[int, str]] = {kind: {} for kind in "STHD"}
    best: dict[tuple[str, int], float] = {}
    last: dict[str, int] = {}  # sentence of the preceding line of a kind
    for number, line in enumerate(lines, 1):
        if not (match := _RECORD.fullmatch(line)):
            continue
        kind, sentence, text, score = match[1], int(match[2]), match[3], 0.0
        if kind in "HD":
            digits, _, text = text.partition("\t")
            try:
                score = float(digits)
            except ValueError:
                raise ValueError(f"{path}:{number}: {kind}-{sentence} has no score, but {digits[:40]!r}") from None
        repeated = sentence in kinds[kind]
        if repeated and (kind in "ST" or last[kind] != sentence):
            raise ValueError(
                f"{path}:{number}: a second {kind}- line of sentence {sentence}; give the output of one run"
            )
        last[kind] = sentence
        if not repeated or score > best[kind, sentence]:
            kinds[kind][sentence], best[kind, sentence] = _words(text.strip(), subword_type), score
    hypotheses = (kinds["D"] or kinds["H"]) if last else numbered(lines, subword_type)
    for kind in "STH":
        if lacking := kinds[kind].keys() - hypotheses.keys():
            fault = f"sentence {min(lacking)} has a {kind}- line, but no {'D' if kinds['D'] else 'H'}- line"
            raise ValueError(f"{path}: {fault}; is the output complete?")
    return Output(str(path), kinds["S"], kinds["T"], hypotheses)


def numbered(lines: Iterable[str], subword_type: str | None = None) -> dict[int, str]:
    """The lines of a text, from 0, with their pieces joined; see `read_output`."""
    return {i: _words(line.strip(), subword_type) for i, line in enumerate(lines)}


def _words(text: str, subword_type: str | None) -> str:
    """Join pieces as fairseq does, and byte pieces; text without pieces is left unchanged."""
    # in text without a mark, fairseq would join all words into one
    if subword_type == SubwordType.sentencepiece and "▁" in text:
        return decode_pieces(text.split()).replace("▁", " ").strip()
    return f"{text} ".replace("@@ ", "").rstrip() if subword_type == SubwordType.subword_nmt else text


def texts(lines: Mapping[int, Line], sentences: Sequence[int], path: str | Path, kind: str) -> list[Line]:
    """The lines, or trees, of the sentences with these numbers.

    Args:
        path, kind: file and kind of the lines, for messages.

    Raises ValueError: a sentence is missing, or there are lines of others.
    """
    if differing := lines.keys() ^ set(sentences):
        number = min(differing)
        fault = f"no {kind}" if number in set(sentences) else f"a {kind} too many,"
        raise ValueError(
            f"{path}: {fault} of sentence {number}; it has {len(lines)} for {len(sentences)} sentences; give files of "
            "the same split"
        )
    return [lines[sentence] for sentence in sentences]


# --- a corpus --------------------------------------------------------------------------------------------------------


@dataclass
class System:
    """Translations of N sentences by K runs of a system.

    Attributes:
        name: name of the system.
        runs: K labels, such as seeds.
        files: K paths.
        hypotheses: K lists of N texts.
    """

    name: str
    runs: list[str]
    files: list[str]
    hypotheses: list[list[str]]


@dataclass
class Corpus:
    """Translations of the same N sentences by several systems.

    Attributes:
        systems: the systems.
        references: N lists with the references of a sentence.
        numbers: N line numbers of the sentences, from 0.
        sources: N source sentences, or None if unknown.
    """

    systems: list[System]
    references: list[list[str]]
    numbers: list[int]
    sources: list[str] | None

    def __len__(self) -> int:
        return len(self.references)


def read_corpus(
    systems: Mapping[str, Mapping[str, str | Path]],
    references: Sequence[str] | None = None,
    source: str | None = None,
    remove_bpe: str | None = None,
) -> Corpus:
    """Read the files of a comparison, and sort sentences by number.

    Args:
        systems: name of a system -> label of a run -> file with its translations.
        references: files with references; None for the T- lines.
        source: file with the source; None for the S- lines.
        remove_bpe: the `SubwordType` of pieces to be joined.

    Raises ValueError: outputs are of different sentences or references, a file is named twice, cannot be read or has a
    wrong number of lines, or there are no references.
    """
    for name, runs in systems.items():
        number = Counter(Path(path).resolve() for path in runs.values())
        for path in runs.values():
            if number[Path(path).resolve()] > 1:
                raise ValueError(f"--system {name}: {path} is named twice; give the translations of each seed once")
    outputs = {name: [read_output(path, remove_bpe) for path in runs.values()] for name, runs in systems.items()}
    every = list(chain.from_iterable(outputs.values()))
    numbers = sorted(every[0].hypotheses)
    printed = next((output for output in every if output.references), None)
    if references:
        columns = [texts(numbered(read_lines(path), remove_bpe), numbers, path, "reference") for path in references]
    elif printed:
        if other := next((o.path for o in every if o.references not in ({}, printed.references)), None):
            raise ValueError(f"{other}: T- lines differ from those of {printed.path}; give --reference")
        columns = [texts(printed.references, numbers, printed.path, "reference (T- line)")]
    else:
        raise ValueError(f"{every[0].path}: no references (T- lines); give --reference")
    sources, with_source = None, next((output for output in every if output.sources), None)
    if source:
        sources = texts(numbered(read_lines(source), remove_bpe), numbers, source, "source")
    elif with_source:
        sources = texts(with_source.sources, numbers, with_source.path, "source (S- line)")
    read = []
    for name, runs in systems.items():
        hyps = [texts(output.hypotheses, numbers, output.path, "translation") for output in outputs[name]]
        read.append(System(name, list(runs), [output.path for output in outputs[name]], hyps))
    corpus = Corpus(read, [list(row) for row in zip(*columns, strict=True)], numbers, sources)
    for wrong, message in _doubts(corpus):
        if wrong:
            logger.warning(message)
    return corpus


# --- doubts -----------------------------------------------------------------------------------------------------------


def _doubts(corpus: Corpus) -> Iterator[tuple[bool, str]]:
    """Possible faults of a corpus: whether it has them, and a warning about each."""
    references, last = [lines[0] for lines in corpus.references], corpus.numbers[-1]
    missing = f"no translation of {last + 1 - len(corpus)} of the sentences 0 to {last}; scores are of the others"
    yield last >= len(corpus), f"{corpus.systems[0].files[0]}: {missing}"
    yield from _line_doubts("references", references)
    for system in corpus.systems:
        same = len(set(map(tuple, system.hypotheses))) < len(system.runs)
        yield same, f"{system.name}: runs have the same translations; give those of different seeds"
        for path, lines in zip(system.files, system.hypotheses, strict=True):
            yield from _line_doubts(path, lines)
            other = len(set(references)) >= _FEW and deviations(closer(lines, references)) < 2.5
            yield other, f"{path}: translations are as close to the references of other sentences as to their own"


def _line_doubts(name: str, lines: Sequence[str]) -> Iterator[tuple[bool, str]]:
    counts = {
        "are empty": sum(not line for line in lines),
        "have pieces, which are counted as words; give --remove-bpe": sum("@@ " in f"{x} " or "▁" in x for x in lines),
        "have words that the model does not know, which nothing can match": sum("<<unk>>" in line for line in lines),
    }
    for fault, number in counts.items():
        yield number > 0, f"{name}: {number} of {len(lines)} lines {fault}"


def closer(texts: Sequence[str], others: Sequence[str], step: int = 1) -> np.ndarray:
    """Signs (N,): 1 where a text is closer to its own line of `others` than to the line `step` below, -1 if farther.

    Closeness is the number of common character trigrams, which needs no word boundaries. Of two lines that are equally
    close, as in another script, the one whose length is nearer to the usual ratio is closer.
    """
    trigrams, own = ([{text[i : i + 3] for i in range(len(text) - 2)} for text in side] for side in (texts, others))
    triples = zip(trigrams, own, own[step:] + own[:step], strict=True)
    common = np.array([len(text & mine) - len(text & other) for text, mine, other in triples])
    lengths, mine = (np.log([len(text) + 1 for text in side]) for side in (texts, others))
    usual = lengths + np.median(mine - lengths)
    return np.sign(np.where(common, common, abs(np.roll(mine, -step) - usual) - abs(mine - usual)))


def deviations(signs: np.ndarray) -> float:
    """Sum of the signs, in standard deviations of random signs."""
    return float(signs.sum()) / max(float(np.abs(signs).sum()), 1) ** 0.5

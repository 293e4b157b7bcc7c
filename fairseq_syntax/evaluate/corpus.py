"""Translations of several systems, their references and the source.

Files are output of fairseq-generate (S-, T-, H- and D- lines), or plain text with one sentence per line.
"""

import logging
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ..trees.subwords import SubwordType, decode_pieces
from ..trees.text import quoted, read_lines

logger = logging.getLogger(__name__)
_FEW, _BLOCK = 20, 100  # different sentences that tell enough; sentences that do so together

_RECORD = re.compile(r"([STHD])-(\d+)\t(.*)", re.DOTALL)
_NAMED = 3  # most sentences that a message names


@dataclass(frozen=True)
class Entry:
    """A sentence of a file.

    Attributes:
        text: its words or pieces, stripped.
        line: line of the file, 1-based.
        score: score of a hypothesis, otherwise 0.
    """

    text: str
    line: int
    score: float = 0.0


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
    sources: dict[int, Entry] = field(default_factory=dict)
    references: dict[int, Entry] = field(default_factory=dict)
    hypotheses: dict[int, Entry] = field(default_factory=dict)


def read_output(path: str | Path) -> Output:
    """Read output of fairseq-generate or fairseq-interactive, with sentences in any order, or plain text.

    The best of several hypotheses (`--nbest`) is taken. Lines of other kinds are ignored.

    Raises ValueError: the file cannot be read, has no translations, lacks the hypothesis of a sentence, has a score
    that is not a number, or has the output of several runs.
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
                expected = "D-" if kinds["D"] else "H- or D-"
                raise ValueError(
                    f"{path}:{entry.line}: sentence {sentence} has a {kind}- line, but no {expected} line; "
                    "is the output complete?"
                )
    return Output(str(path), kinds["S"], kinds["T"], hypotheses)


def _hypothesis(path, number: int, kind: str, sentence: int, rest: str) -> Entry:
    score, _, text = rest.partition("\t")
    try:
        value = float(score)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise ValueError(f"{path}:{number}: {kind}-{sentence} must be followed by a score, not {score[:40]!r}")
    return Entry(text.strip(), number, value)


def check_same_sentences(first: Output, second: Output) -> None:
    """Raise ValueError if only one of two outputs has a certain sentence."""
    for shorter, longer in ((second, first), (first, second)):
        missing = sorted(longer.hypotheses.keys() - shorter.hypotheses.keys())
        if missing:
            raise ValueError(
                f"{shorter.path}: no translation of {_list(missing)}, which {longer.path}:"
                f"{longer.hypotheses[missing[0]].line} has; give outputs of the same split"
            )


def check_same_references(first: Output, second: Output) -> None:
    """Raise ValueError if two outputs have different references (T- lines) for a sentence.

    Letter case and unknown words may differ, because systems may have different vocabularies.
    """
    for sentence in sorted(first.references.keys() & second.references.keys()):
        expected, actual = first.references[sentence], second.references[sentence]
        comparable = "<unk>" not in expected.text + actual.text
        if comparable and expected.text.lower() != actual.text.lower():
            raise ValueError(
                f"{second.path}:{actual.line}: the reference of sentence {sentence} is {actual.text[:60]!r}, but in "
                f"{first.path}:{expected.line} it is {expected.text[:60]!r}; give outputs of the same split, and see "
                "--remove-bpe"
            )


def texts(entries: dict[int, Entry], sentences: list[int], path: str, what: str) -> list[str]:
    """The texts of the sentences with these numbers.

    Args:
        entries: number of a sentence -> entry.
        path, what: file and kind of the entries, for messages.

    Raises ValueError: a sentence is missing, or there are entries for others.
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
    """Raise ValueError unless `count` lines cover all sentences.

    Args:
        sentences: their numbers, from 0. If some are left out, more lines are allowed, for sentences at the end.
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

    def system(self, name: str, option: str = "--baseline") -> System:
        """The system with this name. Raises ValueError: there is none; the message names the `option`."""
        match = next((system for system in self.systems if system.name == name), None)
        if match is None:
            names = ", ".join(system.name for system in self.systems)
            raise ValueError(f"{option} {name}: no system has this name; give one of {names}")
        return match


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

    Raises ValueError: outputs are of different sentences, a file is named twice, cannot be read or has the wrong number
    of lines, or there are no references.
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
    missing = numbers[-1] + 1 - len(numbers)
    if missing:
        logger.warning(
            f"{first.path}: no translation of {missing} of the sentences 0 to {numbers[-1]}; scores are of the others"
        )
    if references:
        columns = [texts(_plain(path, remove_bpe), numbers, path, "reference") for path in references]
    else:
        columns = [_references(outputs, numbers)]
    sources = _sources(outputs, numbers, source, remove_bpe)
    for what, column in zip([*(references or ["reference"]), "source"], [*columns, sources or []], strict=True):
        _warn_of_text(what, column)
    remaining = iter(outputs)
    read = [_system(name, list(runs), [next(remaining) for _ in runs], numbers) for name, runs in systems.items()]
    for system in read:
        for path, hypotheses in zip(system.files, system.hypotheses, strict=True):
            _warn_of_text(path, hypotheses)
            _warn_of_other_references(path, hypotheses, columns[0])
    return Corpus(read, [list(row) for row in zip(*columns, strict=True)], numbers, sources)


def _system(name: str, runs: list[str], outputs: list[Output], numbers: list[int]) -> System:
    hypotheses = [[output.hypotheses[number].text for number in numbers] for output in outputs]
    for i, output in enumerate(outputs):
        first = outputs[hypotheses.index(hypotheses[i])]
        if first is not output and len(set(hypotheses[i])) >= _FEW:
            logger.warning(f"--system {name}: {output.path} has the translations of {first.path}; is it another seed?")
    return System(name, runs, [output.path for output in outputs], hypotheses)


def _joined(output: Output, subword_type: str | None) -> Output:
    """An output with its pieces joined into words."""
    sources, references, hypotheses = (
        _join(entries, subword_type) for entries in (output.sources, output.references, output.hypotheses)
    )
    return Output(output.path, sources, references, hypotheses)


def _sources(outputs: list[Output], numbers: list[int], path: str | None, remove_bpe: str | None) -> list[str] | None:
    """The source, from a file or from the first output with S- lines; None if there is neither."""
    printed = next((output for output in outputs if output.sources), None)
    if path:
        entries = _plain(path, remove_bpe)
        sources = texts(entries, numbers, path, "source")
        if printed:
            texts(printed.sources, numbers, printed.path, "source (S- line)")
            _warn_of_other_sources(path, entries, printed.path, printed.sources)
        return sources
    return texts(printed.sources, numbers, printed.path, "source (S- line)") if printed else None


def _warn_of_other_sources(path: str, entries: dict[int, Entry], output: str, translated: dict[int, Entry]) -> None:
    """Warn if the source differs from the translated text in more than letter case, spaces and unknown words."""

    def letters(text: str) -> str:
        return "".join(text.lower().split())

    differing = [
        (number, entry, translated[number])
        for number, entry in entries.items()
        if "<unk>" not in translated[number].text and letters(entry.text) != letters(translated[number].text)
    ]
    if differing:
        number, entry, printed = differing[0]
        logger.warning(
            f"{path}:{entry.line}: sentence {number} is {quoted(entry.text)}, but {quoted(printed.text)} in the S- "
            f"line {output}:{printed.line}, and {len(differing)} of {len(entries)} differ; give the source that was "
            "translated, and see --remove-bpe"
        )


def _references(outputs: list[Output], numbers: list[int]) -> list[str]:
    """The references, from the first output with T- lines."""
    printed = next((output for output in outputs if output.references), None)
    if printed is None:
        raise ValueError(f"{outputs[0].path}: no references (T- lines); give --reference")
    references = texts(printed.references, numbers, printed.path, "reference (T- line)")
    unknown = sum("<unk>" in text for text in references)
    if unknown:
        logger.warning(
            f"{printed.path}: {unknown} of {len(references)} references have words that the model does not know "
            "(<<unk>>) and nothing can match; give --reference"
        )
    return references


def _join(entries: dict[int, Entry], subword_type: str | None) -> dict[int, Entry]:
    """Join pieces as fairseq does, and byte pieces; text without pieces is left unchanged."""
    if not subword_type:
        return entries
    # in text without a mark, fairseq would join all words into one
    mark = "▁" if subword_type == SubwordType.sentencepiece else "@@"
    return {
        number: replace(entry, text=_words(entry.text, subword_type)) if mark in entry.text else entry
        for number, entry in entries.items()
    }


def _words(text: str, subword_type: str) -> str:
    if subword_type == SubwordType.sentencepiece:
        return decode_pieces(text.split()).replace("▁", " ").strip()
    return f"{text} ".replace("@@ ", "").rstrip()


def _plain(path: str, subword_type: str | None) -> dict[int, Entry]:
    """The lines of a text, numbered from 0."""
    return _join({i: Entry(line.strip(), i + 1) for i, line in enumerate(read_lines(path))}, subword_type)


def _warn_of_other_references(path: str, translations: Sequence[str], references: Sequence[str]) -> None:
    """Warn if translations are not closer to their references than to those of the sentences after them.

    A system that is clearly closer in one block of sentences is so in all, unless a line is missing somewhere.
    """
    if len(set(references)) < _FEW:
        return
    signs = closer(translations, references)
    blocks = {start: signs[start : start + _BLOCK] for start in range(0, len(signs) - _BLOCK + 1, _BLOCK)}
    judged = {start: deviations(block) for start, block in blocks.items() if np.count_nonzero(block) >= _FEW}
    bad = [start for start, z in judged.items() if z < 1.5 and max(judged.values()) > 6]
    if bad or deviations(signs) < 2.5:
        where = f" in sentences {bad[0]} to {bad[0] + _BLOCK - 1}" if bad else ""
        logger.warning(
            f"{path}: translations are as close to the references of other sentences as to their own{where}; are these "
            "the references of the same text, in the same order?"
        )


def closer(texts: Sequence[str], others: Sequence[str], step: int = 1) -> np.ndarray:
    """Signs [N]: 1 where a text is closer to its own line of `others` than to that `step` lines below, -1 if farther.

    Closeness is the number of character trigrams in common, which needs no words; if it is the same, as between two
    scripts, the lengths of the lines decide, in the usual ratio.
    """
    found, own = ([{text[i : i + 3] for i in range(len(text) - 2)} for text in side] for side in (texts, others))
    triples = zip(found, own, own[step:] + own[:step], strict=True)
    common = np.array([len(trigrams & mine) - len(trigrams & other) for trigrams, mine, other in triples])
    lengths, mine = (np.log([len(text) + 1 for text in side]) for side in (texts, others))
    usual = lengths + np.median(mine - lengths)
    return np.sign(np.where(common, common, abs(np.roll(mine, -step) - usual) - abs(mine - usual)))


def deviations(signs: np.ndarray) -> float:
    """The sum of signs in standard deviations of chance."""
    return float(signs.sum()) / max(float(np.abs(signs).sum()), 1) ** 0.5


def _warn_of_text(what: str, column: Sequence[str]) -> None:
    """Warn of empty lines, and of pieces of words."""
    empty = sum(not text for text in column)
    if empty:
        logger.warning(f"{what}: {empty} of {len(column)} lines are empty")
    tokens = (token for text in column if "@@" in text or "▁" in text for token in text.split(" "))
    piece = next((token for token in tokens if token.endswith("@@") or "▁" in token), None)
    if piece:
        logger.warning(f"{what}: pieces such as {piece!r} are counted as words; give --remove-bpe")

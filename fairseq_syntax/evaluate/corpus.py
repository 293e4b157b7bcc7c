"""Translations of several systems, their references and the source.

Files are output of fairseq-generate (S-, T-, H- and D- lines), or plain text with one sentence per line.
"""

import logging
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
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


def read_output(path: str | Path, subword_type: str | None = None) -> Output:
    """Read output of fairseq-generate or fairseq-interactive, with sentences in any order, or plain text.

    The best of several hypotheses (`--nbest`) is taken. Lines of other kinds are ignored.

    Args:
        subword_type: the `SubwordType` of pieces to be joined.

    Raises ValueError: the file cannot be read, has no translations, lacks the hypothesis of a sentence, has a score
    that is not a number, or has the output of several runs.
    """
    lines = list(read_lines(path))
    records = [(match, number) for number, line in enumerate(lines, 1) if (match := _RECORD.fullmatch(line))]
    kinds: dict[str, dict[int, Entry]] = {kind: {} for kind in "STHD"}
    last: dict[str, int] = {}  # sentence of the preceding line of a kind
    for match, number in records:
        kind, sentence, text = match[1], int(match[2]), match[3]
        first, score = kinds[kind].get(sentence), 0.0
        if kind in "HD":
            score, text = _scored(path, number, kind, sentence, text)
        if first and (kind in "ST" or last[kind] != sentence):
            raise ValueError(
                f"{path}:{number}: a second {kind}- line of sentence {sentence}, the first is line {first.line}; give "
                "the output of one run"
            )
        last[kind] = sentence
        if not first or score > first.score:
            kinds[kind][sentence] = Entry(_words(text.strip(), subword_type), number, score)
    if not lines:
        raise ValueError(f"{path}: is empty; give an output of fairseq-generate, or text with a sentence a line")
    hypotheses = kinds["D"] or kinds["H"] if records else read_text(path, subword_type)
    for kind in "STH":
        for sentence in sorted(kinds[kind].keys() - hypotheses.keys()):
            expected = "D-" if kinds["D"] else "H- or D-"
            raise ValueError(
                f"{path}:{kinds[kind][sentence].line}: sentence {sentence} has a {kind}- line, but no {expected} line; "
                "is the output complete?"
            )
    return Output(str(path), kinds["S"], kinds["T"], hypotheses)


def read_text(path: str | Path, subword_type: str | None = None) -> dict[int, Entry]:
    """The lines of a text, numbered from 0, with their pieces joined; see `read_output`."""
    return {i: Entry(_words(line.strip(), subword_type), i + 1) for i, line in enumerate(read_lines(path))}


def _words(text: str, subword_type: str | None) -> str:
    """Join pieces as fairseq does, and byte pieces; text without pieces is left unchanged."""
    # in text without a mark, fairseq would join all words into one
    if subword_type == SubwordType.sentencepiece and "▁" in text:
        return decode_pieces(text.split()).replace("▁", " ").strip()
    return f"{text} ".replace("@@ ", "").rstrip() if subword_type == SubwordType.subword_nmt else text


def _scored(path, number: int, kind: str, sentence: int, rest: str) -> tuple[float, str]:
    """Score and text of a hypothesis."""
    score, _, text = rest.partition("\t")
    try:
        value = float(score)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise ValueError(f"{path}:{number}: {kind}-{sentence} must be followed by a score, not {score[:40]!r}")
    return value, text


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

    def system(self, name: str) -> System:
        """The system with this name. Raises ValueError: there is none."""
        systems = {system.name: system for system in self.systems}
        if name not in systems:
            raise ValueError(f"--baseline {name}: no system has this name; give one of {', '.join(systems)}")
        return systems[name]


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
        number = Counter(Path(path).resolve() for path in runs.values())
        for path in runs.values():
            if number[Path(path).resolve()] > 1:
                raise ValueError(f"--system {name}: {path} is named twice; give the translations of each seed once")
    outputs = {name: [read_output(path, remove_bpe) for path in runs.values()] for name, runs in systems.items()}
    first, *others = every = [output for of_system in outputs.values() for output in of_system]
    numbers = sorted(first.hypotheses)
    for output in others:
        check_same_sentences(first, output)
        if not references:
            check_same_references(first, output)
    printed = next((output for output in every if output.references), None)
    if references:
        columns = [texts(read_text(path, remove_bpe), numbers, path, "reference") for path in references]
    elif printed:
        columns = [texts(printed.references, numbers, printed.path, "reference (T- line)")]
    else:
        raise ValueError(f"{first.path}: no references (T- lines); give --reference")
    with_source = next((output for output in every if output.sources), None)
    sources, given = None, read_text(source, remove_bpe) if source else {}
    if with_source:
        sources = texts(with_source.sources, numbers, with_source.path, "source (S- line)")
    if source:
        sources = texts(given, numbers, source, "source")
    read = [
        System(
            *(name, list(runs), [output.path for output in outputs[name]]),
            [[output.hypotheses[number].text for number in numbers] for output in outputs[name]],
        )
        for name, runs in systems.items()
    ]
    corpus = Corpus(read, [list(row) for row in zip(*columns, strict=True)], numbers, sources)
    names = [*(references or ["reference"]), "source"]
    for wrong, message in (
        *_doubts(corpus, dict(zip(names, [*columns, sources or []], strict=True))),
        _unknown(columns[0], "" if references or not printed else printed.path),
        _other_source(source, given, with_source),
    ):
        if wrong:
            logger.warning(message)
    return corpus


# --- doubts: whether there is one, and what is said of it -------------------------------------------------------------


def _doubts(corpus: Corpus, columns: dict[str, Sequence[str]]) -> Iterator[tuple[bool, str]]:
    """Missing and empty lines, pieces of words, copies and other texts; columns: references and source by name."""
    runs = (zip(system.files, system.hypotheses, strict=True) for system in corpus.systems)
    hyps, last = dict(chain.from_iterable(runs)), corpus.numbers[-1]
    missing = f"no translation of {last + 1 - len(corpus)} of the sentences 0 to {last}; scores are of the others"
    yield last >= len(corpus), f"{next(iter(hyps))}: {missing}"
    for what, column in (columns | hyps).items():
        empty = sum(not text for text in column)
        tokens = (token for text in column if "@@" in text or "▁" in text for token in text.split(" "))
        piece = next((token for token in tokens if token.endswith("@@") or "▁" in token), "")
        yield empty > 0, f"{what}: {empty} of {len(column)} lines are empty"
        yield piece != "", f"{what}: pieces such as {piece!r} are counted as words; give --remove-bpe"
    yield from map(_copied, corpus.systems)
    for path, lines in hyps.items():
        yield _other_text(path, lines, [references[0] for references in corpus.references])


def _unknown(references: Sequence[str], path: str) -> tuple[bool, str]:
    """Words of T- lines that the model does not know."""
    unknown = sum("<unk>" in text for text in references)
    return bool(unknown and path), (
        f"{path}: {unknown} of {len(references)} references have words that the model does not know (<<unk>>) and "
        "nothing can match; give --reference"
    )


def _copied(system: System) -> tuple[bool, str]:
    """Two runs with the same translations."""
    places = [system.hypotheses.index(lines) for lines in system.hypotheses]
    run = next((i for i, first in enumerate(places) if first < i and len(set(system.hypotheses[i])) >= _FEW), 0)
    copy, first = system.files[run], system.files[places[run]]
    return run > 0, f"--system {system.name}: {copy} has the translations of {first}; is it another seed?"


def _other_source(path: str | None, entries: dict[int, Entry], output: Output | None) -> tuple[bool, str]:
    """A source that differs from the translated text in more than letter case, spaces and unknown words."""
    translated = output.sources if output else {}
    differing = [
        number
        for number, entry in entries.items()
        if number in translated and "<unk>" not in translated[number].text
        if "".join(entry.text.lower().split()) != "".join(translated[number].text.lower().split())
    ]
    if not (differing and output):
        return False, ""
    number = differing[0]
    entry, printed = entries[number], translated[number]
    return True, (
        f"{path}:{entry.line}: sentence {number} is {quoted(entry.text)}, but {quoted(printed.text)} in the S- line "
        f"{output.path}:{printed.line}, and {len(differing)} of {len(entries)} differ; give the source that was "
        "translated, and see --remove-bpe"
    )


def _other_text(path: str, translations: Sequence[str], references: Sequence[str]) -> tuple[bool, str]:
    """Translations that are not closer to their references than to those of the sentences after them.

    A system that is clearly closer in one block of sentences is so in all, unless a line is missing somewhere.
    """
    signs = closer(translations, references)
    blocks = {start: signs[start : start + _BLOCK] for start in range(0, len(signs) - _BLOCK + 1, _BLOCK)}
    judged = {start: deviations(block) for start, block in blocks.items() if np.count_nonzero(block) >= _FEW}
    bad = [start for start, z in judged.items() if z < 1.5 and max(judged.values()) > 6]
    where = f" in sentences {bad[0]} to {bad[0] + _BLOCK - 1}" if bad else ""
    return len(set(references)) >= _FEW and (bool(bad) or deviations(signs) < 2.5), (
        f"{path}: translations are as close to the references of other sentences as to their own{where}; are these the "
        "references of the same text, in the same order?"
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

"""fairseq-syntax compare: BLEU and RIBES of systems beside a baseline, whether they differ, and by source length."""

import argparse
import logging
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import numpy as np
from fairseq.data.data_utils import post_process

from ..evaluate.bleu import TOKENIZERS, Bleu
from ..evaluate.generated import (
    Entry,
    Output,
    check_same_references,
    check_same_sentences,
    read_output,
    texts,
)
from ..evaluate.length_buckets import FEW, Bucket, draw_buckets, length_buckets
from ..evaluate.ribes import ALPHA, BETA, sentence_ribes
from ..evaluate.significance import bootstrap_interval, paired_bootstrap, sign_test
from ..evaluate.tables import TableFormat, format_table
from ..inspection.checkpoints import positive
from ..pictures.figures import save_figure
from ..trees.subwords import SubwordType
from ..trees.text import read_lines
from .attachment import add_format
from .outputs import exit_status, picture, refuse_existing

_PROGRAM = "fairseq-syntax compare"
_CLOSED_BUCKETS = 5
_PIECE = re.compile(r"\S+@@(?= |$)|▁\S*")
_EPILOG = """\
Files are what fairseq-generate prints (lines in any order; of several hypotheses the one with the best score), or plain
text with --reference. D- lines are taken, or H- lines where there are none.

  BLEU         of the corpus, by sacrebleu
  delta        to the baseline, which is the first file
  ratio        words of the hypotheses to words of the references
  RIBES        order of words, 0 to 1, mean over sentences; lower-cased, on the words that BLEU counts
  better/worse sentences that raise/lower the baseline's BLEU when the system's translation replaces the baseline's
  p sign       sign test over these (Collins et al. 2005), two-sided
  p bootstrap  paired bootstrap, as by sacrebleu --paired-bs: of one tail, about half of a two-sided p
  against X    the same beside system X instead of the baseline, with --against X
  source words of the sentences of a bucket, the end of the sentence not counted

examples:
  fairseq-syntax compare baseline.generated system.generated --reference test.de --plot lengths.svg
  fairseq-syntax compare baseline.generated a.generated b.generated --names baseline a b --lowercase --tokenize 13a
  fairseq-syntax compare global.generated chen17.generated sdatt.generated --reference test.de --against chen17
  fairseq-syntax compare baseline.txt system.txt --reference test.de --source test.en --format markdown"""


def build_parser() -> argparse.ArgumentParser:
    """The program's options."""
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="Compare translations with those of a baseline: BLEU, RIBES, significance, BLEU by source length.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("baseline", metavar="BASELINE", help="translations of the baseline")
    add("systems", metavar="SYSTEM", nargs="+", help="translations of the same sentences by others")
    add("--names", nargs="+", metavar="NAME", help="of all systems, the baseline first (default: the files' names)")
    add(
        "--against",
        action="append",
        default=[],
        metavar="NAME",
        help="a table of its own of all systems beside this one, which is one of them; give it again for further ones",
    )
    add(
        "--reference",
        action="append",
        metavar="FILE",
        help="text of the references, line n for sentence n - 1; give it again for further references (default: the T- "
        "lines, in which words that the model does not know are lost)",
    )
    add("--source", metavar="FILE", help="text of the source, in the same order (default: the S- lines)")
    add("--lowercase", action="store_true", help="BLEU regardless of letter case")
    add(
        "--tokenize",
        choices=TOKENIZERS,
        default="none",
        metavar="NAME",
        help=f"sacrebleu's tokenizer: {', '.join(TOKENIZERS)}; none for text that is tokenised, 13a for text that is "
        "not (default: none)",
    )
    add(
        "--remove-bpe",
        nargs="?",
        const=str(SubwordType.subword_nmt),
        choices=[str(kind) for kind in SubwordType if kind != SubwordType.none],
        help="join pieces to words first, if fairseq-generate has not; give it after the files (alone: subword_nmt)",
    )
    add("--buckets", type=positive, default=10, metavar="WORDS", help="width of the buckets (default: 10)")
    add(
        "--longest",
        type=positive,
        metavar="WORDS",
        help=f"longer sources share the last bucket (default: {_CLOSED_BUCKETS} times the width of the buckets)",
    )
    add(
        "--plot",
        type=picture,
        metavar="PICTURE",
        help="BLEU over the buckets, with 95 %% bootstrap intervals, as a picture (.svg, .png or .pdf)",
    )
    add("--bootstrap", type=positive, default=1000, metavar="N", help="resamples of the bootstrap (default: 1000)")
    add("--seed", type=_seed, default=12345, help="of the bootstrap (default: 12345, as in sacrebleu)")
    add_format(parser)
    add("--overwrite", action="store_true", help="replace the picture if it exists")
    return parser


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0")
    return int(text)


def main(argv: list[str] | None = None) -> int:
    """Entry point. Exit status: 0, 1 for bad data, 2 for bad usage."""
    parser = build_parser()
    args = parser.parse_args(argv)
    logging.basicConfig(level="WARNING", force=True)
    files = 1 + len(args.systems)
    if args.names and len(args.names) != files:
        parser.error(f"--names: {len(args.names)} names for {files} files")
    args.longest = args.longest or _CLOSED_BUCKETS * args.buckets
    if args.longest < args.buckets or args.longest % args.buckets:
        parser.error(f"--longest {args.longest}: give a multiple of --buckets {args.buckets}")
    return exit_status(parser.prog, lambda: run(args))


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


@dataclass
class Scored:
    """A system.

    Attributes:
        statistics: (N, 10), see `Bleu.statistics`.
        ribes: mean over sentences.
    """

    statistics: np.ndarray
    ribes: float


def run(args: argparse.Namespace) -> None:
    """Print the tables on stdout, warnings on stderr; write the picture.

    Raises:
        ValueError: files that do not go together, or no references; see `read_corpus`.
        OSError: a file is missing.
    """
    refuse_existing([args.plot], args.overwrite)
    corpus = read_corpus(args)
    if args.plot and corpus.source_words is None:
        raise ValueError("--plot: the length of the source is not known; give --source")
    bleu = Bleu(args.lowercase, args.tokenize)
    others = [_number(corpus.names, name) for name in dict.fromkeys(args.against)]
    systems = [score(corpus, i, bleu) for i in range(len(corpus.names))]
    tables = [_systems_table(corpus.names, systems, bleu, args)]
    tables += [_against_table(corpus.names, systems, other, bleu, args) for other in others]
    if corpus.source_words is None:
        _warn("no BLEU by length: the source is not known; give --source")
    else:
        buckets = length_buckets(corpus.source_words, args.buckets, args.longest)
        by_bucket = [[_part(bleu, system, bucket) for bucket in buckets] for system in systems]
        tables.append(_buckets_table(corpus.names, buckets, by_bucket, args.format))
        few = [bucket.label for bucket in buckets if 0 < len(bucket) < FEW]
        if few:
            _warn(f"fewer than {FEW} sentences in bucket {', '.join(few)}: BLEU there says little")
        if args.plot:
            draws = lambda counts: bleu.score(counts).score, args.bootstrap, args.seed
            intervals = [[bootstrap_interval(s.statistics[b.sentences], *draws) for b in buckets] for s in systems]
            save_figure(draw_buckets(buckets, corpus.names, by_bucket, intervals), args.plot)
    tables.append(_settings_table(corpus, bleu, args))
    print("\n\n".join(tables))


# --- reading ------------------------------------------------------------------------------------------------------


def read_corpus(args: argparse.Namespace) -> Corpus:
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
            _warn(f"{output.path}: {empty} of {len(sentences)} translations are empty")

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
        _warn(
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
        sentence: replace(entry, text=post_process(entry.text, subword_type)) if mark in entry.text else entry
        for sentence, entry in entries.items()
    }


def _plain(path: str, subword_type: str | None) -> dict[int, Entry]:
    """The sentences of a text, a line each, numbered from 0."""
    entries = {i: Entry(line.strip(), i + 1) for i, line in enumerate(read_lines(path))}
    return _join(entries, subword_type) if subword_type else entries


def _warn_of_pieces(what: str, column: list[str]) -> None:
    piece = next((match[0] for text in column if (match := _PIECE.search(text))), None)
    if piece:
        _warn(f"{what}: pieces such as {piece!r} are counted as words; give --remove-bpe")


def _names(paths: list[str]) -> list[str]:
    """File names; whole paths where these are the same."""
    short = [Path(path).name.removesuffix(".generated") for path in paths]
    return short if len(set(short)) == len(short) else paths


def _number(names: list[str], name: str) -> int:
    """Place of the system of this name.

    Raises:
        ValueError: no system has it, or several do.
    """
    if names.count(name) != 1:
        problem = "several systems have this name" if name in names else "no system has this name"
        raise ValueError(f"--against {name}: {problem}; give one of {', '.join(names)}, or other --names")
    return names.index(name)


def _warn(message: str) -> None:
    print(f"{_PROGRAM}: {message}", file=sys.stderr)


# --- scores -------------------------------------------------------------------------------------------------------


def score(corpus: Corpus, number: int, bleu: Bleu) -> Scored:
    """The statistics of a system and its RIBES."""
    hypotheses = corpus.hypotheses[number]
    ribes = [
        sentence_ribes(bleu.words(hypothesis), [bleu.words(reference) for reference in references])
        for hypothesis, references in zip(hypotheses, corpus.references, strict=True)
    ]
    return Scored(bleu.statistics(hypotheses, corpus.references), float(np.mean(ribes)))


def _part(bleu: Bleu, system: Scored, bucket: Bucket) -> float:
    """Corpus BLEU of a bucket; NaN if it is empty."""
    return bleu.score(system.statistics[bucket.sentences].sum(axis=0)).score if len(bucket) else math.nan


# --- tables -------------------------------------------------------------------------------------------------------


def _rounded(value: float, digits: int = 2) -> Decimal | float:
    """With so many digits after the point; NaN stays."""
    return value if math.isnan(value) else Decimal(f"{value:.{digits}f}") + 0  # without + 0, -0.001 becomes -0.00


def _p(value: float) -> Decimal:
    return Decimal(f"{value:.2g}")


_TESTS = ["better", "worse", "p sign", "p bootstrap"]


def _difference(other: Scored, system: Scored, bleu: Bleu, args: argparse.Namespace) -> list:
    """Cells of a row: the delta of BLEU to another system, then those of `_TESTS`."""

    def score(counts: np.ndarray) -> float:
        return bleu.score(counts).score

    compared = other.statistics, system.statistics, score
    delta = score(system.statistics.sum(axis=0)) - score(other.statistics.sum(axis=0))
    sign = sign_test(*compared)
    return [
        *(_rounded(delta), sign.better, sign.worse, _p(sign.p)),
        _p(paired_bootstrap(*compared, args.bootstrap, args.seed)),
    ]


def _systems_table(names: list[str], systems: list[Scored], bleu: Bleu, args: argparse.Namespace) -> str:
    rows = []
    for name, system in zip(names, systems, strict=True):
        total = bleu.score(system.statistics.sum(axis=0))
        alone = system is systems[0]
        delta, *tests = [math.nan] * 5 if alone else _difference(systems[0], system, bleu, args)
        scores = [_rounded(total.score), delta, _rounded(total.ratio, 3), _rounded(system.ribes, 4)]
        rows.append([name, *scores, *tests])
    return format_table(["system", "BLEU", "delta", "ratio", "RIBES", *_TESTS], rows, args.format)


def _against_table(names: list[str], systems: list[Scored], number: int, bleu: Bleu, args: argparse.Namespace) -> str:
    rows = [
        [name, *_difference(systems[number], system, bleu, args)]
        for i, (name, system) in enumerate(zip(names, systems, strict=True))
        if i != number
    ]
    return format_table([f"against {names[number]}", "delta", *_TESTS], rows, args.format)


def _buckets_table(names: list[str], buckets: list[Bucket], by_bucket: Sequence[Sequence[float]], form: str) -> str:
    header = ["source words", "sentences", *names, *(f"delta {name}" for name in names[1:])]
    rows = []
    for i, bucket in enumerate(buckets):
        scores = [of_system[i] for of_system in by_bucket]
        deltas = [_rounded(value - scores[0]) for value in scores[1:]]
        rows.append([bucket.label, len(bucket), *map(_rounded, scores), *deltas])
    return format_table(header, rows, form)


def _settings_table(corpus: Corpus, bleu: Bleu, args: argparse.Namespace) -> str:
    """What is needed to compute the numbers again."""
    rows = [
        ["sentences", str(len(corpus.references))],
        ["BLEU", bleu.signature(len(corpus.references[0]))],
        ["RIBES", f"alpha:{ALPHA:.2f}|beta:{BETA:.2f}|case:lc|tok:{args.tokenize}"],
        ["bootstrap", f"resamples:{args.bootstrap}|seed:{args.seed}"],
    ]
    return format_table(["setting", "value"], rows, TableFormat(args.format))


if __name__ == "__main__":
    sys.exit(main())

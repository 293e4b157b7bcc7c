"""Tables of systems beside a baseline: scores, whether they differ, and scores by source length."""

import math
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from ..pictures.figures import save_figure
from .bleu import Bleu
from .corpus import Corpus, read_corpus, warn
from .length_buckets import FEW, Bucket, draw_buckets, length_buckets
from .ribes import ALPHA, BETA, sentence_ribes
from .significance import bootstrap_interval, paired_bootstrap, sign_test
from .tables import TableFormat, format_table


@dataclass
class Scored:
    """A system.

    Attributes:
        statistics: (N, 10), see `Bleu.statistics`.
        ribes: mean over sentences.
    """

    statistics: np.ndarray
    ribes: float


def compare(args: Namespace) -> list[str]:
    """The tables; the picture is drawn.

    Raises:
        ValueError: files that do not go together, or no references; see `read_corpus`.
        OSError: a file is missing.
    """
    corpus = read_corpus(args)
    if args.draw and corpus.source_words is None:
        raise ValueError("--draw: the length of the source is not known; give --source")
    bleu = Bleu(args.lowercase, args.tokenize)
    others = [_number(corpus.names, name) for name in dict.fromkeys(args.against)]
    systems = [score(corpus, i, bleu) for i in range(len(corpus.names))]
    tables = [_systems_table(corpus.names, systems, bleu, args)]
    tables += [_against_table(corpus.names, systems, other, bleu, args) for other in others]
    if corpus.source_words is None:
        warn("no BLEU by length: the source is not known; give --source")
    else:
        buckets = length_buckets(corpus.source_words, args.buckets, args.longest)
        by_bucket = [[_part(bleu, system, bucket) for bucket in buckets] for system in systems]
        tables.append(_buckets_table(corpus.names, buckets, by_bucket, args.format))
        few = [bucket.label for bucket in buckets if 0 < len(bucket) < FEW]
        if few:
            warn(f"fewer than {FEW} sentences in bucket {', '.join(few)}: BLEU there says little")
        if args.draw:
            draws = lambda counts: bleu.score(counts).score, args.bootstrap, args.seed
            intervals = [[bootstrap_interval(s.statistics[b.sentences], *draws) for b in buckets] for s in systems]
            save_figure(draw_buckets(buckets, corpus.names, by_bucket, intervals), args.draw)
    tables.append(_settings_table(corpus, bleu, args))
    return tables


def _number(names: list[str], name: str) -> int:
    """Place of the system of this name.

    Raises:
        ValueError: no system has it, or several do.
    """
    if names.count(name) != 1:
        problem = "several systems have this name" if name in names else "no system has this name"
        raise ValueError(f"--against {name}: {problem}; give one of {', '.join(names)}, or other --names")
    return names.index(name)


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


def _difference(other: Scored, system: Scored, bleu: Bleu, args: Namespace) -> list:
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


def _systems_table(names: list[str], systems: list[Scored], bleu: Bleu, args: Namespace) -> str:
    rows = []
    for name, system in zip(names, systems, strict=True):
        total = bleu.score(system.statistics.sum(axis=0))
        alone = system is systems[0]
        delta, *tests = [math.nan] * 5 if alone else _difference(systems[0], system, bleu, args)
        scores = [_rounded(total.score), delta, _rounded(total.ratio, 3), _rounded(system.ribes, 4)]
        rows.append([name, *scores, *tests])
    return format_table(["system", "BLEU", "delta", "ratio", "RIBES", *_TESTS], rows, args.format)


def _against_table(names: list[str], systems: list[Scored], number: int, bleu: Bleu, args: Namespace) -> str:
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


def _settings_table(corpus: Corpus, bleu: Bleu, args: Namespace) -> str:
    """What is needed to compute the numbers again."""
    rows = [
        ["sentences", str(len(corpus.references))],
        ["BLEU", bleu.signature(len(corpus.references[0]))],
        ["RIBES", f"alpha:{ALPHA:.2f}|beta:{BETA:.2f}|case:lc|tok:{args.tokenize}"],
        ["bootstrap", f"resamples:{args.bootstrap}|seed:{args.seed}"],
    ]
    return format_table(["setting", "value"], rows, TableFormat(args.format))

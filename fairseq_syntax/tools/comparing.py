"""What `fairseq-syntax compare` does, from its options to everything that it has found."""

from argparse import Namespace

import numpy as np

from ..evaluate.buckets import LABEL, Source, bucket_scores, labelled, make_buckets, measure, scale_of
from ..evaluate.comparison import Chance, Evaluation, compare
from ..evaluate.corpus import Corpus, read_corpus
from ..evaluate.metrics import METRICS
from ..evaluate.results import check_scores, read_results, translations
from ..evaluate.tree_measures import read_parses


def compared(args: Namespace) -> tuple[Evaluation, dict]:
    """Score and compare.

    Args:
        args: options of `cli.compare`.

    Returns:
        Statistics of everything, and what docs/evaluation.md describes as the output of --format json.

    Raises:
        ValueError: files that do not go together, or no references; see `read_corpus`.
        OSError: a file is missing.
    """
    systems, records = systems_of(args)
    corpus = read_corpus(systems, args.reference, args.source, args.remove_bpe)
    _check_records(args, corpus, records)
    baselines = list(dict.fromkeys(args.baseline or [corpus.systems[0].name]))
    for name in baselines:
        corpus.system(name)
    metrics = [METRICS[name](args.lowercase, args.tokenize) for name in dict.fromkeys(args.metrics)]
    if args.comet:
        from ..evaluate.comet import Comet

        metrics.append(Comet(args.comet))
    evaluation = Evaluation(corpus, metrics, Chance(args.trials, args.bootstrap, args.seed))
    found = compare(evaluation, baselines)
    found["buckets"] = _buckets(args, evaluation, baselines[0])
    return evaluation, found


def systems_of(args: Namespace) -> tuple[dict, dict]:
    """Translations of all systems by run, and the records of those that have some."""
    if not args.results:
        return {name: {str(i + 1): path for i, path in enumerate(files)} for name, *files in args.system}, {}
    records = read_results(args.results)
    named = [name for name, *files in args.system if not files]
    recorded = translations(args.results, records, args.split, named)
    own = {name: {str(i + 1): path for i, path in enumerate(files)} for name, *files in args.system if files}
    order = [name for name, *_ in args.system] if named else [*recorded, *own]
    if not named and args.baseline:  # records come in no order of their own
        order.sort(key=args.baseline[0].__ne__)
    return {name: own.get(name) or recorded[name] for name in order}, {
        name: records[name] for name in recorded if name not in own
    }


def _check_records(args: Namespace, corpus: Corpus, records: dict) -> None:
    """Raise ValueError if scores are not those that were recorded."""
    for system in corpus.systems:
        for run, hypotheses in zip(system.runs, system.hypotheses, strict=True):
            record = records.get(system.name, {}).get(run)
            if record:
                check_scores(record, args.split, hypotheses, corpus.references, args.reference[0])


def _buckets(args: Namespace, evaluation: Evaluation, baseline: str) -> list[dict]:
    corpus = evaluation.corpus
    source = known_source(args, corpus)
    kinds = args.by or (["length"] if source.words is not None else [])
    found = []
    for kind in dict.fromkeys(kinds):
        if kind.startswith(LABEL):
            values, scale = labelled(kind.removeprefix(LABEL), corpus.numbers)
        else:
            values = measure(kind, source)
            scale = scale_of(kind, values, args.buckets, args.longest)
        buckets = make_buckets(values, scale, args.min_bucket)
        found.append(bucket_scores(evaluation, baseline, kind, buckets, values, args.min_bucket))
    return found


def known_source(args: Namespace, corpus: Corpus) -> Source:
    """What is known of the source: from a data directory, from the text, from a file of trees; later ones win."""
    found = Source()
    if args.data:
        from .split_source import read_source

        found = read_source(args.data, args.subset, corpus.numbers, corpus.sources)
    if corpus.sources is not None:
        found.words = np.array([len(text.split()) for text in corpus.sources])
        if not args.data:
            found.pieces = np.array([len(text.split()) for text in corpus.pieces])
            unknown = np.array([text.split().count("<unk>") for text in corpus.pieces])
            found.unknown = unknown if unknown.any() else None
    if args.parse:
        found.parses = read_parses(args.parse, corpus.numbers, corpus.sources)
        if found.words is None:
            # as in a text, "im" is one word
            found.words = np.array([len(parse.sentence.collapse_ranges()) for parse in found.parses])
    return found

"""fairseq-syntax contrast: measure how often a model prefers the right translation to one with a single mistake.

The model scores both translations of a source, as fairseq-generate --score-reference does; it is right if the correct
one scores higher, and wrong on a tie. Accuracies have Wilson's 95 % interval, and systems are compared with the first
one by McNemar's exact test. Tables by distance, attractors and every other column of the details follow. If the model
needs trees, the source is parsed, or its trees are read with --parser conllu --parser-model FILE.

A folder of pairs has src.LANGUAGE, tgt.correct.LANGUAGE and tgt.incorrect.LANGUAGE, one sentence per line, as in
DistilLingEval, and optionally details.tsv: a header, then one row per pair.

examples:
  fairseq-syntax contrast data-bin --path pascal.pt --pairs pairs/agreement --parser conllu \\
      --parser-model pairs/agreement/trees.en.conllu --output pascal.json
  fairseq-syntax contrast data-bin --path lisa.pt --pairs pairs/agreement --beside pascal.json
  fairseq-syntax contrast data-bin --path transformer.pt --pairs lingeval/np_agreement --tokenizer moses --lowercase \\
      --bpe subword_nmt --bpe-codes codes
  fairseq-syntax contrast --pairs pairs/agreement --beside transformer.json pascal.json --format markdown
"""

import argparse

from ..files import refuse_existing, written
from .verb import (
    Verb,
    add_checkpoint_arguments,
    add_format,
    add_max_tokens,
    add_overwrite,
    add_parsers,
    add_preparation,
    check_preparation,
)

_FILES = {"source": "sources", "correct": "correct translations", "incorrect": "incorrect translations"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint_arguments(parser, required=False)
    add = parser.add_argument
    add("--pairs", metavar="FOLDER", help="folder of minimal pairs")
    for name, what in _FILES.items():
        add(f"--{name}", metavar="FILE", help=f"without --pairs: text of the {what}")
    add("--details", metavar="FILE", help="TSV with a row of details per pair (default: details.tsv of the folder)")
    add("--name", help="name of the system (default: file and architecture)")
    add(
        "--score",
        choices=["sum", "mean"],
        default="sum",
        help="sum or mean of the log-probabilities of tokens (default: sum)",
    )
    add(
        "--beside",
        nargs="+",
        default=[],
        metavar="FILE",
        help="records of other systems to compare with; the first is the baseline",
    )
    add("--output", metavar="FILE", help="record of this system, as JSON; - is stdout, instead of the tables")
    add_preparation(parser)
    add("--source-prefix", default="", metavar="TOKENS", help="tokens to put before every source, such as <translate>")
    add_parsers(parser)
    add_max_tokens(parser)
    add_format(parser)
    add_overwrite(parser)


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if (args.data is None) != (args.path is None):
        parser.error("DATA and --path go together: give the data directory and the checkpoint")
    if not args.path and (not args.beside or args.output):
        parser.error("give DATA and --path; without a model there is only --beside, of records that are there")
    named = [getattr(args, name) for name in _FILES]
    if (args.pairs is None) != all(named) or (args.pairs and any(named)):
        parser.error("give --pairs, or --source, --correct and --incorrect")
    check_preparation(parser, args)


def run(args: argparse.Namespace) -> None:
    """Score the pairs, write the record, print the tables."""
    from ..evaluate.contrast import check_records, read_record, tables
    from ..evaluate.minimal_pairs import find_pairs, read_pairs

    refuse_existing([args.output], args.overwrite)
    files, details = find_pairs(args.pairs) if args.pairs else ({name: getattr(args, name) for name in _FILES}, None)
    pairs = read_pairs(**files, details=args.details or details)
    records = [read_record(path) for path in args.beside]
    check_records(records)
    if records and records[0].digest != pairs.digest:
        raise ValueError(f"{args.beside[0]}: a record of other pairs than {pairs.source_path}; give those")
    if args.path:
        from .minimal_pair_scores import score

        records.append(score(args, pairs, records))
    if args.output:
        with written(args.output) as out:
            out.write(records[-1].as_json())
    if args.output != "-":
        print(tables(records, pairs, args.format))


main = Verb(__doc__, add_arguments, run, check)

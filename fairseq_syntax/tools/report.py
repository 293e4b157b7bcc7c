"""fairseq-syntax report: write an HTML page about a folder of results, or about translations of any origin.

The page is a single file, readable offline, which can be searched, sorted and printed. It has a verdict on each system,
scores and tests, scores by kind of sentence, and the sentences on which systems differ most.

examples:
  fairseq-syntax report --system baseline base.1 base.2 --system new new.1 new.2 --reference test.de --source test.en \\
      --tokenize 13a --output report.html
  fairseq-syntax report docs/results/agreement --split test --reference corpus/test.de --source corpus/test.en \\
      --parse corpus/test.en.conllu --by length --by depth --output report.html
"""

import argparse
from pathlib import Path

from ..files import written
from .compare import add_buckets, add_chance, add_scores, check_scored, scoring_of
from .verb import Verb, add_shared, positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "results",
        nargs="?",
        metavar="RESULTS",
        help="folder of records and translations from examples/experiments (without it, give --system with files)",
    )
    add("--output", required=True, metavar="FILE", help="page to write (.html)")
    add_shared(parser, "--overwrite")
    add("--title", metavar="TEXT", help="title of the page (default: corpus and split)")
    group = parser.add_argument_group("systems").add_argument
    group("--split", metavar="NAME", help="split of RESULTS, such as test")
    group("--reference", required=True, action="append", metavar="FILE", help="reference text; may be repeated")
    group("--source", metavar="FILE", help="source text")
    group(
        "--system",
        action="append",
        nargs="+",
        default=[],
        metavar=("NAME", "FILE"),
        help="system of RESULTS, or another one and its translations, one file per seed (default: all of RESULTS)",
    )
    group(
        "--baseline",
        action="append",
        metavar="NAME",
        help="baseline of the tests; may be repeated (default: the first system)",
    )
    add_scores(parser)
    add_buckets(parser.add_argument_group("breakdown"))
    add_chance(parser.add_argument_group("tests and intervals"))
    parser.add_argument(
        "--most",
        type=positive,
        default=50,
        metavar="N",
        help="show the N sentences on which systems differ most (default: 50)",
    )


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if Path(args.output).suffix.lower() not in (".html", ".htm"):
        parser.error(f"--output {args.output}: give a name that ends in .html")
    if bool(args.results) != bool(args.split):
        parser.error("RESULTS and --split go together")
    if not args.results and not (args.system and all(files for _, *files in args.system)):
        parser.error("give RESULTS, or --system NAME FILE with the translations of every system")
    check_scored(parser, args)


def run(args: argparse.Namespace) -> None:
    from ..evaluate.comparison import compare
    from ..evaluate.report import page
    from ..evaluate.results import systems_of

    systems, records = systems_of(args.system, args.results, args.split, args.baseline)
    compared = compare(systems, baselines=args.baseline or (), records=records, **scoring_of(args))
    corpora = {run["corpus"] for runs in records.values() for run in runs.values() if "corpus" in run}
    title = f"{', '.join(sorted(corpora)) or Path(args.results).name}: {args.split}" if records else ", ".join(systems)
    with written(args.output) as file:
        file.write(page(compared, args.title or title, args.most))


main = Verb(__doc__, add_arguments, run, check, outputs=("output",))

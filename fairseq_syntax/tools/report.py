"""fairseq-syntax report: write an HTML page about translations of several systems.

The page is a single file, readable offline. It has a verdict on each system, scores and tests, scores by kind of
sentence, and the sentences on which systems differ most. An experiment's page is written by `experiment --report`.

examples:
  fairseq-syntax report --system baseline base.1 base.2 --system new new.1 new.2 --reference test.de --source test.en \\
      --parse test.en.conllu --by length --by depth --tokenize 13a --output report.html
"""

import argparse
from pathlib import Path

from ..files import written
from . import compare
from .compare import add_buckets, add_chance, add_scores, add_systems, compare_arguments
from .verb import Verb, add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--output", required=True, metavar="FILE", help="page to write (.html)")
    add_shared(parser, "--overwrite")
    add("--title", metavar="TEXT", help="title of the page (default: the systems)")
    add_systems(parser)
    add_scores(parser)
    add_buckets(parser.add_argument_group("breakdown"))
    add_chance(parser.add_argument_group("tests and intervals"))


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if Path(args.output).suffix.lower() not in (".html", ".htm"):
        parser.error(f"--output {args.output}: give a name that ends in .html")
    compare.check(parser, args)


def run(args: argparse.Namespace) -> None:
    from ..evaluate.comparison import compare
    from ..evaluate.report import page

    compared = compare(**compare_arguments(args))
    with written(args.output) as file:
        file.write(page(compared, args.title or ", ".join(name for name, *_ in args.system)))


main = Verb(__doc__, add_arguments, run, check, outputs=("output",), inputs=compare.inputs)

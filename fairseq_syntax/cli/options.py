"""fairseq-syntax options: the options of an architecture, with its task and criterion.

fairseq-train --help knows an architecture's options only if it is given with all that a training needs. The task and
the criterion are those of the architecture's system, unless others are named. What fairseq's transformer has is left
out where a model has all of it.

examples:
  fairseq-syntax options
  fairseq-syntax options pascal_transformer
  fairseq-syntax options lisa_transformer --criterion label_smoothed_cross_entropy
"""

import argparse

from .common.verb import Verb


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("arch", nargs="?", metavar="ARCH", help="architecture (default: list all of this package)")
    parser.add_argument("--task", metavar="NAME", help="task (default: that of the system, or syntax_translation)")
    parser.add_argument("--criterion", metavar="NAME", help="criterion (default: that of the system, if it has one)")


def run(args: argparse.Namespace) -> None:
    """Print the options, or the names of architectures."""
    from ..inspection.declared_options import architectures, describe

    print(describe(args.arch, args.task, args.criterion) if args.arch else "\n".join(architectures()))


main = Verb(__doc__, add_arguments, run)

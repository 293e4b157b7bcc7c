"""fairseq-syntax options: list the options of an architecture, with its task and criterion.

fairseq-train --help lists an architecture's options only as part of a complete training command. Task and criterion are
those of the architecture's system, unless you name others. Options that a model inherits from fairseq's transformer are
left out.

examples:
  fairseq-syntax options
  fairseq-syntax options pascal_transformer
  fairseq-syntax options lisa_transformer --criterion label_smoothed_cross_entropy
"""

import argparse

from .verb import Verb


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("arch", nargs="?", metavar="ARCH", help="architecture (default: list this package's)")
    parser.add_argument("--task", metavar="NAME", help="task (default: that of the system, or syntax_translation)")
    parser.add_argument("--criterion", metavar="NAME", help="criterion (default: that of the system, if it has one)")


def run(args: argparse.Namespace) -> None:
    """Print the options, or the names of architectures."""
    from .declared_options import architectures, describe

    print(describe(args.arch, args.task, args.criterion) if args.arch else "\n".join(architectures()))


main = Verb(__doc__, add_arguments, run)

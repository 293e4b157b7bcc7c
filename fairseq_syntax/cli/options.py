"""fairseq-syntax options: the options of an architecture, with its task and criterion."""

import argparse
import sys

from .common.entry_point import entry_point

_EPILOG = """\
fairseq-train --help knows an architecture's options only if it is given with all that a training needs. The task and
the criterion are those of the architecture's system, unless others are named. What fairseq's transformer has is left
out where a model has all of it.

examples:
  fairseq-syntax options
  fairseq-syntax options pascal_transformer
  fairseq-syntax options lisa_transformer --criterion label_smoothed_cross_entropy"""


def build_parser() -> argparse.ArgumentParser:
    """The program's options."""
    parser = argparse.ArgumentParser(
        prog="fairseq-syntax options",
        description="Options of fairseq-train that an architecture has, with its task and its criterion.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("arch", nargs="?", metavar="ARCH", help="architecture (default: list all of this package)")
    parser.add_argument("--task", metavar="NAME", help="task (default: that of the system, or syntax_translation)")
    parser.add_argument("--criterion", metavar="NAME", help="criterion (default: that of the system, if it has one)")
    return parser


def run(args: argparse.Namespace) -> None:
    """Print the options, or the names of architectures.

    Raises:
        ValueError: nobody has registered such a name.
    """
    from ..inspection.declared_options import architectures, describe

    print(describe(args.arch, args.task, args.criterion) if args.arch else "\n".join(architectures()))


main = entry_point(build_parser, run)


if __name__ == "__main__":
    sys.exit(main())

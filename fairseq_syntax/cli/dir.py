"""fairseq-syntax dir: print the directory to give to --user-dir.

example:
  fairseq-train … --user-dir "$(fairseq-syntax dir)"
"""

import argparse
from pathlib import Path

from .common.verb import Verb


def run(args: argparse.Namespace) -> None:
    """Print the package's directory, and nothing else."""
    print(Path(__file__).resolve().parent.parent)


main = Verb(__doc__, lambda parser: None, run)

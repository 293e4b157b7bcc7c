"""fairseq-syntax dir: print the directory to give to `--user-dir`."""

import argparse
import sys
from pathlib import Path

from .common.entry_point import entry_point


def build_parser() -> argparse.ArgumentParser:
    """The program's options: none."""
    return argparse.ArgumentParser(
        prog="fairseq-syntax dir",
        description='Print the directory for --user-dir: fairseq-train … --user-dir "$(fairseq-syntax dir)"',
    )


def run(args: argparse.Namespace) -> None:
    """Print the package's directory, and nothing else."""
    print(Path(__file__).resolve().parent.parent)


main = entry_point(build_parser, run)


if __name__ == "__main__":
    sys.exit(main())

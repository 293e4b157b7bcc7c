"""fairseq-syntax dir: print the directory to give to `--user-dir`."""

import argparse
from pathlib import Path


def main(argv: list[str] | None = None) -> None:
    """Print the package's directory, and nothing else."""
    argparse.ArgumentParser(
        prog="fairseq-syntax dir",
        description='Print the directory for --user-dir: fairseq-train … --user-dir "$(fairseq-syntax dir)"',
    ).parse_args(argv)
    print(Path(__file__).resolve().parent.parent)


if __name__ == "__main__":
    main()

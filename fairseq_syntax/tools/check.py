"""fairseq-syntax check: verify a data directory that fairseq-syntax preprocess wrote.

It checks checksums and shapes of all files, that heads form trees, that parents and distances follow from the heads,
the dictionaries, and that every sentence has a tree of its length. Training does the cheap part of this by itself.

Prints a line for every split, and a line for every fault on stderr. Exit status: 0, 1 if there is a fault, 2 for bad
usage.

example:
  fairseq-syntax check data-bin
"""

import argparse
import json
from pathlib import Path

from .verb import Verb


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", help="data directory")
    parser.add_argument("-s", "--source-lang", metavar="SOURCE", help="source language (default: the one found)")
    parser.add_argument("-t", "--target-lang", metavar="TARGET", help="target language (default: the one found)")


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if bool(args.source_lang) != bool(args.target_lang):
        parser.error("--source-lang and --target-lang go together")


def run(args: argparse.Namespace) -> None:
    """Print what is there and what is wrong."""
    from ..data.checking import DataCheck

    path = Path(args.data)
    if not path.is_dir():
        raise FileNotFoundError(f"{path}: no such data directory; name the one that preprocessing wrote")
    given = (args.source_lang, args.target_lang)
    pairs = [given] if all(given) else [_languages(manifest) for manifest in sorted(path.glob("syntax-*-*.json"))]
    if not pairs:
        raise FileNotFoundError(
            f"{path}: no syntax-*.json: not a directory that fairseq-syntax preprocess wrote, or one that it has not "
            "finished"
        )
    faults = []
    for pair in pairs:
        check = DataCheck(path, *pair)
        check.run()
        faults += check.faults
        for line in check.summary:
            print(line)
    if faults:
        raise ValueError("\nfairseq-syntax check: ".join(faults))
    print(f"{path}: all right")


def _languages(manifest: Path) -> tuple[str, str | None]:
    """Of which languages a manifest is; names of languages may have hyphens."""
    from ..data.arrays import manifest_path

    try:
        content = json.loads(manifest.read_text(encoding="utf-8"))
        languages = content["source_lang"], content["target_lang"]
        if manifest_path("", *languages).name == manifest.name:
            return languages
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    source, target = manifest.stem.split("-", 2)[1:]
    return source, target


main = Verb(__doc__, add_arguments, run, check)

"""fairseq-syntax dir: print the directory to give to --user-dir, or that of a bundled model.

example:
  fairseq-train … --user-dir "$(fairseq-syntax dir)"
  model=$(fairseq-syntax dir agreement-pascal)
  echo 'the dogs near the cat see the bird .' | fairseq-interactive $model --user-dir "$(fairseq-syntax dir)" \\
      -s en -t de --path $model/model.pt --parser checkpoint --parser-model agreement-parser
"""

import argparse
from pathlib import Path

from ..pretrained import folder, names
from .verb import Verb


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", nargs="?", metavar="MODEL", help=f"bundled model: {', '.join(names())}")


def run(args: argparse.Namespace) -> None:
    print(folder(args.model) if args.model else Path(__file__).resolve().parent.parent)


main = Verb(__doc__, add_arguments, run)

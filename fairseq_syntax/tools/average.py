"""fairseq-syntax average: average the parameters of checkpoints.

The mean is uniform and computed in double precision; options come from the last checkpoint. The optimizer's state is
dropped: the result is for fairseq-generate, fairseq-interactive, from_pretrained and --finetune-from-model. The
checkpoints must come from one training, or from trainings that started from the same parameters.

example:
  fairseq-syntax average --input checkpoints --first 11 --last 20 --output checkpoints/average.pt
"""

import argparse
import sys
from pathlib import Path

from .verb import Verb, add_shared, positive


def average(inputs: list[str], output: str, first: int | None = None, last: int | None = None) -> list:
    """Write the mean of checkpoints, and return the checkpoints, oldest first; see `find_checkpoints`.

    Raises ValueError: the checkpoints do not match; OSError: a file is missing.
    """
    from ..progress import progress_bar
    from ..training.averaging import find_checkpoints, mean_of, write_checkpoint

    checkpoints = find_checkpoints(inputs, first, last)
    # newest first, because integers are not averaged but taken from the first
    parameters = mean_of(progress_bar([checkpoint.path for checkpoint in checkpoints[::-1]], unit="checkpoint"))
    write_checkpoint(output, parameters, [checkpoint.path for checkpoint in checkpoints])
    return checkpoints


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--input",
        nargs="+",
        required=True,
        metavar="PATH",
        help="checkpoints, oldest first, or a folder of checkpointN.pt",
    )
    add("--first", type=positive, metavar="N", help="start at checkpointN.pt of the folder (default: the first)")
    add("--last", type=positive, metavar="N", help="end at checkpointN.pt of the folder (default: the last)")
    add("--output", required=True, metavar="FILE", help="checkpoint to write")
    add_shared(parser, "--overwrite")


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if (args.first or args.last) and not (len(args.input) == 1 and Path(args.input[0]).is_dir()):
        parser.error("--first and --last select from a folder of checkpoints; give one with --input")


def run(args: argparse.Namespace) -> None:
    checkpoints = average(args.input, args.output, args.first, args.last)
    first, last = checkpoints[0].path.name, checkpoints[-1].path.name
    mean = f"mean of {len(checkpoints)} checkpoints, {first} to {last}"
    print(f"{args.output}: {mean if len(checkpoints) > 1 else f'only {first}, so nothing to average'}", file=sys.stderr)


main = Verb(__doc__, add_arguments, run, check, outputs=("output",), inputs=lambda args: args.input)

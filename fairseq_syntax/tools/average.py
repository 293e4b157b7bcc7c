"""fairseq-syntax average: average the parameters of checkpoints.

The mean is uniform and computed in double precision; options come from the last checkpoint. The optimizer's state is
dropped: the result is for fairseq-generate, fairseq-interactive, from_pretrained and --finetune-from-model. The
checkpoints must come from one training, or from trainings that started from the same parameters.

With --select-on, the range is chosen, too: the mean starts at the first checkpoint, at half the number of the best one
(by the --best-checkpoint-metric of the training), or is over the last 8, 5 or 3. Each of these models translates the
split, and the one with the highest BLEU is kept; on a tie, the mean of most checkpoints. BLEU is computed on the tokens
of the data, unless --remove-bpe joins them.

examples:
  fairseq-syntax average --input checkpoints --from 11 --to 20 --output checkpoints/average.pt
  fairseq-syntax average --input checkpoints --select-on valid --data data-bin --output checkpoints/average.pt
"""

import argparse
import sys
from pathlib import Path

from ..files import refuse_existing
from .verb import Verb, add_batch_size, add_format, add_overwrite, add_scoring, add_search, positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--input",
        nargs="+",
        required=True,
        metavar="PATH",
        help="checkpoints, oldest first; or a folder with checkpointN.pt, one per epoch",
    )
    add(
        "--from", dest="first", type=positive, metavar="N", help="first N of the folder's checkpointN.pt (default: all)"
    )
    add("--to", dest="last", type=positive, metavar="N", help="last N of the folder's checkpointN.pt (default: all)")
    add("--output", required=True, metavar="FILE", help="checkpoint to write")
    add_overwrite(parser)
    group = parser.add_argument_group("choosing the range")
    add = group.add_argument
    add("--select-on", metavar="SPLIT", help="translate this split with the means of several ranges, and keep the best")
    add("--data", metavar="DATA", help="data directory with the split and the model's dictionaries")
    add_search(group, beam=1, a=2, b=20)
    add_scoring(group)
    add_batch_size(group)
    add("--cpu", action="store_true", help="run on the CPU even if there is a GPU")
    add_format(group)


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if args.select_on and not args.data:
        parser.error("--select-on: name the data directory with --data")
    if args.data and not args.select_on:
        parser.error("--data needs --select-on")
    if (args.first or args.last) and not (len(args.input) == 1 and Path(args.input[0]).is_dir()):
        parser.error("--from and --to choose among the checkpoints of a folder; name one with --input")


def run(args: argparse.Namespace) -> None:
    """Write the mean; print the table of ranges, if there were any to choose from, on stdout."""
    from tqdm import tqdm

    from ..training.averaging import Mean, find_checkpoints, write_checkpoint
    from .range_selection import select

    refuse_existing([args.output], args.overwrite)
    checkpoints = find_checkpoints(args.input, args.first, args.last)
    if args.select_on:
        start, parameters = select(checkpoints, args)
        checkpoints = checkpoints[start:]
    else:
        mean = Mean()
        for checkpoint in tqdm(checkpoints[::-1], unit="checkpoint"):
            mean.add(checkpoint.path)
        parameters = mean.parameters()
        mean.report()
    write_checkpoint(args.output, parameters, [checkpoint.path for checkpoint in checkpoints])
    names = f"{checkpoints[0].path.name} to {checkpoints[-1].path.name}"
    print(f"{args.output}: mean of {len(checkpoints)} checkpoints, {names}", file=sys.stderr)


main = Verb(__doc__, add_arguments, run, check)

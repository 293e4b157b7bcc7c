"""fairseq-syntax average: a model whose parameters are the mean of those of several checkpoints.

Every parameter becomes the uniform mean of that of all checkpoints, computed in double precision; the options come from
the last one. The result has no state of the optimizer: it is for fairseq-generate, fairseq-interactive, from_pretrained
and --finetune-from-model. The checkpoints must be of one training, or of trainings that began with the same parameters.

With --select-on, where the mean begins is chosen: it is taken over all checkpoints, over those from half the number of
the best one on (best by --best-checkpoint-metric of the training), and over the last 8, 5 and 3. Each of these models
translates the split; that with the highest BLEU is kept, of equal ones the mean of most checkpoints. BLEU is that of
the tokens of the data, unless --remove-bpe joins them.

examples:
  fairseq-syntax average --input checkpoints --from 11 --to 20 --output checkpoints/average.pt
  fairseq-syntax average --input checkpoints --select-on valid --data data-bin --output checkpoints/average.pt
"""

import argparse
import sys
from pathlib import Path

from ..files import refuse_existing
from .common.arguments import add_batch_size, add_format, add_scoring, positive
from .common.verb import Verb


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--input",
        nargs="+",
        required=True,
        metavar="PATH",
        help="checkpoints, the oldest first; or one folder, of which checkpointN.pt (one an epoch) are taken",
    )
    add("--from", dest="first", type=positive, metavar="N", help="first N of a folder's checkpointN.pt (default: all)")
    add("--to", dest="last", type=positive, metavar="N", help="last N of a folder's checkpointN.pt (default: all)")
    add("--output", required=True, metavar="FILE", help="checkpoint to write")
    add("--overwrite", action="store_true", help="replace the output if it exists")
    group = parser.add_argument_group("choosing where to begin")
    add = group.add_argument
    add("--select-on", metavar="SPLIT", help="translate this split with the mean of several ranges; keep the best one")
    add("--data", metavar="DATA", help="data directory with the split and the dictionaries of the model")
    add("--beam", type=positive, default=1, metavar="N", help="beam size (default: 1, greedy)")
    add("--max-len-a", type=float, default=2, metavar="A", help="translations have at most A x source + B tokens (2)")
    add("--max-len-b", type=int, default=20, metavar="B", help="see --max-len-a (20)")
    add_scoring(group)
    add_batch_size(group)
    add("--cpu", action="store_true", help="do not use a GPU (default: if there is one)")
    add_format(group)


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if args.select_on and not args.data:
        parser.error("--select-on: name the data directory with --data")
    if args.data and not args.select_on:
        parser.error("--data is of use with --select-on only")
    if (args.first or args.last) and not (len(args.input) == 1 and Path(args.input[0]).is_dir()):
        parser.error("--from and --to choose among the checkpoints of a folder; name one with --input")


def run(args: argparse.Namespace) -> None:
    """Write the mean; print the table of ranges, if there were any to choose from, on stdout."""
    from tqdm import tqdm

    from ..inspection.range_selection import select
    from ..training.averaging import Mean, find_checkpoints, write_checkpoint

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

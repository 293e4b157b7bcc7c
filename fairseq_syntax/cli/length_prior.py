"""fairseq-syntax length-prior: probabilities of target lengths, for the beam search of Hashimoto & Tsuruoka (2017).

Lengths are those of the training pairs, in tokens, EOS not counted. The table goes into the data directory, as
length_prior.SOURCE-TARGET.npz; translate with fairseq-generate --length-prior auto (after --output: FILE).

A source length of which training says nothing takes no prior: shorter or longer than every sentence, or (with the
kernel) no sentence within 2 of it.

Printed are -log p(target length | source length), in nats, the mean over the sentences of the valid split whose source
length is one of training; less is better. A table of unseen lengths as by the author has no such number: its rows need
not sum to one.

examples:
  fairseq-syntax length-prior data-bin -s en -t ja
  fairseq-syntax length-prior data-bin -s en -t ja --smoothing raw --unseen author --output raw.npz
"""

import argparse
import itertools
import sys
from pathlib import Path

from ..files import refuse_existing
from .common.arguments import positive
from .common.verb import Verb


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("data", metavar="DATA", help="data directory; of several, joined with colons, the first gets the table")
    add("-s", "--source-lang", required=True, metavar="LANG", help="source language")
    add("-t", "--target-lang", required=True, metavar="LANG", help="target language")
    add(
        "--smoothing",
        choices=["kernel", "raw"],
        default="kernel",
        help="kernel: neighbouring source lengths count, too, and a log-normal distribution of the ratio of lengths "
        "backs them; raw: relative frequencies, the paper's (default: kernel)",
    )
    add(
        "--bin",
        type=positive,
        default=1,
        metavar="N",
        help="count source lengths together in groups of N, for very small data (default: 1)",
    )
    add(
        "--unseen",
        choices=["floor", "author"],
        default="floor",
        help="lengths that no training pair has: floor: they are very improbable; author: with a source length that "
        "was seen they are forbidden, any other source length adds nothing (needs --smoothing raw; default: floor)",
    )
    add("--output", type=_table, metavar="FILE", help="the table, .npz (default: that which --length-prior auto reads)")
    add("--overwrite", action="store_true", help="replace the table that is there")


def _table(path: str) -> Path:
    if not path.endswith(".npz"):
        raise argparse.ArgumentTypeError(f"{path}: give a name that ends in .npz")
    return Path(path)


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if args.unseen == "author" and args.smoothing != "raw":
        parser.error("--unseen author needs --smoothing raw: the kernel leaves no length unseen")
    if args.source_lang == args.target_lang:
        parser.error("--source-lang and --target-lang are the same")


def run(args: argparse.Namespace) -> None:
    """Write the table; print what was measured."""
    import numpy as np
    from fairseq import utils

    from ..data.length_table import length_table_path, split_lengths, write_length_table
    from ..decoding.length_prior import Smoothing, Unseen, length_table, log_probabilities

    languages = args.source_lang, args.target_lang
    paths = utils.split_paths(args.data)
    output = args.output or length_table_path(paths[0], *languages)
    refuse_existing([str(output)], args.overwrite)
    reverse = not any(Path(paths[0]).glob(f"train.{'-'.join(languages)}.*"))
    found = [lengths for path in paths for lengths in _train_lengths(path, *languages)]
    source, target = (np.concatenate(side) for side in zip(*found, strict=True))
    tables = {kind: length_table(source, target, kind, bin_size=args.bin) for kind in Smoothing}
    own = Smoothing(args.smoothing)
    table = tables[own]
    if args.unseen == Unseen.author:
        table = length_table(source, target, own, args.unseen, args.bin)
    options = {"smoothing": str(own), "unseen": args.unseen, "bin": args.bin}
    meta = {"source": languages[0], "target": languages[1], "pairs": len(source), **options}
    write_length_table(output, table, meta)

    print(f"training pairs: {len(source)}")
    print(f"longest source: {source.max()} tokens")
    print(f"longest target: {target.max()} tokens")
    valid = split_lengths(paths[0], "valid", *languages)
    if valid is not None and len(valid[0]):
        # raw counts say nothing of other source lengths, and there are the kernel's numbers beside them
        known = [lengths[np.isin(valid[0], source)] for lengths in valid]
        for kind in Smoothing if len(known[0]) else ():
            print(f"valid, {kind}: {-log_probabilities(tables[kind], *known).mean():.4f} nats a sentence")
        unit = 1 + max(target.max(), valid[1].max())
        unseen = ~np.isin(valid[0] * unit + valid[1], source * unit + target)
        print(f"valid, unseen in training: {int(unseen.sum())} of {len(unseen)} pairs of lengths")
    else:
        print("no valid split: nothing was scored")
    print(f"wrote {output}")
    if reverse:
        print(
            f"fairseq-syntax length-prior: {paths[0]} is named for the other direction, and fairseq infers a direction "
            "from any of its names: give -s and -t wherever you use it",
            file=sys.stderr,
        )


def _train_lengths(path: str, source: str, target: str):
    """Lengths of train, train1, … as fairseq trains on them."""
    from ..data.length_table import split_lengths

    found = split_lengths(path, "train", source, target)
    if found is None:
        raise ValueError(
            f"{path}: no split train of {source} and {target}; give the directory that preprocessing wrote, and its "
            "languages"
        )
    yield found
    for number in itertools.count(1):
        found = split_lengths(path, f"train{number}", source, target)
        if found is None:
            return
        yield found


main = Verb(__doc__, add_arguments, run, check)

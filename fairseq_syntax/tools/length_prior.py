"""fairseq-syntax length-prior: estimate target lengths, for the beam search of Hashimoto & Tsuruoka (2017).

Lengths are counted over the training pairs, in tokens without EOS. The table is written to the data directory as
length_prior.SOURCE-TARGET.npz, where fairseq-generate --length-prior auto finds it (after --output, give
--length-prior FILE).

Source lengths that no training sentence has get no prior; target lengths that do not occur with a source length are
forbidden.

example:
  fairseq-syntax length-prior data-bin -s en -t ja
"""

import argparse
import itertools
import os
import sys
from pathlib import Path

from ..files import refuse_existing
from .verb import Verb, add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("data", metavar="DATA", help="data directory, or several joined with colons; the table goes into the first")
    add("-s", "--source-lang", required=True, metavar="LANG", help="source language")
    add("-t", "--target-lang", required=True, metavar="LANG", help="target language")
    add("--output", type=_table, metavar="FILE", help="table, .npz (default: where --length-prior auto finds it)")
    add_shared(parser, "--overwrite")


def _table(path: str) -> Path:
    if not path.endswith(".npz"):
        raise argparse.ArgumentTypeError(f"{path}: give a name that ends in .npz")
    return Path(path)


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if args.source_lang == args.target_lang:
        parser.error("--source-lang and --target-lang are the same")


def length_prior(data: str, source: str, target: str, output: Path | None = None) -> list[str]:
    """Write the table of a data directory, or of several joined with colons; see --help for the arguments.

    Returns lines of a report: what was counted, and how many pairs of lengths of the validation set it does not have.
    Raises ValueError: there is no training set of these languages; OSError: the table cannot be written.
    """
    import numpy as np
    from fairseq import utils

    from ..data.length_table import length_table_path, split_lengths, write_length_table
    from ..decoding.length_prior import length_table

    paths = utils.split_paths(data)
    path = output or length_table_path(paths[0], source, target)
    splits = [lengths for directory in paths for lengths in _train_lengths(directory, source, target)]
    sources, targets = (np.concatenate(side) for side in zip(*splits, strict=True))
    meta = {"source": source, "target": target, "pairs": len(sources)}
    write_length_table(path, length_table(sources, targets), meta, follow=output is not None)
    report = [f"training pairs: {len(sources)}"]
    report += [f"longest {side}: {x.max()} tokens" for side, x in (("source", sources), ("target", targets))]
    valid = split_lengths(paths[0], "valid", source, target)
    if valid is None or not len(valid[0]):
        return report
    unit = 1 + max(targets.max(), valid[1].max())
    is_new = ~np.isin(valid[0] * unit + valid[1], sources * unit + targets)
    return [*report, f"valid, unseen in training: {is_new.sum()} of {len(is_new)} pairs of lengths"]


def _train_lengths(path: str, source: str, target: str):
    """Lengths of the splits train, train1, … on which fairseq trains."""
    from ..data.length_table import split_lengths
    from ..data.token_files import parts_of

    parts = (split_lengths(path, name, source, target) for name in parts_of("train"))
    splits = list(itertools.takewhile(lambda lengths: lengths is not None, parts))
    if not splits:
        raise ValueError(
            f"{path}: no split train of {source} and {target}; give the directory that preprocessing wrote, and its "
            "languages"
        )
    return splits


def run(args: argparse.Namespace) -> None:
    from fairseq import utils

    from ..data.length_table import length_table_path

    first, languages = utils.split_paths(args.data)[0], (args.source_lang, args.target_lang)
    output = args.output or length_table_path(first, *languages)
    refuse_existing([str(output)], args.overwrite)
    print(*length_prior(args.data, *languages, args.output), sep="\n")
    print(f"wrote {output}")
    if not any(Path(first).glob(f"train.{'-'.join(languages)}.*")):
        print(
            f"fairseq-syntax length-prior: {first} is named for the other direction, and fairseq infers a direction "
            "from any of its names: give -s and -t wherever you use it",
            file=sys.stderr,
        )


main = Verb(__doc__, add_arguments, run, check, inputs=lambda args: args.data.split(os.pathsep))

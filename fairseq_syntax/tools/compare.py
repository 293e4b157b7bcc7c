"""fairseq-syntax compare: score systems over seeds, test them against a baseline, and show where they differ.

Files are the output of fairseq-generate (sentences in any order; the best one of several hypotheses; D- lines, or H-
lines where there are none), or plain text with --reference. Several files of a system are its seeds; systems may
differ in their number. A folder of results knows its seeds.

  mean, SD, min, max  over seeds; SD is the sample standard deviation
  95 % interval       bootstrap interval of the mean
  length              words of the translations / words of the references
  better/worse        sentences that make the baseline better/worse when the system's translations replace its own
  p AR                approximate randomization over sentences, two-sided; for one seed, sacrebleu --paired-ar
  p bootstrap         paired bootstrap, as in sacrebleu --paired-bs: one-tailed, about half of a two-sided p
  p sign              sign test on better and worse (Collins et al. 2005), two-sided
  Holm                the preceding p, corrected for the number of systems
  p seeds             Welch's t-test over the scores of seeds, two-sided, not corrected

examples:
  fairseq-syntax compare --system base base.generated --system mine mine.generated --reference test.de
  fairseq-syntax compare --system base b1.txt b2.txt b3.txt --system mine m1.txt m2.txt m3.txt --reference test.de \\
      --source test.en --by length --by depth --parse test.en.conllu --draw buckets.svg
  fairseq-syntax compare --results docs/results/agreement --split test --reference corpus/test.de --format markdown
  fairseq-syntax compare --results docs/results/agreement --split test --reference corpus/test.de \\
      --system transformer --system pascal --system mine mine.txt --baseline transformer --baseline pascal
"""

import argparse
import json

from ..files import refuse_existing
from .verb import Verb, add_format, add_overwrite, add_scoring, picture, positive

_METRICS = ["BLEU", "chrF", "chrF++", "TER", "RIBES"]
_KINDS = [
    *("length", "depth", "longest-dependency", "mean-dependency", "crossings", "relation:NAME", "attractors"),
    *("subwords", "unknown", "confidence", "label:FILE"),
]
_NAMED = ("relation:", "label:")
_CLOSED_BUCKETS = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_systems(parser.add_argument_group("systems"))
    add_scores(parser)
    buckets = parser.add_argument_group("breakdown")
    add_buckets(buckets)
    buckets.add_argument(
        "--draw",
        type=picture,
        metavar="PICTURE",
        help="picture of the scores by bucket, with 95 %% bootstrap intervals (.svg, .png or .pdf)",
    )
    add_chance(parser.add_argument_group("tests and intervals"))
    add_format(parser, "json")
    add_overwrite(parser)


def add_scores(parser: argparse.ArgumentParser) -> None:
    """What translations are scored by."""
    scores = parser.add_argument_group("scores")
    scores.add_argument(
        "--metrics",
        nargs="+",
        choices=_METRICS,
        default=["BLEU", "chrF", "TER", "RIBES"],
        metavar="NAME",
        help=f"any of {', '.join(_METRICS)}; buckets use the first (default: all but chrF++)",
    )
    scores.add_argument(
        "--comet",
        metavar="MODEL",
        help="also score with this COMET model: a checkpoint, or a name such as Unbabel/wmt22-comet-da, which is "
        "downloaded; needs unbabel-comet and --source",
    )
    scores.add_argument("--lowercase", action="store_true", help="ignore case in BLEU and chrF")
    add_scoring(scores)


def _add_systems(group) -> None:
    add = group.add_argument
    add(
        "--system",
        action="append",
        nargs="+",
        default=[],
        metavar=("NAME", "FILE"),
        help="system and its translations, one file per seed; with --results, NAME alone is a system of the folder",
    )
    add("--results", metavar="DIR", help="folder of records and translations that examples/leaderboard wrote")
    add("--split", metavar="NAME", help="split of --results, such as test")
    add(
        "--baseline",
        action="append",
        metavar="NAME",
        help="compare the others with this system; may be repeated (default: the first system)",
    )
    add(
        "--reference",
        action="append",
        metavar="FILE",
        help="reference text; may be repeated (default: the T- lines, which lose words that the model does not know)",
    )
    add("--source", metavar="FILE", help="source text (default: the S- lines)")


def add_buckets(group) -> None:
    """By what sentences are put together."""
    add = group.add_argument
    add(
        "--by",
        action="append",
        type=_kind,
        metavar="KIND",
        help=f"scores by {', '.join(_KINDS)}, where NAME is a dependency label, and FILE has a label of your "
        "own for each sentence, one a line; may be repeated (default: length, if the source is known)",
    )
    add("--parse", metavar="FILE", help="trees of the source (CoNLL-U, plain or .gz)")
    add("--data", metavar="DIR", help="data directory, for its subwords, dictionary and trees")
    add("--subset", metavar="NAME", help="split of --data, such as test")
    add("--buckets", type=positive, default=10, metavar="WORDS", help="width of the length buckets (default: 10)")
    add(
        "--longest",
        type=positive,
        metavar="WORDS",
        help=f"longer sources share the last bucket (default: {_CLOSED_BUCKETS} times --buckets)",
    )
    add(
        "--min-bucket",
        type=positive,
        default=50,
        metavar="N",
        help="merge buckets of fewer sentences with a neighbour (default: 50)",
    )


def _kind(text: str) -> str:
    if (text.startswith(_NAMED) and text not in _NAMED) or text in _KINDS:
        return text
    raise argparse.ArgumentTypeError(f"{text!r}: choose among {', '.join(_KINDS)}")


def add_chance(group) -> None:
    """How often, and with which seed, tests and intervals draw."""
    add = group.add_argument
    add(
        "--trials",
        type=positive,
        default=10000,
        metavar="N",
        help="trials of approximate randomization (default: 10000)",
    )
    add("--bootstrap", type=positive, default=1000, metavar="N", help="bootstrap resamples (default: 1000)")
    add("--seed", type=_seed, default=12345, help="random seed (default: 12345, as in sacrebleu)")


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0")
    return int(text)


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if (args.results is None) != (args.split is None):
        parser.error("--results and --split go together: give the folder and the name of the split")
    if not args.results:
        alone = next((name for name, *files in args.system if not files), None)
        if alone:
            parser.error(f"--system {alone}: give its translations, --system {alone} FILE…")
        if not args.system:
            parser.error("give systems, --system NAME FILE…, or a folder of --results")
    elif not args.reference:
        parser.error("--results: give the --reference of the split")
    check_scored(parser, args)


def check_scored(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """End with a usage message if systems are named twice, or options of `add_scores` and `add_buckets` do not fit."""
    names = [name for name, *_ in args.system]
    for name in names:
        if names.count(name) > 1:
            parser.error(f"--system {name}: is there twice; give all files of a system at once")
    if args.metrics != list(dict.fromkeys(args.metrics)):
        parser.error("--metrics: name each once")
    if (args.data is None) != (args.subset is None):
        parser.error("--data and --subset go together: give the data directory and the name of the split")
    args.longest = args.longest or _CLOSED_BUCKETS * args.buckets
    if args.longest < args.buckets or args.longest % args.buckets:
        parser.error(f"--longest {args.longest}: give a multiple of --buckets {args.buckets}")


def run(args: argparse.Namespace) -> None:
    """Print the tables on stdout, warnings on stderr; write the picture."""
    from ..evaluate.comparison_tables import tables
    from .comparing import compared

    refuse_existing([args.draw], args.overwrite)
    evaluation, found = compared(args)
    if args.draw:
        from ..evaluate.bucket_pictures import draw_buckets
        from ..pictures.figures import save_figure

        if not found["buckets"]:
            raise ValueError("--draw: the length of the source is not known; give --source")
        names = [system.name for system in evaluation.corpus.systems]
        save_figure(draw_buckets(found["buckets"], names, args.metrics[0]), args.draw)
    if args.format == "json":
        print(json.dumps(found, ensure_ascii=False, indent=1))
    else:
        print("\n\n".join(tables(found, args.format)))


main = Verb(__doc__, add_arguments, run, check)

"""fairseq-syntax compare: score systems over seeds, test them against a baseline, and show where they differ.

Files are the output of fairseq-generate, of which the best D- line of each sentence is read, or the best H- line if
there are no D- lines; or plain text, with --reference. Several files of a system are its seeds; systems may differ in
the number of seeds.

  mean, SD, min, max  over seeds; SD is the sample standard deviation
  95 % interval       bootstrap interval of the mean
  no BP, length       BLEU without brevity penalty; words of the translations / words of the references
  delta               difference of the means; its interval, p and detectable (the smallest true difference that such an
                      experiment finds in four cases out of five) are about other sentences and other seeds
  p AR                approximate randomization over sentences, two-sided; for one seed, sacrebleu --paired-ar
  Holm                the preceding p, corrected for the number of systems

examples:
  fairseq-syntax compare --system base base.generated --system mine mine.generated --reference test.de
  fairseq-syntax compare --system base b1.txt b2.txt b3.txt --system mine m1.txt m2.txt m3.txt --reference test.de \\
      --source test.en --by length --by depth --parse test.en.conllu
"""

import argparse
import json

from .verb import Verb, add_format, add_scoring, positive

METRICS = ("BLEU", "chrF", "chrF++", "TER", "RIBES")
_KINDS = ("length", "depth", "relation:NAME", "label:FILE")
_NAMED = ("relation:", "label:")


def compare_arguments(args: argparse.Namespace) -> dict:
    """Arguments of `compare`, from the options of `add_systems`, `add_scores`, `add_buckets` and `add_chance`."""
    names = ("reference", "source", "metrics", "lowercase", "tokenize", "remove_bpe", "by", "parse", "longest")
    return {
        "systems": {name: {str(i): path for i, path in enumerate(files, 1)} for name, *files in args.system},
        "baselines": args.baseline or (),
        **{name: getattr(args, name) for name in (*names, "trials", "seed")},
        **{"minimum": args.min_bucket, "resamples": args.bootstrap},
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_systems(parser)
    add_scores(parser)
    add_buckets(parser.add_argument_group("breakdown"))
    add_chance(parser.add_argument_group("tests and intervals"))
    add_format(parser, "json")


def add_scores(parser: argparse.ArgumentParser) -> None:
    """Add the options of metrics."""
    scores = parser.add_argument_group("scores")
    scores.add_argument(
        "--metrics",
        nargs="+",
        choices=METRICS,
        default=[name for name in METRICS if name != "chrF++"],
        metavar="NAME",
        help=f"any of {', '.join(METRICS)}; buckets use the first (default: all but chrF++)",
    )
    scores.add_argument("--lowercase", action="store_true", help="ignore case in BLEU and chrF")
    add_scoring(scores)


def add_systems(parser: argparse.ArgumentParser) -> None:
    """Add the options of systems and texts."""
    add = parser.add_argument_group("systems").add_argument
    add(
        "--system",
        action="append",
        nargs="+",
        required=True,
        metavar=("NAME", "FILE"),
        help="system and its translations, plain or .gz, one file per seed",
    )
    add(
        "--baseline",
        action="append",
        metavar="NAME",
        help="baseline of the tests; may be repeated (default: the first system)",
    )
    add("--reference", action="append", metavar="FILE", help="reference text; may be repeated (default: the T- lines)")
    add("--source", metavar="FILE", help="source text (default: the S- lines)")


def add_buckets(group) -> None:
    """Add the options of buckets."""
    add = group.add_argument
    add(
        "--by",
        action="append",
        type=_kind,
        metavar="KIND",
        help=f"scores by {', '.join(_KINDS)}, where NAME is a dependency label, and FILE has a label of your own for "
        "each sentence, one per line; may be repeated (default: length, if the source is known)",
    )
    add("--parse", metavar="FILE", help="trees of the source (CoNLL-U, plain or .gz)")
    add("--longest", type=int, default=50, metavar="WORDS", help="longer sources share a bucket (default: 50)")
    add("--min-bucket", type=positive, default=50, metavar="N", help="merge buckets with fewer sentences (default: 50)")


def _kind(text: str) -> str:
    if (text.startswith(_NAMED) and text not in _NAMED) or text in _KINDS:
        return text
    raise argparse.ArgumentTypeError(f"{text!r}: choose from {', '.join(_KINDS)}")


def add_chance(group) -> None:
    """Add the options of tests and intervals."""
    add = group.add_argument
    add("--trials", type=positive, default=10000, metavar="N", help="trials of the randomization (default: 10000)")
    add("--bootstrap", type=positive, default=10000, metavar="N", help="bootstrap resamples (default: 10000)")
    add("--seed", type=_seed, default=12345, help="random seed (default: 12345, as in sacrebleu)")


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a non-negative number")
    return int(text)


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Exit with a usage message if systems are named twice, or options conflict."""
    if alone := next((name for name, *files in args.system if not files), None):
        parser.error(f"--system {alone}: give its translations, --system {alone} FILE…")
    names = [name for name, *_ in args.system]
    for name in names:
        if names.count(name) > 1:
            parser.error(f"--system {name}: is given twice; give all files of a system at once")
    if args.metrics != list(dict.fromkeys(args.metrics)):
        parser.error("--metrics: name each once")
    if args.longest < 10 or args.longest % 10:
        parser.error(f"--longest {args.longest}: give a multiple of 10, the words of a bucket")


def run(args: argparse.Namespace) -> None:
    from ..evaluate.comparison import compare, tables

    content = compare(**compare_arguments(args)).content
    if args.format == "json":
        print(json.dumps(content, ensure_ascii=False, indent=1))
    else:
        print("\n\n".join(tables(content, args.format)))


def inputs(args: argparse.Namespace) -> list[str | None]:
    """Files of `add_systems` and `add_buckets`."""
    return [*(path for _, *files in args.system for path in files), *(args.reference or ()), args.source, args.parse]


main = Verb(__doc__, add_arguments, run, check, inputs=inputs)

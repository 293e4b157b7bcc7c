"""fairseq-syntax compare: BLEU and RIBES of systems beside a baseline, whether they differ, and by source length.

Files are what fairseq-generate prints (lines in any order; of several hypotheses the one with the best score), or plain
text with --reference. D- lines are taken, or H- lines where there are none.

  BLEU         of the corpus, by sacrebleu
  delta        to the baseline, which is the first file
  ratio        words of the hypotheses to words of the references
  RIBES        order of words, 0 to 1, mean over sentences; lower-cased, on the words that BLEU counts
  better/worse sentences that raise/lower the baseline's BLEU when the system's translation replaces the baseline's
  p sign       sign test over these (Collins et al. 2005), two-sided
  p bootstrap  paired bootstrap, as by sacrebleu --paired-bs: of one tail, about half of a two-sided p
  against X    the same beside system X instead of the baseline, with --against X
  source words of the sentences of a bucket, the end of the sentence not counted

examples:
  fairseq-syntax compare baseline.generated system.generated --reference test.de --draw lengths.svg
  fairseq-syntax compare baseline.generated a.generated b.generated --names baseline a b --lowercase --tokenize 13a
  fairseq-syntax compare global.generated chen17.generated sdatt.generated --reference test.de --against chen17
  fairseq-syntax compare baseline.txt system.txt --reference test.de --source test.en --format markdown
"""

import argparse

from ..files import refuse_existing
from .common.arguments import add_format, add_scoring, picture, positive
from .common.verb import Verb

_CLOSED_BUCKETS = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("baseline", metavar="BASELINE", help="translations of the baseline")
    add("systems", metavar="SYSTEM", nargs="+", help="translations of the same sentences by others")
    add("--names", nargs="+", metavar="NAME", help="of all systems, the baseline first (default: the files' names)")
    add(
        "--against",
        action="append",
        default=[],
        metavar="NAME",
        help="a table of its own of all systems beside this one, which is one of them; give it again for further ones",
    )
    add(
        "--reference",
        action="append",
        metavar="FILE",
        help="text of the references, line n for sentence n - 1; give it again for further references (default: the T- "
        "lines, in which words that the model does not know are lost)",
    )
    add("--source", metavar="FILE", help="text of the source, in the same order (default: the S- lines)")
    add("--lowercase", action="store_true", help="BLEU regardless of letter case")
    add_scoring(parser)
    add("--buckets", type=positive, default=10, metavar="WORDS", help="width of the buckets (default: 10)")
    add(
        "--longest",
        type=positive,
        metavar="WORDS",
        help=f"longer sources share the last bucket (default: {_CLOSED_BUCKETS} times the width of the buckets)",
    )
    add(
        "--draw",
        type=picture,
        metavar="PICTURE",
        help="BLEU over the buckets, with 95 %% bootstrap intervals, as a picture (.svg, .png or .pdf)",
    )
    add("--bootstrap", type=positive, default=1000, metavar="N", help="resamples of the bootstrap (default: 1000)")
    add("--seed", type=_seed, default=12345, help="of the bootstrap (default: 12345, as in sacrebleu)")
    add_format(parser)
    add("--overwrite", action="store_true", help="replace the picture if it exists")


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0")
    return int(text)


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    files = 1 + len(args.systems)
    if args.names and len(args.names) != files:
        parser.error(f"--names: {len(args.names)} names for {files} files")
    args.longest = args.longest or _CLOSED_BUCKETS * args.buckets
    if args.longest < args.buckets or args.longest % args.buckets:
        parser.error(f"--longest {args.longest}: give a multiple of --buckets {args.buckets}")


def run(args: argparse.Namespace) -> None:
    """Print the tables on stdout, warnings on stderr; write the picture."""
    from ..evaluate.comparison import compare

    refuse_existing([args.draw], args.overwrite)
    print("\n\n".join(compare(args)))


main = Verb(__doc__, add_arguments, run, check)

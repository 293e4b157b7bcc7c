"""fairseq-syntax characters: text to characters, and back."""

import argparse
import sys

from tqdm import tqdm

from ..systems.latent_tree.characters import SPACE, SPACE_IN_TEXT, Dedup, remove_repeats, to_characters, to_text
from .inputs import input_lines
from .outputs import STDIO, exit_status, refuse_existing, written

_EPILOG = f"""\
Characters are separated by spaces, and the space itself is written {SPACE}: "Eine Gruppe" becomes
"E i n e {SPACE} G r u p p e". Blanks of every kind and length count as one space, those at the ends of a line as none,
and a {SPACE} of the text becomes {SPACE_IN_TEXT}. A line stays a line.

example:
  fairseq-syntax characters --input train.de.gz --output characters/train.de
  fairseq-preprocess -s de -t en --trainpref characters/train --validpref characters/valid --padding-factor 1 \\
      --destdir data-bin
  fairseq-syntax characters --restore --dedup adjacent < hypotheses > text"""


def build_parser() -> argparse.ArgumentParser:
    """The program's options."""
    parser = argparse.ArgumentParser(
        prog="fairseq-syntax characters",
        description="Text to characters, for models that read and write no words; and back (--restore).",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "--input",
        nargs="+",
        default=[STDIO],
        metavar="FILE",
        help="text, one sentence a line, also .gz; several files are joined; - is stdin (default)",
    )
    add("--output", default=STDIO, metavar="FILE", help="gzipped if it ends in .gz; - is stdout (default)")
    add("--restore", action="store_true", help="make text of characters")
    add(
        "--dedup",
        choices=[rule.value for rule in Dedup],
        default=Dedup.none.value,
        help="with --restore: remove repeated pairs of words, those right behind the same pair (adjacent) or those "
        "that stand anywhere before (seen)",
    )
    add("--overwrite", action="store_true", help="replace the output if it exists")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Entry point. Exit status: 0, 1 for bad data, 2 for bad usage."""
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.dedup != Dedup.none and not args.restore:
        parser.error("--dedup: of translations, so give --restore, too")
    return exit_status(parser.prog, lambda: run(args))


def run(args: argparse.Namespace) -> None:
    """Write the lines.

    Raises:
        ValueError: a text cannot be read, or the output exists.
        OSError: the output cannot be written.
    """
    refuse_existing([args.output], args.overwrite)
    with written(args.output) as file:
        for path in args.input:
            # a bar for people who wait for a file, not between the lines of a terminal
            hidden = True if args.output == STDIO else None
            for line in tqdm(input_lines(path), unit="line", desc=path, disable=hidden):
                file.write(_restored(line, args.dedup) if args.restore else to_characters(line))
                file.write("\n")


def _restored(line: str, rule: str) -> str:
    text = to_text(line)
    return text if rule == Dedup.none else remove_repeats(text, rule)


if __name__ == "__main__":
    sys.exit(main())

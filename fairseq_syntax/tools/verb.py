"""A verb of the program: from a command line to an exit status, and the options and inputs that several verbs share.

A verb is a module of this folder with a `main = Verb(…)`. Its docstring is its help. The work is a function with plain
arguments; wrong data raise ValueError or OSError, which are one message and an exit status.
"""

import argparse
import io
import logging
import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import IO

from .. import pretrained
from .. import systems as systems  # their parsers are found
from ..data.parsers import ParserOptions, find_parsers
from ..evaluate.tables import TableFormat
from ..files import STDIO, refuse_existing
from ..trees.decoders import TreeDecoder
from ..trees.subwords import SubwordType
from ..trees.text import numbered_lines, open_text
from .preparation import Preparation

PICTURES = (".svg", ".png", ".pdf")
"""What names of pictures end in."""
TOKENIZERS = ["13a", "char", "flores101", "flores200", "intl", "ja-mecab", "ko-mecab", "none", "spBLEU-1K", "spm", "zh"]
"""sacrebleu's, which costs too much to import for a list of names."""


class Verb:
    """What runs when a verb is given, with the arguments behind it.

    Args:
        documentation: "fairseq-syntax VERB: what it does.", an empty line, and what --help says below the options.
        add_arguments: to a parser.
        run: does the work; raises ValueError or OSError for wrong data.
        check: ends with a usage message if options do not go together.
        new_parser: makes the parser, which may have options already.
        quiet: whether warnings alone are logged; otherwise logging is left as it is.
        outputs: options that name files which are not replaced without --overwrite.
    """

    def __init__(
        self,
        documentation: str,
        add_arguments: Callable[[ArgumentParser], None],
        run: Callable[[Namespace], None],
        check: Callable[[ArgumentParser, Namespace], None] = lambda parser, args: None,
        new_parser: Callable[[], ArgumentParser] = ArgumentParser,
        quiet: bool = True,
        outputs: Sequence[str] = (),
    ):
        self.outputs = outputs
        self.documentation, self.new_parser, self.quiet = documentation, new_parser, quiet
        self.add_arguments, self.run, self.check = add_arguments, run, check

    def build_parser(self) -> ArgumentParser:
        """The parser of its options."""
        parser = self.new_parser()
        first, _, parser.epilog = self.documentation.partition("\n\n")
        parser.prog, what = first.split(": ", 1)
        parser.description = what[0].upper() + what[1:]
        parser.formatter_class = RawDescriptionHelpFormatter
        self.add_arguments(parser)
        return parser

    def __call__(self, argv: list[str] | None = None) -> int:
        """Entry point. Exit status: 0, 1 for bad data, 2 for bad usage, 130 when interrupted."""
        # whatever the locale says; a StringIO has no encoding
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")
        parser = self.build_parser()
        args = parser.parse_args(argv)
        self.check(parser, args)
        if self.quiet:
            logging.basicConfig(level="WARNING", format=f"{parser.prog}: %(message)s", force=True)

        def work() -> None:
            if self.outputs:
                refuse_existing([getattr(args, name) for name in self.outputs], args.overwrite)
            self.run(args)

        return exit_status(parser.prog, work)


def exit_status(program: str, work: Callable[[], None]) -> int:
    """0 after the work; 1 after one message on stderr, for a ValueError or OSError; 130 when interrupted."""
    try:
        work()
    except BrokenPipeError:
        # whoever read stdout has gone (`| head`); keep Python from complaining when it closes it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as interrupt:
        print(f"{program}: interrupted{interrupt}", file=sys.stderr)
        return 130
    return 0


# --- what is read ---------------------------------------------------------------------------------------------------


def input_name(path: str) -> str:
    """What messages call an input."""
    return "stdin" if path == STDIO else path


@contextmanager
def open_input(path: str) -> Iterator[IO[str]]:
    """A text, or stdin (`-`), which stays open, as by `open_text`. Raises TreeFormatError: it cannot be opened."""
    if path == STDIO:
        sys.stdin.reconfigure(encoding="utf-8-sig", newline="\n")
        yield sys.stdin
        return
    with open_text(path) as lines:
        yield lines


def input_lines(path: str) -> Iterator[str]:
    """The lines of a text, or of stdin (`-`), without line ends (LF or CRLF). TreeFormatErrors name the line."""
    with open_input(path) as lines:
        for _, line in numbered_lines(lines, input_name(path)):
            yield line.rstrip("\r\n")


def is_conllu(path: str) -> bool:
    """Whether this is the name of a file of trees, plain or gzipped."""
    return path.removesuffix(".gz").endswith(".conllu")


# --- options --------------------------------------------------------------------------------------------------------


def picture(path: str) -> str:
    """Type of an option that names a picture to draw."""
    if Path(path).suffix.lower() not in PICTURES:
        raise argparse.ArgumentTypeError(f"{path}: give a name that ends in .svg, .png or .pdf")
    return path


def positive(text: str) -> int:
    """Type of an option that is a number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


_SHARED: dict[str, dict] = {
    "--batch-size": dict(type=positive, default=64, metavar="N", help="sentences per batch (default: 64)"),
    "--max-tokens": dict(type=positive, default=4000, metavar="N", help="tokens per batch (default: 4000)"),
    "--overwrite": dict(action="store_true", help="replace output that exists"),
    "--collapse-ranges": dict(
        action="store_true",
        help='read multi-word tokens of CoNLL-U as one word ("im" for "in" and "dem"), as models do',
    ),
    "--subword-type": dict(
        choices=[str(kind) for kind in SubwordType],
        help="segmentation of text that comes in subwords (default: that of DATA, else subword_nmt, which also fits "
        "plain words)",
    ),
}


def add_shared(parser: argparse.ArgumentParser, *names: str) -> None:
    """Single options that several verbs have."""
    for name in names:
        parser.add_argument(name, **_SHARED[name])


def add_tree_arguments(parser: argparse.ArgumentParser) -> None:
    """How trees over words are decoded from what a model finds."""
    add = parser.add_argument
    add(
        "--decoder",
        choices=[str(kind) for kind in TreeDecoder],
        default=str(TreeDecoder.mst),
        help="mst: the best tree, possibly non-projective (Chu-Liu-Edmonds, as in the paper); eisner: the best "
        "projective tree; greedy: the best head of every word, possibly with cycles or without a root (default: mst)",
    )
    add(
        "--evidence",
        choices=["scores", "marginals"],
        default="scores",
        help="what to sum over the subwords of a word and decode: arc scores (eq. 24 of the paper) or arc "
        "probabilities (default: scores)",
    )
    add_shared(parser, "--batch-size")


def add_checkpoint_arguments(parser: argparse.ArgumentParser) -> None:
    """DATA, --path and --cpu."""
    parser.add_argument(
        "data", nargs="?", metavar="DATA", help="data directory with the model's dictionaries, or a bundled model"
    )
    parser.add_argument("--path", metavar="CHECKPOINT", help="checkpoint of the model, unless it is a bundled one")
    parser.add_argument("--cpu", action="store_true", help="run on the CPU even if there is a GPU")


def check_checkpoint_arguments(
    parser: argparse.ArgumentParser, args: argparse.Namespace, required: bool = True
) -> None:
    """End with a usage message without a model; a bundled one gets its folder and its checkpoint."""
    if args.data and not args.path and args.data in pretrained.names():
        args.path, args.data = pretrained.checkpoint(args.data), str(pretrained.folder(args.data))
    if (args.data is None) != (args.path is None) or (required and not args.path):
        bundled = ", ".join(pretrained.names())
        parser.error(f"DATA and --path go together: give the data directory and the checkpoint, or one of {bundled}")


def add_format(parser: argparse.ArgumentParser, *more: str) -> None:
    """--format, with further ones that the verb has."""
    forms = [*map(str, TableFormat), *more]
    parser.add_argument(
        "--format",
        choices=forms,
        default=str(TableFormat.text),
        help=f"table format: text (aligned), {', '.join(forms[1:-1])} or {forms[-1]} (default: text)",
    )


def check_subset(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """End with a usage message if a split is to be prepared like text."""
    if args.subset and (args.bpe or args.lowercase):
        parser.error("--bpe and --lowercase are for text; a --subset is already segmented")


def add_scoring(parser: argparse.ArgumentParser) -> None:
    """How translations are scored by BLEU: --tokenize and --remove-bpe."""
    add = parser.add_argument
    add(
        "--tokenize",
        choices=TOKENIZERS,
        default="none",
        metavar="NAME",
        help=f"sacrebleu's tokenizer: {', '.join(TOKENIZERS)}; none for tokenised text, 13a for raw text "
        "(default: none)",
    )
    add(
        "--remove-bpe",
        nargs="?",
        const=str(SubwordType.subword_nmt),
        choices=[str(kind) for kind in SubwordType if kind != SubwordType.none],
        help="join subwords first; give it after file names (without a value: subword_nmt)",
    )


def add_preparation(parser: argparse.ArgumentParser, tokenizer: bool = True) -> None:
    """How text becomes what a model reads, on both sides; without --tokenizer where words are given."""
    add = parser.add_argument
    if tokenizer:
        add("--tokenizer", choices=["moses"], help="tokenise raw text, with normalised punctuation (sacremoses)")
    add("--lowercase", action="store_true", help="lowercase text for the model; output keeps its case")
    add(
        "--bpe",
        choices=["subword_nmt", "fastbpe", "sentencepiece", *(["syntax_char"] if tokenizer else [])],
        help="segment the text with this (default: leave it as it is)",
    )
    add("--bpe-codes", nargs="+", default=[], metavar="FILE", help="codes for --bpe: one file, or one for each side")
    add("--sentencepiece-model", nargs="+", default=[], metavar="FILE", help="model for --bpe sentencepiece, likewise")


def check_preparation(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """End with a usage message if options of `add_preparation` do not go together."""
    needed = {"sentencepiece": "sentencepiece_model", "subword_nmt": "bpe_codes", "fastbpe": "bpe_codes"}.get(args.bpe)
    if needed and not getattr(args, needed):
        parser.error(f"--bpe {args.bpe} needs --{needed.replace('_', '-')}")
    if (args.bpe_codes or args.sentencepiece_model) and not args.bpe:
        parser.error("--bpe-codes and --sentencepiece-model need --bpe")
    if max(len(args.bpe_codes), len(args.sentencepiece_model)) > 2:
        parser.error("--bpe-codes and --sentencepiece-model: one file, or one for each side")


def preparation_of(args: argparse.Namespace) -> Preparation:
    """What options of `add_preparation` say."""
    tokenizer = getattr(args, "tokenizer", None)
    return Preparation(tokenizer, args.lowercase, args.bpe, args.bpe_codes, args.sentencepiece_model)


def add_parsers(parser: argparse.ArgumentParser, of_model: bool = True) -> None:
    """What parses the source; unless it is said, a model that needs trees has the parser of its checkpoint."""
    add = parser.add_argument
    default = None if of_model else "stanza"
    help = "parser of the source (default: that of the model's checkpoint, or stanza)"
    add("--parser", choices=list(find_parsers()), default=default, help=help)
    for option in fields(ParserOptions):
        add(f"--{option.name.replace('_', '-')}", **option.metadata)


def parser_options(args: argparse.Namespace) -> ParserOptions:
    """The options of a parser among those of a verb."""
    return ParserOptions(**{option.name: getattr(args, option.name) for option in fields(ParserOptions)})


def add_search(parser: argparse.ArgumentParser) -> None:
    """How the model searches for a translation: options of fairseq-generate, with its defaults."""
    add = parser.add_argument
    add("--beam", type=positive, default=5, metavar="N", help="beam size (default: 5)")
    add(
        "--max-len-a",
        type=float,
        default=0,
        metavar="A",
        help="longest translation: A × source length + B tokens (default: 0)",
    )
    add("--max-len-b", type=positive, default=200, metavar="B", help="see --max-len-a (default: 200)")


def search_of(args: argparse.Namespace) -> dict:
    """What options of `add_search` say."""
    return {"beam": args.beam, "max_len_a": args.max_len_a, "max_len_b": args.max_len_b}


def number(text: str, most: float, what: str) -> float:
    """For types of options: a number from 0 to `most`, or an ArgumentTypeError that says what is wanted."""
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not a {what}")
    return found

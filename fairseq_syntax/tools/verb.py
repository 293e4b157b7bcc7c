"""Verbs of the command line, and the options and inputs that several verbs share.

A verb is a module in this folder with a `main = Verb(…)`, whose docstring is its help. The work is done by a function
with plain arguments. It raises ValueError or OSError for wrong data, which is printed as one message.
"""

import argparse
import io
import logging
import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import fields
from errno import EBADF, ENOSPC, EPIPE
from pathlib import Path
from typing import IO

from .. import pretrained
from ..data.parsers import ParserOptions, find_parsers
from ..evaluate.tables import TableFormat
from ..files import STDIO, refuse_existing
from ..trees.conllu import MAX_WORDS
from ..trees.decoders import TreeDecoder
from ..trees.subwords import SubwordType
from ..trees.text import numbered_lines, open_text, refuse_trees, visible

PICTURES = (".svg", ".png", ".pdf")
"""Suffixes of pictures."""
TOKENIZERS = ["13a", "char", "flores101", "flores200", "intl", "ja-mecab", "ko-mecab", "none", "spBLEU-1K", "spm", "zh"]
"""Tokenizers of sacrebleu; to import it for this list would take too long."""


class Verb:
    """The entry point of a verb.

    Args:
        documentation: "fairseq-syntax VERB: description.", an empty line, and the text below the options in --help.
        add_arguments: adds options to a parser.
        run: does the work; raises ValueError or OSError for wrong data.
        check: exits with a usage message if options conflict.
        new_parser: creates the parser, which may have options already.
        quiet: whether to log only warnings; otherwise logging is not configured.
        outputs: names of options with output files, which are only replaced with --overwrite.
        before: function of the arguments that raises OSError if files are missing, before slow imports.
        inputs: function of the options that returns the files and folders that must exist, checked before slow imports.
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
        before: Callable[[list[str] | None], None] = lambda argv: None,
        inputs: Callable[[Namespace], Iterable[str | None]] = lambda args: (),
    ):
        self.outputs, self.before, self.inputs = outputs, before, inputs
        self.documentation, self.new_parser, self.quiet = documentation, new_parser, quiet
        self.add_arguments, self.run, self.check = add_arguments, run, check

    def build_parser(self) -> ArgumentParser:
        """The argument parser of the verb."""
        parser = self.new_parser()
        first, _, parser.epilog = self.documentation.partition("\n\n")
        parser.prog, description = first.split(": ", 1)
        parser.description = description[0].upper() + description[1:]
        parser.formatter_class = RawDescriptionHelpFormatter
        self.add_arguments(parser)
        return parser

    def __call__(self, argv: list[str] | None = None) -> int:
        """Run the verb. Returns the exit status: 0, 1 for wrong data, 2 for wrong usage, 130 when interrupted."""
        open_closed_streams()
        # UTF-8 in any locale; a StringIO has no encoding
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")
        # only terminals need escapes
        out = VisibleText(sys.stdout) if sys.stdout.isatty() else sys.stdout
        with redirect_stdout(out), redirect_stderr(VisibleText(sys.stderr)):
            return self._call(argv)

    def _call(self, argv: list[str] | None) -> int:
        if status := exit_status(self.documentation.partition(": ")[0], lambda: self.before(argv)):
            return status
        parser = self.build_parser()
        args = parser.parse_args(argv)
        self.check(parser, args)
        if self.quiet:
            logging.basicConfig(level="WARNING", format=f"{parser.prog}: %(message)s", force=True)

        def work() -> None:
            if self.outputs:
                outputs = [getattr(args, name) for name in self.outputs]
                refuse_existing(outputs, args.overwrite)
                refuse_inputs(outputs, [value for name, value in vars(args).items() if name not in self.outputs])
            for path in (getattr(args, "path", None) or "").split(os.pathsep):
                if path and not Path(path).is_file():
                    raise FileNotFoundError(f"{path}: no such checkpoint; give one file that fairseq-train wrote")
            for path in self.inputs(args):
                if path not in (None, STDIO) and not Path(path).exists():
                    raise FileNotFoundError(f"{path}: cannot be opened (No such file or directory); check the path")
            self.run(args)

        return exit_status(parser.prog, work)


class VisibleText:
    """A stream that escapes control characters, which may come from files and names and which terminals obey.

    Line ends and tabs are kept, and so are leading and trailing carriage returns, for progress bars.
    """

    def __init__(self, stream: IO[str]):
        self.stream = stream

    def write(self, text: str) -> int:
        inner = text.strip("\r")
        start = text.find(inner)
        shown = "\t".join(map(visible, inner.split("\t")))
        return self.stream.write(text[:start] + shown + text[start + len(inner) :])

    def __getattr__(self, name: str):
        return getattr(self.stream, name)


def refuse_inputs(outputs: Sequence[str | None], values: Sequence) -> None:
    """Raise ValueError if an output file is also among the values of other options."""
    named = [item for value in values for item in (value if isinstance(value, list) else [value])]
    files = [path for path in named if isinstance(path, str) and os.path.isfile(path)]
    for output in outputs:
        if output and os.path.isfile(output) and any(os.path.samefile(output, path) for path in files):
            raise ValueError(f"{output}: is the input; give the output another name")


def open_closed_streams() -> None:
    """Open closed standard streams (`2>&-`) on /dev/null, so that no other file gets their file descriptors.

    Output to a closed stderr is lost. Reading a closed stdin or writing to a closed stdout remains an error.
    """
    for name, mode in (("stdin", "w"), ("stdout", "r"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # gets the lowest free file descriptor, which is that of the stream
            number = os.open(os.devnull, os.O_RDONLY if mode == "r" else os.O_WRONLY)
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8"))


def exit_status(program: str, work: Callable[[], None]) -> int:
    """Call `work`, and return 0; 1 after a ValueError or OSError, whose message is printed; 130 if interrupted."""
    try:
        work()
        sys.stdout.flush()
    except OSError as error:
        message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        if isinstance(error, io.UnsupportedOperation):
            message = "stdin: is closed"
        elif error.errno in (ENOSPC, EBADF, EPIPE) and not error.filename:
            message = f"stdout: {'is closed' if error.errno == EBADF else error.strerror}"
            # keep Python from complaining when it closes stdout
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # its reader has exited (`| head`)
            print(f"{program}: {message}", file=sys.stderr)
        return 1
    except ValueError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as interrupt:
        print(f"{program}: interrupted{interrupt}", file=sys.stderr)
        return 130
    return 0


# --- inputs ---------------------------------------------------------------------------------------------------------


def input_name(path: str) -> str:
    """Name of an input in messages."""
    return "stdin" if path == STDIO else path


@contextmanager
def open_input(path: str) -> Iterator[IO[str]]:
    """Open a text as `open_text` does, or stdin (`-`), which stays open."""
    if path == STDIO:
        sys.stdin.reconfigure(encoding="utf-8-sig", newline="\n")
        yield sys.stdin
        return
    with open_text(path) as lines:
        yield lines


def input_lines(path: str) -> Iterator[str]:
    """Lines of a text, or of stdin (`-`), without line ends (LF or CRLF). Raises TreeFormatError: it is CoNLL-U."""
    with open_input(path) as lines:
        for number, line in numbered_lines(lines, input_name(path)):
            line = line.rstrip("\r\n")
            refuse_trees(line, f"{input_name(path)}:{number}")
            yield line


def is_conllu(path: str) -> bool:
    """Whether a path ends in `.conllu` or `.conllup`, plain or `.gz`."""
    return path.removesuffix(".gz").endswith((".conllu", ".conllup"))


# --- options --------------------------------------------------------------------------------------------------------


def picture(path: str) -> str:
    """Type of an option for a picture to draw."""
    if Path(path).suffix.lower() not in PICTURES:
        raise argparse.ArgumentTypeError(f"{path}: give a name that ends in .svg, .png or .pdf")
    return path


def positive(text: str) -> int:
    """Type of an option for a positive integer."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


_SHARED: dict[str, dict] = {
    "--batch-size": dict(type=positive, default=64, metavar="N", help="sentences per batch (default: 64)"),
    "--max-tokens": dict(type=positive, default=4000, metavar="N", help="tokens per batch (default: 4000)"),
    "--max-words": dict(
        type=positive,
        default=MAX_WORDS,
        metavar="N",
        help="longest sentence to accept, in words; memory for trees grows with its square (default: %(default)s)",
    ),
    "--overwrite": dict(action="store_true", help="replace existing output"),
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


def add_shared(parser: argparse.ArgumentParser, *names: str, **more) -> None:
    """Add options from `_SHARED`, with `more` arguments of `add_argument`."""
    for name in names:
        parser.add_argument(name, **_SHARED[name] | more)


def add_tree_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for decoding latent trees."""
    add = parser.add_argument
    add(
        "--decoder",
        choices=[str(kind) for kind in TreeDecoder],
        default=str(TreeDecoder.mst),
        help="mst: the best tree, possibly non-projective (Chu-Liu-Edmonds, as in the paper); eisner: the best "
        "projective tree (default: mst)",
    )
    add(
        "--evidence",
        choices=["scores", "marginals"],
        default="scores",
        help="decode sums of arc scores over the subwords of a word (eq. 24 of the paper), or of arc probabilities "
        "(default: scores)",
    )
    add_shared(parser, "--batch-size")


def add_checkpoint_arguments(parser: argparse.ArgumentParser) -> None:
    """Add DATA, --path and --cpu."""
    parser.add_argument(
        "data", nargs="?", metavar="DATA", help="data directory with the model's dictionaries, or a bundled model"
    )
    parser.add_argument("--path", metavar="CHECKPOINT", help="checkpoint of the model, unless it is a bundled one")
    parser.add_argument("--cpu", action="store_true", help="run on the CPU even if there is a GPU")


def check_checkpoint_arguments(
    parser: argparse.ArgumentParser, args: argparse.Namespace, required: bool = True
) -> None:
    """Exit with a usage message if the model is missing; set folder and checkpoint of a bundled model."""
    if args.data and not args.path and args.data in pretrained.names():
        try:
            args.path, args.data = pretrained.checkpoint(args.data), str(pretrained.folder(args.data))
        except ValueError as error:
            parser.error(str(error))
    if (args.data is None) != (args.path is None) or (required and not args.path):
        bundled = ", ".join(pretrained.names())
        parser.error(f"DATA and --path go together: give the data directory and the checkpoint, or one of {bundled}")


def add_system(parser: argparse.ArgumentParser) -> None:
    """Add --system, for `check_model_arguments`."""
    help = "system of an experiment (default: the best on the validation set)"
    parser.add_argument("--system", metavar="NAME", help=help)


def is_experiment(args: argparse.Namespace) -> bool:
    """Whether DATA is the folder of an experiment."""
    return bool(args.data) and Path(args.data, "experiment.toml").is_file()


def check_model_arguments(parser: argparse.ArgumentParser, args: argparse.Namespace, required: bool = True) -> None:
    """`check_checkpoint_arguments`, unless DATA is an experiment; sets `args.experiment` to whether it is."""
    args.experiment = is_experiment(args)
    if args.experiment and args.path:
        parser.error(f"{args.data} is an experiment: give --system instead of --path, or its data directory")
    if args.system and not args.experiment:
        parser.error("--system needs an experiment; give its folder")
    if not args.experiment:
        check_checkpoint_arguments(parser, args, required)


def find_model(args: argparse.Namespace, ensemble: bool = False) -> None:
    """Set data and checkpoint if DATA is an experiment. Raises ValueError: see `Experiment.model`."""
    from ..experiment import Experiment

    if args.experiment:
        args.data, args.path = Experiment(args.data).model(args.system, ensemble)


def add_format(parser: argparse.ArgumentParser, *more: str) -> None:
    """Add --format, with further formats of the verb."""
    forms = [*map(str, TableFormat), *more]
    parser.add_argument(
        "--format",
        choices=forms,
        default=str(TableFormat.text),
        help=f"table format: text (aligned), {', '.join(forms[1:-1])} or {forms[-1]} (default: text)",
    )


def add_sentences(parser: argparse.ArgumentParser) -> None:
    """Add --text, --input and --subset, one of which must be given, with --collapse-ranges and --subword-type."""
    add = parser.add_argument
    add("--text", help="one sentence: raw text, or its tokens separated by spaces")
    add("--input", metavar="FILE", help="text, or CoNLL-U if it ends in .conllu, plain or .gz; - is text from stdin")
    add("--subset", help="split of DATA, instead of --input")
    add_shared(parser, "--collapse-ranges", "--subword-type")


def add_scoring(parser: argparse.ArgumentParser) -> None:
    """Add --tokenize and --remove-bpe, for scores of translations."""
    add = parser.add_argument
    add(
        "--tokenize",
        choices=TOKENIZERS,
        metavar="NAME",
        help=f"sacrebleu's tokenizer: {', '.join(TOKENIZERS)}; (default: none for references in tokens, "
        "13a for raw ones, that of the language for those without spaces between words)",
    )
    add(
        "--remove-bpe",
        nargs="?",
        const=str(SubwordType.subword_nmt),
        choices=[str(kind) for kind in SubwordType if kind != SubwordType.none],
        help="join subwords first; place it after file names (without a value: subword_nmt)",
    )


def add_parsers(parser: argparse.ArgumentParser, with_model: bool = True) -> None:
    """Add the options of the parser; its default is that of the model's checkpoint, or stanza without a model."""
    add = parser.add_argument
    default = None if with_model else "stanza"
    help = "parser of the source (default: that of the model's checkpoint or data, if there is one; stanza)"
    add("--parser", choices=list(find_parsers()), default=default, help=help)
    for option in fields(ParserOptions):
        add(f"--{option.name.replace('_', '-')}", **option.metadata)


def parser_options(args: argparse.Namespace) -> ParserOptions:
    """Options of the parser, from those of `add_parsers`."""
    return ParserOptions(**{option.name: getattr(args, option.name) for option in fields(ParserOptions)})


def add_search(parser: argparse.ArgumentParser) -> None:
    """Add the options of beam search."""
    add = parser.add_argument
    add("--beam", type=positive, metavar="N", help="beam size (default: that of the model's experiment, or 5)")
    help = "longest translation: A × source length + B tokens (default: those of the model's experiment, or 0 and 200)"
    add("--max-len-a", type=float, metavar="A", help=help)
    add("--max-len-b", type=positive, metavar="B", help="see --max-len-a")


def search_options(args: argparse.Namespace) -> dict:
    """Options of the search, from those of `add_search` that are set."""
    return {name: value for name in ("beam", "max_len_a", "max_len_b") if (value := getattr(args, name)) is not None}


def number(text: str, most: float, kind: str) -> float:
    """Type of an option for a number from 0 to `most`, called `kind` in the message of ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not a {kind}")
    return value

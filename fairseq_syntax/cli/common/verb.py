"""A verb of the program: its module's docstring is its help, and wrong data are one message and an exit status."""

import io
import logging
import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable


class Verb:
    """What runs when a verb is given, with the arguments behind it.

    Args:
        documentation: "fairseq-syntax VERB: what it does.", an empty line, and what --help says below the options.
        add_arguments: to a parser.
        run: does the work; raises ValueError or OSError for wrong data.
        check: ends with a usage message if options do not go together.
        new_parser: makes the parser, which may have options already.
        quiet: whether warnings alone are logged; otherwise logging is left as it is.
    """

    def __init__(
        self,
        documentation: str,
        add_arguments: Callable[[ArgumentParser], None],
        run: Callable[[Namespace], None],
        check: Callable[[ArgumentParser, Namespace], None] = lambda parser, args: None,
        new_parser: Callable[[], ArgumentParser] = ArgumentParser,
        quiet: bool = True,
    ):
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
        return exit_status(parser.prog, lambda: self.run(args))


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

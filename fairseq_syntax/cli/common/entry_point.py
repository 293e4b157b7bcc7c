"""The `main` of a verb: its options, its work, and one message and an exit status where the data are wrong."""

import logging
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable


def entry_point(
    build_parser: Callable[[], ArgumentParser],
    run: Callable[[Namespace], None],
    check: Callable[[ArgumentParser, Namespace], None] | None = None,
) -> Callable[[list[str] | None], int]:
    """The `main` of a verb.

    Args:
        build_parser: of its options.
        run: does the work; raises ValueError or OSError for wrong data.
        check: ends with a usage message if options do not go together.
    """

    def main(argv: list[str] | None = None) -> int:
        """Entry point. Exit status: 0, 1 for bad data, 2 for bad usage."""
        parser = build_parser()
        args = parser.parse_args(argv)
        if check is not None:
            check(parser, args)
        logging.basicConfig(level="WARNING", force=True)
        return exit_status(parser.prog, lambda: run(args))

    return main


def exit_status(program: str, work: Callable[[], None]) -> int:
    """Run a program's work; wrong data becomes one message on stderr.

    Args:
        program: its name.
        work: raises ValueError or OSError for wrong data.

    Returns:
        0; 1 for wrong data; 130 when interrupted.
    """
    try:
        work()
    except BrokenPipeError:
        # whoever read stdout has gone (`| head`); keep Python from complaining when it closes it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        return 130
    return 0

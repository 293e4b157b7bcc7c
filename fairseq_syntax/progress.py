"""Progress of long work on stderr: a bar at a terminal, occasional lines in a log."""

import sys

from tqdm import tqdm

SECONDS, FIRST = 60, 10
"""Seconds between two lines of a log, and before the first: shorter work logs nothing."""


class _Lines:
    """A stream that writes each state of tqdm's bars on a line of its own."""

    def write(self, text: str) -> None:
        if text.strip():
            sys.stderr.write(f"{text.strip()}\n")

    def flush(self) -> None:
        sys.stderr.flush()


def progress_bar(iterable=None, **options) -> tqdm:
    """tqdm's bar, with its options; where stderr is not a terminal, a line every `SECONDS`."""
    if sys.stderr.isatty():
        return tqdm(iterable, **options)
    quiet = {"file": _Lines(), "mininterval": SECONDS, "maxinterval": SECONDS, "miniters": 1, "delay": FIRST}
    bar = tqdm(iterable, **{**options, **quiet, "smoothing": 0})
    if not bar.disable:
        bar.last_print_t -= SECONDS - FIRST
    return bar

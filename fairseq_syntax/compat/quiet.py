"""Repairs of what fairseq prints."""

import contextlib
import logging
import os
import sys
import warnings

from .repair_registry import left_out, repair

# beginnings of warnings that every command of fairseq 0.12 provokes in today's hydra and torch
_HARMLESS = (
    r"hydra\.experimental\.",
    r"\s*The version_base parameter is not specified",
    r"In 'config': Usage of deprecated keyword in package header",
    r"\s*'config' is validated against ConfigStore schema",
    r"\s*The strict flag in the compose API is deprecated",
    r"'pin_memory' argument is set as true but no accelerator is found",
    r"`torch\.cuda\.amp\.(autocast|GradScaler)\(args\.\.\.\)` is deprecated",
    r"Support for mismatched key_padding_mask and attn_mask is deprecated",
    r"`torch\.jit\.script` is deprecated",
)


def _hide_harmless_warnings() -> None:
    for message in _HARMLESS:
        # behind all other filters, so that -W and PYTHONWARNINGS win
        warnings.filterwarnings("ignore", message=message, append=True)


@contextlib.contextmanager
def import_quietly():
    """Importing fairseq logs nothing, warns of nothing harmless, and leaves the root logger as it was."""
    if "quiet" in left_out():
        yield
        return
    _hide_harmless_warnings()
    root = logging.getLogger()
    handlers, level, disabled = list(root.handlers), root.level, root.manager.disable
    logging.disable(logging.INFO)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.disable(disabled)


def _program() -> str:
    """Which of fairseq's programs is running: "interactive", "generate", …; empty for other programs."""
    running = getattr(sys.modules["__main__"], "__spec__", None)
    names = {getattr(running, "name", ""), *sys.modules}
    # fairseq-interactive imports fairseq-generate
    programs = sorted(name for name in names if name.startswith("fairseq_cli."))
    return (
        "interactive" if "fairseq_cli.interactive" in programs else "".join(programs[:1]).removeprefix("fairseq_cli.")
    )


@repair("quiet")
def quiet():
    """Log at the level of LOGLEVEL (or WARNING in fairseq-interactive, INFO elsewhere), and hide harmless warnings.

    With LOGLEVEL=INFO, fairseq-interactive has its tracebacks, too.

    A module of fairseq sets the level of the root logger to DEBUG before fairseq's programs set it themselves, which
    then has no effect: all but fairseq-train print what every library notes, LOGLEVEL or not. Can go when that module
    (models/wav2vec/wav2vec2_classification.py) leaves the logger alone, and fairseq calls hydra and torch as they want.
    """
    _hide_harmless_warnings()
    program = _program()
    root = logging.getLogger()
    if program and program != "train" and root.level == logging.DEBUG:
        default = "WARNING" if program == "interactive" else "INFO"
        root.setLevel((os.environ.get("LOGLEVEL") or default).upper())
    if program == "interactive" and root.level > logging.INFO:
        _talk()


def _talk() -> None:
    """Have fairseq-interactive ask for a sentence at a terminal, and end with a message instead of a traceback."""
    if sys.stdin.isatty():
        logger = logging.getLogger("fairseq_cli.interactive")
        logger.setLevel(logging.INFO)
        logger.addFilter(lambda record: record.levelno > logging.INFO or str(record.msg).startswith("Type the input"))
    other = sys.excepthook

    def say(kind, error, traceback):
        if issubclass(kind, (ValueError, OSError)) or kind is Exception:
            print(f"fairseq-interactive: {error}", file=sys.stderr)
        elif not issubclass(kind, KeyboardInterrupt):
            other(kind, error, traceback)

    sys.excepthook = say

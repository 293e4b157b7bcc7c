"""Programs as their parsers see them: whether a command line that a recipe or a page shows would be accepted."""

import argparse
import contextlib
import importlib.util
import io
import shlex
from pathlib import Path

from contract.recipes import REPOSITORY, named
from fairseq import options

import fairseq_syntax

fairseq_syntax.register()

FAIRSEQ = {
    "fairseq-train": options.get_training_parser,
    "fairseq-generate": options.get_generation_parser,
    "fairseq-interactive": options.get_interactive_generation_parser,
    "fairseq-preprocess": options.get_preprocessing_parser,
    "fairseq-validate": options.get_validation_parser,
}


def _load(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make_options = _load(REPOSITORY / "docs" / "make_options.py")
console_scripts = make_options.console_scripts
program_parser = make_options.program_parser


def parse(command: list[str]) -> argparse.Namespace:
    """Parse a command line as its program does.

    Raises:
        AssertionError: the program would refuse it; with what it says.
    """
    name, *arguments = named(command)
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            if name in ("fairseq-train", "fairseq-generate", "fairseq-interactive", "fairseq-validate"):
                return options.parse_args_and_arch(FAIRSEQ[name](), input_args=arguments)
            if name in FAIRSEQ:
                return FAIRSEQ[name]().parse_args(arguments)
            if name not in console_scripts():
                raise AssertionError(f"{name}: no such program")
            return program_parser(name).parse_args(arguments)
    except SystemExit:
        raise AssertionError(f"{shlex.join(command)}\n{errors.getvalue()[-300:]}") from None

"""Programs as their parsers see them: whether a command line that a recipe or a page shows would be accepted."""

import argparse
import contextlib
import importlib
import io
import logging
import re
import shlex
from functools import cache
from pathlib import Path
from unittest.mock import patch

from fairseq import options

import fairseq_syntax  # noqa: F401  (registers everything)

REPOSITORY = Path(__file__).resolve().parents[2]

FAIRSEQ = {
    "fairseq-train": options.get_training_parser,
    "fairseq-generate": options.get_generation_parser,
    "fairseq-interactive": options.get_interactive_generation_parser,
    "fairseq-preprocess": options.get_preprocessing_parser,
}


def console_scripts() -> dict[str, str]:
    """Name of every program of ours -> "module:function", from setup.py."""
    text = (REPOSITORY / "setup.py").read_text(encoding="utf-8")
    return dict(re.findall(r'"(fairseq-syntax-[\w-]+) = ([\w.]+:\w+)"', text))


class _Captured(Exception):
    pass


@cache
def program_parser(name: str) -> argparse.ArgumentParser:
    """The parser that a program of ours builds; the program itself does not run."""
    module, function = console_scripts()[name].split(":")
    main = getattr(importlib.import_module(module), function)

    def capture(parser, *arguments, **keywords):
        raise _Captured(parser)

    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        with patch.object(argparse.ArgumentParser, "parse_args", capture):
            main([])
    except _Captured as captured:
        return captured.args[0]
    finally:
        root.handlers, root.level = handlers, level
    raise AssertionError(f"{name} did not parse its arguments")


def parse(command: list[str]) -> argparse.Namespace:
    """Parse a command line as its program does.

    Raises:
        AssertionError: the program would refuse it; with what it says.
    """
    name, *arguments = command
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            if name in ("fairseq-train", "fairseq-generate", "fairseq-interactive"):
                return options.parse_args_and_arch(FAIRSEQ[name](), input_args=arguments)
            if name in FAIRSEQ:
                return FAIRSEQ[name]().parse_args(arguments)
            if name not in console_scripts():
                raise AssertionError(f"{name}: no such program")
            return program_parser(name).parse_args(arguments)
    except SystemExit:
        raise AssertionError(f"{shlex.join(command)}\n{errors.getvalue()[-300:]}") from None


def all_options(name: str) -> set[str]:
    """Long options of a program of ours, of subcommands too."""
    found, parsers = set(), [program_parser(name)]
    while parsers:
        for action in parsers.pop()._actions:
            found.update(option for option in action.option_strings if option.startswith("--"))
            if isinstance(action, argparse._SubParsersAction):
                parsers += action.choices.values()
    return found


@cache
def fairseq_options() -> frozenset[str]:
    """Long options of fairseq's programs with every architecture, task and criterion that is registered."""
    from fairseq.criterions import CRITERION_DATACLASS_REGISTRY
    from fairseq.dataclass.utils import gen_parser_from_dataclass
    from fairseq.models import MODEL_REGISTRY
    from fairseq.tasks import TASK_DATACLASS_REGISTRY

    found = set()

    def collect(parser):
        found.update(o for a in parser._actions for o in a.option_strings if o.startswith("--"))

    for make in (*FAIRSEQ.values(), options.get_validation_parser):
        collect(make())
    for name in ("transformer", "pascal_transformer", "lisa_transformer", "tag_transformer"):
        parser = argparse.ArgumentParser(conflict_handler="resolve")
        MODEL_REGISTRY[name].add_args(parser)
        collect(parser)
    registries = (TASK_DATACLASS_REGISTRY, CRITERION_DATACLASS_REGISTRY)
    for registry in registries:
        for dataclass in registry.values():
            if dataclass.__module__.startswith("fairseq_syntax") or "translation" in dataclass.__module__:
                parser = argparse.ArgumentParser(conflict_handler="resolve")
                gen_parser_from_dataclass(parser, dataclass())
                collect(parser)
    for text in (
        "--optimizer adam --lr-scheduler inverse_sqrt --criterion label_smoothed_cross_entropy --bpe subword_nmt",
        "--optimizer adam --lr-scheduler inverse_sqrt --criterion label_smoothed_cross_entropy --tokenizer moses",
    ):
        line = ["data", "--arch", "transformer", *text.split()]
        args = options.parse_args_and_arch(options.get_training_parser(), input_args=line)
        found.update("--" + name.replace("_", "-") for name in vars(args))
    return frozenset(found)

"""fairseq-syntax options: list the options of an architecture, with its task and criterion.

fairseq-train --help lists an architecture's options only with a complete training command. The task and criterion are
those of the architecture's system unless you name others. Options inherited from fairseq's transformer are left out.

examples:
  fairseq-syntax options
  fairseq-syntax options pascal_transformer
  fairseq-syntax options lisa_transformer --criterion label_smoothed_cross_entropy
"""

import argparse
import dataclasses
import difflib
from enum import Enum

from .verb import Verb


def parser_of(add) -> argparse.ArgumentParser:
    """A parser with the options that `add` adds."""
    parser = argparse.ArgumentParser(conflict_handler="resolve", add_help=False)
    add(parser)
    return parser


def new_actions(parser: argparse.ArgumentParser, base: argparse.ArgumentParser | None) -> list[argparse.Action]:
    """Options of a parser that are missing in `base`, or have another default there."""
    defaults = {a.dest: a.default for a in base._actions} if base else {}
    return [
        action
        for action in parser._actions
        if not isinstance(action, argparse._HelpAction | argparse._VersionAction)
        and (action.dest not in defaults or defaults[action.dest] != action.default)
    ]


def field_defaults(dataclass: type) -> dict:
    """Name of each field with a plain default -> its default."""
    return {f.name: f.default for f in dataclasses.fields(dataclass) if f.default is not dataclasses.MISSING}


def architectures() -> list[str]:
    """Names of all architectures in this package."""
    from fairseq.models import ARCH_MODEL_REGISTRY

    return sorted(name for name, cls in ARCH_MODEL_REGISTRY.items() if cls.__module__.startswith("fairseq_syntax."))


def describe(arch: str, task: str | None = None, criterion: str | None = None) -> str:
    """The options of an architecture, its task and its criterion, with the defaults of its preset.

    By default, task and criterion are those of the same system, or else the task `syntax_translation`. Raises
    ValueError: a name is unknown.
    """
    from fairseq.criterions import CRITERION_DATACLASS_REGISTRY
    from fairseq.dataclass.utils import gen_parser_from_dataclass
    from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
    from fairseq.models.transformer import TransformerModel
    from fairseq.tasks import TASK_DATACLASS_REGISTRY

    model = _known("ARCH", arch, ARCH_MODEL_REGISTRY)
    system = ".".join(model.__module__.split(".")[:3])
    task = task or _of_system(TASK_DATACLASS_REGISTRY, system) or "syntax_translation"
    criterion = criterion or _of_system(CRITERION_DATACLASS_REGISTRY, system)
    preset = argparse.Namespace()
    ARCH_CONFIG_REGISTRY[arch](preset)
    options = getattr(model, "options", None)
    defaults = (field_defaults(options) if options else {}) | vars(preset)
    stock = parser_of(TransformerModel.add_args) if issubclass(model, TransformerModel) else None
    parts = [(f"--arch {arch}", new_actions(parser_of(model.add_args), stock), defaults)]
    for option, name, registry in (
        ("--task", task, TASK_DATACLASS_REGISTRY),
        ("--criterion", criterion, CRITERION_DATACLASS_REGISTRY),
    ):
        if name:
            dataclass = _known(option, name, registry)
            parser = parser_of(lambda p, d=dataclass: gen_parser_from_dataclass(p, d()))
            parts.append((f"{option} {name}", parser._actions, {}))
    combined = argparse.ArgumentParser(usage=argparse.SUPPRESS, add_help=False, conflict_handler="resolve")
    for title, actions, values in parts:
        group = combined.add_argument_group(title)
        for action in actions:
            _state_default(action, values.get(action.dest, action.default))
            group._add_action(action)
    return combined.format_help().strip()


def _state_default(action: argparse.Action, default) -> None:
    """Add the default to the help, if it has one and does not mention it."""
    default = default.value if isinstance(default, Enum) else default
    stated = action.help == argparse.SUPPRESS or "default" in (action.help or "")
    if not stated and default not in (None, False, argparse.SUPPRESS):
        action.help = f"{action.help or ''} (default: {str(default).replace('%', '%%')})".strip()


def _of_system(registry: dict, system: str) -> str | None:
    """The first name that a system registers, or None."""
    names = (name for name, cls in registry.items() if name and cls.__module__.startswith(f"{system}."))
    return next(names, None)


def _known(what: str, name: str, registry: dict) -> type:
    if name not in registry:
        near = difflib.get_close_matches(name, filter(None, registry), 1)
        hint = f"did you mean {near[0]}?" if near else "fairseq-syntax options lists the architectures"
        raise ValueError(f"{what} {name}: not registered; {hint}")
    return registry[name]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("arch", nargs="?", metavar="ARCH", help="architecture (default: list this package's)")
    parser.add_argument("--task", metavar="NAME", help="task (default: that of the system, or syntax_translation)")
    parser.add_argument("--criterion", metavar="NAME", help="criterion (default: that of the system, if it has one)")


def run(args: argparse.Namespace) -> None:
    print(describe(args.arch, args.task, args.criterion) if args.arch else "\n".join(architectures()))


main = Verb(__doc__, add_arguments, run)

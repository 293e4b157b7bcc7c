"""Two pages of options, of what is trained and of verbs, made from the code; `make docs` puts them into the site."""

import argparse
import dataclasses
from enum import Enum
from functools import cache

from fairseq import options as fairseq_options
from fairseq.criterions import CRITERION_DATACLASS_REGISTRY
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_INV_REGISTRY, MODEL_REGISTRY
from fairseq.models.transformer import TransformerModel
from fairseq.optim import OPTIMIZER_DATACLASS_REGISTRY, OPTIMIZER_REGISTRY
from fairseq.optim.lr_scheduler import LR_SCHEDULER_DATACLASS_REGISTRY, LR_SCHEDULER_REGISTRY
from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY

from fairseq_syntax.cli import program


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


def console_scripts() -> list[str]:
    """The program with each of its verbs."""
    return [f"{program.PROGRAM} {verb}" for verb in program.VERBS]


@cache
def program_parser(name: str) -> argparse.ArgumentParser:
    """The parser of a verb of ours."""
    return program.verb_module(name.split()[1]).main.build_parser()


def ours(registry: dict) -> dict[str, type]:
    """What the package itself has registered: name -> class."""
    return {
        name: cls
        for name, cls in sorted(registry.items(), key=lambda item: str(item[0]))
        if cls.__module__.startswith("fairseq_syntax.") and name not in (None, "translation")
    }


def text(value) -> str:
    """A default, as one types it."""
    if value is None or value is argparse.SUPPRESS or value is False:
        return ""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, tuple):
        value = "/".join(map(str, value))  # --shard
    return f"`{value}`"


def row(action: argparse.Action, defaults: dict, ranges: dict) -> str:
    """A line of a table."""
    names = ", ".join(f"`{name}`" for name in action.option_strings) or f"`{action.metavar or action.dest}`"
    if action.choices and not isinstance(action, argparse._SubParsersAction):
        values = " ".join(f"`{getattr(choice, 'value', choice)}`" for choice in action.choices)
    elif action.nargs == 0:
        values = "switch"
    elif action.nargs == "+" and action.dest not in ranges:
        values = f"{action.metavar or action.dest} …"
    else:
        values = text(ranges.get(action.dest))
    default = "required" if action.required else text(defaults.get(action.dest, action.default))
    meaning = " ".join((action.help or "").replace("%%", "%").split()).replace("|", "\\|").replace("<", "&lt;")
    return f"| {names} | {values} | {default} | {meaning} |"


def table(actions: list[argparse.Action], defaults: dict | None = None, dataclass: type | None = None) -> list[str]:
    """Lines of a table of options, with the ranges of a dataclass; its other readings of the paper apart."""
    if not actions:
        return ["No options.", ""]
    fields = {each.name: each.metadata for each in dataclasses.fields(dataclass)} if dataclass else {}
    ranges = {name: metadata.get("range") for name, metadata in fields.items()}
    readings = [action for action in actions if fields.get(action.dest, {}).get("reading")]
    lines = []
    for title, group in (
        ([], [action for action in actions if action not in readings]),
        (["Other readings of the paper:", ""], readings),
    ):
        if group:
            lines += [*title, "| Option | Values | Default | Meaning |", "|---|---|---|---|"]
            lines += [*(row(action, defaults or {}, ranges) for action in group), ""]
    return lines


def listed_before(model: str, options: type) -> tuple[str, type] | None:
    """A model whose table has what these options inherit, and the dataclass that both have."""
    others = {name: getattr(cls, "options", FairseqDataclass) for name, cls in ours(MODEL_REGISTRY).items()}
    for base in options.__mro__[1:]:
        if base is FairseqDataclass:
            return None
        sharing = [name for name, other in others.items() if issubclass(other, base)]
        owner = next((name for name in sharing if others[name] is base), sharing[0])
        if owner != model:
            return owner, base
    return None


def preset_defaults(model: str, actions: list[argparse.Action], known: dict) -> dict:
    """Default of each option that presets set and that has no other; as text, since it depends on the preset."""
    found = {}
    for action in actions:
        if action.dest not in known:
            values = {}
            for arch in ARCH_MODEL_INV_REGISTRY[model]:
                args = argparse.Namespace()
                ARCH_CONFIG_REGISTRY[arch](args)
                values[arch.removeprefix(model)] = " ".join(map(str, getattr(args, action.dest)))
            first = values.pop("")
            others = [f"{value} ({suffix})" for suffix, value in values.items() if value != first]
            found[action.dest] = ", ".join([first, *others])
    return found


def first_line(cls: type) -> str:
    """What the documentation of a class begins with."""
    return " ".join((cls.__doc__ or "").strip().split("\n\n")[0].split())


def dataclass_table(dataclass: type, base: type) -> list[str]:
    """Options of a dataclass beyond those of its base."""
    parser, known = (parser_of(lambda p, d=d: gen_parser_from_dataclass(p, d())) for d in (dataclass, base))
    return table(new_actions(parser, known), field_defaults(dataclass), dataclass)


@cache
def page() -> str:
    """The page of what `fairseq-train` takes."""
    lines = [
        "# Options of models, criteria and tasks",
        "",
        "`fairseq-train` takes these. What is fairseq's own is not repeated here, unless its default differs; `--help`",
        "prints all options that belong to `--arch`, `--task` and `--criterion`. Numbers have a range, such as",
        "`[0, 1)`, to which a bound in square brackets belongs. What a paper leaves open, or can be read in two",
        "ways, is a table of its own. [Options of the verbs](options-verbs.md) are on another page.",
        "",
        "## Task",
        "",
    ]
    for name, cls in ours(TASK_REGISTRY).items():
        dataclass = TASK_DATACLASS_REGISTRY[name]
        lines += [f"### `--task {name}`", "", first_line(cls), ""]
        lines += dataclass_table(dataclass, dataclass.__mro__[1])
    lines += ["## Models", ""]
    stock = parser_of(TransformerModel.add_args)
    for name, cls in ours(MODEL_REGISTRY).items():
        presets = " ".join(f"`{arch}`" for arch in sorted(ARCH_MODEL_INV_REGISTRY[name]))
        lines += [f"### `--arch {name}`", "", first_line(cls), "", f"Presets: {presets}", ""]
        base = stock if issubclass(cls, TransformerModel) else None
        if base:
            lines += ["In addition to the options of fairseq's `transformer`:", ""]
        options = cls.options
        actions = new_actions(parser_of(cls.add_args), base)
        defaults = field_defaults(options)
        if before := listed_before(name, options):
            known = field_defaults(before[1])
            lines += [f"In addition to the options of `{before[0]}` that are not repeated here:", ""]
            actions = [a for a in actions if a.dest not in known or known[a.dest] != defaults[a.dest]]
        lines += table(actions, defaults | preset_defaults(name, actions, defaults), options)
    lines += ["## Criterion", ""]
    for name, dataclass in ours(CRITERION_DATACLASS_REGISTRY).items():
        lines += [f"### `--criterion {name}`", "", first_line(dataclass), ""]
        lines += dataclass_table(dataclass, dataclass.__mro__[1])
    for title, option, classes, dataclasses_of in (
        ("Optimizer", "optimizer", OPTIMIZER_REGISTRY, OPTIMIZER_DATACLASS_REGISTRY),
        ("Learning rate", "lr-scheduler", LR_SCHEDULER_REGISTRY, LR_SCHEDULER_DATACLASS_REGISTRY),
    ):
        lines += [f"## {title}", ""]
        for name, cls in ours(classes).items():
            lines += [f"### `--{option} {name}`", "", first_line(cls), ""]
            lines += dataclass_table(dataclasses_of[name], FairseqDataclass)
    return "\n".join(lines).rstrip() + "\n"


@cache
def verbs_page() -> str:
    """The page of what `fairseq-syntax` takes, verb by verb."""
    lines = [
        "# Options of the verbs",
        "",
        "`fairseq-syntax VERB --help` prints the same. [Options of models, criteria and tasks](options.md) are",
        "those of `fairseq-train`.",
        "",
    ]
    for name in console_scripts():
        parser = program_parser(name)
        based = name == "fairseq-syntax preprocess"
        base = fairseq_options.get_preprocessing_parser() if based else None
        description = " ".join((parser.description or "").split())
        lines += [f"## {name}", "", description, ""]
        lines += table(new_actions(parser, base))
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for command, subparser in action.choices.items():
                    lines += [f"`{name} {command}`:", "", *table(new_actions(subparser, None))]
    return "\n".join(lines).rstrip() + "\n"

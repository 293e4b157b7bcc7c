"""Options that are declared as dataclasses: defaults, presets, and which values they may have.

A field's metadata holds, beside fairseq's "help", the "range" of a number as an interval, "[0, 1)" or "(0, inf]", and
"reading", true if it chooses another reading of the paper; `make docs` lists both.
"""

import argparse
from collections.abc import Mapping
from dataclasses import field, fields
from enum import Enum, EnumType
from typing import get_args, get_type_hints

from fairseq.dataclass import FairseqDataclass
from fairseq.models import register_model_architecture
from omegaconf import DictConfig, OmegaConf, open_dict


def option(default, help: str, range: str | None = None, **metadata):
    """A field of a dataclass of options, with its help text and the range of its numbers."""
    metadata |= {"help": help} | ({"range": range} if range else {})
    return field(default=default, metadata=metadata)


def fill_defaults(args, options: type[FairseqDataclass]) -> None:
    """Give `args` the default of every option it does not have (presets, old checkpoints), and check the values.

    Raises ValueError: see `check_values`.
    """
    defaults = options()
    for each in fields(options):
        default = getattr(defaults, each.name)
        if each.name != "_name" and not hasattr(args, each.name):
            # plain values only: checkpoints must load without classes of ours
            setattr(args, each.name, default.value if isinstance(default, Enum) else default)
    check_values(args, options)


def check_values(args, options: type[FairseqDataclass]) -> None:
    """Raise ValueError if an option has a value that is not among its choices, which hydra allows, or out of range."""
    types = get_type_hints(options)
    for each in fields(options):
        kinds = (types[each.name], *get_args(types[each.name]))
        choices = [str(choice.value) for kind in kinds if isinstance(kind, EnumType) for choice in kind]
        interval = each.metadata.get("range")
        value = getattr(args, each.name, None) if choices or interval else None
        if value is None or str(value).startswith("${"):  # the value of another component, which checks it
            continue
        flag = f"--{each.name.replace('_', '-')} {value}"
        if choices and value not in choices:
            raise ValueError(f"{flag}: choose from {', '.join(choices)}")
        if interval:
            check_range(flag, value, interval)


def check_range(what: str, value: float, interval: str) -> None:
    """Raise ValueError unless a number is in an interval, such as "[0, 1)"."""
    low, high = map(float, interval[1:-1].split(","))
    above = value >= low if interval[0] == "[" else value > low
    if not (above and (value <= high if interval[-1] == "]" else value < high)):
        raise ValueError(f"{what}: must be in {interval}")


def register_presets(model: str, presets: Mapping[str, Mapping[str, object]]) -> None:
    """Register architectures of a model: name -> defaults of its options."""
    for name, settings in presets.items():

        def architecture(args, settings=settings):
            for option, value in settings.items():
                if not hasattr(args, option):
                    setattr(args, option, value)

        register_model_architecture(model, name)(architecture)


def as_namespace(args) -> argparse.Namespace:
    """Options as argparse gives them; a copy of those of hydra, whose classes of fairseq drop what they do not know."""
    if isinstance(args, DictConfig):
        return argparse.Namespace(**OmegaConf.to_container(args, resolve=True))
    return args


def keep_for_checkpoints(cfg, args: argparse.Namespace) -> None:
    """Put the options of a model as it was built where checkpoints take them from, which is not a copy."""
    if isinstance(cfg, DictConfig):
        with open_dict(cfg):
            cfg.update(vars(args))


def require_trees(model: type, task) -> None:
    """Raise ValueError if a task does not load trees, which a model needs."""
    if not hasattr(task, "attach_syntax"):
        raise ValueError(
            f"{model.__name__}: the task {type(task).__name__} has no trees; use --task syntax_translation, or none"
        )


def require_joined_dictionary(task) -> None:
    """Raise ValueError if the two languages have different dictionaries, of which there cannot be one table."""
    if task.source_dictionary != task.target_dictionary:
        raise ValueError(
            "--share-all-embeddings: the two languages have different dictionaries; preprocess with "
            "--joined-dictionary, or leave the option out"
        )

"""Options that are declared as dataclasses: defaults, presets, and allowed values.

A field's metadata holds, beside fairseq's "help", the "range" of a number as an interval, "[0, 1)" or "(0, inf]", and
"reading", true if the option selects another interpretation of the paper; `make docs` lists both.
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
    for option in fields(options):
        default = getattr(defaults, option.name)
        if option.name != "_name" and not hasattr(args, option.name):
            # plain values only, so that checkpoints load without this package
            setattr(args, option.name, default.value if isinstance(default, Enum) else default)
    check_values(args, options)


def check_values(args, options: type[FairseqDataclass]) -> None:
    """Raise ValueError if a value is out of range or not among the choices, which hydra does not check."""
    types = get_type_hints(options)
    for option in fields(options):
        kinds = (types[option.name], *get_args(types[option.name]))
        choices = [str(choice.value) for kind in kinds if isinstance(kind, EnumType) for choice in kind]
        interval = option.metadata.get("range")
        value = getattr(args, option.name, None) if choices or interval else None
        if value is None or str(value).startswith("${"):  # interpolated from another component, which checks it
            continue
        flag = f"--{option.name.replace('_', '-')} {value}"
        if choices and value not in choices:
            raise ValueError(f"{flag}: choose from {', '.join(choices)}")
        if interval:
            check_range(flag, value, interval)


def check_range(name: str, value: float, interval: str) -> None:
    """Raise ValueError unless a number is in an interval, such as "[0, 1)"."""
    low, high = map(float, interval[1:-1].split(","))
    above = value >= low if interval[0] == "[" else value > low
    if not (above and (value <= high if interval[-1] == "]" else value < high)):
        raise ValueError(f"{name}: must be in {interval}")


def register_presets(model: str, presets: Mapping[str, Mapping[str, object]]) -> None:
    """Register architectures of a model: name -> defaults of its options."""
    for name, settings in presets.items():

        def architecture(args, settings=settings):
            for option, value in settings.items():
                if not hasattr(args, option):
                    setattr(args, option, value)

        register_model_architecture(model, name)(architecture)


def as_namespace(args) -> argparse.Namespace:
    """Options as a namespace, copied if they are a DictConfig, from which fairseq's classes drop unknown names."""
    if isinstance(args, DictConfig):
        return argparse.Namespace(**OmegaConf.to_container(args, resolve=True))
    return args


def keep_for_checkpoints(cfg, args: argparse.Namespace) -> None:
    """Write the options of the built model back to `cfg`, the original, which checkpoints store."""
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
    """Raise ValueError if the two languages have different dictionaries, which cannot share embeddings."""
    if task.source_dictionary != task.target_dictionary:
        raise ValueError(
            "--share-all-embeddings: the two languages have different dictionaries; preprocess with "
            "--joined-dictionary, or leave the option out"
        )

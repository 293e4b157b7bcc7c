"""Defaults of options that are declared as dataclasses."""

import argparse
from dataclasses import fields
from enum import Enum

from fairseq.dataclass import FairseqDataclass
from fairseq.models import ARCH_MODEL_REGISTRY
from omegaconf import DictConfig, OmegaConf, open_dict


def fill_defaults(args, options: type[FairseqDataclass]) -> None:
    """Give `args` the default of every option it does not have: presets, old checkpoints.

    Raises:
        ValueError: an option has none of its choices for a value. argparse sees to that, hydra does not.
    """
    defaults = options()
    for field in fields(options):
        default = getattr(defaults, field.name)
        choices = [choice.value for choice in type(default)] if isinstance(default, Enum) else None
        if field.name != "_name" and not hasattr(args, field.name):
            # plain values only: checkpoints must load without classes of ours
            setattr(args, field.name, default.value if choices else default)
        elif choices and getattr(args, field.name) not in choices:
            name = field.name.replace("_", "-")
            raise ValueError(f"--{name} {getattr(args, field.name)}: choose from {', '.join(choices)}")


def as_namespace(args) -> argparse.Namespace:
    """Options as argparse gives them; a copy of those of hydra, whose classes of fairseq drop what they do not know."""
    if isinstance(args, DictConfig):
        return argparse.Namespace(**OmegaConf.to_container(args, resolve=True))
    return args


def keep_for_checkpoints(given, args: argparse.Namespace) -> None:
    """Put the options of a model as it was built where checkpoints take them from, which is no copy."""
    if isinstance(given, DictConfig):
        with open_dict(given):
            given.update(vars(args))


def fill_options_of_checkpoint(cfg) -> None:
    """Give the options that an old checkpoint lacks their defaults.

    fairseq would give them the values that --arch has for the trainings of today.
    """
    name = getattr(cfg, "_name", None) or getattr(cfg, "arch", None)
    options = getattr(ARCH_MODEL_REGISTRY.get(name), "options", None)
    if not (isinstance(options, type) and issubclass(options, FairseqDataclass)):
        return  # a model of somebody else's
    if isinstance(cfg, DictConfig):
        with open_dict(cfg):
            fill_defaults(cfg, options)
    else:
        fill_defaults(cfg, options)


def require_trees(model: type, task) -> None:
    """Raise ValueError if a task knows nothing of trees, which a model needs."""
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

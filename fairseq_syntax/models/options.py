"""Defaults of options that are declared as dataclasses."""

from dataclasses import fields
from enum import Enum

from fairseq.dataclass import FairseqDataclass


def fill_defaults(args, options: type[FairseqDataclass]) -> None:
    """Give `args` the default of every option it does not have: presets, old checkpoints."""
    defaults = options()
    for field in fields(options):
        if field.name != "_name" and not hasattr(args, field.name):
            value = getattr(defaults, field.name)
            # plain values only: checkpoints must load without classes of ours
            setattr(args, field.name, value.value if isinstance(value, Enum) else value)

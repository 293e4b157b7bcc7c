"""The configuration that fairseq-train makes of a command line."""

import copy
from functools import cache

from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf


@cache
def _configuration(*argv: str):
    """Of a command line, which takes fairseq a third of a second."""
    parser = options.get_training_parser(default_task="syntax_translation")
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, list(argv)))


def configuration(data, arch="transformer_tiny", *extra):
    """Of a data directory, an architecture and further options, with `--task syntax_translation`."""
    given = ["--task", "syntax_translation", "-s", "en", "-t", "de", "--arch", arch, *map(str, extra)]
    found = copy.deepcopy(_configuration("DATA", *given))
    for part in (found.task, found.model):
        if getattr(part, "data", None) == "DATA":
            part.data = str(data)
    return found

"""Search options of a model's published scores: `generation.json` beside its checkpoint."""

import json
import shlex
from argparse import ArgumentParser
from pathlib import Path

from fairseq.dataclass.configs import GenerationConfig
from fairseq.dataclass.utils import gen_parser_from_dataclass

from ..files import written

FILE = "generation.json"
_DEFAULTS = {name: value for name, value in vars(GenerationConfig()).items() if type(value) in (int, float, bool)}


def write_search(folder: Path, options: str | dict) -> None:
    """Write the search options (numbers and switches) of fairseq-generate, from its command line or by name."""
    if isinstance(options, str):
        parser = ArgumentParser()
        gen_parser_from_dataclass(parser, GenerationConfig())
        options = vars(parser.parse_known_args(shlex.split(options))[0])
    kept = {name: options[name] for name, default in _DEFAULTS.items() if options.get(name, default) != default}
    with written(str(folder / FILE)) as file:
        json.dump(kept, file, indent=1)


def read_search(folder: str | Path) -> dict:
    """Read the search options in a folder, by name; {} without a file. Raises ValueError: the file is invalid."""
    path = Path(folder, FILE)
    if not path.is_file():
        return {}
    try:
        options = json.loads(path.read_text(encoding="utf-8"))
        if all(type(value) in (int, float, type(_DEFAULTS[name])) for name, value in options.items()):
            return options
    except (ValueError, KeyError, AttributeError, RecursionError):
        pass
    raise ValueError(f'{path}: has no options of a search, such as {{"beam": 5}}; remove it')

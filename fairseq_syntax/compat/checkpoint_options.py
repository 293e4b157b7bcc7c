"""Options of checkpoints, checked before anything is built from them: fairseq runs some strings as code.

`weights_only=True` keeps pickles from running anything, but a checkpoint names its own model, and some of fairseq's
models hand options to `eval`. One rule holds for all strings, whatever the option is called.
"""

import ast
import math
import re
import warnings
from argparse import Namespace
from collections.abc import Iterator, Mapping
from enum import Enum
from numbers import Number
from pathlib import Path
from typing import Any

_LONGEST = 1000
# folders, which a user may call data(1), and which are never evaluated
_PLACES = {"data", "save_dir", "restore_file", "user_dir", "tensorboard_logdir"}
_LITERAL = (ast.Expression, ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Name, ast.Attribute, ast.Load)
_OPERATION = (ast.UnaryOp, ast.unaryop, ast.BinOp, ast.operator, ast.BoolOp, ast.boolop, ast.Compare, ast.cmpop)
# small values become large ones
_GROWING = (ast.Pow, ast.LShift, ast.Mod)
_DOWNLOADED = re.compile(r"(?!(?<!.)https://dl\.fbaipublicfiles\.com/)(https?|s3)://", re.IGNORECASE)


class RefusedOption(ValueError):
    """An option of a checkpoint that is not a plain value; says which, what was found, and why it is refused."""


def check_options(state: Mapping) -> None:
    """Raise RefusedOption unless all options in a checkpoint are values: nothing in them is run, looked up or fetched.

    `state` is what is in the file, before fairseq has looked at it.
    """
    with warnings.catch_warnings(action="ignore"):  # of what is parsed
        for place, value in (pair for key in ("args", "cfg") for pair in _values(state.get(key), key)):
            if isinstance(value, str) and "." in place:
                reason = _danger(place.rpartition(".")[2], value)
            else:
                reason = (
                    None
                    if value is None or isinstance(value, (Number, Enum))
                    else f"a {type(value).__name__}, not a plain value"
                )
            if reason:
                raise RefusedOption(f"option {_shown(place)} is {_shown(repr(value))}, {reason}")


def _values(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """The values in a group of options, with their full names."""
    from omegaconf import OmegaConf

    if OmegaConf.is_config(value):
        value = OmegaConf.to_container(value, resolve=False)
    if isinstance(value, (Mapping, Namespace)):
        for name, element in (vars(value) if isinstance(value, Namespace) else value).items():
            yield from _values(element, f"{place}.{name}")
    elif isinstance(value, (list, tuple)):
        for element in value:
            yield from _values(element, place)
    else:
        yield place, value


def _danger(option: str, text: str) -> str | None:
    """What fairseq would do with the text of an option, if that is more than to read it."""
    from fairseq.registry import REGISTRIES

    if option in {"_name", "arch", "task", *REGISTRIES} and not re.fullmatch(r"[\w.+-]*", text):
        return "which is not a name, but perhaps a path"
    if option == "post_save_script" and text:
        return "which fairseq would run as a program"
    if "${" in text:
        return "which OmegaConf would replace by something else, such as an environment variable"
    # addresses are read without control characters, and JSON without backslashes
    if _DOWNLOADED.search(re.sub(r"[\x00-\x20\x7f-\xa0\\]", "", text)):
        return "which fairseq would download"
    if option in _PLACES:
        return None
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError):  # nothing that could be evaluated
        return None
    except (RecursionError, MemoryError):
        tree = None
    if tree is None or len(text) > _LONGEST or _does_more_than_compute(tree):
        return "which fairseq might run as Python code; it takes plain values, such as (512, 3)"
    # an option may be read twice
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return next(filter(None, (_danger("", text) for text in texts)), None)


def _does_more_than_compute(tree: ast.AST) -> bool:
    """True unless an expression has literals, names and operators alone, and a small value."""
    size = 1.0
    for node in ast.walk(tree):
        name = getattr(node, "id", getattr(node, "attr", ""))
        if not isinstance(node, _LITERAL + _OPERATION) or isinstance(node, _GROWING) or name.startswith("__"):
            return True
        if isinstance(node, ast.BinOp):
            sides = [side.value for side in (node.left, node.right) if isinstance(side, ast.Constant)]
            if not all(isinstance(side, Number | None) for side in sides):
                return True
            if isinstance(node.op, ast.Mult):
                size *= math.prod(max(1, abs(side or 0)) for side in sides) if sides else math.inf
    return not size <= _LONGEST


def _shown(text: str) -> str:
    """The beginning of a text, for a message: one line without control characters."""
    return ascii(text[:60])[1:-1] + "…" * (len(text) > 60)


def forget_places(cfg: Any, given: Mapping) -> None:
    """Forget files that the options of a checkpoint would write or run; a user may name them again.

    Args:
        cfg: all options of a checkpoint, in groups.
        given: those that the user gives, which stay.
    """
    task = cfg.get("task") if hasattr(cfg, "get") else None
    options = vars(task) if isinstance(task, Namespace) else task
    places = {"rnng_tree_output", "parser_dir"} if hasattr(options, "keys") else set()
    # spaCy runs what is in a folder of a pipeline; a package is installed by whoever runs this
    if places and options.get("parser") == "spacy" and Path(str(options.get("parser_model"))).exists():
        places.add("parser_model")
    for name in places - given.keys():
        if options.get(name) is not None:
            options[name] = None

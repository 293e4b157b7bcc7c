"""Options of checkpoints, checked before anything is built from them: fairseq runs some strings as code.

`weights_only=True` keeps pickles from running anything, but a checkpoint names its own model, and some of fairseq's
models hand options to `eval`. One rule holds for all strings, whatever the option is called.
"""

import ast
import math
import re
import warnings
from argparse import Namespace
from collections.abc import Mapping
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
    for key in ("args", "cfg"):
        options = state.get(key)
        if options is not None and not isinstance(options, (Mapping, Namespace)):
            raise RefusedOption(f"{key} is {type(options).__name__}, not a group of options")
        with warnings.catch_warnings(action="ignore"):  # of what is parsed
            _check(options, () if key == "cfg" else (key,))


def _check(value: Any, place: tuple) -> None:
    from omegaconf import DictConfig, ListConfig, OmegaConf

    if isinstance(value, (DictConfig, ListConfig)):
        value = OmegaConf.to_container(value, resolve=False)
    if isinstance(value, Namespace):
        value = vars(value)
    if isinstance(value, Mapping):
        for name, element in value.items():
            _check(element, (*place, name))
    elif isinstance(value, (list, tuple)):
        for element in value:
            _check(element, place)
    elif isinstance(value, str):
        if reason := _danger(place[-1] if place else "", value):
            raise RefusedOption(f"option {_shown('.'.join(map(str, place)))} is '{_shown(value)}', {reason}")
    elif value is not None and not isinstance(value, (Number, Enum)):
        raise RefusedOption(f"option {_shown('.'.join(map(str, place)))} is of the type {type(value).__name__}")


def _danger(option: str, text: str) -> str | None:
    """What fairseq would do with the text of an option, if that is more than to read it."""
    from fairseq.registry import REGISTRIES

    if option in {"_name", "arch", "task", *REGISTRIES} and not re.fullmatch(r"[\w.+-]*", text):
        return "which is not a name, but perhaps a path"
    if option == "post_save_script" and text:
        return "which fairseq would run as a program"
    return _danger_of_text(text, option in _PLACES)


def _danger_of_text(text: str, is_place: bool = False) -> str | None:
    if "${" in text:
        return "which OmegaConf would replace by something else, such as an environment variable"
    # addresses are read without control characters, and JSON without backslashes
    if _DOWNLOADED.search(re.sub(r"[\x00-\x20\x7f-\xa0\\]", "", text)):
        return "which fairseq would download"
    if is_place:
        return None
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError):  # nothing that could be evaluated
        return None
    except (RecursionError, MemoryError):
        tree = None
    if tree is None or _does_more_than_compute(tree, text):
        return "which fairseq might run as Python code; it takes plain values, such as (512, 3)"
    # an option may be read twice
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return next(filter(None, map(_danger_of_text, texts)), None)


def _does_more_than_compute(tree: ast.AST, text: str) -> bool:
    """True unless an expression has literals, names and operators alone, and a small value."""
    size = 1.0
    for node in ast.walk(tree):
        name = getattr(node, "id", getattr(node, "attr", ""))
        if not isinstance(node, _LITERAL + _OPERATION) or isinstance(node, _GROWING) or name.startswith("__"):
            return True
        if isinstance(node, ast.BinOp):
            sides = [side.value for side in (node.left, node.right) if isinstance(side, ast.Constant)]
            if any(isinstance(side, (str, bytes)) or side is ... for side in sides):
                return True
            if isinstance(node.op, ast.Mult):
                size *= math.prod(max(1, abs(side or 0)) for side in sides) if sides else math.inf
    return len(text) > _LONGEST or not size <= _LONGEST


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
    if not hasattr(options, "keys"):
        return
    places = {"rnng_tree_output", "parser_dir"}
    # spaCy runs what is in a folder of a pipeline; a package is installed by whoever runs this
    if options.get("parser") == "spacy" and Path(str(options.get("parser_model"))).exists():
        places.add("parser_model")
    for name in places - given.keys():
        if options.get(name) is not None:
            options[name] = None

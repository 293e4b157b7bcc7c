"""Options of checkpoints, checked before anything is built from them: fairseq runs some strings as code.

`weights_only=True` keeps pickles from running anything, but a checkpoint names its own model, and some of fairseq's
models hand options to `eval`. One rule holds for all strings, whatever the option is called.
"""

import ast
import re
import warnings
from argparse import Namespace
from collections.abc import Iterator, Mapping
from enum import Enum
from numbers import Number
from typing import Any

_LONGEST, _MOST_TIMES = 1000, 99
# folders, which a user may call data(1), and which are never evaluated
_PLACES = {"data", "save_dir", "restore_file", "user_dir", "tensorboard_logdir"}
_LITERAL = (ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Name, ast.Attribute, ast.Load)
_OPERATION = (ast.UnaryOp, ast.unaryop, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv)
_DOWNLOADED = re.compile(r"(?!(?<!.)https://dl\.fbaipublicfiles\.com/)(https?|s3)://", re.IGNORECASE)


def refused_option(state: Mapping) -> str | None:
    """What is wrong with an option of a checkpoint, as it is in its file; None if all are plain values."""
    with warnings.catch_warnings(action="ignore"):  # of what is parsed
        for place, value in (pair for key in ("args", "cfg") for pair in _values(state.get(key), key)):
            if reason := _danger(place.rpartition(".")[2], value):
                place, value = (ascii(text[:60])[1:-1] + "…" * (len(text) > 60) for text in (place, repr(value)))
                return f"option {place} is {value}, {reason}"
    return None


def _values(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """The values in a group of options, with their full names."""
    from omegaconf import OmegaConf

    if OmegaConf.is_config(value):
        value = OmegaConf.to_container(value, resolve=False)
    value = vars(value) if isinstance(value, Namespace) else value
    if not isinstance(value, (Mapping, list, tuple)):
        yield place, value
        return
    for name, element in value.items() if isinstance(value, Mapping) else enumerate(value):
        yield from _values(element, f"{place}.{name}")


def _danger(option: str, value: Any) -> str | None:
    """What fairseq would do with the value of an option, if that is more than to read it."""
    from fairseq.registry import REGISTRIES

    if not isinstance(value, str):
        is_plain = value is None or isinstance(value, (Number, Enum))
        return None if is_plain else f"a {type(value).__name__}, not a plain value"
    if option in {"_name", "arch", "task", *REGISTRIES} and not re.fullmatch(r"[\w.+-]*", value):
        return "which is not a name, but perhaps a path"
    if option == "post_save_script" and value:
        return "which fairseq would run as a program"
    if "${" in value:
        return "which OmegaConf would replace by something else, such as an environment variable"
    # addresses are read without control characters, and JSON without backslashes
    if _DOWNLOADED.search(re.sub(r"[\x00-\x20\x7f-\xa0\\]", "", value)):
        return "which fairseq would download"
    try:
        nodes = [] if option in _PLACES else list(ast.walk(ast.parse(value.strip(), mode="eval").body))
    except (SyntaxError, ValueError):  # nothing that could be evaluated
        return None
    except (RecursionError, MemoryError):
        nodes = [ast.Call()]
    if nodes and (len(value) > _LONGEST or not all(map(_only_computes, nodes))):
        return "which fairseq might run as Python code; it takes plain values, such as (512, 3)"
    # an option may be read twice
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return next(filter(None, (_danger("", text) for text in texts)), None)


def _only_computes(node: ast.AST) -> bool:
    """True for literals, names, and operators whose result is small."""
    if isinstance(node, ast.BinOp):
        constants = [side.value for side in (node.left, node.right) if isinstance(side, ast.Constant)]
        if not all(isinstance(value, Number | None) for value in constants):
            return False
        if isinstance(node.op, ast.Mult):
            times = sum(isinstance(inner, ast.Mult) for inner in ast.walk(node))
            return times == 1 and any(isinstance(value, int) and value <= _MOST_TIMES for value in constants)
    name = getattr(node, "id", getattr(node, "attr", ""))
    return isinstance(node, _LITERAL + _OPERATION) and not name.startswith("__")

"""Options of checkpoints, checked before anything is built from them: fairseq runs some strings as code.

`weights_only=True` keeps pickles from running anything, but a checkpoint names its own model, and some of fairseq's
models hand options to `eval`. tests/contract/test_code_in_fairseq.py compares this list with the installed fairseq.
"""

import ast
import re
from argparse import Namespace
from collections.abc import Mapping
from enum import Enum
from numbers import Number
from pathlib import Path
from typing import Any

EVALUATED = set(
    """
    adafactor_eps adam_betas adamax_betas adaptive_input_cutoff adaptive_softmax_cutoff character_filters
    conv_aggregator_layers conv_feature_layers decoder_attention decoder_layers downsample encoder_attention
    encoder_layers feature_encoder_spec gated_attention lamb_betas left_pad_source left_pad_target
    model_overrides pipeline_balance pipeline_decoder_balance pipeline_decoder_devices pipeline_devices
    pipeline_encoder_balance pipeline_encoder_devices pretrained project_input self_attention wer_args
    xformers_att_config
    """.split()
)
"""Options that fairseq evaluates as Python, if they are strings."""

_NAMES = "_name arch task criterion optimizer lr_scheduler scoring bpe tokenizer simul_type".split()
_COMMANDS = {"post_save_script"}
# a Transformer has options of its encoder and its decoder, in groups or by prefix
_PLAIN = {f"{prefix}{name}" for prefix in ("", "encoder_", "decoder_") for name in EVALUATED}
_DOWNLOADED = re.compile(r"(?!https://dl\.fbaipublicfiles\.com/)(https?|s3)://", re.IGNORECASE)
_LONGEST = 2000


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
        reason = _danger(place[-1] if place else "", value)
        if reason:
            raise RefusedOption(f"option {_shown('.'.join(map(str, place)))} is '{_shown(value)}', {reason}")
    elif value is not None and not isinstance(value, (Number, Enum)):
        raise RefusedOption(f"option {_shown('.'.join(map(str, place)))} is of the type {type(value).__name__}")


def _danger(option: str, text: str) -> str | None:
    """What fairseq would do with the text of an option, if that is more than to read it."""
    if "${" in text:
        return "which OmegaConf would replace by something else, such as an environment variable"
    if option in _PLAIN and text.strip() and not is_plain(text):
        return "which fairseq would run as Python code; it takes plain values there, such as (512, 3)"
    if option in _NAMES and not re.fullmatch(r"[\w.+-]*", text):
        return "which is not a name, but perhaps a path"
    if option in _COMMANDS:
        return "which fairseq would run as a program"
    if _DOWNLOADED.match(text):
        return "which fairseq would download"
    return None


def _shown(text: str) -> str:
    """The beginning of a text, for a message: one line without control characters."""
    return ascii(text[:60])[1:-1] + "…" * (len(text) > 60)


def is_plain(text: str) -> bool:
    """Whether a text is a Python literal, or one with sums and multiples, such as `[(512, 3)] * 20`; of any sane size.

    That is what stock options look like: `eval` of such a text runs nothing.
    """
    if len(text) > _LONGEST:
        return False
    try:
        _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return False
    return True


def _value(node: ast.AST) -> Any:
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as value):
            return value
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [_value(part) for part in parts]
        case ast.Dict(keys=keys, values=values):
            return {_value(key): _value(value) for key, value in zip(keys, values, strict=True)}
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return +_value(operand)
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult(), right=right):
            return _computed(_value(left), node.op, _value(right))
    raise ValueError(type(node).__name__)


def _computed(left: Any, operation: ast.operator, right: Any) -> Any:
    if isinstance(operation, ast.Add):
        if str in (type(left), type(right)):
            raise TypeError(str)
        return left + right
    # a count first, or last
    sequence, count = (right, left) if isinstance(right, list) else (left, right)
    if isinstance(sequence, str) or isinstance(count, str):
        raise TypeError(str)
    if isinstance(sequence, list) and len(sequence) * count > _LONGEST:
        raise ValueError(f"more than {_LONGEST} elements")
    return sequence * count


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

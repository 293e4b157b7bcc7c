"""Checks of checkpoint files before use: fairseq's errors name no file, or explain how to load it unsafely."""

import zipfile
from argparse import Namespace
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from pickle import UnpicklingError

from .checkpoint_options import refused_option
from .repair_registry import repair_fairseq

_GROUPS = ("model", "task")


def reason(error: Exception) -> str:
    """An error in one line, for a message."""
    if isinstance(error, UnpicklingError):
        # torch's message says how to load it unsafely
        return "it cannot be unpickled"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # torch names the tensor on the second line
    return " ".join(lines[:2])[:200] or type(error).__name__


def no_checkpoint(path: str | Path, error: Exception) -> ValueError:
    """The error for a file that cannot be loaded at all."""
    return ValueError(f"{path}: not a checkpoint of fairseq ({reason(error)})")


def open_checkpoint(path: str | Path) -> Mapping:
    """Load the content of a checkpoint, as fairseq wrote it; tensors are memory-mapped.

    The gate: every checkpoint goes through it, before anything is built from its options. Raises OSError: it cannot be
    read; ValueError: not a checkpoint of fairseq, or an option in it is more than a value.
    """
    import torch

    repair_fairseq()
    try:
        is_zip = zipfile.is_zipfile(path)
        if is_zip:  # torch does not look at the checksums
            with zipfile.ZipFile(path) as archive:
                if damaged := archive.testzip():
                    raise ValueError(f"{damaged} in it is damaged")
        # torch maps files of its present format only
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=is_zip)
        if not isinstance(state, Mapping):
            raise ValueError("no 'model' in it")
        refused = refused_option(state)
    except Exception as error:  # the type depends on the first bytes of the file; a container may hold itself
        if isinstance(error, OSError) and error.filename:
            raise
        raise no_checkpoint(path, error) from None
    if refused:
        raise ValueError(f"{path}: {refused}; do not use this file")
    return state


def options_of(state: Mapping, group: str = "model") -> MutableMapping:
    """Options of a checkpoint's training: those of the model, or of another group; {} if it has none."""
    cfg = state.get("cfg")
    # checkpoints of old versions have one group
    options = (cfg.get(group) if isinstance(cfg, Mapping) else None) or state.get("args")
    if isinstance(options, Namespace):
        return vars(options)
    return options if isinstance(options, MutableMapping) else {}


def check_state(state: Mapping, path: str | Path) -> None:
    """Raise ValueError unless this is the content of a checkpoint of fairseq: finite parameters, options of a model.

    Args:
        state: content of the file.
        path: of the file, for the message.
    """
    import torch

    needed = {"model": state.get("model"), **{f"options of the {name}": options_of(state, name) for name in _GROUPS}}
    for name, content in needed.items():
        if not isinstance(content, Mapping) or not content:
            raise ValueError(f"{path}: not a checkpoint of fairseq (no {name} in it)")
    for name, tensor in state["model"].items():
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"{path}: not a checkpoint of fairseq ({name} is not a tensor)")
        # -inf may be meant, in a mask
        if tensor.is_floating_point() and (tensor.isnan() | tensor.isposinf()).any():
            raise ValueError(
                f"{path}: {name} holds NaN or infinite numbers, so the training has failed; give an earlier checkpoint"
            )


def check_architecture(state: Mapping, path: str | Path) -> None:
    """Raise ValueError if the model of a checkpoint is not registered."""
    from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY

    options = options_of(state)
    name = options.get("arch") or options.get("_name")
    if name not in ARCH_MODEL_REGISTRY and name not in MODEL_REGISTRY:
        raise ValueError(
            f"{path}: of a model {name!r} that is not registered; give its --user-dir, or a newer fairseq-syntax"
        )

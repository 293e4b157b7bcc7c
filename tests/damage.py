"""Damage to checkpoints, as disks and networks do it, and worse."""

import io
import os
import pickle
import random
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import torch


class Payload:
    """Unpickled carelessly, it makes a file."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def _pickled(state: dict, victim: Path) -> bytes:
    return pickle.dumps({**state, "extra_state": Payload(victim)})


def _pickled_by_torch(state: dict, victim: Path) -> bytes:
    buffer = io.BytesIO()
    torch.save({**state, "extra_state": Payload(victim)}, buffer)
    return buffer.getvalue()


def _saved(change: Callable[[dict], object]) -> Callable[[dict, Path], bytes]:
    def make(state: dict, victim: Path) -> bytes:
        buffer = io.BytesIO()
        torch.save(change(state), buffer)
        return buffer.getvalue()

    return make


def _raw(change: Callable[[bytes], bytes]) -> Callable[[dict, Path], bytes]:
    return lambda state, victim: change(_saved(dict)(state, victim))


def _flipped(state: dict, victim: Path) -> bytes:
    """One bit of a parameter is another, which changes a number and nothing else."""
    content = bytearray(_saved(dict)(state, victim))
    parameter = max(state["model"].values(), key=lambda value: value.numel())
    content[bytes(content).index(parameter.contiguous().numpy().tobytes()) + 1] ^= 4
    return bytes(content)


def _with_cfg(state: dict, **changed) -> dict:
    cfg = {name: value for name, value in {**state["cfg"], **changed}.items() if value is not ...}
    return {**state, "cfg": cfg}


def _with_tensor(change: Callable) -> Callable[[dict], dict]:
    def make(state: dict) -> dict:
        name = next(name for name, value in state["model"].items() if value.is_floating_point() and value.dim() == 2)
        return {**state, "model": {**state["model"], name: change(state["model"][name])}}

    return make


def _with_code(shape: type) -> Callable[[dict, Path], bytes]:
    """An option that fairseq evaluates, in a group of options of this type."""

    def make(state: dict, victim: Path) -> bytes:
        model = state["cfg"]["model"]
        code = f"__import__('os').mkdir({str(victim)!r})"
        options = {**(vars(model) if isinstance(model, Namespace) else model), "xformers_att_config": code}
        return _saved(lambda state: _with_cfg(state, model=shape(**options)))(state, victim)

    return make


def _without_tensor(state: dict) -> dict:
    gone = next(name for name, value in state["model"].items() if value.is_floating_point() and value.dim() == 2)
    return {**state, "model": {name: value for name, value in state["model"].items() if name != gone}}


CHECKPOINTS: dict[str, Callable[[dict, Path], bytes]] = {
    "empty": lambda state, victim: b"",
    "half": _raw(lambda content: content[: len(content) // 2]),
    "cut": _raw(lambda content: content[:-1]),
    "noise": _raw(lambda content: random.Random(3).randbytes(len(content))),
    "a flipped bit": _flipped,
    "text": lambda state, victim: b"not a checkpoint\n",
    "payload": _pickled,
    "payload in torch's format": _pickled_by_torch,
    "no model": _saved(lambda state: {name: value for name, value in state.items() if name != "model"}),
    "a model without tensors": _saved(lambda state: {**state, "model": dict.fromkeys(state["model"], 1.0)}),
    "no cfg": _saved(lambda state: {name: value for name, value in state.items() if name != "cfg"}),
    "no cfg.model": _saved(lambda state: _with_cfg(state, model=...)),
    "cfg.model is None": _saved(lambda state: _with_cfg(state, model=None)),
    "no cfg.task": _saved(lambda state: _with_cfg(state, task=...)),
    "another architecture": _saved(lambda state: _with_cfg(state, model={"_name": "no_such_model"})),
    "NaN": _saved(_with_tensor(lambda tensor: torch.full_like(tensor, float("nan")))),
    "a parameter of another shape": _saved(_with_tensor(lambda tensor: torch.zeros(3, 3))),
    "a parameter less": _saved(_without_tensor),
    "code in a Namespace": _with_code(Namespace),
    "code in a dict": _with_code(dict),
}

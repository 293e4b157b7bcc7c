"""Averages of checkpoints."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import fairseq  # noqa: F401  (a message says where it is missing)
import torch
from torch import Tensor

from ..compat.checkpoint_files import check_state, open_checkpoint, options_of
from ..files import staged

# values of the last checkpoint that do not apply to the mean
_STALE = ("metrics", "val_loss", "best", "patience", "previous_training_time", "ema", "ema_fp32_params")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint to be averaged."""

    number: int  # N of checkpointN.pt, or the position among the given files, from 1
    path: Path


def find_checkpoints(inputs: list[str], first: int | None = None, last: int | None = None) -> list[Checkpoint]:
    """The given checkpoints, or checkpointN.pt in one folder with N from `first` to `last`, oldest first.

    Raises FileNotFoundError: a file is missing, or there is none in the range; ValueError: a folder among files, or a
    file named twice.
    """
    paths = [Path(path) for path in inputs]
    if len(paths) == 1 and paths[0].is_dir():
        matches = [(re.fullmatch(r"checkpoint(\d+)\.pt", path.name), path) for path in paths[0].iterdir()]
        numbered = sorted((int(match[1]), path) for match, path in matches if match)
        if not numbered:
            raise FileNotFoundError(
                f"{paths[0]}: no checkpointN.pt in this folder; train without --no-epoch-checkpoints, or name the files"
            )
        chosen = [Checkpoint(n, path) for n, path in numbered if (first or 1) <= n <= (last or n)]
        if not chosen:
            raise FileNotFoundError(
                f"{paths[0]}: no checkpointN.pt with N from {first or 1} to {last or 'the last'}; "
                f"there are {numbered[0][0]} to {numbered[-1][0]}"
            )
        return chosen
    for i, path in enumerate(paths):
        if path.is_dir():
            raise ValueError(f"{path}: is a folder; give one folder, or files only")
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such checkpoint; give files that fairseq-train wrote")
        if any(path.samefile(earlier) for earlier in paths[:i]):
            raise ValueError(f"{path}: is named twice")
    return [Checkpoint(number, path) for number, path in enumerate(paths, 1)]


class Mean:
    """A running mean of the parameters of checkpoints. Integers and the like are taken from the first one."""

    def __init__(self):
        self.count = 0
        self.differing: set[str] = set()
        self._first: Path | None = None
        self._shapes: dict[str, str | None] = {}
        self._sums: dict[str, Tensor] = {}
        self._like: dict[str, Tensor] = {}
        self._storages: dict[str, tuple] = {}

    def add(self, path: Path) -> None:
        """Add the parameters of a checkpoint. Raises ValueError: it is of another model."""
        state = open_checkpoint(path)
        check_state(state, path)
        tensors = state["model"]
        options = options_of(state)
        shapes = {"architecture": options.get("arch") or options.get("_name")}
        shapes |= {name: f"{tuple(tensor.shape)} {tensor.dtype}" for name, tensor in tensors.items()}
        if not self.count:
            self._first, self._shapes = path, shapes
            self._like = dict(tensors)
            self._storages = {name: () for name in tensors}
        for name in [*self._shapes, *shapes]:
            if (found := shapes.get(name)) != (expected := self._shapes.get(name)):
                raise ValueError(
                    f"{path}: not of the same model as {self._first}: {name} is {found}, not {expected}; average "
                    "checkpoints of one training"
                )
        for name, tensor in tensors.items():
            self._storages[name] += ((tensor.data_ptr(), tensor.shape, tensor.stride()),)
            if not tensor.is_floating_point():
                if not torch.equal(tensor, self._like[name]):
                    self.differing.add(name)
            elif self.count:
                self._sums[name] += tensor.double()
            else:
                self._sums[name] = tensor.to(torch.float64, copy=True)
        self.count += 1

    def parameters(self) -> dict[str, Tensor]:
        """The mean in the data types of the checkpoints. Tensors that are shared in all checkpoints stay shared."""
        shared: dict[tuple, Tensor] = {}
        result = {}
        for name, like in self._like.items():
            if not like.is_floating_point():
                result[name] = like
                continue
            # empty tensors all have the address 0
            key = self._storages[name] if like.numel() else name
            if key not in shared:
                shared[key] = (self._sums[name] / self.count).to(like.dtype)
            result[name] = shared[key]
        return result

    def report(self) -> None:
        """Report on stderr the names of parameters that could not be averaged."""
        if self.differing:
            names = sorted(self.differing)
            print(
                f"fairseq-syntax average: not floating-point, and different between checkpoints: {', '.join(names)}; "
                f"taken from {self._first}",
                file=sys.stderr,
            )


def write_checkpoint(output: str, parameters: dict[str, Tensor], averaged: list[Path]) -> None:
    """Write parameters as a fairseq checkpoint, atomically, with the options of the last of `averaged`.

    It has no optimizer state. The position in the training data is kept, because fairseq needs it even for
    `--finetune-from-model`.
    """
    state = open_checkpoint(averaged[-1])
    extra = {name: value for name, value in (state.get("extra_state") or {}).items() if name not in _STALE}
    extra["averaged_checkpoints"] = [path.name for path in averaged]
    state = {name: value for name, value in state.items() if name != "last_optimizer_state"}
    with staged(output) as partial:
        torch.save({**state, "model": parameters, "extra_state": extra}, partial)

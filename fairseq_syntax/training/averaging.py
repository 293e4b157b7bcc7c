"""Averages of checkpoints."""

import re
from collections.abc import Iterable
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


def mean_of(paths: Iterable[Path]) -> dict[str, Tensor]:
    """Mean parameters of checkpoints, in their data types; tensors of integers are those of the first.

    Tensors that share memory in all checkpoints still do. Raises ValueError: the checkpoints are not of one model.
    """
    first, expected, parameters, sums, count = None, {}, {}, {}, 0
    for path in paths:
        count += 1
        state = open_checkpoint(path)
        check_state(state, path)
        tensors, options = state["model"], options_of(state)
        types = {"architecture": options.get("arch") or options.get("_name")}
        types |= {name: value for name, value in options.items() if str(name).endswith("attention_heads")}
        types |= {name: f"{tuple(tensor.shape)} {tensor.dtype}" for name, tensor in tensors.items()}
        if first is None:
            first, expected, parameters = path, types, dict(tensors)
        for name in [*expected, *types]:
            if types.get(name) != expected.get(name):
                raise ValueError(
                    f"{path}: not of the same model as {first}: {name} is {types.get(name)}, not {expected.get(name)}; "
                    "average checkpoints of one training"
                )
        for name, tensor in tensors.items():
            if tensor.is_floating_point():
                sums[name] = tensor.double() + sums.get(name, 0)
    places: dict[tuple, Tensor] = {}
    for name, total in sums.items():
        like = parameters[name]
        mean = (total / count).to(like.dtype)
        same = places.setdefault((like.data_ptr(), like.shape, like.stride()), mean)
        parameters[name] = same if like.numel() and torch.equal(same, mean) else mean
    return parameters


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

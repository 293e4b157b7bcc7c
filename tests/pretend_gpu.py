"""A GPU that is none: tensors that say they are on cuda:0, hold their numbers on the CPU, and keep a GPU's rules.

    with PretendGPU() as gpu:
        model, batch = gpu.move(model), gpu.move(batch)
        loss = criterion(model, batch)
    gpu.syncs  # what made the host wait, and from where

Rules: tensors of the CPU and of the GPU never meet, but for numbers (0-dimensional ones) of the CPU; NumPy sees what
came by `.cpu()`. Counted as waiting: whatever brings a value, or a size that depends on values, to the host: `.item()`,
`bool()`, `.tolist()`, `.cpu()`, `nonzero`, `unique`, indexing by a mask.
"""

import contextlib
import traceback
from collections import Counter
from pathlib import Path
from unittest import mock

import fused_cells
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_map

DEVICE = torch.device("cuda", 0)
REPOSITORY = Path(__file__).resolve().parent.parent


class OnGPU(Tensor):
    """A tensor of the pretended GPU."""

    __torch_function__ = torch._C._disabled_torch_function_impl


class HostGenerator(torch.Generator):
    """Random numbers of the CPU, whatever the device."""

    def __new__(cls, device="cpu"):
        return super().__new__(cls, "cpu")


class WrongDevice(RuntimeError):
    """Tensors of two devices met, or the host looked at the GPU's memory."""


def is_cuda(device) -> bool:
    """Whether `device`, in any of the ways that torch takes, is the GPU."""
    if isinstance(device, int) and not isinstance(device, bool):
        return True
    return device is not None and torch.device(device).type == "cuda"


def put(tensor):
    """The same tensor, said to be on the GPU."""
    return tensor.as_subclass(OnGPU) if isinstance(tensor, Tensor) and not isinstance(tensor, OnGPU) else tensor


def place() -> str:
    """Where in the repository, or else in fairseq, the call comes from: file:line."""
    for frame in reversed(traceback.extract_stack()):
        for root in ("fairseq_syntax/", "/fairseq/"):
            if root in frame.filename and "pretend_gpu" not in frame.filename:
                return f"{root.strip('/')}/{frame.filename.rpartition(root)[2]}:{frame.lineno}"
    return "?"


# names of functions that wait, whatever their arguments
_WAITS = frozenset(
    "item tolist __bool__ __float__ __int__ __index__ __contains__ nonzero argwhere unique unique_consecutive "
    "masked_select equal allclose multinomial bincount histc".split()
)
_HOST = {"numpy", "__array__", "__dlpack__"}
# indices may be on the host
_INDEXED = ("__set__", "copy_", "__setitem__", "__getitem__")
# of packed sequences, whose lengths and sizes of batches are on the host
_SIZES_ON_HOST = ("_pack_padded_sequence", "_pad_packed_sequence", "lstm", "gru")


class RealGPU(contextlib.nullcontext):
    """What a `PretendGPU` can be asked for, of the GPU that is there; nothing is counted."""

    def __init__(self):
        super().__init__()
        self.syncs: Counter = Counter()

    def move(self, thing):
        """A module or a nest of tensors on the GPU."""
        return thing.to(DEVICE) if isinstance(thing, nn.Module) else tree_map(_to_gpu, thing)


def _to_gpu(thing):
    return thing.to(DEVICE) if isinstance(thing, Tensor) else thing


def autocast_on_host(device_type="cuda", dtype=None, enabled=True, cache_enabled=None):
    """Autocast of the GPU, where the numbers are."""
    return _AUTOCAST("cpu", dtype=torch.bfloat16, enabled=enabled, cache_enabled=cache_enabled)


_AUTOCAST = torch.autocast


class PretendGPU(TorchFunctionMode):
    """See above.

    Attributes:
        syncs: (function, place) -> how often the host waited.
    """

    def __init__(self):
        super().__init__()
        self.syncs: Counter = Counter()

    # --- moving -------------------------------------------------------------------------------------------------------

    def move(self, thing):
        """A module (in place) or a nest of tensors on the GPU."""
        if isinstance(thing, nn.Module):
            for module in thing.modules():
                for name, parameter in module._parameters.items():
                    if parameter is not None and not isinstance(parameter.data, OnGPU):
                        moved = nn.Parameter(parameter.detach().as_subclass(OnGPU), parameter.requires_grad)
                        moved.__dict__.update(parameter.__dict__)
                        module._parameters[name] = self.shared.setdefault(id(parameter), moved)
                for name, buffer in module._buffers.items():
                    module._buffers[name] = put(buffer)
            return thing
        return tree_map(put, thing)

    def __enter__(self):
        self.shared = {}
        self._patches = contextlib.ExitStack()
        for owner, name, value in (
            (torch.cuda, "is_available", lambda: True),
            (torch.cuda, "current_device", lambda: 0),
            (torch, "Generator", HostGenerator),
            (torch, "autocast", autocast_on_host),
            (torch.cuda.amp, "autocast", lambda enabled=True: autocast_on_host(enabled=enabled)),
        ):
            self._patches.enter_context(mock.patch.object(owner, name, value))
        self._cells = fused_cells.register()
        return super().__enter__()

    def __exit__(self, *error):
        self._patches.close()
        del self._cells
        return super().__exit__(*error)

    # --- calling ------------------------------------------------------------------------------------------------------

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(function, "__name__", str(function))
        tensors = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, Tensor)]
        here = [tensor for tensor in tensors if isinstance(tensor, OnGPU)]
        if name == "__get__":
            return self._attribute(function, args, here)
        if name in ("cuda", "to", "cpu", "type", "type_as") and isinstance(args[0], Tensor):
            return self._moved(function, name, args, kwargs)
        if not here:
            return self._made(function, name, args, kwargs)
        if name in _HOST:
            raise WrongDevice(f"{name} of a tensor on the GPU at {place()}")
        if name == "__getitem__" and not isinstance(args[0], OnGPU):
            raise WrongDevice(f"a tensor of the CPU was indexed by one of the GPU at {place()}")
        if name not in (*_INDEXED, *_SIZES_ON_HOST):
            self._check(name, tensors)
        self._count(name, args)
        result = function(*args, **kwargs)
        if name == "_pack_padded_sequence":  # sizes of batches are on the host, whatever the device
            return put(result[0]), result[1]
        if name == "_shape_as_tensor":  # as are shapes
            return result
        return self._put(result)

    def _put(self, result):
        if isinstance(result, Tensor):
            return put(result)
        if isinstance(result, (tuple, list)):
            done = [self._put(each) for each in result]
            # named tuples of Python take their fields one by one, those of torch all at once
            return type(result)(*done) if hasattr(result, "_fields") else type(result)(done)
        return result

    def _attribute(self, function, args, here):
        name = getattr(getattr(function, "__self__", None), "__name__", "")  # of the attribute
        if here and name in ("device", "is_cuda"):
            return DEVICE if name == "device" else True
        result = function(*args)
        return self._put(result) if here and isinstance(result, Tensor) else result

    def _moved(self, function, name, args, kwargs):
        tensor = args[0]
        given = [*args[1:], *kwargs.values()]
        if name == "type" and len(args) == 1 and not kwargs:
            return function(*args)
        if name == "cuda":
            return put(tensor.clone() if not isinstance(tensor, OnGPU) else tensor)
        device = next((g for g in given if isinstance(g, (str, torch.device)) or type(g) is int), None)
        if name == "cpu":
            device = "cpu"
        other = next((g for g in given if isinstance(g, Tensor)), None)
        if other is not None and isinstance(other, OnGPU):
            device = DEVICE
        dtype = next((g for g in given if isinstance(g, torch.dtype)), other.dtype if other is not None else None)
        target = isinstance(tensor, OnGPU) if device is None and other is None else is_cuda(device)
        if isinstance(tensor, OnGPU) and not target:
            self.syncs[name, place()] += 1
        with torch._C.DisableTorchFunction():
            plain = tensor.as_subclass(Tensor) if isinstance(tensor, OnGPU) else tensor
            moved = plain.to(dtype) if dtype is not None else plain
            if target != isinstance(tensor, OnGPU) and moved is plain:
                moved = plain.clone()
        return put(moved) if target else moved

    def _made(self, function, name, args, kwargs):
        device = kwargs.get("device")
        if device is not None and is_cuda(device):
            return self._put(function(*args, **{**kwargs, "device": "cpu"}))
        return function(*args, **kwargs)

    def _check(self, name, tensors):
        if torch._C._current_graph_task_id() != -1:
            return  # gradients come without a word about devices
        strange = [tensor for tensor in tensors if not isinstance(tensor, OnGPU) and tensor.dim() and tensor.numel()]
        if strange:
            raise WrongDevice(f"{name}: a tensor {tuple(strange[0].shape)} of the CPU met the GPU at {place()}")

    def _count(self, name, args):
        waits = name in _WAITS
        if name in ("__getitem__", "__setitem__", "index", "index_put", "index_put_"):
            indices = args[1] if isinstance(args[1], (tuple, list)) else (args[1],)
            waits = any(isinstance(index, Tensor) and index.dtype in (torch.bool, torch.uint8) for index in indices)
            if name != "__getitem__" and waits:
                waits = isinstance(args[-1], Tensor) and args[-1].dim() > 0
            # what comes from the host: lists of indices, and a number for one element (for a slice, it is filled in)
            waits |= isinstance(args[1], list) or any(isinstance(index, list) for index in indices)
            one = all(type(index) is int for index in indices) and len(indices) == args[0].dim()
            waits |= name == "__setitem__" and one and not isinstance(args[-1], Tensor)
        waits |= name == "where" and len(args) == 1
        waits |= name == "repeat_interleave" and isinstance(args[-1], Tensor)
        waits |= name in ("copy_", "__setitem__") and not isinstance(args[0], OnGPU)
        if waits:
            self.syncs[name, place()] += 1

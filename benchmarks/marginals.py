"""Marginals of dependency trees: speed against a bare matrix inverse, a loop over sentences and torch-struct; errors.

torch-struct takes part if it is installed (`pip install --no-deps torch-struct`).
"""

import importlib.util
import sys
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import torch
from timing import report, report_table, side_by_side
from torch import Tensor

from fairseq_syntax.trees.matrix_tree import head_marginals

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
from oracles.dependency_trees import laplacian_marginals

SIZES = [(32, 20), (64, 50), (32, 100)]
SCALES = [1, 2, 5, 10, 20, 50, 100]


def random_scores(batch: int, length: int, scale: float, device: str = "cpu") -> tuple[Tensor, Tensor]:
    """Normal scores of arcs (B, T, T) and roots (B, T), float64."""
    arcs = torch.randn(batch, length, length, dtype=torch.float64, device=device) * scale
    return arcs, torch.randn(batch, length, dtype=torch.float64, device=device) * scale


def ours(arcs: Tensor, roots: Tensor) -> tuple[Tensor, Tensor]:
    """This project's."""
    return head_marginals(arcs, roots, torch.ones_like(roots, dtype=torch.bool))


def one_by_one(arcs: Tensor, roots: Tensor) -> tuple[Tensor, Tensor]:
    """This project's, sentence by sentence."""
    parts = [ours(arcs[b : b + 1], roots[b : b + 1]) for b in range(len(arcs))]
    return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])


def as_written(arcs: Tensor, roots: Tensor) -> tuple[Tensor, Tensor]:
    """Eqs. 12-15 of Tran & Bisk as they stand there, in the type of the input."""
    weights = arcs.exp() * (1 - torch.eye(arcs.shape[-1], dtype=arcs.dtype, device=arcs.device))
    laplacian = torch.diag_embed(weights.sum(-1)) - weights
    laplacian = torch.cat([roots.exp()[..., None], laplacian[..., 1:]], dim=-1)
    inverse = torch.linalg.inv_ex(laplacian)[0]  # [head, dependent]
    diagonal, across = inverse.diagonal(dim1=-2, dim2=-1).clone(), inverse.mT.clone()
    diagonal[:, 0], across[:, :, 0] = 0, 0
    return weights * (diagonal[..., None] - across), roots.exp() * inverse[:, 0]


def torch_struct_marginals() -> Callable | None:
    """torch-struct's, which has heads first and roots on the diagonal; None if it is not installed."""
    if importlib.util.find_spec("torch_struct") is None:
        return None
    from torch_struct import NonProjectiveDependencyCRF

    def marginals(arcs: Tensor, roots: Tensor) -> tuple[Tensor, Tensor]:
        off_diagonal = 1 - torch.eye(arcs.shape[-1], dtype=arcs.dtype, device=arcs.device)
        potentials = (arcs * off_diagonal).mT + torch.diag_embed(roots)
        both = NonProjectiveDependencyCRF(potentials, multiroot=False).marginals.mT
        return both * off_diagonal, both.diagonal(dim1=-2, dim2=-1)

    return marginals


def contestants(loop: bool) -> dict[str, Callable]:
    """Name -> function of arc scores and root scores."""
    functions = {"head_marginals": ours}
    functions["loop over sentences" if loop else "eqs. 12-15 as written"] = one_by_one if loop else as_written
    if (peer := torch_struct_marginals()) is not None:
        functions["torch-struct"] = peer
    return functions


def speed(batch: int, length: int, device: str, rounds: int) -> None:
    """Forward and backward of all, float32 and float64 scores, against a bare inverse of the same shape in float64."""
    arcs, roots = random_scores(batch, length, 1.0, device)
    weights = random_scores(batch, length, 1.0, device)
    matrices = arcs + length * torch.eye(length, device=device)

    def synchronized(function: Callable, *inputs: Tensor, gradients: tuple[Tensor, ...]) -> Callable:
        def run() -> None:
            leaves = [tensor.detach().requires_grad_() for tensor in inputs]
            outputs = function(*leaves)
            torch.autograd.backward(outputs if isinstance(outputs, tuple) else (outputs,), gradients)
            if device == "cuda":
                torch.cuda.synchronize()

        return run

    runs = {"torch.linalg.inv": synchronized(torch.linalg.inv, matrices, gradients=weights[:1])}
    for dtype in (torch.float32, torch.float64):
        for name, function in contestants(loop=True).items():
            inputs, gradients = (arcs.to(dtype), roots.to(dtype)), tuple(part.to(dtype) for part in weights)
            runs[f"{name}, {str(dtype)[6:]}"] = synchronized(function, *inputs, gradients=gradients)
    seconds = side_by_side(runs, rounds)
    title = f"marginals of {batch} sentences of {length} words, forward and backward, {device}"
    report(title, seconds, "torch.linalg.inv")


def errors(scales: list[int], sentences: int, length: int) -> None:
    """Largest error and number of sentences with NaN or inf, in value or gradient, for each size of scores."""
    functions = contestants(loop=False)
    rows: dict[str, list[str]] = {}
    for scale in scales:
        arcs, roots = random_scores(sentences, length, scale)
        arcs, roots = arcs.float().double(), roots.float().double()  # the same scores in both types
        exact = [laplacian_marginals(a, r) for a, r in zip(arcs.tolist(), roots.tolist(), strict=True)]
        expected = torch.tensor([[*chain(*a), *r] for a, r in exact], dtype=torch.float64)
        for dtype in (torch.float32, torch.float64):
            for name, function in functions.items():
                leaves = [scores.to(dtype).requires_grad_() for scores in (arcs, roots)]
                arc_marginals, root_marginals = function(*leaves)
                both = torch.cat([arc_marginals.flatten(1), root_marginals], dim=-1)
                gradients = torch.autograd.grad(both.square().sum(), leaves)
                everything = torch.cat([both, gradients[0].flatten(1), gradients[1]], dim=-1)
                broken = (~everything.isfinite()).any(-1)
                error = (both.detach().double() - expected).abs().nan_to_num(torch.inf, torch.inf).max()
                rows.setdefault(f"{name}, {str(dtype)[6:]}", []).append(f"{error:.0e} ({int(broken.sum())})")
    title = f"largest error of a marginal (sentences with NaN or inf in value or gradient), {length} words, CPU"
    header = ["scores of standard deviation", *map(str, scales)]
    report_table(title, header, [[name, *cells] for name, cells in rows.items()])


def run(quick: bool) -> None:
    """Print speed and errors; `quick`: tiny sizes, whose figures mean nothing."""
    torch.manual_seed(0)
    if torch_struct_marginals() is None:
        print("torch-struct: not installed")
    for device in ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]:
        if device == "cuda":
            print(f"\n{torch.cuda.get_device_name()}")
        for batch, length in [(2, 5)] if quick else SIZES:
            speed(batch, length, device, 1 if quick else 11)
    errors(SCALES[:2] if quick else SCALES, 2 if quick else 20, 4 if quick else 10)

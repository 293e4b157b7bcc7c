"""Marginals of dependency trees: speed against a bare matrix inverse and a loop over sentences.

Their errors: tests/unit/trees/test_matrix_tree.py.
"""

from collections.abc import Callable

import torch
from timing import report, side_by_side
from torch import Tensor

from fairseq_syntax.trees.matrix_tree import head_marginals

SIZES = [(32, 20), (64, 50), (32, 100)]


def random_scores(batch: int, length: int) -> tuple[Tensor, Tensor]:
    """Normal scores of arcs (B, T, T) and roots (B, T), float64."""
    arcs = torch.randn(batch, length, length, dtype=torch.float64)
    return arcs, torch.randn(batch, length, dtype=torch.float64)


def ours(arcs: Tensor, roots: Tensor) -> tuple[Tensor, Tensor]:
    """This project's."""
    return head_marginals(arcs, roots, torch.ones_like(roots, dtype=torch.bool))


def one_by_one(arcs: Tensor, roots: Tensor) -> tuple[Tensor, Tensor]:
    """This project's, sentence by sentence."""
    parts = [ours(arcs[b : b + 1], roots[b : b + 1]) for b in range(len(arcs))]
    return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])


def speed(batch: int, length: int, rounds: int) -> None:
    """Forward and backward of all, float32 and float64 scores, against a bare inverse of the same shape in float64."""
    arcs, roots = random_scores(batch, length)
    weights = random_scores(batch, length)
    matrices = arcs + length * torch.eye(length)

    def both_ways(function: Callable, *inputs: Tensor, gradients: tuple[Tensor, ...]) -> Callable:
        def run() -> None:
            leaves = [tensor.detach().requires_grad_() for tensor in inputs]
            outputs = function(*leaves)
            torch.autograd.backward(outputs if isinstance(outputs, tuple) else (outputs,), gradients)

        return run

    runs = {"torch.linalg.inv": both_ways(torch.linalg.inv, matrices, gradients=weights[:1])}
    for dtype in (torch.float32, torch.float64):
        for name, function in (("head_marginals", ours), ("loop over sentences", one_by_one)):
            inputs, gradients = (arcs.to(dtype), roots.to(dtype)), tuple(part.to(dtype) for part in weights)
            runs[f"{name}, {str(dtype)[6:]}"] = both_ways(function, *inputs, gradients=gradients)
    seconds = side_by_side(runs, rounds)
    report(f"marginals of {batch} sentences of {length} words, forward and backward", seconds, "torch.linalg.inv")


def run(quick: bool) -> None:
    """Print speed; `quick`: tiny sizes, whose figures mean nothing."""
    torch.manual_seed(0)
    for batch, length in [(2, 5)] if quick else SIZES:
        speed(batch, length, 1 if quick else 11)

"""Nearness of tokens to the parents of others (PASCAL, eqs. 2-3)."""

import math
from enum import StrEnum

import torch
from torch import Tensor


class ParentKernel(StrEnum):
    """Weight of a token at offset o from the parent's middle position."""

    normal = "normal"  # density of N(0, variance) at o
    uniform = "uniform"  # 1 within one standard deviation, otherwise 0
    parent_only = "parent-only"  # 1 on the middle token, or the two around it, otherwise 0


def parent_offsets(parents: Tensor) -> Tensor:
    """(B, T, T) float32, the offset of every token from every token's parent: [b, t, j] = j - p[b, t].

    `parents` (B, T) are doubled positions in batch columns, negative without a parse. It is float32 whatever the
    precision of the model: in half precision, positions beyond 1024 would lose their halves.
    """
    columns = torch.arange(parents.size(1), device=parents.device, dtype=torch.float32)
    return columns - (parents.float() / 2).unsqueeze(-1)


def kernel_weights(offsets: Tensor, kernel: str, variance: float) -> Tensor:
    """Weights of tokens by their offset from the parent; the matrix D of Bugliarello & Okazaki (2020), eq. 3.

    Args:
        offsets: in tokens, any shape.
        kernel: a `ParentKernel`.
        variance: σ² in squared tokens, > 0.

    Returns float32 of the same shape, not negative.
    """
    if kernel == ParentKernel.normal:
        # in place: D is the largest tensor that is not an attention score
        weights = offsets.square().mul_(-1 / (2 * variance)).exp_()
        return weights.mul_(1 / math.sqrt(2 * math.pi * variance))
    if kernel == ParentKernel.uniform:
        return (offsets.abs() <= variance**0.5).float()
    return (offsets.abs() < 1).float()


def parent_weights(parents: Tensor, kernel: str, variance: float) -> Tensor:
    """The matrix D (B, T, T) float32 of doubled parent positions (B, T); ones where there is no parse."""
    weights = kernel_weights(parent_offsets(parents), kernel, variance)
    return weights.masked_fill_((parents < 0).unsqueeze(-1), 1.0)

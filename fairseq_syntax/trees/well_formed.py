"""Batched test of whether heads form trees."""

import torch
from torch import Tensor


def are_trees(heads: Tensor, lengths: Tensor) -> Tensor:
    """Test each sentence for a tree with exactly one root: (B,), bool; False for a sentence without words.

    Every word jumps to its head, and each further jump is twice as far, so that log2(S) jumps take every word that
    leads to the root there.

    Args:
        heads: (B, S) int64, column of each word's head; the head of a root is the column after the last word. Later
            columns are ignored.
        lengths: (B,) number of words plus that one column, at least 1.
    """
    width = heads.shape[1]
    columns = torch.arange(width, device=heads.device)
    root = (lengths - 1).unsqueeze(1)
    words = columns < root
    reached = torch.where(words, heads, columns)
    one_root = ((heads == root) & words).sum(1) == 1
    for _ in range(max(1, (width - 1).bit_length())):
        reached = reached.gather(1, reached)
    return one_root & ((reached == root) | ~words).all(1)

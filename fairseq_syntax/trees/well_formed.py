"""Which of many lists of heads are trees, told for a whole batch at once."""

import torch
from torch import Tensor


def are_trees(heads: Tensor, lengths: Tensor) -> Tensor:
    """(B,) bool, whether the words of each sentence form a tree with exactly one root; without words, they do not.

    Every word jumps to its head, then from there as far again, and so on: after log2 of the width jumps, all words
    that lead to the root have arrived.

    Args:
        heads: (B, S) int64, column of each word's head; the head of a root is the column behind the last word. What
            follows the words is ignored.
        lengths: (B,) number of words and the column behind them, 1 or more.
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

"""Trees against a walk from every word to the root, for all lists of heads of few words."""

from itertools import product

import pytest
import torch
from oracles.forests import is_forest

from fairseq_syntax.trees.well_formed import are_trees


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_all_heads(size):
    heads = list(product(range(size + 1), repeat=size))
    forests = ([head if head < size else -1 for head in row] for row in heads)
    expected = [is_forest(row) and row.count(-1) == 1 for row in forests]
    # Cayley's formula, and the choice of a root
    assert sum(expected) == size ** (size - 1)
    padded = torch.full((len(heads), size + 3), 7 % (size + 3))
    padded[:, :size] = torch.tensor(heads)
    found = are_trees(padded, torch.full((len(heads),), size + 1))
    assert found.tolist() == expected


def test_sentences_of_different_lengths():
    heads = torch.tensor([[1, 2, 0, 0, 3], [1, 3, 1, 9, 9], [1, 0, 9, 9, 9], [4, 0, 1, 2, 9], [9, 9, 9, 9, 9]]) % 5
    lengths = torch.tensor([4, 4, 3, 5, 1])
    assert are_trees(heads, lengths).tolist() == [False, True, False, True, False]


def test_a_chain_of_many_words():
    heads = torch.arange(1, 202).unsqueeze(0)
    assert are_trees(heads, torch.tensor([201])).tolist() == [True]
    heads[0, 100] = 99
    assert are_trees(heads, torch.tensor([201])).tolist() == [False]

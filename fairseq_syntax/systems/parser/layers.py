"""Layers of the latent graph parser, and masks of sentences that are padded on the right.

Columns 0 to N-1 are words, column N is EOS, which stands for ROOT, and then comes padding. Lengths count EOS.
"""

import math
from typing import Tuple

import torch
from torch import Tensor, nn


def valid_mask(lengths: Tensor, width: int) -> Tensor:
    """(B,) -> (B, width), True at words and EOS."""
    return torch.arange(width, device=lengths.device) < lengths.unsqueeze(1)


def word_mask(lengths: Tensor, width: int) -> Tensor:
    """(B,) -> (B, width), True at words alone."""
    return valid_mask(lengths - 1, width)


def arc_mask(lengths: Tensor, width: int) -> Tensor:
    """(B,) -> (B, width dependent, width head), True at the N possible heads of each word: others and EOS."""
    itself = torch.eye(width, dtype=torch.bool, device=lengths.device)
    return word_mask(lengths, width).unsqueeze(2) & valid_mask(lengths, width).unsqueeze(1) & ~itself


def reversal(lengths: Tensor, width: int) -> Tensor:
    """(B,) -> (B, width): the columns of each sentence from EOS to the first word; padding keeps its own."""
    columns = torch.arange(width, device=lengths.device)
    last = lengths.unsqueeze(1) - 1
    return torch.where(columns <= last, last - columns, columns)


def reverse(states: Tensor, columns: Tensor) -> Tensor:
    """Turn (B, S, D) round inside each length by `reversal`; a second time turns it back."""
    return states.gather(1, columns.unsqueeze(2).expand_as(states))


def at_least_float32(tensor: Tensor) -> torch.dtype:
    """Its dtype, or float32 if that is less precise."""
    return torch.promote_types(tensor.dtype, torch.float32)


def log_softmax(scores: Tensor) -> Tensor:
    """Natural logarithms of the softmax over the last dimension, at least in float32.

    All are finite unless a score is NaN: scores count as at most `largest_score`, -inf and +inf among them.
    """
    scores = scores.to(at_least_float32(scores))
    limit = largest_score(scores.dtype)
    return torch.log_softmax(scores.clamp(-3 * limit, limit), dim=-1)


def largest_score(dtype: torch.dtype) -> float:
    """What scores are cut off at: differences are finite, and those to -3 times as much, which marks what cannot be."""
    return torch.finfo(dtype).max / 4


class SoftmaxClassifier(nn.Module):
    """Logarithms of class probabilities: softmax of one layer, as in LGP, or with a ReLU layer below it, as in JMT."""

    def __init__(self, size: int, classes: int, hidden: int = 0):
        super().__init__()
        self.hidden = nn.Linear(size, hidden) if hidden else None
        self.output = nn.Linear(hidden or size, classes)
        # all classes are equally likely at first
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)
        if hidden:
            nn.init.xavier_uniform_(self.hidden.weight)
            nn.init.zeros_(self.hidden.bias)

    def forward(self, states: Tensor) -> Tensor:
        """(…, size) -> (…, C), at least in float32."""
        if self.hidden is not None:
            states = torch.relu(self.hidden(states))
        return log_softmax(self.output(states))


class TwoWayLSTM(nn.Module):
    """An LSTM from left to right and one from right to left, each with an input of its own.

    The second takes and gives sentences already turned round (`reverse`), so that both meet padding last, where it does
    no harm and need not be packed away. Packing would wait for the GPU to tell the lengths.
    """

    def __init__(self, input_size: int, size: int):
        super().__init__()
        self.left_to_right = nn.LSTM(input_size, size, batch_first=True)
        self.right_to_left = nn.LSTM(input_size, size, batch_first=True)
        for lstm in (self.left_to_right, self.right_to_left):
            # a matrix in the paper's sense is that of one gate over input and state together
            bound = math.sqrt(6 / (size + input_size + size))
            for name, parameter in lstm.named_parameters():
                if name.startswith("weight"):
                    nn.init.uniform_(parameter, -bound, bound)
                else:
                    nn.init.zeros_(parameter)
            # gates are in the order i, f, g, o; torch adds up two biases
            nn.init.ones_(lstm.bias_ih_l0[size : 2 * size])

    def forward(self, inputs: Tensor, turned: Tensor) -> Tuple[Tensor, Tensor]:
        """Inputs (B, S, I), also turned round -> states of both directions (B, S, D), the second still turned round."""
        return self.left_to_right(inputs)[0], self.right_to_left(turned)[0]

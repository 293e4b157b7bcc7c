"""The latent graph parser: soft heads and soft labels of every word (Hashimoto & Tsuruoka, EMNLP 2017, Sec. 2).

Sentences are padded on the right in everything here: columns 0 to N-1 are words, column N is EOS, which stands for
ROOT, and then comes padding. Lengths count EOS.
"""

import math
from enum import StrEnum
from typing import NamedTuple, Optional

import torch
from torch import Tensor, nn

TINY = 1e-12
"""Lower limit of the probabilities of heads, so that no score of an arc is -inf."""


class GraphKind(StrEnum):
    """Sources of heads and labels: the rows of the paper's comparison."""

    latent = "latent"  # both are learned: LGP-NMT
    seq = "seq"  # there are none: SEQ
    dep = "dep"  # both are given, by a parser or a treebank: DEP
    uni = "uni"  # all heads are equally likely, labels are learned: UNI


class Graph(NamedTuple):
    """Weighted graphs of sentences. Probabilities are at least in float32; padding is finite everywhere."""

    pos_log_probs: Tensor  # (B, S, POS classes) natural logarithms; no loss is to use those of EOS
    # (B, S dependent, S head) log p (eq. 1); very low, not -inf, where there can be no head, and without meaning in the
    # rows of EOS and padding. None if heads are not learned.
    head_log_probs: Optional[Tensor]
    # (B, S dependent, S head) p; exactly 0 in rows of EOS and padding, on the diagonal and in columns of padding. None
    # for `seq`.
    heads: Optional[Tensor]
    label_log_probs: Optional[Tensor]  # (B, S, labels) log l, as of heads
    labels: Optional[Tensor]  # (B, S, labels) l; 0 in rows of EOS and padding. None for `seq`.
    states: Tensor  # (B, S, 2 size) h2, of EOS too; without meaning in padding


def valid_mask(lengths: Tensor, width: int) -> Tensor:
    """(B,) -> (B, width), True at words and EOS."""
    return torch.arange(width, device=lengths.device) < lengths.unsqueeze(1)


def word_mask(lengths: Tensor, width: int) -> Tensor:
    """(B,) -> (B, width), True at words alone."""
    return valid_mask(lengths - 1, width)


def arc_mask(lengths: Tensor, width: int) -> Tensor:
    """(B,) -> (B, width dependent, width head), True at the N possible heads of each word: other words and EOS."""
    itself = torch.eye(width, dtype=torch.bool, device=lengths.device)
    return word_mask(lengths, width).unsqueeze(2) & valid_mask(lengths, width).unsqueeze(1) & ~itself


def reversal(lengths: Tensor, width: int) -> Tensor:
    """(B,) -> (B, width): the columns of each sentence from EOS to the first word; padding keeps its own."""
    columns = torch.arange(width, device=lengths.device)
    return torch.where(valid_mask(lengths, width), lengths.unsqueeze(1) - 1 - columns, columns)


def reverse(states: Tensor, columns: Tensor) -> Tensor:
    """Turn (B, S, D) round inside each length by `reversal`; a second time turns it back."""
    return states.gather(1, columns.unsqueeze(2).expand_as(states))


def word_states(heads: Tensor, states: Tensor) -> Tensor:
    """(B, S, D) mean `states` of the heads of each word, weighted by their probability: hbar of eq. 3, z of Sec. 2.3.

    `heads` are those of `Graph`, `states` finite in padding; rows of EOS and padding are 0.
    """
    return torch.bmm(heads.to(states.dtype), states)


def _one_hot(numbers: Tensor, size: int) -> Tensor:
    """(B, S) -> (B, S, size) boolean; rows of numbers outside the range are False (`nn.functional.one_hot` fails)."""
    return numbers.unsqueeze(2) == torch.arange(size, device=numbers.device)


def at_least_float32(tensor: Tensor) -> torch.dtype:
    """The dtype of a tensor, or float32 if that is less precise."""
    return torch.promote_types(tensor.dtype, torch.float32)


def largest_score(dtype: torch.dtype) -> float:
    """Limit of scores: differences are finite, even those to -3 times the limit, which marks impossible heads."""
    return torch.finfo(dtype).max / 4


def log_softmax(scores: Tensor) -> Tensor:
    """Natural logarithms of the softmax over the last dimension, at least in float32.

    All are finite unless a score is NaN: scores count as at most `largest_score`, -inf and +inf among them.
    """
    scores = scores.to(at_least_float32(scores))
    limit = largest_score(scores.dtype)
    return torch.log_softmax(scores.clamp(-3 * limit, limit), dim=-1)


class SoftmaxClassifier(nn.Module):
    """Logarithms of class probabilities: softmax of one layer; in JMT, a ReLU layer is below it."""

    def __init__(self, size: int, classes: int):
        super().__init__()
        self.output = nn.Linear(size, classes)
        # all classes are equally likely at first
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def forward(self, states: Tensor) -> Tensor:
        """(…, size) -> (…, C), at least in float32."""
        return log_softmax(self.output(states))


class TwoWayLSTM(nn.Module):
    """An LSTM from left to right and one from right to left, each with an input of its own.

    The second reads and returns reversed sentences (`reverse`), so that padding comes last for both and need not be
    packed away: packing would make the host wait for lengths from the GPU.
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

    def forward(self, inputs: Tensor, turned: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs (B, S, I), also turned round -> states of both directions (B, S, D), the second still turned round."""
        try:
            return self.left_to_right(inputs)[0], self.right_to_left(turned)[0]
        except RuntimeError as error:
            if not torch.is_autocast_enabled("cpu") or "primitive" not in str(error):
                raise
            # oneDNN, which torch uses for unpacked input, lacks half-precision LSTMs for many processors
            with torch.autocast("cpu", enabled=False):
                return self.left_to_right(inputs)[0], self.right_to_left(turned)[0]


class LatentGraphParser(nn.Module):
    """Predicts tags of words, and distributions over their heads and labels (Secs. 2.2, 2.3).

        h1 = two-way LSTM of x;  p1 = softmax(W_pos h1 + b);  y = W_l p1
        h2 = two-way LSTM of [x; y; h1], where each direction reads the h1 of its own direction only
        p[i, k] = softmax over k != i of h2_k . (W_dp h2_i);  z_i = sum over k of p[i, k] h2_k
        l_i = softmax(W_lab [h2_i; z_i] + b)

    EOS is treated as an ordinary token, except that it has no head and no label. Parameters that a kind of
    graph does not use are not created: `head_scorer` (W_dp) is only in `latent`, `label_classifier` (W_lab) in `latent`
    and `uni`; the attributes are None.

    Args:
        size: d1, of the states of one direction, and half of the size of x.
        pos_size: d2, of y.
        num_pos, num_labels: classes.
        graph: source of heads and labels.

    Infinite scores (in half precision, for example) count as the greatest number; NaN in x or in states makes the
    results of its sentence NaN, and no others.
    """

    def __init__(self, size: int, pos_size: int, num_pos: int, num_labels: int, graph: GraphKind = GraphKind.latent):
        super().__init__()
        self.size = size
        self.num_labels = num_labels
        self.graph = GraphKind(graph)
        self.layer1 = TwoWayLSTM(2 * size, size)
        self.pos_classifier = SoftmaxClassifier(2 * size, num_pos)
        self.pos_input = nn.Linear(num_pos, pos_size, bias=False)
        nn.init.xavier_uniform_(self.pos_input.weight)
        self.layer2 = TwoWayLSTM(2 * size + pos_size + size, size)
        self.head_scorer = None
        if self.graph == GraphKind.latent:
            self.head_scorer = nn.Linear(2 * size, 2 * size, bias=False)
            nn.init.xavier_uniform_(self.head_scorer.weight)
        self.label_classifier = None
        if self.graph in (GraphKind.latent, GraphKind.uni):
            self.label_classifier = SoftmaxClassifier(4 * size, num_labels)

    def forward(
        self,
        x: Tensor,
        lengths: Tensor,
        given_heads: Optional[Tensor] = None,
        given_labels: Optional[Tensor] = None,
        clamped_heads: Optional[Tensor] = None,
        tags_only: bool = False,
    ) -> Graph:
        """The graphs of sentences. Values in padding, even NaN, change nothing.

        Args:
            x: (B, S, 2 size) representations of words and EOS, padding on the right.
            lengths: (B,), counting EOS: at least 1.
            given_heads: (B, S) column of each word's head, the column of EOS for a root; required by
                `dep`, ignored otherwise. Invalid columns, such as -1 for a word without a parse, give rows of zeros.
                Values at EOS and in padding are ignored.
            given_labels: (B, S) number of each word's label, as `given_heads`.
            clamped_heads: (B, S) columns of heads that replace p in `latent`; words with invalid columns keep their
                soft heads.
            tags_only: stop after layer 1; everything but `pos_log_probs` is then None, and `states` are h1.
        """
        width = x.shape[1]
        x = x.masked_fill(~valid_mask(lengths, width).unsqueeze(2), 0.0)  # 0 x NaN would be NaN
        turn = reversal(lengths, width)
        turned = reverse(x, turn)
        ahead, back = self.layer1(x, turned)
        states = torch.cat((ahead, reverse(back, turn)), dim=2)
        pos_log_probs = self.pos_classifier(states)
        if tags_only:
            return Graph(pos_log_probs, None, None, None, None, states)
        tags = self.pos_input(pos_log_probs.exp().to(ahead.dtype))  # y
        ahead, back = self.layer2(
            torch.cat((x, tags, ahead), dim=2), torch.cat((turned, reverse(tags, turn), back), dim=2)
        )
        states = torch.cat((ahead, reverse(back, turn)), dim=2)

        arcs, words = arc_mask(lengths, width), word_mask(lengths, width).unsqueeze(2)
        head_log_probs = heads = label_log_probs = labels = None
        if self.graph == GraphKind.latent:
            head_log_probs = self._head_log_probs(states, arcs)
            heads = head_log_probs.exp().masked_fill(~arcs, 0.0)
            if clamped_heads is not None:
                clamped = _one_hot(clamped_heads, width) & arcs
                heads = torch.where(clamped.any(2, keepdim=True), clamped.to(heads), heads)
        elif self.graph == GraphKind.uni:
            # each word has as many possible heads as there are words
            count = (lengths - 1).clamp(min=1).view(-1, 1, 1)
            heads = arcs.to(at_least_float32(states)) / count
        elif self.graph == GraphKind.dep:
            heads = _one_hot(given_heads, width).logical_and(arcs).to(at_least_float32(states))
            labels = _one_hot(given_labels, self.num_labels).logical_and(words).to(heads)
        if self.label_classifier is not None:
            label_log_probs = self.label_classifier(torch.cat((states, word_states(heads, states)), dim=2))
            labels = label_log_probs.exp().masked_fill(~words, 0.0)
        return Graph(pos_log_probs, head_log_probs, heads, label_log_probs, labels, states)

    def _head_log_probs(self, states: Tensor, arcs: Tensor) -> Tensor:
        """Eq. 1, (B, S dependent, S head)."""
        scores = torch.bmm(self.head_scorer(states), states.transpose(1, 2))  # m[b, i, k] = h_k . (W_dp h_i)
        scores = scores.to(at_least_float32(scores))
        limit = largest_score(scores.dtype)
        # not -inf: rows without a possible head would be NaN, and so would be their gradient, whatever masks it later
        return log_softmax(scores.clamp(-limit, limit).masked_fill(~arcs, -3 * limit))

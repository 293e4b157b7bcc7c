"""The latent graph parser: soft heads and soft labels of every word (Hashimoto & Tsuruoka, EMNLP 2017, Sec. 2).

Sentences are padded on the right in everything here: columns 0 to N-1 are words, column N is EOS, which stands for
ROOT, and then comes padding. Lengths count EOS.
"""

from enum import StrEnum
from typing import NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn

from .layers import (
    SoftmaxClassifier,
    TwoWayLSTM,
    arc_mask,
    at_least_float32,
    largest_score,
    log_softmax,
    reversal,
    reverse,
    valid_mask,
    word_mask,
)


class GraphKind(StrEnum):
    """Where heads and labels come from: the rows of the paper's comparison."""

    latent = "latent"  # both are learned: LGP-NMT
    seq = "seq"  # there are none: SEQ
    dep = "dep"  # both are given, by a parser or a treebank: DEP
    uni = "uni"  # all heads are equally likely, labels are learned: UNI


class HeadInit(StrEnum):
    """How W_dp starts."""

    xavier = "xavier"  # as the paper has it
    zero = "zero"  # as the JMT model has it: all heads are equally likely at first


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


def word_states(heads: Tensor, states: Tensor) -> Tensor:
    """(B, S, D) mean `states` of the heads of each word, weighted by their probability: hbar of eq. 3, z of Sec. 2.3.

    `heads` are those of `Graph`, `states` finite in padding; rows of EOS and padding are 0.
    """
    return torch.bmm(heads.to(states.dtype), states)


class LatentGraphParser(nn.Module):
    """Tags words, and gives each a distribution over heads and one over labels (Secs. 2.2, 2.3).

        h1 = two-way LSTM of x;  p1 = softmax(W_pos h1 + b);  y = W_l p1
        h2 = two-way LSTM of [x; y; h1], where each direction reads the h1 of its own direction only
        p[i, k] = softmax over k != i of h2_k . (W_dp h2_i);  z_i = sum over k of p[i, k] h2_k
        l_i = softmax(W_lab [h2_i; z_i] + b)

    EOS takes part in all of it as an ordinary token, except that it has no head and no label. Parameters that a kind of
    graph does not use are not created: `head_scorer` (W_dp) is only in `latent`, `label_classifier` (W_lab) in `latent`
    and `uni`; the attributes are None.

    Args:
        size: d1, of the states of one direction, and half of the size of x.
        pos_size: d2, of y.
        num_pos, num_labels: classes.
        graph: where heads and labels come from.
        classifier_hidden: size of a ReLU layer in both classifiers; 0 for none, as in the paper.
        wdp_init: how W_dp starts.

    Infinite scores (of half precision, say) count as the greatest number; NaN in x or in states makes all of its
    sentence NaN, and nothing of others.
    """

    def __init__(
        self,
        size: int,
        pos_size: int,
        num_pos: int,
        num_labels: int,
        graph: GraphKind = GraphKind.latent,
        classifier_hidden: int = 0,
        wdp_init: HeadInit = HeadInit.xavier,
    ):
        super().__init__()
        self.size = size
        self.num_labels = num_labels
        self.graph = GraphKind(graph)
        self.layer1 = TwoWayLSTM(2 * size, size)
        self.pos_classifier = SoftmaxClassifier(2 * size, num_pos, classifier_hidden)
        self.pos_input = nn.Linear(num_pos, pos_size, bias=False)
        nn.init.xavier_uniform_(self.pos_input.weight)
        self.layer2 = TwoWayLSTM(2 * size + pos_size + size, size)
        self.head_scorer = None
        if self.graph == GraphKind.latent:
            self.head_scorer = nn.Linear(2 * size, 2 * size, bias=False)
            if HeadInit(wdp_init) == HeadInit.zero:
                nn.init.zeros_(self.head_scorer.weight)
            else:
                nn.init.xavier_uniform_(self.head_scorer.weight)
        self.label_classifier = None
        if self.graph in (GraphKind.latent, GraphKind.uni):
            self.label_classifier = SoftmaxClassifier(4 * size, num_labels, classifier_hidden)

    def forward(
        self,
        x: Tensor,
        lengths: Tensor,
        given_heads: Optional[Tensor] = None,
        given_labels: Optional[Tensor] = None,
        teacher_heads: Optional[Tensor] = None,
        clamped_heads: Optional[Tensor] = None,
    ) -> Graph:
        """The graphs of sentences. What stands in padding, be it NaN, changes nothing.

        Args:
            x: (B, S, 2 size) representations of words and EOS, padding on the right.
            lengths: (B,), counting EOS: at least 1.
            given_heads: (B, S) column of each word's head, the column of EOS for a root; needed by `dep`, which is the
                only kind to use it. What cannot be a head, such as -1 for a word without a parse, makes a row of
                zeros. What stands at EOS and in padding is ignored.
            given_labels: (B, S) number of each word's label, as `given_heads`.
            teacher_heads: (B, S) columns of heads that labels are predicted from, in place of the soft heads; words of
                which it names no possible head keep those. Ignored where labels are not learned.
            clamped_heads: (B, S) columns of heads that take the place of p in `latent`, in the same way.

        Raises ValueError: shapes disagree, or the graph is given but heads or labels are not.
        """
        self._check(x, lengths, given_heads, given_labels)
        width = x.shape[1]
        x = x.masked_fill(~valid_mask(lengths, width).unsqueeze(2), 0.0)  # 0 x NaN would be NaN
        pos_log_probs, states = self._tag_and_read(x, reversal(lengths, width))
        arcs = arc_mask(lengths, width)

        head_log_probs = heads = label_log_probs = labels = None
        if self.graph == GraphKind.latent:
            head_log_probs = self._head_log_probs(states, arcs)
            heads = head_log_probs.exp().masked_fill(~arcs, 0.0)
            if clamped_heads is not None:
                heads = _instead(heads, _one_hot(clamped_heads, width) & arcs)
        elif self.graph == GraphKind.uni:
            # each word has as many possible heads as there are words
            count = (lengths - 1).clamp(min=1).view(-1, 1, 1)
            heads = arcs.to(at_least_float32(states)) / count
        elif self.graph == GraphKind.dep:
            heads = _one_hot(given_heads, width).logical_and(arcs).to(at_least_float32(states))

        words = word_mask(lengths, width).unsqueeze(2)
        if self.label_classifier is not None:
            known = heads
            if teacher_heads is not None:
                known = _instead(heads, _one_hot(teacher_heads, width) & arcs)
            label_log_probs = self.label_classifier(torch.cat((states, word_states(known, states)), dim=2))
            labels = label_log_probs.exp().masked_fill(~words, 0.0)
        elif self.graph == GraphKind.dep:
            labels = _one_hot(given_labels, self.num_labels).logical_and(words).to(heads)
        return Graph(pos_log_probs, head_log_probs, heads, label_log_probs, labels, states)

    def _tag_and_read(self, x: Tensor, turn: Tensor) -> Tuple[Tensor, Tensor]:
        """Both layers: log p1 (B, S, POS classes) and h2 (B, S, 2 size)."""
        turned = reverse(x, turn)
        ahead, back = self.layer1(x, turned)
        pos_log_probs = self.pos_classifier(torch.cat((ahead, reverse(back, turn)), dim=2))
        tags = self.pos_input(pos_log_probs.exp().to(ahead.dtype))  # y
        ahead, back = self.layer2(
            torch.cat((x, tags, ahead), dim=2), torch.cat((turned, reverse(tags, turn), back), dim=2)
        )
        return pos_log_probs, torch.cat((ahead, reverse(back, turn)), dim=2)

    def _head_log_probs(self, states: Tensor, arcs: Tensor) -> Tensor:
        """Eq. 1, (B, S dependent, S head)."""
        scores = torch.bmm(self.head_scorer(states), states.transpose(1, 2))  # m[b, i, k] = h_k . (W_dp h_i)
        scores = scores.to(at_least_float32(scores))
        limit = largest_score(scores.dtype)
        # not -inf: rows without a possible head would be NaN, and so would be their gradient, whatever masks it later
        return log_softmax(scores.clamp(-limit, limit).masked_fill(~arcs, -3 * limit))

    def _check(self, x: Tensor, lengths: Tensor, heads: Optional[Tensor], labels: Optional[Tensor]) -> None:
        """Raise ValueError unless the shapes agree and a graph that is given is there."""
        if x.dim() != 3 or x.shape[2] != 2 * self.size:
            raise ValueError(f"x has the shape {tuple(x.shape)}; expected (sentences, tokens, {2 * self.size})")
        if lengths.shape != x.shape[:1]:
            raise ValueError(f"lengths have the shape {tuple(lengths.shape)}; expected ({len(x)},)")
        if self.graph != GraphKind.dep:
            return
        for name, given in (("heads", heads), ("labels", labels)):
            if given is None:
                raise ValueError(f"graph dep: no {name} came with the sentences; give the parse of the source")
            if given.shape != x.shape[:2]:
                raise ValueError(
                    f"graph dep: {name} have the shape {tuple(given.shape)}; expected {tuple(x.shape[:2])}"
                )


def _instead(heads: Tensor, given: Tensor) -> Tensor:
    """Probabilities (B, S, S) with given heads, booleans of the same shape, in their place where there are some."""
    return torch.where(given.any(2, keepdim=True), given.to(heads), heads)


def _one_hot(numbers: Tensor, size: int) -> Tensor:
    """(B, S) -> (B, S, size) boolean; rows of numbers outside the range are False (`nn.functional.one_hot` fails)."""
    return numbers.unsqueeze(2) == torch.arange(size, device=numbers.device)

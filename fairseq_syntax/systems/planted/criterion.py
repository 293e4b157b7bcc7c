"""Translation loss plus the loss of heads that learn to look at the parent."""

from dataclasses import dataclass

import torch
from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterionConfig
from torch import Tensor
from torch.nn import functional as F

from ...options import option
from ..transformer.head_loss import HeadLoss, HeadLossCriterion


@dataclass
class PlantedHeadsConfig(LabelSmoothedCrossEntropyCriterionConfig):
    """fairseq's options of label_smoothed_cross_entropy, and the weight of the heads' loss."""

    planted_weight: float = option(1.0, "weight of the loss of planted heads per source token and head", "[0, inf)")


def planting_loss(logits: Tensor, parent_pieces: Tensor, word_starts: Tensor, padding_mask: Tensor) -> HeadLoss:
    """Cross-entropy between a head's attention and the uniform distribution over the pieces of the parent.

    Args:
        logits: (B, n, T, T) of n heads, not masked.
        parent_pieces: (B, T) column of the parent's first piece; negative at padding and without a parse, which
            do not count.
        word_starts: (B, T) 1 on the first piece of every word and on EOS, else 0.
        padding_mask: (B, T), True = padding, to which no head attends.

    A token is correct if the largest weight of the head is on a piece of its parent.
    """
    words = word_starts.cumsum(dim=1)  # number of the word of each column
    parents = words.gather(1, parent_pieces.clamp(min=0).long())
    counted = parent_pieces >= 0
    wanted = (parents.unsqueeze(2) == words.unsqueeze(1)) & ~padding_mask.unsqueeze(1) & counted.unsqueeze(2)
    wanted = wanted.unsqueeze(1)  # (B, 1, T, T)
    scores = logits.float().masked_fill(padding_mask[:, None, None, :], float("-inf"))
    # -inf at padding must not be multiplied, by a weight of 0 either
    losses = -F.log_softmax(scores, dim=-1).masked_fill(~wanted, 0).sum(dim=-1) / wanted.sum(dim=-1).clamp(min=1)
    correct = wanted.expand_as(scores).gather(-1, scores.argmax(dim=-1, keepdim=True)).squeeze(-1)
    return HeadLoss(losses.sum(), correct, counted.unsqueeze(1).expand_as(correct))


@register_criterion("label_smoothed_cross_entropy_with_planted_heads", dataclass=PlantedHeadsConfig)
class PlantedHeadsCriterion(HeadLossCriterion):
    """label_smoothed_cross_entropy + planted_weight x loss of the planted heads, both per token."""

    result, weight = "planted_logits", "planted_weight"
    missing = "the model has no planted head; use --arch planted_transformer"

    def head_loss(self, logits, syntax, padding_mask):
        """The loss of all planted heads of all layers."""
        heads = torch.cat(logits, dim=1)
        return planting_loss(heads, syntax["parent_pieces"], syntax["word_starts"], padding_mask)

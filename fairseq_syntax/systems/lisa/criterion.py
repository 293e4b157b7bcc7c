"""Translation loss plus the loss of a parsing head (LISA)."""

from dataclasses import dataclass

from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterionConfig
from torch import Tensor
from torch.nn import functional as F

from ...options import option
from ..transformer.head_loss import HeadLoss, HeadLossCriterion


@dataclass
class LabelSmoothedCrossEntropyWithHeadsConfig(LabelSmoothedCrossEntropyCriterionConfig):
    """fairseq's options of label_smoothed_cross_entropy, and the weight of the parse loss."""

    lisa_parse_penalty: float = option(
        1.0,
        "weight of the parse loss per source token (with --sentence-avg, beside a translation loss per sentence)",
        "[0, inf)",
    )


_NOT_COUNTED = -100


def parse_loss(logits: Tensor, parent_pieces: Tensor, padding_mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Cross entropy of predicted parents: Σ_t -log A[t, first piece of t's head word].

    Args:
        logits: (B, T dependent, T parent), not masked.
        parent_pieces: (B, T) column of the parent's first piece; negative at padding and without a parse, which
            do not count.
        padding_mask: (B, T), True = padding, to which no token can attach.

    Returns (sum of the losses (), whether the best parent is right (B, T), which tokens count (B, T)).
    """
    counted = parent_pieces >= 0
    scores = logits.float().masked_fill(padding_mask.unsqueeze(1), float("-inf"))
    # over the parents of each token: the last axis, and logits, not probabilities
    wanted = parent_pieces.long().masked_fill(~counted, _NOT_COUNTED)
    losses = F.cross_entropy(scores.flatten(0, 1), wanted.flatten(), ignore_index=_NOT_COUNTED, reduction="sum")
    return losses, (scores.argmax(-1) == parent_pieces) & counted, counted


@register_criterion("label_smoothed_cross_entropy_with_heads", dataclass=LabelSmoothedCrossEntropyWithHeadsConfig)
class LabelSmoothedCrossEntropyWithHeadsCriterion(HeadLossCriterion):
    """label_smoothed_cross_entropy + lisa_parse_penalty x parse loss, both per token."""

    result, weight = "parse_logits", "lisa_parse_penalty"
    missing = "the model has no parsing head; use --arch lisa_transformer"

    def head_loss(self, logits, syntax, padding_mask):
        """The parse loss."""
        loss, correct, counted = parse_loss(logits[0], syntax["parent_pieces"], padding_mask)
        return HeadLoss(loss, correct.unsqueeze(1), counted.unsqueeze(1))

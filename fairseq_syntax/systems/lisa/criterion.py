"""Translation loss plus the loss of a parsing head (LISA)."""

import math
from dataclasses import dataclass

from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from fairseq.logging import metrics
from torch import Tensor
from torch.nn import functional as F

from ...options import option


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
class LabelSmoothedCrossEntropyWithHeadsCriterion(LabelSmoothedCrossEntropyCriterion):
    """label_smoothed_cross_entropy + lisa_parse_penalty x parse loss, both per token.

    Logged beside fairseq's figures: `parse_loss` (bits a source token), `head_accuracy` (%, all tokens) and `uas`
    (%, first pieces of words).
    """

    def __init__(
        self, task, sentence_avg, label_smoothing, ignore_prefix_size=0, report_accuracy=False, lisa_parse_penalty=1.0
    ):
        super().__init__(task, sentence_avg, label_smoothing, ignore_prefix_size, report_accuracy)
        self.lisa_parse_penalty = lisa_parse_penalty

    def forward(self, model, sample, reduce=True):
        """As in fairseq. Raises ValueError: the model has no parsing head, or the batch no trees."""
        net_output = model(**sample["net_input"])
        loss, nll_loss = self.compute_loss(model, net_output, sample, reduce=reduce)
        sample_size = sample["target"].size(0) if self.sentence_avg else sample["ntokens"]
        results = [result for result in net_output[1].get("syntax", []) if "parse_logits" in result]
        if not results:
            raise ValueError(
                "--criterion label_smoothed_cross_entropy_with_heads: the model has no parsing head; "
                "use --arch lisa_transformer"
            )
        syntax = sample["net_input"].get("src_syntax", {})
        if "parent_pieces" not in syntax:
            raise ValueError(
                "the data has no trees to learn from; add them with fairseq-syntax preprocess --only-syntax"
            )
        padding_mask = sample["net_input"]["src_tokens"].eq(self.padding_idx)
        parse, correct, counted = parse_loss(results[0]["parse_logits"], syntax["parent_pieces"], padding_mask)
        first = counted & syntax["word_starts"].bool()
        # EOS opens its own "word" but is not one
        first &= sample["net_input"]["src_tokens"].ne(self.task.source_dictionary.eos())
        tokens = counted.sum()
        # fairseq divides everything by sample_size (target tokens): rescale to make this a mean over source tokens
        total = loss + self.lisa_parse_penalty * parse / tokens.clamp(min=1) * sample_size
        logging_output = {
            "loss": total.detach(),
            "nll_loss": nll_loss.detach(),
            "ntokens": sample["ntokens"],
            "nsentences": sample["target"].size(0),
            "sample_size": sample_size,
            "parse_loss": parse.detach(),
            "parse_tokens": tokens,
            "parse_correct": correct.sum(),
            "parse_words": first.sum(),
            "parse_words_correct": (correct & first).sum(),
        }
        if self.report_accuracy:
            n_correct, n_total = self.compute_accuracy(model, net_output, sample)
            logging_output["n_correct"] = n_correct.item()
            logging_output["total"] = n_total.item()
        return total, sample_size, logging_output

    @classmethod
    def reduce_metrics(cls, logging_outputs) -> None:
        """fairseq's figures, and those of the parser."""
        super().reduce_metrics(logging_outputs)

        def total(key: str) -> float:
            return float(sum(log.get(key, 0) for log in logging_outputs))

        tokens, words = total("parse_tokens"), total("parse_words")
        if tokens > 0:
            bits = total("parse_loss") / tokens / math.log(2)
            metrics.log_scalar("parse_loss", bits, tokens, round=3)
            metrics.log_scalar("head_accuracy", 100 * total("parse_correct") / tokens, tokens, round=2)
        if words > 0:
            metrics.log_scalar("uas", 100 * total("parse_words_correct") / words, words, round=2)

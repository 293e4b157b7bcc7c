"""Translation loss plus a loss of encoder heads that learn to look at parents."""

import math
from abc import abstractmethod
from typing import NamedTuple

from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.logging import metrics
from torch import Tensor


class HeadLoss(NamedTuple):
    """Loss and accuracy of n heads on the trees of a batch."""

    loss: Tensor
    """(): sum of the losses, in nats, over heads and tokens."""
    correct: Tensor
    """(B, n, T): True where a head finds the parent of a token."""
    counted: Tensor
    """(B, n, T): True at tokens that count, which have a parse."""


class HeadLossCriterion(LabelSmoothedCrossEntropyCriterion):
    """label_smoothed_cross_entropy + penalty x loss of heads, both per token. Subclasses define `head_loss`.

    Logged beside fairseq's figures: `parse_loss` (bits a source token and head), `head_accuracy` (%, all tokens) and
    `uas` (%, first pieces of words).

    Class attributes:
        result: name of the results of special layers for this loss.
        weight: name of the option with the penalty.
        missing: message for models without such results.
    """

    result: str
    weight: str
    missing: str

    def __init__(self, cfg, task):
        super().__init__(task, cfg.sentence_avg, cfg.label_smoothing, cfg.ignore_prefix_size, cfg.report_accuracy)
        self.penalty = getattr(cfg, self.weight)

    @abstractmethod
    def head_loss(self, logits: list[Tensor], syntax: dict, padding_mask: Tensor) -> HeadLoss:
        """The loss of the heads.

        Args:
            logits: `result` of each special layer.
            syntax: a `SourceSyntax` with `parent_pieces` and `word_starts`.
            padding_mask: (B, T), True = padding.
        """

    def forward(self, model, sample, reduce=True):
        """As in fairseq. Raises ValueError: the model has no such heads, or the batch no trees."""
        net_output = model(**sample["net_input"])
        loss, nll_loss = self.compute_loss(model, net_output, sample, reduce=reduce)
        sample_size = sample["target"].size(0) if self.sentence_avg else sample["ntokens"]
        logits = [result[self.result] for result in net_output[1].get("syntax", []) if self.result in result]
        if not logits:
            raise ValueError(f"--criterion: {self.missing}")
        syntax, source = sample["net_input"].get("src_syntax", {}), sample["net_input"]["src_tokens"]
        if "parent_pieces" not in syntax:
            raise ValueError(
                "the data has no trees to learn from; add them with fairseq-syntax preprocess --only-syntax"
            )
        heads = self.head_loss(logits, syntax, source.eq(self.padding_idx))
        # EOS opens its own "word" but is not one
        words = syntax["word_starts"].bool() & source.ne(self.task.source_dictionary.eos())
        words = words.unsqueeze(1) & heads.counted
        tokens = heads.counted.sum()
        # fairseq divides everything by sample_size (target tokens): rescale to make this a mean over source tokens
        total = loss + self.penalty * heads.loss / tokens.clamp(min=1) * sample_size
        logging_output = {
            "loss": total.detach(),
            "nll_loss": nll_loss.detach(),
            "ntokens": sample["ntokens"],
            "nsentences": sample["target"].size(0),
            "sample_size": sample_size,
            "parse_loss": heads.loss.detach(),
            "parse_tokens": tokens,
            "parse_correct": heads.correct.sum(),
            "parse_words": words.sum(),
            "parse_words_correct": (heads.correct & words).sum(),
        }
        if self.report_accuracy:
            n_correct, n_total = self.compute_accuracy(model, net_output, sample)
            logging_output["n_correct"] = n_correct.item()
            logging_output["total"] = n_total.item()
        return total, sample_size, logging_output

    @classmethod
    def reduce_metrics(cls, logging_outputs) -> None:
        """fairseq's figures, and those of the heads."""
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

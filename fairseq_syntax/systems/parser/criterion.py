"""Loss of tags, heads and labels, and scores of all of them (Hashimoto & Tsuruoka, EMNLP 2017, Sec. 4.3)."""

import math

import torch
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.criterions.cross_entropy import CrossEntropyCriterionConfig
from fairseq.logging import metrics
from torch import Tensor
from torch.nn import functional as F

from .treebank import MISSING

# name in the log -> (hits, count)
_PERCENT = {
    "pos": ("pos_hits", "pos_words"),
    "uas": ("head_hits", "head_words"),
    "las": ("label_hits", "label_words"),
}
_LOSSES = {"pos_loss": "pos_words", "head_loss": "head_words", "label_loss": "label_words"}


@register_criterion("joint_parsing", dataclass=CrossEntropyCriterionConfig)
class JointParsingCriterion(FairseqCriterion):
    """-Σ log p1(tag) in passes over tags, -Σ [log p(head) + log l(label)] in passes over trees, and both elsewhere.

    All are sums over words; with `--sentence-avg`, as in the paper, they are divided by the number of sentences. The
    task's successive regularisation is added to the quotient.

    Logged are the losses (bits a word) and in percent of words `pos`, `uas` and `las`, of the most likely heads and
    labels of every word alone.

    Labels are learned from the mean state of likely heads, also in training (JMT: from that of the right head).
    """

    def __init__(self, task, sentence_avg):
        super().__init__(task)
        self.sentence_avg = sentence_avg

    def forward(self, model, sample, reduce=True):
        """Compute the loss, the sample size and the figures to log; see the class."""
        kind = sample["pass"]
        training = model.training
        graph = model(**sample["net_input"], tags_only=training and kind == "pos")
        zero = graph.pos_log_probs.new_zeros(())
        losses = {
            "pos_loss": zero if kind == "dependency" else _nll(graph.pos_log_probs, sample["pos"]),
            "head_loss": zero if kind == "pos" else _nll(graph.head_log_probs, sample["heads"]),
            "label_loss": zero if kind == "pos" else _nll(graph.label_log_probs, sample["labels"]),
        }
        sample_size = sample["nsentences"] if self.sentence_avg else sample["ntokens"]
        loss = sum(losses.values())
        if training:
            # the trainer divides everything by the sample size
            loss = loss + self.task.penalty() * sample_size
        log = {
            "loss": loss,
            "ntokens": sample["ntokens"],
            "nsentences": sample["nsentences"],
            "sample_size": sample_size,
            **losses,
            **_score(graph, sample),
            "validating": int(not training),
        }
        # fairseq sums tensors and numbers separately, so each name must have one type in all processes
        log = {name: torch.as_tensor(value).detach().to(loss.device, torch.float64) for name, value in log.items()}
        return loss, sample_size, log

    @classmethod
    def reduce_metrics(cls, logging_outputs) -> None:
        """Log the losses and scores that the class lists."""

        def total(key: str) -> float:
            return float(sum(log.get(key, 0) for log in logging_outputs))

        size = total("sample_size")
        metrics.log_scalar("loss", total("loss") / max(size, 1) / math.log(2), size, round=3)
        for name, words in _LOSSES.items():
            if total(name) > 0:
                metrics.log_scalar(name, total(name) / max(total(words), 1) / math.log(2), total(words), round=3)
        for name, (hits, words) in _PERCENT.items():
            count = total(words)
            # training passes log what they compute; the metric for choosing checkpoints is always logged
            if count or total("validating"):
                metrics.log_scalar(name, 100 * total(hits) / max(count, 1), count or 1, round=2)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """True: fairseq's other way of gathering logs needs a GPU."""
        return True


def _nll(log_probs: Tensor, gold: Tensor) -> Tensor:
    """-Σ log p of the gold classes (B, S), negative ones ignored; `log_probs` are (B, S, C)."""
    return F.nll_loss(log_probs.flatten(0, 1), gold.clamp(min=MISSING).flatten(), ignore_index=MISSING, reduction="sum")


@torch.no_grad()
def _score(graph, sample: dict) -> dict:
    """Sums over a batch; the same keys for all batches, as fairseq adds them up."""
    counts = dict.fromkeys((key for pair in _PERCENT.values() for key in pair), 0)
    words = sample["pos"] != MISSING
    counts |= {"pos_words": words.sum(), "pos_hits": (words & (graph.pos_log_probs.argmax(2) == sample["pos"])).sum()}
    if graph.head_log_probs is None:
        return counts
    words = sample["heads"] != MISSING
    right = words & (graph.head_log_probs.argmax(2) == sample["heads"])
    labelled = right & (graph.label_log_probs.argmax(2) == sample["labels"])
    counts |= {"head_words": words.sum(), "head_hits": right.sum()}
    return counts | {"label_words": (words & (sample["labels"] != MISSING)).sum(), "label_hits": labelled.sum()}

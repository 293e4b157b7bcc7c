"""Loss of tags, heads and labels, and scores of all of them (Hashimoto & Tsuruoka, EMNLP 2017, Sec. 4.3)."""

import math

import torch
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.criterions.cross_entropy import CrossEntropyCriterionConfig
from fairseq.logging import metrics
from torch import Tensor
from torch.nn import functional as F

from ...trees import spanning
from ...trees.conllu import ROOT
from ...trees.well_formed import are_trees
from .network import best_trees
from .treebank import MISSING

# what is logged -> (hits, of how many)
_PERCENT = {
    "pos": ("pos_hits", "pos_words"),
    "uas": ("head_hits", "head_words"),
    "las": ("label_hits", "label_words"),
    "uas_no_punct": ("head_hits_np", "head_words_np"),
    "las_no_punct": ("label_hits_np", "label_words_np"),
}
_PERCENT_DECODED = {
    "trees": ("trees", "sentences"),
    "uas_eisner": ("eisner_hits", "head_words"),
    "uas_eisner_no_punct": ("eisner_hits_np", "head_words_np"),
}
_LOSSES = {"pos_loss": "pos_words", "head_loss": "head_words", "label_loss": "label_words"}


@register_criterion("joint_parsing", dataclass=CrossEntropyCriterionConfig)
class JointParsingCriterion(FairseqCriterion):
    """-Σ log p1(tag) in passes over tags, -Σ [log p(head) + log l(label)] in passes over trees, and both elsewhere.

    All are sums over words; with `--sentence-avg`, as in the paper, they are divided by the number of sentences. The
    task's successive regularisation is added to the quotient.

    Logged are the losses (bits a word) and in percent of words `pos`, `uas` and `las`, of the most likely heads and
    labels of every word alone; the latter two also without punctuation (`uas_no_punct`, `las_no_punct`). In
    validations, also `trees` (% of sentences whose most likely heads are a tree with one root), and the score of the
    best projective tree, `uas_eisner` and `uas_eisner_no_punct`.

    Labels are learned from the mean state of likely heads, also in training (JMT: from that of the right head).
    """

    def __init__(self, task, sentence_avg):
        super().__init__(task)
        self.sentence_avg = sentence_avg

    def forward(self, model, sample, reduce=True):
        """(loss, sample size, what to log); see the class."""
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
            **_score(graph, sample, decoded=not training),
        }
        # fairseq sums tensors and numbers apart, so each has to be the same in all processes, whatever their batches
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
        decoded = total("decoded") > 0
        for name, (hits, words) in {**_PERCENT, **(_PERCENT_DECODED if decoded else {})}.items():
            count = total(words)
            # what a training pass does not compute is not logged; a metric to choose checkpoints by always is
            if count or decoded:
                metrics.log_scalar(name, 100 * total(hits) / max(count, 1), count or 1, round=2)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """True: fairseq's other way of gathering logs needs a GPU."""
        return True


def _nll(log_probs: Tensor, gold: Tensor) -> Tensor:
    """-Σ log p of the gold classes (B, S), below 0 where there is nothing to learn; `log_probs` are (B, S, C)."""
    return F.nll_loss(log_probs.flatten(0, 1), gold.clamp(min=MISSING).flatten(), ignore_index=MISSING, reduction="sum")


@torch.no_grad()
def _score(graph, sample: dict, decoded: bool) -> dict:
    """Sums over a batch; the same keys for all batches, as fairseq adds them up."""
    words = sample["pos"] != MISSING
    counts = dict.fromkeys((key for pair in (*_PERCENT.values(), *_PERCENT_DECODED.values()) for key in pair), 0)
    counts |= {"decoded": int(decoded), "pos_words": words.sum()}
    counts["pos_hits"] = (words & (graph.pos_log_probs.argmax(2) == sample["pos"])).sum()
    if graph.head_log_probs is None:
        return counts
    gold, lengths = sample["heads"], sample["net_input"]["src_lengths"]
    words = gold != MISSING
    heads = graph.head_log_probs.argmax(2)
    hits = {"head_hits": words & (heads == gold)}
    hits["label_hits"] = hits["head_hits"] & (graph.label_log_probs.argmax(2) == sample["labels"])
    if decoded:
        counts["sentences"] = len(lengths)
        counts["trees"] = are_trees(heads, lengths).sum()
        hits["eisner_hits"] = words & (_eisner(graph.head_log_probs, lengths) == gold)
    hits["head_words"] = words
    hits["label_words"] = words & (sample["labels"] != MISSING)
    for name, hit in hits.items():
        counts[name] = hit.sum()
        counts[f"{name}_np"] = (hit & ~sample["punctuation"]).sum()
    return counts


def _eisner(head_log_probs: Tensor, lengths: Tensor) -> Tensor:
    """(B, S) columns of the heads of the best projective trees, that of EOS for the root; -2 behind the words."""
    sizes = (lengths - 1).tolist()
    heads = torch.full(head_log_probs.shape[:2], -2)
    for row, tree, size in zip(heads, best_trees(spanning.eisner, head_log_probs, sizes), sizes, strict=True):
        row[:size] = torch.tensor([size if head == ROOT else head for head in tree])
    return heads.to(lengths.device)

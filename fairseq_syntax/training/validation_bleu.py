"""BLEU on the validation set during training (`--eval-bleu`)."""

import numpy as np
from fairseq.logging import metrics
from fairseq.tasks.translation import EVAL_BLEU_ORDER
from sacrebleu.metrics import BLEU


class ValidationBleu:
    """Mixin of tasks that logs a BLEU of 0 if all translations are empty; fairseq logs none, and fails afterwards.

    Translations are cut at 1.1 times the length of the longest reference of their batch, so that models that repeat
    themselves take no more time than others.
    """

    def _inference_with_bleu(self, generator, sample, model):
        """As in fairseq, with that limit as well."""
        before, longest = generator.max_len, sample["target"].ne(self.tgt_dict.pad()).sum(dim=1).max().item()
        generator.max_len = min(before, max(longest * 11 // 10, getattr(generator, "min_len", 1)) + 1)
        try:
            return super()._inference_with_bleu(generator, sample, model)
        finally:
            generator.max_len = before

    def reduce_metrics(self, logging_outputs, criterion):
        """As in fairseq, but with a BLEU of 0 if all translations are empty, as at the start of training."""
        super().reduce_metrics(logging_outputs, criterion)
        validated = [log for log in logging_outputs if "_bleu_sys_len" in log]
        totals = [sum(int(log[f"_bleu_totals_{i}"]) for log in validated) for i in range(EVAL_BLEU_ORDER)]
        if validated and not any(totals):
            for name in ("_bleu_counts", "_bleu_totals"):
                metrics.log_scalar(name, np.zeros(EVAL_BLEU_ORDER, dtype=int))
            for name in ("_bleu_sys_len", "_bleu_ref_len"):
                metrics.log_scalar(name, sum(int(log[name]) for log in validated))
            metrics.log_derived("bleu", _bleu)


def _bleu(meters) -> float:
    """BLEU from logged statistics, as in fairseq."""
    return round(
        BLEU.compute_bleu(
            correct=meters["_bleu_counts"].sum.tolist(),
            total=meters["_bleu_totals"].sum.tolist(),
            sys_len=int(meters["_bleu_sys_len"].sum),
            ref_len=int(meters["_bleu_ref_len"].sum),
            smooth_method="exp",
        ).score,
        2,
    )

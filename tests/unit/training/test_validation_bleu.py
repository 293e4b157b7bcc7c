"""BLEU of the validation set, also where translations have no words."""

from argparse import Namespace

import pytest
import torch
from fairseq.logging import metrics
from fairseq.tasks.translation import TranslationTask
from sacrebleu.metrics import BLEU

from fairseq_syntax.systems.latent_tree.task import TreeTranslationTask
from fairseq_syntax.task import SyntaxTranslationTask


class Logs:
    """A criterion that logs nothing of its own."""

    @staticmethod
    def reduce_metrics(logging_outputs):
        pass


def logged(task, hypotheses, references):
    """What `valid_step` logs of BLEU."""
    bleu = BLEU().corpus_score(hypotheses, [references])
    numbers = {"_bleu_sys_len": bleu.sys_len, "_bleu_ref_len": bleu.ref_len}
    for i in range(4):
        numbers |= {f"_bleu_counts_{i}": bleu.counts[i], f"_bleu_totals_{i}": bleu.totals[i]}
    return {"ntokens": 1, "nsentences": 1, **numbers}


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 0, 2]])
@pytest.mark.parametrize("kind", [SyntaxTranslationTask, TreeTranslationTask])
def test_bleu_with_empty_translations(kind, order):
    """fairseq logs no BLEU of a validation whose translations are all empty, and then cannot choose the best model."""
    task = kind.__new__(kind)  # which needs no data for this
    task.cfg = Namespace(eval_bleu=True)
    hypotheses = ["a dog is a dog", "", ""]
    references = ["a dog is a cat", "nothing at all", "one"]
    with metrics.aggregate(new_root=True) as found:
        for i in order:
            task.reduce_metrics([logged(task, hypotheses[i : i + 1], references[i : i + 1])], Logs())
    expected = BLEU().corpus_score(hypotheses, [references]).score
    assert found.get_smoothed_values()["bleu"] == round(expected, 2) > 0
    with metrics.aggregate(new_root=True) as found:
        task.reduce_metrics([logged(task, [""], ["one"])], Logs())
    assert found.get_smoothed_values()["bleu"] == 0
    with metrics.aggregate(new_root=True) as found:
        task.reduce_metrics([{"ntokens": 1, "nsentences": 1}], Logs())
    assert "bleu" not in found.get_smoothed_values(), "of training steps there is none"


@pytest.mark.parametrize(("most", "limit"), [(1024, 12), (5, 5)])
def test_translations_are_hardly_longer_than_the_longest_reference(most, limit, monkeypatch):
    """A model that repeats itself would else write to the limit of the source's length, in every validation."""
    task = SyntaxTranslationTask.__new__(SyntaxTranslationTask)
    task.tgt_dict = Namespace(pad=lambda: 1)
    generator, limits = Namespace(max_len=most, min_len=1), []
    inference = lambda self, generator, sample, model: limits.append(generator.max_len)  # noqa: E731
    monkeypatch.setattr(TranslationTask, "_inference_with_bleu", inference)
    target = torch.tensor([[5] * 10, [5] * 3 + [1] * 7])  # 1: padding
    task._inference_with_bleu(generator, {"target": target}, None)
    assert limits == [limit] and generator.max_len == most

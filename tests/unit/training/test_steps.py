"""The criterion that a model asks the task for."""

from argparse import Namespace
from types import SimpleNamespace

import pytest
import small_models
from fairseq.tasks.translation import TranslationTask
from omegaconf import OmegaConf

from fairseq_syntax.training.steps import TrainingSteps


class Task(TrainingSteps, TranslationTask):
    """With a target dictionary and nothing else; trees come with the batch."""

    def __init__(self):
        self.cfg = SimpleNamespace(eval_bleu=False, lisa_gold_parses=False)
        self.src_dict = self.tgt_dict = small_models.WORDS
        self.attach_syntax = None


@pytest.fixture
def task():
    return Task()


@pytest.mark.parametrize("arch", ["lisa_transformer_tiny", "planted_transformer_tiny", "dasa_transformer_tiny"])
@pytest.mark.parametrize("from_checkpoint", [False, True])
@pytest.mark.parametrize("suffix", ["", "_with_heads"])
def test_a_criterion_that_teaches_a_new_model_no_trees_is_named(task, arch, from_checkpoint, suffix, caplog):
    task.build_model(Namespace(**small_models.SIZES, arch=arch), from_checkpoint)
    criterion = {"_name": f"label_smoothed_cross_entropy{suffix}", "label_smoothing": 0.1, "sentence_avg": False}
    task.build_criterion(OmegaConf.create(criterion), from_checkpoint)
    warned = "label_smoothed_cross_entropy learns nothing from the trees; give" in caplog.text
    assert warned == ("dasa" not in arch and not from_checkpoint and not suffix)

"""203 sentences in, 203 out: fairseq alone loses up to seven at the end of every epoch and test set."""

from itertools import chain

import pytest
from integration import commands
from integration.commands import TEST_SENTENCES, TRAIN_SENTENCES

from fairseq_syntax.task import SyntaxTranslationTask

SHORT = ["--beam", 1, "--max-len-b", 5]


@pytest.fixture
def seen(monkeypatch) -> list[list[int]]:
    """The ids of the sentences in every batch that the criterion gets."""
    batches = []

    def watch(name):
        step = getattr(SyntaxTranslationTask, name)

        def wrapper(self, sample, *args, **kwargs):
            batches.append(sample["id"].tolist())
            return step(self, sample, *args, **kwargs)

        monkeypatch.setattr(SyntaxTranslationTask, name, wrapper)

    watch("train_step")
    watch("valid_step")
    return batches


def test_generate_translates_every_sentence(trained, data_bin):
    """With no option of batches: sentences of similar length go in one of fairseq's default size."""
    found = commands.generate(data_bin, trained("pascal_transformer_tiny") / "checkpoint_last.pt", *SHORT)
    assert sorted(found) == list(range(TEST_SENTENCES))


def test_validate_scores_every_sentence(trained, data_bin, seen):
    checkpoint = trained("pascal_transformer_tiny") / "checkpoint_last.pt"
    options = ["--cpu", "--path", checkpoint, "--valid-subset", "test", "--max-tokens", 900]
    seen.clear()
    log = commands.run("fairseq-validate", data_bin, *options)
    assert sorted(chain(*seen)) == list(range(TEST_SENTENCES))
    assert len(seen) > 1 and "nll_loss" in log


def test_training_and_validation_see_every_sentence_in_every_epoch(data_bin, seen, tmp_path):
    arguments = [part for part in commands.TRAINING if part != "--disable-validation"]
    options = ["--arch", "pascal_transformer_tiny", "--share-all-embeddings", "--no-save", "--max-epoch", "2"]
    log = commands.run("fairseq-train", data_bin, *arguments, *options, "--save-dir", tmp_path)
    epochs = [record["epoch"] for record in commands.records(log) if "loss" in record]
    updates = epochs.count(1)
    assert updates == epochs.count(2)
    batches = len(seen) // 2
    for epoch in (seen[:batches], seen[batches:]):
        assert sorted(chain(*epoch[:updates])) == list(range(TRAIN_SENTENCES))
        assert sorted(chain(*epoch[updates:])) == list(range(61))

"""403 sentences in, 403 seen: fairseq alone loses up to seven at the end of every epoch and test set."""

from itertools import chain

from integration import commands
from integration.commands import TRAIN_SENTENCES

from fairseq_syntax.task import SyntaxTranslationTask


def test_training_and_validation_see_every_sentence_in_every_epoch(data_bin, tmp_path, monkeypatch):
    seen = []
    for name in ("train_step", "valid_step"):
        step = getattr(SyntaxTranslationTask, name)

        def watched(self, sample, *args, step=step, **kwargs):
            seen.append(sample["id"].tolist())
            return step(self, sample, *args, **kwargs)

        monkeypatch.setattr(SyntaxTranslationTask, name, watched)
    arguments = [part for part in commands.TRAINING if part != "--disable-validation"]
    options = ["--arch", "nmt_lstm_tiny", "--no-save", "--max-epoch", "2"]
    log = commands.run("fairseq-train", data_bin, *arguments, *options, "--save-dir", tmp_path)
    epochs = [record["epoch"] for record in commands.records(log) if "loss" in record]
    updates = epochs.count(1)
    assert updates == epochs.count(2)
    batches = len(seen) // 2
    for epoch in (seen[:batches], seen[batches:]):
        assert sorted(chain(*epoch[:updates])) == list(range(TRAIN_SENTENCES))
        assert sorted(chain(*epoch[updates:])) == list(range(61))

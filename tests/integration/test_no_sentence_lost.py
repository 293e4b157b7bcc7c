"""203 sentences in, 203 out: fairseq alone loses up to seven at the end of every epoch and test set."""

from itertools import chain

import pytest
from integration import commands
from integration.commands import TEST_SENTENCES, TRAIN_SENTENCES

from fairseq_syntax.task import SyntaxTranslationTask


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


@pytest.mark.parametrize(
    "arch, batching",
    [
        ("pascal_transformer_tiny", []),
        ("pascal_transformer_tiny", ["--max-tokens", 400]),
        ("pascal_transformer_tiny", ["--batch-size", 16]),
        ("transformer_tiny", []),
        ("sa_nmt_shared_tiny", []),
    ],
)
def test_generate_translates_every_sentence(trained, data_bin, arch, batching):
    # greedy: with no batching option all sentences of similar length go in one batch of fairseq's default size
    found = commands.generate(data_bin, trained(arch) / "checkpoint_last.pt", "--beam", 1, *batching)
    assert sorted(found) == list(range(TEST_SENTENCES))


def test_shards_share_the_sentences(trained, data_bin):
    def generate(*options):
        return commands.generate(
            data_bin, trained("pascal_transformer_tiny") / "checkpoint_last.pt", "--batch-size", 16, *options
        )

    shards = [generate("--num-shards", 3, "--shard-id", shard) for shard in range(3)]
    assert sum(map(len, shards)) == TEST_SENTENCES and min(map(len, shards)) > 0
    assert shards[0] | shards[1] | shards[2] == generate()


def test_a_parser_of_binarized_data_is_refused(trained, data_bin, capsys):
    """They have their trees: whoever measures without a parse would see no difference."""
    checkpoint = trained("pascal_transformer_tiny") / "checkpoint_last.pt"
    with pytest.raises(SystemExit):
        commands.generate(data_bin, checkpoint, "--parser", "none")
    assert "--parser none: fairseq-generate takes the trees that the data have; leave it out" in capsys.readouterr().err


@pytest.mark.parametrize("task", [[], ["--task", "syntax_translation"]], ids=["no task", "task"])
def test_validate_scores_every_sentence(trained, data_bin, seen, task):
    checkpoint = trained("pascal_transformer_tiny") / "checkpoint_last.pt"
    options = ["--cpu", "--path", checkpoint, "--valid-subset", "test", "--max-tokens", 900, *task]
    seen.clear()
    log = commands.run("fairseq-validate", data_bin, *options)
    assert sorted(chain(*seen)) == list(range(TEST_SENTENCES))
    assert len(seen) > 1 and "nll_loss" in log


def test_training_sees_every_sentence_in_every_epoch(data_bin, seen, tmp_path):
    options = ["--max-epoch", "2", "--share-all-embeddings", "--no-save"]
    log = commands.train(data_bin, tmp_path, "pascal_transformer_tiny", *options)
    updates = [record for record in commands.records(log) if "loss" in record]
    first = sum(record["epoch"] == 1 for record in updates)
    assert len(updates) == len(seen)
    for batches in (seen[:first], seen[first:]):
        assert sorted(chain(*batches)) == list(range(TRAIN_SENTENCES))


def test_validation_while_training_sees_every_sentence(data_bin, seen, tmp_path):
    arguments = [part for part in commands.TRAINING if part != "--disable-validation"]
    model = ["--arch", "pascal_transformer_tiny", "--share-all-embeddings", "--save-dir", tmp_path, "--no-save"]
    # a training batch before, so that what follows it is validation
    commands.run("fairseq-train", data_bin, *arguments, *model, "--max-update", 1)
    assert sorted(chain(*seen[1:])) == list(range(61))


def test_interactive_translates_every_line(trained, data_bin, corpus):
    checkpoint = trained("pascal_transformer_tiny") / "checkpoint_last.pt"
    options = ["--beam", 1, "--parser", "conllu", "--parser-model", corpus / "test.en.conllu"]
    options += ["--buffer-size", 64, "--batch-size", 16]
    found = commands.interactive(data_bin, checkpoint, corpus / "test.en", *options)
    assert sorted(found) == list(range(TEST_SENTENCES))

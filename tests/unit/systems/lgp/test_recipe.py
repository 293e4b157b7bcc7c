"""Half epochs, SGD and a learning rate that follows BLEU, in real training runs: fairseq-train with the recipe."""

import json

import pytest
import torch
from corpora import easy_items, write_split
from integration import commands
from sacrebleu.metrics import BLEU
from seeds import seed

import fairseq_syntax.systems.lgp.decayed_sgd
import fairseq_syntax.systems.lgp.halve_on_drop
import fairseq_syntax.systems.parser.task  # noqa: F401
from fairseq_syntax.task import SyntaxTranslationTask

RECIPE = [
    *("--cpu", "--distributed-world-size", "1", "--num-workers", "0", "--log-format", "json", "--log-interval", "1"),
    *("--arch", "nmt_lstm_tiny", "--criterion", "cross_entropy", "--seed", str(seed(1)), "--dropout", "0.2"),
    *("--batch-size", "8", "--optimizer", "lgp_sgd", "--momentum", "0.75", "--weight-decay", "1e-6", "--lr", "1.0"),
    *("--sentence-avg", "--clip-norm", "1.0", "--epoch-parts", "2"),
    *("--eval-bleu", "--eval-tokenized-bleu", "--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric"),
    *("--eval-bleu-args", json.dumps({"beam": 1, "max_len_a": 0, "max_len_b": 12}), "--no-epoch-checkpoints"),
]
HALVE = ["--lr-scheduler", "halve_on_drop", "--lgp-halve-after", "1"]
# BLEU of each check, whatever a model has learned: it drops after whole epochs of the data and within them
SCORES = [5.0, 4.0, 6.0, 3.0, 2.0, 7.0, 9.0]
CHECKS = len(SCORES)


@pytest.fixture(autouse=True, scope="module")
def scores_by_hand():
    """Every validation of epoch N finds the N-th of `SCORES`."""
    epochs, compute = [], BLEU.compute_bleu

    def begin_valid_epoch(task, epoch, model):
        epochs.append(epoch)

    def compute_bleu(correct, total, sys_len, ref_len, smooth_method="none", **more):
        bleu = compute(correct, total, sys_len, ref_len, smooth_method, **more)
        bleu.score = SCORES[epochs[-1] - 1]
        return bleu

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SyntaxTranslationTask, "begin_valid_epoch", begin_valid_epoch)
        patch.setattr(BLEU, "compute_bleu", staticmethod(compute_bleu))
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recipe")
    for number, (split, count) in enumerate((("train", 61), ("valid", 8))):
        write_split(folder / split, easy_items(count, number))
    return commands.binarize({split: folder / split for split in ("train", "valid")}, folder / "bin")


def train(data, directory, *options) -> list[dict]:
    return commands.records(commands.run("fairseq-train", data, *RECIPE, "--save-dir", directory, *options))


@pytest.fixture(scope="module")
def uninterrupted(data, tmp_path_factory):
    directory = tmp_path_factory.mktemp("uninterrupted")
    found = train(data, directory, *HALVE, "--max-epoch", CHECKS)
    return found, directory / "checkpoint_last.pt"


def bleu(found) -> list[float]:
    return [float(record["valid_bleu"]) for record in found if "valid_bleu" in record]


def rates(found) -> dict[int, set[float]]:
    """Epoch of fairseq -> learning rates that its updates logged."""
    result = {}
    for record in found:
        if "loss" in record:
            result.setdefault(record["epoch"], set()).add(float(record["lr"]))
    return result


def test_the_learning_rate_is_halved_exactly_when_bleu_drops(uninterrupted):
    found, _ = uninterrupted
    scores = bleu(found)
    assert scores == SCORES
    rate, expected = 1.0, [1.0]
    for check in range(2, CHECKS + 1):
        expected.append(rate)
        # the two checks of the first epoch are spared
        if check > 2 and scores[check - 1] < scores[check - 2]:
            rate /= 2
    assert [rates(found)[epoch] for epoch in range(1, CHECKS + 1)] == [{value} for value in expected]
    # fairseq ends an epoch of the data with the even checks; those within one count, too
    drops = {check % 2 for check in range(3, CHECKS) if expected[check] < expected[check - 1]}
    assert drops == {0, 1}


def test_a_resumed_run_is_the_uninterrupted_one(data, uninterrupted, tmp_path):
    """Stopped after a check at which BLEU has dropped: fairseq saves before it adapts the learning rate."""
    found, last = uninterrupted
    stop = next(check for check in range(3, CHECKS) if SCORES[check - 1] < SCORES[check - 2])
    train(data, tmp_path, *HALVE, "--max-epoch", stop)
    resumed = train(data, tmp_path, *HALVE, "--max-epoch", CHECKS)
    assert bleu(resumed) == bleu(found)[stop:]
    assert rates(resumed) == {epoch: values for epoch, values in rates(found).items() if epoch > stop}
    expected, actual = (torch.load(path, weights_only=True) for path in (last, tmp_path / "checkpoint_last.pt"))
    assert all(torch.equal(actual["model"][name], value) for name, value in expected["model"].items())
    states = [state["optimizer_history"][-1]["lr_scheduler_state"] for state in (actual, expected)]
    assert states[0] == states[1] and states[0].keys() == {"lr", "prev"}


def test_a_run_that_stops_within_a_half_epoch_resumes(data, uninterrupted, tmp_path):
    found, last = uninterrupted
    updates = [record for record in found if "loss" in record]
    stop = next(int(record["num_updates"]) for record in updates if record["epoch"] == 6) + 1
    train(data, tmp_path, *HALVE, "--max-update", stop)
    resumed = train(data, tmp_path, *HALVE, "--max-epoch", CHECKS)
    assert next(record["epoch"] for record in resumed if "loss" in record) == 6
    assert bleu(resumed)[-2:] == bleu(found)[-2:]
    actual, expected = commands.parameters(tmp_path / "checkpoint_last.pt"), commands.parameters(last)
    assert all(torch.equal(actual[name], value) for name, value in expected.items())

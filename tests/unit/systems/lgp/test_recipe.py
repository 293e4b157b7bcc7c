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


def test_the_rate_is_halved_when_bleu_drops_and_a_run_that_stops_there_resumes(data, tmp_path):
    """fairseq saves before it adapts the learning rate, and ends an epoch of the data with even checks."""
    whole = train(data, tmp_path / "whole", *HALVE, "--max-epoch", CHECKS)
    stop = next(check for check in range(3, CHECKS) if SCORES[check - 1] < SCORES[check - 2])
    train(data, tmp_path / "parts", *HALVE, "--max-epoch", stop)
    resumed = train(data, tmp_path / "parts", *HALVE, "--max-epoch", CHECKS)
    rate, expected = 1.0, {1: 1.0}
    for check in range(2, CHECKS + 1):
        expected[check] = rate
        if check > 2 and SCORES[check - 1] < SCORES[check - 2]:  # the two checks of the first epoch are spared
            rate /= 2
    assert {check % 2 for check in range(3, CHECKS) if expected[check + 1] < expected[check]} == {0, 1}
    for records, first in ((whole, 1), (resumed, stop + 1)):
        assert [float(record["valid_bleu"]) for record in records if "valid_bleu" in record] == SCORES[first - 1 :]
        found = {(record["epoch"], float(record["lr"])) for record in records if "loss" in record}
        assert found == {(check, rate) for check, rate in expected.items() if check >= first}
    paths = [tmp_path / name / "checkpoint_last.pt" for name in ("whole", "parts")]
    one, other = (torch.load(path, weights_only=True) for path in paths)
    assert all(torch.equal(other["model"][name], value) for name, value in one["model"].items())
    states = [state["optimizer_history"][-1]["lr_scheduler_state"] for state in (one, other)]
    assert states[0] == states[1] and states[0].keys() == {"lr", "prev"}

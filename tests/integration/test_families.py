"""Every system through fairseq's commands, on the small data of tests/golden: trained, resumed, translated."""

import pytest
import torch
from fairseq.models import ARCH_MODEL_REGISTRY
from golden import families
from golden.families import FAMILIES, SENTENCES, SHARED, SMOOTHED
from integration import commands

PLANTED = ["--criterion", "label_smoothed_cross_entropy_with_planted_heads", "--label-smoothing", "0.1"]
# other readings of systems that are here, which tests/contract/test_architectures.py trains
READINGS = ("nmt_lstm", "sa_nmt_hard", "sdatt", "global_plus_chen17")
SYSTEMS = {
    **{name: family for name, family in FAMILIES.items() if name not in READINGS},
    "planted_transformer": ("words", ["--task", "syntax_translation", *PLANTED, *SHARED, "--planted-heads", "0", "1"]),
    # fairseq's own, with our task taken for its own, which it then is
    "transformer": ("words", [*SMOOTHED, *SHARED]),
}
TRAINING = [
    *("--cpu", "--distributed-world-size", "1", "--optimizer", "adam", "--lr", "1e-2", "--batch-size", "10"),
    *("--num-workers", "0", "--disable-validation", "--no-epoch-checkpoints", "--seed", "1"),
    *("--log-format", "json", "--log-interval", "1"),
]
NO_DROPOUT = ("latent_tree_rnng", "lgp_parser")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return families.copies(tmp_path_factory.mktemp("families"))


def test_every_model_of_ours_is_here():
    ours = {cls for cls in ARCH_MODEL_REGISTRY.values() if cls.__module__.startswith("fairseq_syntax.")}
    assert ours == {ARCH_MODEL_REGISTRY[name] for name in SYSTEMS if name != "transformer"}


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_trains_resumes_and_translates(folders, tmp_path, name):
    """A run that stops in the middle of an epoch, and goes on, is the one that did not; no sentence is lost."""
    data, options = SYSTEMS[name]
    dropout = [] if name in NO_DROPOUT else ["--dropout", "0.3"]

    def train(directory, updates):
        given = [folders[data], "--arch", name, *TRAINING, *options, *dropout, "--max-update", updates]
        log = commands.records(commands.run("fairseq-train", *given, "--save-dir", directory))
        return [record for record in log if "loss" in record]

    whole = train(tmp_path / "whole", 5)
    parts = train(tmp_path / "parts", 2) + train(tmp_path / "parts", 5)
    assert [int(record["num_updates"]) for record in parts] == [1, 2, 3, 4, 5]
    assert parts == whole
    checkpoint = tmp_path / "parts" / "checkpoint_last.pt"
    found, expected = (commands.parameters(path) for path in (checkpoint, tmp_path / "whole" / "checkpoint_last.pt"))
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[key], value) for key, value in expected.items())
    if name == "lgp_parser":
        assert len(families.parse(folders["text"], checkpoint)) == SENTENCES["test"]
    else:
        translated = families.translate(folders[data], name, checkpoint)
        assert sorted(translated) == sorted(map(str, range(SENTENCES["test"])))

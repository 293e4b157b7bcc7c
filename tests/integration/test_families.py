"""Resuming and batches through fairseq's commands.

Of all architectures, in double precision and without the commands, tests/contract/test_architectures.py says it; other
runs that resume are in test_resume.py, test_latent_tree.py and test_parser_training.py.
"""

import pytest
import torch
from integration import commands
from integration.commands import OPTIONS, assert_same_hypotheses


# a system whose dropout masks last a sentence, and one whose parser is learned, too
@pytest.mark.parametrize("arch", ["global_plus_chen17_tiny", "lgp_tiny"])
def test_a_resumed_run_is_the_uninterrupted_one(data_bin, tmp_path, arch):
    """Stopped in the middle of an epoch."""
    options = [*OPTIONS[arch], "--dropout", "0.3"]
    commands.train(data_bin, tmp_path / "whole", arch, *options, "--max-update", 10)
    for updates in (4, 10):
        log = commands.train(data_bin, tmp_path / "parts", arch, *options, "--max-update", updates)
    assert next(record["num_updates"] for record in commands.records(log) if "loss" in record) == "5"
    found, expected = (commands.parameters(tmp_path / name / "checkpoint_last.pt") for name in ("parts", "whole"))
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], value) for name, value in expected.items())


def test_batches_and_padding_sides_translate_alike(data_bin, trained):
    """Neither the sentences of a batch nor the side of its padding changes a translation or its score."""
    checkpoint = trained("lgp_tiny", "--lgp-graph", "latent") / "checkpoint_last.pt"
    options = ["--gen-subset", "valid", "--max-len-b", 12, "--batch-size"]
    expected = commands.generate(data_bin, checkpoint, *options, 1)
    assert sorted(expected) == list(range(61)) and len({score for score, _ in expected.values()}) > 50
    for more in ([16], [61, "--left-pad-source"]):
        assert_same_hypotheses(commands.generate(data_bin, checkpoint, *options, *more), expected, ties=1)

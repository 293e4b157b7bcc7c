"""A model of each family through fairseq's commands: resuming, batches."""

import pytest
from integration import commands
from integration.commands import OPTIONS

# a family each; of all others, in double precision and without fairseq's commands: tests/contract/test_architectures.py
FAMILIES = {
    **{arch: (arch, OPTIONS[arch]) for arch in ("sdatt_tiny", "global_plus_chen17_tiny", "sdatt_transformer_tiny")},
    **{f"lgp {graph}": ("lgp_tiny", ["--lgp-graph", graph, "--lr", "0.02"]) for graph in ("latent", "dep")},
}
RUNS = [pytest.param(*run, id=name) for name, run in FAMILIES.items()]


@pytest.mark.parametrize(("arch", "options"), RUNS)
def test_a_resumed_run_is_the_uninterrupted_one(data_bin, tmp_path, arch, options):
    """With dropout, which draws random numbers."""
    options = [*options, "--dropout", "0.3"]
    commands.train(data_bin, tmp_path / "whole", arch, *options, "--max-update", 16)
    commands.assert_resumes(data_bin, tmp_path / "parts", tmp_path / "whole", arch, *options)


@pytest.mark.parametrize(("arch", "options"), [*RUNS, pytest.param("sa_nmt_shared_tiny", [], id="sa_nmt_shared_tiny")])
def test_batches_and_padding_sides_translate_alike(data_bin, trained, arch, options):
    more = options[:2] if arch == "lgp_tiny" else []
    checkpoint = trained(arch, *more) / "checkpoint_last.pt"
    commands.assert_batches_translate_alike(data_bin, checkpoint, "--max-len-b", 12, ties=1)

"""A model of each family through fairseq's commands: resuming, batches; what positions follow."""

import importlib.util

import numpy as np
import pytest
import torch
from integration import commands
from integration.commands import OPTIONS

# a family each; of all others, in double precision and without fairseq's commands: tests/contract/test_architectures.py
FAMILIES = {
    **{arch: (arch, OPTIONS[arch]) for arch in ("sdatt_tiny", "global_plus_chen17_tiny", "sdatt_transformer_tiny")},
    **{f"lgp {graph}": ("lgp_tiny", ["--lgp-graph", graph, "--lr", "0.02"]) for graph in ("latent", "dep")},
}
OTHERS = {arch: (arch, options) for arch, options in OPTIONS.items() if "sdatt" in arch or "_att" in arch}
RUNS = [
    pytest.param(*run, id=name, marks=[] if name in FAMILIES else pytest.mark.slow)
    for name, run in {**OTHERS, **FAMILIES}.items()
]


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


def test_what_positions_follow(data_bin, trained, repository, capsys):
    """examples/sdatt/positions.py, beside the clock and the attention of another system."""
    path = repository / "examples" / "sdatt" / "positions.py"
    spec = importlib.util.spec_from_file_location("positions", path)
    positions = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(positions)
    reference, directed = (trained(arch) / "checkpoint_last.pt" for arch in ("global_att_tiny", "sdatt_tiny"))
    positions.main([str(data_bin), "--reference", str(reference), str(reference), str(directed)])
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.endswith(".pt")]
    assert [row[3] for row in rows] == [str(reference), str(directed)]
    assert float(rows[0][0]) == 0 and float(rows[0][2]) == 1
    # word by word
    models = [positions.load(str(path), str(data_bin)) for path in (reference, directed)]
    times, shares, wanted = [], [], []
    task = models[1][1]
    task.load_dataset("valid")
    dataset = task.dataset("valid")
    for index in range(len(dataset)):
        sample = dataset.collater([dataset[index]])
        with torch.no_grad():
            attention, extra = (model(**sample["net_input"])[1] for model, _ in models)
        length, steps = sample["net_input"]["src_tokens"].shape[1], sample["target"].shape[1]
        times += [(step + 0.5) / steps for step in range(steps)]
        shares += (extra["position"][0] / length).tolist()
        wanted += [(int(row.argmax()) + 0.5) / length for row in attention["attn"][0][0]]
    rest = [np.asarray(values) - np.polyval(np.polyfit(times, values, 1), times) for values in (shares, wanted)]
    assert float(rows[1][1]) == pytest.approx(np.corrcoef(shares, times)[0, 1], abs=2e-3)
    assert float(rows[1][2]) == pytest.approx(np.corrcoef(*rest)[0, 1], abs=2e-3)
    with pytest.raises(SystemExit, match=r"nowhere\.pt: no such checkpoint"):
        positions.main([str(data_bin), "--reference", "nowhere.pt", str(directed)])

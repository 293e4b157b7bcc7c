"""Syntax-directed attention and its peers through fairseq's commands: resuming, batches."""

import importlib.util
from functools import cache

import numpy as np
import pytest
import torch
from integration import commands
from integration.commands import OPTIONS

from fairseq_syntax.systems.sdatt.model import SYSTEMS

ARCHITECTURES = [*(f"{arch}_tiny" for arch in SYSTEMS), "sdatt_transformer_tiny", "dasa_transformer_tiny"]
# of all of them, in double precision and without fairseq's commands: tests/models
QUICK = ["sdatt_tiny", "global_plus_sdatt_tiny", "global_plus_chen17_tiny", "sdatt_transformer_tiny"]
SOME = [arch if arch in QUICK else pytest.param(arch, marks=pytest.mark.slow) for arch in ARCHITECTURES]


def options_of(arch):
    """With dropout, which draws random numbers."""
    return [*OPTIONS[arch], "--dropout", "0.3"]


@pytest.fixture(scope="module")
def brief(data_bin, tmp_path_factory):
    """Function: architecture -> directory of a model of 16 updates without interruption."""

    @cache
    def get(arch):
        directory = tmp_path_factory.mktemp(arch)
        commands.train(data_bin, directory, arch, *options_of(arch), "--max-update", 16)
        return directory

    return get


@pytest.mark.parametrize("arch", SOME)
def test_a_resumed_run_is_the_uninterrupted_one(data_bin, tmp_path, brief, arch):
    commands.assert_resumes(data_bin, tmp_path, brief(arch), arch, *options_of(arch))


@pytest.mark.parametrize("arch", SOME)
def test_batches_and_padding_sides_translate_alike(data_bin, brief, tmp_path, arch):
    checkpoint = commands.scatter(brief(arch) / "checkpoint_last.pt", tmp_path / "scattered.pt")
    commands.assert_batches_translate_alike(data_bin, checkpoint, "--max-len-b", 12)


def test_what_positions_follow(data_bin, brief, repository, capsys):
    """examples/sdatt/positions.py, beside the clock and the attention of another system."""
    path = repository / "examples" / "sdatt" / "positions.py"
    spec = importlib.util.spec_from_file_location("positions", path)
    positions = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(positions)
    reference, directed = (brief(arch) / "checkpoint_last.pt" for arch in ("global_att_tiny", "sdatt_tiny"))
    positions.main([str(data_bin), "--reference", str(reference), str(reference), str(directed)])
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.endswith(".pt")]
    assert [row[3] for row in rows] == [str(reference), str(directed)]
    assert float(rows[0][0]) == 0 and float(rows[0][2]) == 1
    # word by word
    models, times, shares, wanted = (
        [positions.load(str(path), str(data_bin)) for path in (reference, directed)],
        [],
        [],
        [],
    )
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

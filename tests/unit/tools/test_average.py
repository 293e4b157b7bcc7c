"""fairseq-syntax average against NumPy."""

import resource
from functools import partial

import numpy as np
import programs
import pytest
import torch
from fairseq import checkpoint_utils
from integration import commands

from fairseq_syntax.tools import average

refused = partial(programs.refused, average)


@pytest.fixture(scope="module")
def folders(latent, tmp_path_factory):
    """Name -> folder with checkpoint1.pt to checkpoint3.pt of a model whose softmax is tied, with other matrices."""
    made = {}
    models = {"nmt_lstm_tiny": [], "transformer_tiny": ["--share-decoder-input-output-embed"]}
    for arch, options in models.items():
        made[arch] = tmp_path_factory.mktemp(arch)
        commands.train(latent.data, made[arch], arch, "--max-update", "1", *options)
        for number in range(1, 4):
            commands.scatter(made[arch] / "checkpoint_last.pt", made[arch] / f"checkpoint{number}.pt", number)
    return made


@pytest.fixture
def recurrent(folders):
    return folders["nmt_lstm_tiny"]


def run(*arguments) -> int:
    return average.main([str(argument) for argument in arguments])


def read(path):
    return torch.load(path, weights_only=True)


def numpy_mean(paths) -> dict[str, np.ndarray]:
    models = [commands.parameters(path) for path in paths]
    return {name: np.mean([model[name].numpy().astype(np.float64) for model in models], axis=0) for name in models[0]}


@pytest.mark.parametrize("arch", ["nmt_lstm_tiny", "transformer_tiny"])
def test_the_mean_is_that_of_numpy(folders, tmp_path, arch):
    folder, output = folders[arch], tmp_path / "deep" / "average.pt"
    assert run("--input", folder, "--first", 2, "--last", 3, "--output", output) == 0
    paths = [folder / "checkpoint2.pt", folder / "checkpoint3.pt"]
    found, last, expected = read(output), read(paths[1]), numpy_mean(paths)
    assert found["model"].keys() == last["model"].keys()
    for name, value in found["model"].items():
        assert value.dtype == last["model"][name].dtype
        assert np.array_equal(value.numpy(), expected[name].astype(value.numpy().dtype)), name
    tables = [f"decoder.{name}.weight" for name in ("embed_tokens", "output_projection")] + [
        "encoder.embed_tokens.weight"
    ]
    places = [found["model"][name].data_ptr() for name in tables]
    assert places[0] == places[1] != places[2], "tied tables stay tied, and others were never one"
    assert "last_optimizer_state" not in found and output.stat().st_size < 0.6 * paths[1].stat().st_size
    assert found["extra_state"] == {
        "train_iterator": last["extra_state"]["train_iterator"],
        "averaged_checkpoints": ["checkpoint2.pt", "checkpoint3.pt"],
    }
    assert str(found["cfg"]) == str(last["cfg"])
    assert [path.name for path in output.parent.iterdir()] == ["average.pt"]
    (model,), _ = checkpoint_utils.load_model_ensemble([str(output)])
    assert torch.equal(model.state_dict()[tables[0]], found["model"][tables[0]])


def edited(path, output, edit):
    """A copy of a checkpoint with other parameters."""
    state = read(path)
    edit(state["model"])
    torch.save(state, output)
    return output


def test_integers_are_not_averaged_and_ties_of_one_file_do_not_count(recurrent, tmp_path):
    """They are the last checkpoint's."""
    files, table = [], "decoder.output_projection.weight"
    for number in (1, 2):

        def edit(model, number=number):
            model["encoder.steps"] = torch.tensor([number, 7])
            model["encoder.flags"] = torch.tensor([True, False])
            model["encoder.empty"] = torch.zeros(0)
            model["encoder.none"] = torch.zeros(0)
            model["encoder.half"] = torch.full((3,), 60000.0 if number == 1 else 20000.0, dtype=torch.float16)
            if number == 1:  # as after a move from a GPU, which makes two tensors of one
                model[table] = model[table].clone() + 1

        files.append(edited(recurrent / f"checkpoint{number}.pt", tmp_path / f"{number}.pt", edit))
    assert run("--input", *files, "--output", tmp_path / "average.pt") == 0
    found = commands.parameters(tmp_path / "average.pt")
    assert found["encoder.steps"].tolist() == [2, 7] and found["encoder.flags"].tolist() == [True, False]
    # the sum is beyond half precision
    assert found["encoder.half"].tolist() == [40000.0] * 3
    assert found["encoder.half"].dtype == torch.float16
    assert np.array_equal(found[table].numpy(), numpy_mean(files)[table].astype(np.float32))


# --- what cannot be averaged --------------------------------------------------------------------------------------


def test_a_full_disk_is_one_message(recurrent, tmp_path, capsys):
    """As a limit on the size of files, which the system enforces where it would say that the disk is full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        error = refused(capsys, "--input", recurrent / "checkpoint1.pt", "--output", tmp_path / "mean.pt")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert error == f"{tmp_path}/mean.pt: No space left on device"
    assert not list(tmp_path.iterdir())


def test_different_models(folders, recurrent, tmp_path, capsys):
    one, output = recurrent / "checkpoint1.pt", ["--output", tmp_path / "average.pt"]
    stock = folders["transformer_tiny"] / "checkpoint1.pt"
    error = refused(capsys, "--input", stock, one, *output)
    assert error.startswith(f"{stock}: not of the same model as {one}: architecture is transformer_tiny, not ")
    name = "decoder.embed_tokens.weight"
    edits = {
        f"{name} is None, not (": lambda model: model.pop(name),
        "aaa is (1,) torch.float32, not None; average": lambda model: model.update(aaa=torch.ones(1)),
        f"{name} is (3, 4) torch.float32, not (": lambda model: model.update({name: torch.ones(3, 4)}),
        "torch.float16, not (": lambda model: model.update({name: model[name].half()}),
    }
    for message, edit in edits.items():
        other = edited(recurrent / "checkpoint2.pt", tmp_path / "other.pt", edit)
        assert message in refused(capsys, "--input", other, one, *output)
    vars((state := read(recurrent / "checkpoint2.pt"))["cfg"]["model"])["attention_heads"] = 8
    torch.save(state, tmp_path / "other.pt")
    assert "attention_heads is 8, not None" in refused(capsys, "--input", tmp_path / "other.pt", one, *output)

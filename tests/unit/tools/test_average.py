"""fairseq-syntax average against NumPy."""

import resource
import shutil
from functools import partial

import numpy as np
import programs
import pytest
import torch
from corpora import easy_items, write_split
from integration import commands

from fairseq_syntax.tools import average

refused = partial(programs.refused, average)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data directory; the test split has 17 sentences."""
    folder = tmp_path_factory.mktemp("average")
    for seed, (split, count) in enumerate((("train", 40), ("test", 17))):
        write_split(folder / split, easy_items(count, seed))
    return commands.binarize({split: folder / split for split in ("train", "test")}, folder / "bin")


def train(data, directory, arch, count, *options):
    """A model of one update, with its matrices set to other numbers in each of its checkpoints."""
    commands.train(data, directory, arch, "--max-update", "1", *options)
    for number in range(1, count + 1):
        commands.scatter(directory / "checkpoint_last.pt", directory / f"checkpoint{number}.pt", number)
    return directory


@pytest.fixture(scope="module")
def recurrent(data, tmp_path_factory):
    """Folder with checkpoint1.pt to checkpoint9.pt of a small recurrent model with a tied softmax."""
    return train(data, tmp_path_factory.mktemp("recurrent"), "nmt_lstm_tiny", 9)


@pytest.fixture(scope="module")
def stock(data, tmp_path_factory):
    """Folder with checkpoint1.pt to checkpoint3.pt of fairseq's own Transformer."""
    shared = "--share-decoder-input-output-embed"
    return train(data, tmp_path_factory.mktemp("stock"), "transformer_tiny", 3, shared)


def run(*arguments) -> int:
    return average.main([str(argument) for argument in arguments])


def read(path):
    return torch.load(path, weights_only=True)


def numpy_mean(paths) -> dict[str, np.ndarray]:
    models = [commands.parameters(path) for path in paths]
    return {name: np.mean([model[name].numpy().astype(np.float64) for model in models], axis=0) for name in models[0]}


@pytest.mark.parametrize("family", ["recurrent", "stock"])
def test_the_mean_is_that_of_numpy(request, tmp_path, family):
    folder, output = request.getfixturevalue(family), tmp_path / "deep" / "average.pt"
    assert run("--input", folder, "--first", 2, "--last", 3, "--output", output) == 0
    paths = [folder / "checkpoint2.pt", folder / "checkpoint3.pt"]
    found, last = read(output), read(paths[1])
    expected = numpy_mean(paths)
    assert found["model"].keys() == last["model"].keys()
    for name, value in found["model"].items():
        assert value.dtype == last["model"][name].dtype
        assert np.array_equal(value.numpy(), expected[name].astype(value.numpy().dtype)), name
    assert any(not torch.equal(value, last["model"][name]) for name, value in found["model"].items())
    assert "last_optimizer_state" not in found and output.stat().st_size < 0.6 * paths[1].stat().st_size
    assert found["extra_state"] == {
        "train_iterator": last["extra_state"]["train_iterator"],
        "averaged_checkpoints": ["checkpoint2.pt", "checkpoint3.pt"],
    }
    assert str(found["cfg"]) == str(last["cfg"])
    assert [path.name for path in output.parent.iterdir()] == ["average.pt"]


def test_tied_tensors_stay_tied(recurrent, stock, tmp_path):
    names = ("decoder.embed_tokens.weight", "decoder.output_projection.weight")
    for folder in (stock, recurrent):
        output = tmp_path / f"{folder.name}.pt"
        assert run("--input", folder, "--output", output) == 0
        found = commands.parameters(output)
        first, second = (found[name].data_ptr() for name in names)
        assert first == second
        # other tables were never one
        assert found["encoder.embed_tokens.weight"].data_ptr() != first


def edited(path, output, edit):
    """A copy of a checkpoint with other parameters."""
    state = read(path)
    edit(state["model"])
    torch.save(state, output)
    return output


def test_tied_in_one_file_only(stock, tmp_path):
    """As after a move from a GPU, which makes two tensors of one."""

    def part(model):
        name = "decoder.output_projection.weight"
        model[name] = model[name].clone() + 1

    other = edited(stock / "checkpoint1.pt", tmp_path / "other.pt", part)
    inputs = [other, stock / "checkpoint2.pt"]
    assert run("--input", *inputs, "--output", tmp_path / "average.pt") == 0
    found, expected = commands.parameters(tmp_path / "average.pt"), numpy_mean(inputs)
    for name, value in found.items():
        assert np.array_equal(value.numpy(), expected[name].astype(np.float32)), name


def test_integers_are_not_averaged(recurrent, tmp_path):
    """They are the last checkpoint's."""
    files = []
    for number in (1, 2):

        def edit(model, number=number):
            model["encoder.steps"] = torch.tensor([number, 7])
            model["encoder.flags"] = torch.tensor([True, False])
            model["encoder.empty"] = torch.zeros(0)
            model["encoder.none"] = torch.zeros(0)
            model["encoder.half"] = torch.full((3,), 60000.0 if number == 1 else 2000.0, dtype=torch.float16)

        files.append(edited(recurrent / f"checkpoint{number}.pt", tmp_path / f"{number}.pt", edit))
    assert run("--input", *files, "--output", tmp_path / "average.pt") == 0
    found = commands.parameters(tmp_path / "average.pt")
    assert found["encoder.steps"].tolist() == [2, 7] and found["encoder.flags"].tolist() == [True, False]
    # the sum is beyond half precision, the mean (31000) is rounded to it
    assert found["encoder.half"].tolist() == [31008.0] * 3
    assert found["encoder.half"].dtype == torch.float16


def test_fairseq_generate_translates_with_the_mean(data, recurrent, tmp_path):
    """The mean of two copies translates as the model, that of different ones does not."""
    output = tmp_path / "average.pt"
    assert run("--input", recurrent, "--first", 4, "--output", output) == 0
    found = commands.generate(data, output)
    assert len(found) == 17
    last = commands.generate(data, recurrent / "checkpoint9.pt")
    assert any(found[number][0] != pytest.approx(last[number][0], abs=1e-3) for number in found)
    copy = tmp_path / "copy.pt"
    shutil.copy(recurrent / "checkpoint9.pt", copy)
    assert run("--input", copy, recurrent / "checkpoint9.pt", "--output", output, "--overwrite") == 0
    commands.assert_same_hypotheses(commands.generate(data, output), last)


# --- what cannot be averaged --------------------------------------------------------------------------------------


def test_wrong_inputs(recurrent, tmp_path, capsys):
    output = ["--output", tmp_path / "average.pt"]
    one = recurrent / "checkpoint1.pt"
    assert refused(capsys, "--input", one, recurrent, *output) == (
        f"{recurrent}: is a folder; give one folder, or files only"
    )
    assert refused(capsys, "--input", one, one, *output) == f"{one}: is named twice"
    assert refused(capsys, "--input", recurrent, "--first", 12, *output) == (
        f"{recurrent}: no checkpointN.pt with N from 12 to the last; there are 1 to 9"
    )


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


def test_different_models(recurrent, stock, tmp_path, capsys):
    one, output = recurrent / "checkpoint1.pt", ["--output", tmp_path / "average.pt"]
    error = refused(capsys, "--input", stock / "checkpoint1.pt", one, *output)
    assert error.startswith(
        f"{stock}/checkpoint1.pt: not of the same model as {one}: architecture is transformer_tiny, not "
    )

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

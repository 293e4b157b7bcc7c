"""COMET as unbabel-comet's interface has it; the package itself stays out of the tests, with its models."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from fairseq_syntax.evaluate.comet import Comet


class Model:
    def __init__(self, path):
        self.path = path

    def predict(self, samples, batch_size=16, gpus=1, progress_bar=True):
        assert gpus in (0, 1) and not progress_bar
        scores = [len(s["src"]) + 10 * len(s["mt"]) + 100 * len(s["ref"]) for s in samples]
        return SimpleNamespace(scores=scores, system_score=sum(scores) / len(scores))


@pytest.fixture
def downloaded(monkeypatch):
    """The package in sys.modules; names of models that were asked for."""
    asked = []

    def download_model(name):
        if name != "Unbabel/known":
            raise KeyError(f"Model '{name}' not supported by COMET.")
        asked.append(name)
        return "/cache/known/checkpoints/model.ckpt"

    package = ModuleType("comet")
    package.download_model, package.load_from_checkpoint = download_model, Model
    monkeypatch.setitem(sys.modules, "comet", package)
    return asked


def test_scores(downloaded):
    metric = Comet("Unbabel/known")
    assert downloaded == ["Unbabel/known"]
    found = metric.statistics(["a", "bb"], [["c", "other"], ["d"]], ["eee", "f"])
    assert found.tolist() == [[113, 1], [121, 1]] and metric.score(found) == 117
    assert metric.statistics([], [], []).shape == (0, 2)
    assert metric.signature(2) == "nrefs:1|model:Unbabel/known|version:unknown"
    with pytest.raises(ValueError, match="give --source"):
        metric.statistics(["a"], [["b"]])


def test_models(downloaded, tmp_path, monkeypatch):
    checkpoint = tmp_path / "mine" / "checkpoints" / "model.ckpt"
    checkpoint.parent.mkdir(parents=True)
    checkpoint.touch()
    for name in (checkpoint, tmp_path / "mine"):
        metric = Comet(str(name))
        assert metric._model.path == str(checkpoint) and "model:mine|" in metric.signature()
    monkeypatch.chdir(checkpoint.parent)
    assert "model:mine|" in Comet("model.ckpt").signature()
    assert not downloaded
    with pytest.raises(ValueError, match=r"--comet mine: cannot be loaded: .*not supported"):
        Comet("mine")


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "comet", None)
    with pytest.raises(ValueError, match="pip install 'unbabel-comet>=2'"):
        Comet("Unbabel/known")

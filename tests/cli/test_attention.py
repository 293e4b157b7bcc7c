"""fairseq-syntax-attention: every kind of model, every kind of picture."""

import numpy as np
import pytest
from matplotlib import pyplot as plt

from fairseq_syntax.cli import attention


@pytest.fixture
def draw(latent, trained, tmp_path, capsys, monkeypatch):
    """Function: architecture, options -> the figure that is saved."""
    figures = []
    save = attention.save_figure

    def keep(figure, path):
        figures.append(figure)
        save(figure, path)

    monkeypatch.setattr(attention, "save_figure", keep)

    def call(arch, *options, training=()):
        picture = tmp_path / "map.png"
        arguments = [latent.data, "--path", trained(arch, *training), "--cpu", "--output", picture, *options]
        assert attention.main([str(argument) for argument in arguments]) == 0, capsys.readouterr().err
        assert picture.read_bytes().startswith(b"\x89PNG")
        return figures[-1]

    yield call
    plt.close("all")


def labels(axis):
    return [[label.get_text() for label in a.get_ticklabels()] for a in (axis.yaxis, axis.xaxis)]


@pytest.mark.parametrize("arch", ["sa_nmt_shared_tiny", "fa_nmt_tiny"])
def test_heads_of_latent_trees(latent, draw, arch):
    axis = draw(arch, "--sentence", "1").axes[0]
    pieces = latent.items[1].text().split()
    assert labels(axis) == [pieces, ["ROOT", *pieces]]
    weights = np.asarray(axis.images[0].get_array())
    assert weights.shape == (len(pieces), len(pieces) + 1)
    assert weights.sum(1) == pytest.approx(1, abs=1e-4)
    if arch == "sa_nmt_shared_tiny":
        assert weights[:, 0].sum() == pytest.approx(1, abs=1e-4), "one root"


@pytest.mark.parametrize(
    "arch", ["nmt_lstm_tiny", "sa_nmt_shared_tiny", "sa_nmt_1set_tiny", "transformer_tiny", "pascal_transformer_tiny"]
)
def test_attention_to_the_source(latent, draw, arch):
    axis = draw(arch, "--kind", "translation", "--sentence", "2").axes[0]
    source = latent.items[2].text().split()
    target = (latent.text.parent / "test.de").read_text().splitlines()[2].split()
    assert labels(axis) == [[*target, "</s>"], [*source, "</s>"]]
    weights = np.asarray(axis.images[0].get_array())
    assert weights.shape == (len(target) + 1, len(source) + 1)
    assert weights.sum(1) == pytest.approx(1, abs=1e-4)


def test_the_lstm_of_fairseq(draw):
    sizes = ["--encoder-embed-dim", "8", "--encoder-hidden-size", "8", "--decoder-embed-dim", "8"]
    sizes += ["--decoder-hidden-size", "8", "--decoder-out-embed-dim", "8"]
    weights = draw("lstm", "--kind", "translation", training=sizes).axes[0].images[0].get_array()
    assert np.asarray(weights).sum(1) == pytest.approx(1, abs=1e-4)


def test_syntactic_heads_of_a_transformer(latent, draw):
    figure = draw("pascal_transformer_tiny")
    assert labels(figure.axes[0])[0] == [*latent.items[0].text().split(), "</s>"]
    assert len(figure.axes[0].patches) == len(latent.items[0].word_of_token), "every token's parent is framed"


@pytest.mark.parametrize(
    ("arch", "options", "message"),
    [
        ("transformer_tiny", [], "transformer_tiny has no syntactic attention heads"),
        ("nmt_lstm_tiny", [], "nmt_lstm_tiny has no syntactic attention heads"),
        ("nmt_lstm_tiny", ["--kind", "translation", "--sentence", "17"], "test has sentences 0 to 16"),
        ("nmt_lstm_tiny", ["--kind", "translation", "--subset", "none"], "no such split"),
    ],
)
def test_refusals(latent, trained, tmp_path, capsys, arch, options, message):
    arguments = [latent.data, "--path", trained(arch), "--cpu", "--output", tmp_path / "map.png", *options]
    assert attention.main([str(argument) for argument in arguments]) == 1
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error
    assert list(tmp_path.iterdir()) == []

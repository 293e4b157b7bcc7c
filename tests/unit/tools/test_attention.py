"""fairseq-syntax attention: every kind of model, every kind of picture."""

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils
from matplotlib import pyplot as plt

from fairseq_syntax.pictures import figures as figures_module
from fairseq_syntax.systems.distance_transformers.cross_attention import HeadPositions
from fairseq_syntax.tools import attention
from fairseq_syntax.tools.loaded_model import load


@pytest.fixture
def draw(latent, trained, tmp_path, capsys, monkeypatch):
    """Function: architecture, options -> the figure that is saved."""
    figures = []
    save = figures_module.save_figure

    def keep(figure, path):
        figures.append(figure)
        save(figure, path)

    monkeypatch.setattr("fairseq_syntax.tools.attention_figures.save_figure", keep)

    def call(arch, *options, training=()):
        picture = tmp_path / "map.png"
        arguments = [
            latent.data,
            "--path",
            trained(arch, *training),
            "--cpu",
            "--draw",
            picture,
            "--overwrite",
            *options,
        ]
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


def found_by(checkpoint, data, sentence):
    """The model, its batch of one sentence of the test set, and what its decoder finds with the reference."""
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], {"data": str(data)})
    task.load_dataset("test")
    dataset = task.dataset("test")
    batch = dataset.collater([dataset[sentence]])
    with torch.no_grad():
        return model.eval(), batch, model(**batch["net_input"])[1]


def image_of(axis):
    return np.asarray(axis.images[0].get_array())


@pytest.mark.parametrize("arch", ["sa_nmt_tiny", "sa_nmt_shared_tiny", "global_plus_sdatt_tiny"])
def test_attention_to_syntax(latent, draw, trained, arch):
    axis = draw(arch, "--kind", "syntax", "--sentence", "2").axes[0]
    _, _, extra = found_by(trained(arch), latent.data, 2)
    expected = extra["attn"][0] if arch == "sa_nmt_shared_tiny" else extra["syntax_attn"]
    assert image_of(axis) == pytest.approx(expected[0].numpy(), abs=1e-5)
    assert axis.get_xlabel() == "attends to the syntax of"
    assert arch == "sa_nmt_shared_tiny" or (expected - extra["attn"][0]).abs().max() > 1e-3
    target = (latent.text.parent / "test.de").read_text().splitlines()[2].split()
    assert labels(axis) == [[*target, "</s>"], [*latent.items[2].text().split(), "</s>"]]


def test_norms_of_the_gate(latent, draw, trained):
    figure = draw("sa_nmt_shared_tiny", "--kind", "gate", "--sentence", "2")
    texts = figure.axes[0].texts
    source = [text.get_text() for text in texts if (text.get_gid() or "").startswith("source")]
    assert source == latent.items[2].text().split()
    target = (latent.text.parent / "test.de").read_text().splitlines()[2].split()
    tokens = [text for text in texts[1:] if not text.get_gid()]
    assert [text.get_text() for text in tokens] == [*target, "</s>"]
    norms = found_by(trained("sa_nmt_shared_tiny"), latent.data, 2)[2]["gate_norm"][0]
    assert [text.get_weight() for text in tokens].index("bold") == int(norms.argmax())
    assert figure.axes[1].get_xlim() == pytest.approx((float(norms.min()), float(norms.max())), abs=1e-4)


@pytest.mark.parametrize("arch", ["sa_nmt_shared_tiny", "sa_nmt_1set_tiny"])
def test_syntactic_annotations(latent, draw, trained, arch):
    axis = draw(arch, "--kind", "annotations", "--sentence", "2").axes[0]
    model, batch, _ = found_by(trained(arch), latent.data, 2)
    with torch.no_grad():
        encoder = model.encoder
        source = encoder.source(batch["net_input"]["src_tokens"])
        states, _ = encoder.annotate(source)
        selection = encoder.memory.head_selection
        heads, values = selection.heads(states, source), selection.value(states)[0]
    # m_j by its equation: the values of the heads of j, weighted; its own for the root
    own = torch.where(source.word_mask[0], heads["root_marginals"][0], 1.0)
    expected = [
        sum(weight * value for weight, value in zip(row, values, strict=True)) + share * values[j]
        for j, (row, share) in enumerate(zip(heads["arc_marginals"][0], own, strict=True))
    ]
    assert image_of(axis) == pytest.approx(torch.stack(expected).numpy(), abs=1e-4)
    assert labels(axis)[0] == [*latent.items[2].text().split(), "</s>"]
    low, high = axis.images[0].get_clim()
    assert low == -high and high == pytest.approx(np.abs(image_of(axis)).max())


@pytest.mark.parametrize("arch", ["sdatt_tiny", "local_att_tiny", "global_plus_sdatt_tiny", "sdatt_transformer_tiny"])
def test_predicted_positions(latent, draw, trained, arch):
    heads = ["--sdatt-heads", "2"] if arch == "sdatt_transformer_tiny" else []
    figure = draw(arch, "--kind", "position", "--sentence", "2", training=heads)
    axes = [axis for axis in figure.axes if axis.images]
    model, batch, extra = found_by(trained(arch, *heads), latent.data, 2)
    if arch == "sdatt_transformer_tiny":
        positions = []
        (*_, last) = (module for module in model.modules() if isinstance(module, HeadPositions))
        last.register_forward_hook(lambda _, inputs, output: positions.append(output))
        with torch.no_grad():
            model(**batch["net_input"])
        expected = positions[0][0]
        assert len(expected) == len(axes) == 2
    else:
        (axis,) = axes
        expected = extra["position"]
        weights = extra.get("syntax_attn", extra["attn"][0])[0]
        assert image_of(axis) == pytest.approx(weights.numpy(), abs=1e-5)
    for h, axis in enumerate(axes):
        (line,) = axis.lines
        assert line.get_gid() == f"position-{h}"
        # a token owns what is around the middle of its cell
        assert line.get_xdata() == pytest.approx(expected[h].numpy() - 0.5, abs=1e-4)
        assert list(line.get_ydata()) == list(range(len(image_of(axis))))
        assert image_of(axis).sum(1) == pytest.approx(1, abs=1e-4) or arch == "local_att_tiny"


def test_heads_that_look_at_all_words_are_not_drawn(latent, trained, tmp_path, capsys):
    arguments = [latent.data, "--path", trained("dasa_transformer_tiny"), "--cpu", "--draw", tmp_path / "map.png"]
    assert attention.main([str(argument) for argument in arguments]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "dasa_transformer_tiny has no syntactic attention heads; give a model of" in line


@pytest.mark.parametrize("kind", attention.KINDS)
def test_numbers_that_are_nan_are_refused_whatever_they_come_of(latent, trained, tmp_path, capsys, monkeypatch, kind):
    arch = "global_plus_sdatt_tiny" if kind == "position" else "sa_nmt_tiny"

    def overflowing(*arguments):
        loaded = load(*arguments)
        # as in half precision: finite weights, infinite numbers
        loaded.model.encoder.embed_tokens.register_forward_hook(lambda _, inputs, output: output * float("nan"))
        return loaded

    monkeypatch.setattr("fairseq_syntax.tools.attention_figures.load", overflowing)
    arguments = [latent.data, "--path", trained(arch), "--cpu", "--draw", tmp_path / "map.png", "--kind", kind]
    assert attention.main([str(argument) for argument in arguments]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "NaN" in line
    assert list(tmp_path.iterdir()) == []

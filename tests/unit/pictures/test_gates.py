"""Gate norms as a coloured picture."""

import html

import numpy as np
import pytest

from fairseq_syntax.pictures.gates import GatedSentence, draw_gates

SENTENCES = [
    GatedSentence(["er", "sch@@", "läft", "</s>"], np.array([1.0, 2.0, 3.0, 0.5]), ["he", "sleeps"]),
    GatedSentence(["<b>", "geht", "&", "</s>"], np.array([1.0, 4.0, 4.0, 1.0]), ["$<b>", "goes", "&quot;", "$"]),
    GatedSentence(["ja", "</s>"], np.array([1.5, 2.5]), ["yes"]),
]


def test_the_picture_shows_every_token_darker_for_a_higher_norm_and_none_over_another():
    source = [f"source{i}" for i in range(30)]
    long = GatedSentence([f"word{i}" for i in range(40)] + ["</s>"], np.linspace(0, 3, 41), source)
    sentences = [*SENTENCES, long, GatedSentence(["</s>"], np.array([1.0]), [])]
    figure = draw_gates(sentences)
    texts = figure.axes[0].texts
    names = [text for text in texts if text.get_gid() == "name"]
    assert len(names) == sum(len(s.source) > 0 for s in sentences) + len(sentences)
    sources = {text.get_gid(): text for text in texts if text.get_gid() and text not in names}
    tokens = [text for text in texts if not text.get_gid()]
    assert [text.get_text() for text in tokens] == [token for s in sentences for token in s.tokens]
    assert {gid: text.get_text() for gid, text in sources.items()} == {
        f"source-{n}-{i}": html.unescape(token) for n, s in enumerate(sentences) for i, token in enumerate(s.source)
    }
    norms = np.concatenate([s.norms for s in sentences])
    shades = np.array([-sum(text.get_bbox_patch().get_facecolor()[:3]) for text in tokens])
    order = np.argsort(norms, kind="stable")
    assert (np.diff(shades[order]) >= 0).all() and shades[order[-1]] > shades[order[0]] + 1
    assert [text.get_weight() == "bold" for text in tokens] == [
        i == s.highest for s in sentences for i in range(len(s.tokens))
    ]
    renderer = figure.canvas.get_renderer()
    boxes = [text.get_window_extent(renderer) for text in texts]
    bar = figure.axes[1].get_tightbbox(renderer)
    assert not any(one.overlaps(other) for i, one in enumerate([bar, *boxes]) for other in [bar, *boxes][:i])
    page = figure.bbox
    for box in (bar, *boxes):
        assert page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1
    # a source stands above its translation
    first = {n: boxes[list(texts).index(sources[f"source-{n}-0"])] for n in range(4)}
    starts = np.cumsum([0] + [len(s.tokens) for s in sentences])
    for n in range(4):
        token = tokens[starts[n]].get_window_extent(renderer)
        assert first[n].y0 > token.y1 and (n == 0 or first[n].y1 < tokens[starts[n] - 1].get_window_extent(renderer).y0)


@pytest.mark.parametrize("norms", [[0.5, 4.0], [2.0, 2.0]])
def test_the_picture_has_a_bar_of_its_colours(norms):
    figure = draw_gates([GatedSentence(["a", "b"], np.array(norms), ["c"])])
    figure.canvas.draw()
    text, bar = figure.axes
    low, high = bar.get_xlim()
    assert (low, high) == (0, norms[1])
    colours = bar.collections[-1].cmap
    for token, norm in zip(text.texts[-2:], norms, strict=True):
        expected = colours((norm - low) / (high - low))
        assert token.get_bbox_patch().get_facecolor() == pytest.approx(expected, abs=0.01)

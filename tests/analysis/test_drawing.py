"""Drawn trees and heat maps: everything is there, and labels can be read."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from strategies import forests

from fairseq_syntax.analysis.attention_maps import draw_attention, draw_heat_map
from fairseq_syntax.analysis.drawing import arc_levels, draw_tree
from fairseq_syntax.analysis.figures import save_figure

WORDS = [*"a mm $5 and $6 Donaudampfschifffahrtsgesellschaft , i W_x^2 <b> & {x} \\frac \u00e4".split()] * 3
FORTY = WORDS[:40]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def boxes(figure, texts):
    renderer = figure.canvas.get_renderer()
    return [text.get_window_extent(renderer) for text in texts]


def overlapping(found):
    return [(i, j) for j in range(len(found)) for i in range(j) if found[i].overlaps(found[j])]


def random_heads(size, seed=0):
    generator = np.random.default_rng(seed)
    order = generator.permutation(size)
    heads = [-1] * size
    for rank, word in enumerate(order[1:], 1):
        heads[word] = int(order[generator.integers(rank)])
    return heads


# --- trees --------------------------------------------------------------------------------------------------------


@given(forests(max_words=15))
def test_arcs_above_those_inside(heads):
    levels = arc_levels(heads)
    for i, head in enumerate(heads):
        assert (levels[i] == 0) == (head == -1)
        for j, other in enumerate(heads):
            if head != -1 and other != -1 and abs(i - head) > abs(j - other):
                inside = min(i, head) <= min(j, other) and max(j, other) <= max(i, head)
                assert not inside or levels[i] > levels[j]


def test_forty_words_do_not_overlap_and_every_arc_is_there():
    heads, gold = random_heads(40), random_heads(40, 1)
    figure = draw_tree(FORTY, heads, tags=["PROPN"] * 40, gold=gold, title="t")
    (axis,) = figure.axes
    words = [text for text in axis.texts if (text.get_gid() or "").startswith("word")]
    assert [text.get_text() for text in words] == FORTY
    found = boxes(figure, axis.texts)
    assert overlapping(found) == []
    whole = figure.bbox
    assert all(box.x0 >= whole.x0 and box.x1 <= whole.x1 and box.y0 >= whole.y0 for box in found)
    centres = [(box.x0 + box.x1) / 2 for box in boxes(figure, words)]
    arcs = {patch.get_gid(): patch for patch in axis.patches}
    assert set(arcs) == {f"{name}-{i}" for name in ("arc", "gold") for i in range(40)}
    for name, tree, side in (("arc", heads, 1), ("gold", gold, -1)):
        for i, head in enumerate(tree):
            # a path's points are in the axis's units, which are points
            path = arcs[f"{name}-{i}"]._path_original
            vertices = axis.transData.transform(path.vertices)
            assert vertices[-1][0] == pytest.approx(centres[i], abs=1)
            assert vertices[0][0] == pytest.approx(centres[i] if head == -1 else centres[head], abs=6)
            assert side * (path.vertices[1 if head >= 0 else 0][1] - path.vertices[-1][1]) > 0
    dashed = {name for name, arc in arcs.items() if arc.get_linestyle() not in ("-", "solid")}
    assert dashed == {f"arc-{i}" for i in range(40) if heads[i] != gold[i]}


@settings(max_examples=10)
@given(st.lists(st.integers(-1, 5), min_size=6, max_size=6))
def test_any_heads_can_be_drawn(heads):
    heads = [head if head != i else -1 for i, head in enumerate(heads)]
    figure = draw_tree(list("abcdef"), heads)
    assert len(figure.axes[0].patches) == 6
    plt.close(figure)


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_a_tree_of_one_word_in_every_format(tmp_path, suffix):
    path = tmp_path / "new" / f"tree.{suffix}"
    save_figure(draw_tree(["$a$ <b>"], [-1]), path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    start = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[suffix]
    assert path.read_bytes().startswith(start)
    if suffix == "svg":
        ElementTree.parse(path)


# --- heat maps ----------------------------------------------------------------------------------------------------


def labels_of(figure, axis):
    return [boxes(figure, [t for t in a.get_ticklabels() if t.get_text()]) for a in (axis.xaxis, axis.yaxis)]


@pytest.mark.parametrize("size", [1, 40, 80])
def test_labels_of_heat_maps_can_be_read(size):
    rows, columns = [*WORDS, *WORDS][:size], ["ROOT", *[*WORDS, *WORDS][:size]]
    weights = np.full((size, size + 1), 1 / (size + 1))
    figure = draw_heat_map(weights, rows, columns, row_name="dependent", column_name="head", title="$x")
    figure.canvas.draw()
    axis = figure.axes[0]
    of_columns, of_rows = labels_of(figure, axis)
    assert (len(of_columns), len(of_rows)) == (size + 1, size)
    assert overlapping(of_columns) == [] and overlapping(of_rows) == []
    assert [t.get_text() for t in axis.get_xticklabels()] == columns
    assert np.array_equal(axis.images[0].get_array(), weights)


def test_labels_of_attention_heads_can_be_read():
    weights = np.full((2, 40, 40), 1 / 40)
    figure = draw_attention(weights, FORTY, np.full(40, np.nan), "t")
    figure.canvas.draw()
    for axis in figure.axes[:2]:
        for found in labels_of(figure, axis):
            assert overlapping(found) == []

"""Drawn constituent trees: all of them is there, where it belongs, and no line crosses another."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from oracles import constituency as oracle

from fairseq_syntax.systems.latent_tree.drawing import draw_node_attention, draw_trees
from fairseq_syntax.systems.latent_tree.tree_files import read_tree_file

SOURCE = (("E", "i", "n", "e"), "\u2581", (("$", ("_",)), "W", (("i", "\u00e4"), "m")), "{")
TARGET = ("<unk>", (("a", "b"), "c", ("d",)), ".")


def tree_lines(number, source, target, attention=None):
    """The lines of a tree file; attention is uniform if not given."""
    spans = [[list(span) for span in oracle.nodes(tree)] for tree in (source, target)]
    if attention is None:
        attention = [[round(1 / len(spans[0]), 4)] * len(spans[0])] * (len(spans[1]) - 1)
    values = {"source_spans": spans[0], "target_spans": spans[1][1:], "attention": attention}
    texts = {"TS": oracle.brackets(source), "TT": oracle.brackets(target), "TA": json.dumps(values)}
    return [f"{kind}-{number}\t{text}\n" for kind, text in texts.items()]


def pair_of(source, target, attention=None):
    (pair,) = read_tree_file(enumerate(tree_lines(3, source, target, attention), 1), "trees")
    return pair


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def segments_of(axis, gid):
    """((x, y), (x, y)) of each line of a collection."""
    found = [lines for lines in axis.collections if lines.get_gid() == gid]
    return [tuple(map(tuple, line.tolist())) for lines in found for line in lines.get_segments()]


def check(axis, side, tree):
    """Bars and lines of one tree, from its definition."""
    texts = {text.get_gid(): text for text in axis.texts}
    assert texts.pop(None).get_text() == side
    symbols = oracle.leaves(tree)
    assert [texts[f"{side}-{i}"].get_text() for i in range(len(symbols))] == [s.replace("▁", "␣") for s in symbols]
    assert len(texts) == len(symbols)
    centres = [texts[f"{side}-{i}"].get_position()[0] for i in range(len(symbols))]
    bars, lines = segments_of(axis, f"{side}-bars"), segments_of(axis, f"{side}-lines")
    nodes = oracle.nodes(tree) if symbols else []
    assert len(bars) == len(nodes)
    assert len(lines) == len(symbols) + max(len(nodes) - 1, 0)
    levels = sorted({bar[0][1] for bar in bars})
    number, leaf = 0, 0

    def walk(children):
        """The middle and the level of the bar of a constituent, and what stands below it."""
        nonlocal number, leaf
        own, places = bars[number], []
        number += 1
        assert own[0][1] == own[1][1]
        for child in children:
            if isinstance(child, str):
                places.append((centres[leaf], 0.0))
                leaf += 1
            else:
                places.append(walk(child))
        for x, y in places:
            assert ((x, y), (x, own[0][1])) in [tuple((pytest.approx(a), b) for a, b in line) for line in lines]
        assert levels.index(own[0][1]) == oracle.height(children) - 1
        if len(places) > 1:
            assert own[0][0] == pytest.approx(places[0][0]) and own[1][0] == pytest.approx(places[-1][0])
        else:
            assert own[0][0] < places[0][0] < own[1][0]
        return (own[0][0] + own[1][0]) / 2, own[0][1]

    if symbols:
        walk(tree)
    for (left, height), (right, _) in bars:
        for (x, low), (_, high) in lines:
            assert not (left + 1e-6 < x < right - 1e-6 and low < height < high), "a line goes through a bar"


def subtrees(child):
    return st.lists(child, min_size=1, max_size=4).map(tuple)


TREES = st.lists(st.recursive(st.sampled_from("a\u2581iW.|"), subtrees, max_leaves=8), max_size=5).map(tuple)


@settings(max_examples=15, deadline=None)
@given(TREES, TREES)
def test_any_trees(source, target):
    figure = draw_trees(pair_of(source, target))
    for axis, side, tree in zip(figure.axes, ("source", "target"), (source, target), strict=True):
        check(axis, side, tree)
    figure.canvas.draw()
    plt.close(figure)


def test_attention():
    weights = np.random.default_rng(0).dirichlet(np.ones(7), size=3).round(4)
    pair = pair_of(SOURCE, TARGET, weights.tolist())
    figure = draw_node_attention(pair)
    axis = figure.axes[0]
    (image,) = axis.images
    assert image.get_array().data.tolist() == weights.tolist()
    assert [label.get_text() for label in axis.get_yticklabels()] == ["abcd", "ab", "d"]
    columns = [label.get_text() for label in axis.get_xticklabels()]
    assert columns == ["ROOT", "Eine", "$_Wi\u00e4m", "$_", "_", "i\u00e4m", "i\u00e4"]
    figure.canvas.draw()
    with pytest.raises(ValueError, match="sentence 3: the target has no constituent"):
        draw_node_attention(pair_of(SOURCE, ("a", "b")))

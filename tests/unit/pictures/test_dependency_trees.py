"""Drawn trees and heat maps: everything is there, and labels can be read."""

import random

import numpy as np
import pytest
from corpora import random_heads
from hypothesis import given, settings
from matplotlib import pyplot as plt
from strategies import projective_trees

from fairseq_syntax.pictures.arcs import OTHER
from fairseq_syntax.pictures.attention_maps import draw_annotations, draw_attention, draw_heat_map, draw_positions
from fairseq_syntax.pictures.dependency_trees import draw_tree
from fairseq_syntax.pictures.tree_variants import Variant, draw_variants

WORDS = [*"a mm $5 and $6 Donaudampfschifffahrtsgesellschaft , i W_x^2 <b> & {x} \\frac \u00e4".split()] * 3
FORTY = WORDS[:40]


def boxes(figure, texts):
    renderer = figure.canvas.get_renderer()
    return [text.get_window_extent(renderer) for text in texts]


def overlapping(found):
    return [(i, j) for j in range(len(found)) for i in range(j) if found[i].overlaps(found[j])]


def test_forty_words_do_not_overlap_and_every_arc_is_there():
    heads, gold = (random_heads(random.Random(seed), 40) for seed in range(2))
    labels, gold_labels = ["nsubj:pass", "_", "x"] * 14, ["_", "dislocated"] * 20
    figure = draw_tree(FORTY, heads, labels=labels[:40], tags=["PROPN"] * 40, gold=gold, gold_labels=gold_labels)
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
            # arcs meet a word 3 points apart; the one that arrives does so at the middle, unless it is below others
            for at, word in ((vertices[-1][0], i), (vertices[0][0], i if head == -1 else head)):
                away = 3 * (tree.count(word) + 1) * 100 / 72 + 1
                assert at == pytest.approx(centres[word], abs=away)
            if max((abs(k - i) for k in range(40) if tree[k] == i), default=0) < abs(head - i) or head == -1:
                assert vertices[-1][0] == pytest.approx(centres[i], abs=1)
            assert side * (path.vertices[1 if head >= 0 else 0][1] - path.vertices[-1][1]) > 0
    texts = {text.get_gid(): text for text in axis.texts if "label" in (text.get_gid() or "")}
    expected = {
        f"label-arc-{i}": "root" if heads[i] < 0 and label == "_" else label for i, label in enumerate(labels[:40])
    }
    expected |= {f"label-gold-{i}": "root" for i in range(40) if gold[i] < 0 and gold_labels[i] == "_"}
    expected |= {f"label-gold-{i}": label for i, label in enumerate(gold_labels) if label != "_"}
    assert {gid: text.get_text() for gid, text in texts.items()} == {g: t for g, t in expected.items() if t != "_"}
    for gid, text in texts.items():
        tree = gold if gid.startswith("label-gold") else heads
        word = int(gid.rpartition("-")[2])
        ends = (centres[word], centres[tree[word] if tree[word] >= 0 else word])
        box = text.get_window_extent(figure.canvas.get_renderer())
        if tree[word] >= 0:
            assert min(ends) < box.x0 and box.x1 < max(ends), "a label is between the ends of its arc"
        else:
            assert (box.x0 + box.x1) / 2 == pytest.approx(ends[0], abs=1), "a root's arrow has its label at its end"
    dashed = {name for name, arc in arcs.items() if arc.get_linestyle() not in ("-", "solid")}
    assert dashed == {f"arc-{i}" for i in range(40) if heads[i] != gold[i]}


@settings(max_examples=20, deadline=None)
@given(projective_trees())
def test_arcs_of_a_projective_tree_do_not_meet(heads):
    figure = draw_tree(WORDS[: len(heads)], heads, labels=["x"] * len(heads))
    uprights, tops = [], []
    for arc in figure.axes[0].patches:
        vertices = arc._path_original.vertices
        (x0, base), (x1, _), top = vertices[0], vertices[-1], vertices[:, 1].max()
        if x0 == x1:  # of the root
            uprights.append((x0, 0.0, top))
        else:
            uprights += [(x0, base, top), (x1, base, top)]
            tops.append((min(x0, x1), max(x0, x1), top))
    assert len({x for x, *_ in uprights}) == len(uprights), "no two at one place"
    for left, right, height in tops:
        assert not any(left < x < right and low < height < high for x, low, high in uprights), "none crosses another"
    assert len(set(tops)) == len(tops)
    plt.close(figure)


def test_variants_mark_what_another_lacks():
    words, long = list("abc"), ["und", "wieder"] * 8
    variants = [
        Variant("given", [1, -1, 1], ["x", "root", "y"], ["eins", "zwei"]),
        Variant("other label", [1, -1, 1], ["z", "root", "y"], ["eins", "drei"]),
        Variant("no parse", None, None, ["eins", "zwei", *long]),
    ]
    figure = draw_variants(words, variants)
    texts = {text.get_gid(): text for text in figure.texts if text.get_gid()}
    marked = {gid for gid, text in texts.items() if text.get_color() == OTHER}
    assert marked == {"translation-0-1", "translation-1-1", *(f"translation-2-{i}" for i in range(1, 2 + len(long)))}
    arcs = {a.get_gid(): a.get_linestyle() for a in figure.findobj(lambda a: (a.get_gid() or "").startswith("arc-"))}
    assert {gid for gid, style in arcs.items() if style != "-"} == {"arc-0-0", "arc-1-0"}
    drawn = [text for holder in (figure, *figure.axes) for text in holder.texts if text.get_text()]
    assert overlapping(boxes(figure, drawn)) == []
    assert len({round(box.y0) for box in boxes(figure, [texts[f"translation-2-{i}"] for i in range(18)])}) > 1, "wraps"


def labels_of(figure, axis):
    return [boxes(figure, [t for t in a.get_ticklabels() if t.get_text()]) for a in (axis.xaxis, axis.yaxis)]


@pytest.mark.parametrize("size", [1, 80])
def test_labels_of_heat_maps_can_be_read(size):
    rows, columns = [*WORDS, *WORDS][:size], ["ROOT", *[*WORDS, *WORDS][:size]]
    weights = np.full((size, size + 1), 1 / (size + 1))
    figure = draw_heat_map(weights, rows, columns, row_name="dependent", column_name="head")
    figure.canvas.draw()
    axis = figure.axes[0]
    of_columns, of_rows = labels_of(figure, axis)
    assert (len(of_columns), len(of_rows)) == (size + 1, size)
    assert overlapping(of_columns) == [] and overlapping(of_rows) == []
    assert [t.get_text() for t in axis.get_xticklabels()] == columns
    assert np.array_equal(axis.images[0].get_array(), weights)


def grid_of(figure, axes):
    """(number of rows, number of columns) that the axes stand in."""
    figure.canvas.draw()
    places = [axis.get_position() for axis in axes]
    return len({round(p.y0, 3) for p in places}), len({round(p.x0, 3) for p in places})


@pytest.mark.parametrize(("heads", "grid"), [(2, (1, 2)), (3, (2, 2)), (8, (3, 3))])
def test_more_than_two_heads_stand_in_a_grid(heads, grid):
    weights = np.random.default_rng(0).dirichlet(np.ones(5), size=(heads, 5)) / 2
    figure = draw_attention(weights, FORTY[:5], np.array([1, 0.5, 4, np.nan, 0]))
    axes = [axis for axis in figure.axes if axis.images]
    assert [axis.get_title() for axis in axes] == [f"layer 1, head {h + 1}" for h in range(heads)]
    assert grid_of(figure, axes) == grid
    for h, axis in enumerate(axes):
        assert np.array_equal(axis.images[0].get_array(), weights[h])
        assert len(axis.patches) == 4
        if h % grid[1] == 0:
            assert [t.get_text() for t in axis.get_yticklabels()] == FORTY[:5]
        low, high = axis.images[0].get_clim()
        assert low == 0 and 0 <= high - weights.max() < 0.1, "one scale, to the largest weight of any head"
        assert high == round(high, 1)


def test_a_heat_map_goes_to_its_largest_weight():
    weights = np.array([[0.2, 0.11], [0.05, 0.3]])
    figure = draw_heat_map(weights, ["a", "b"], ["c", "d"], row_name="r", column_name="c")
    assert figure.axes[0].images[0].get_clim() == (0, 0.3)
    figure = draw_heat_map(0 * weights, ["a", "b"], ["c", "d"], row_name="r", column_name="c")
    assert figure.axes[0].images[0].get_clim() == (0, 1)


def test_weights_that_are_no_numbers_are_refused():
    right, wrong, tokens = np.full((1, 2, 2), 0.5), np.array([[[0.5, 0.5], [0.5, np.inf]]]), ["a", "b"]
    with pytest.raises(ValueError, match="the attention weights: NaN or infinite"):
        draw_attention(wrong, tokens, None)
    with pytest.raises(ValueError, match="the attention weights: NaN or infinite"):
        draw_heat_map(wrong[0], tokens, tokens, row_name="r", column_name="c")
    with pytest.raises(ValueError, match="the annotations: NaN or infinite"):
        draw_annotations(wrong[0], tokens)
    with pytest.raises(ValueError, match="the predicted positions: NaN or infinite"):
        draw_positions(right, np.array([[1.0, np.nan]]), tokens, tokens)

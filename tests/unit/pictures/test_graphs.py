"""Drawn graphs: every arc above the threshold is there, as wide as it is probable, and words can be read."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_syntax.pictures.arcs import levels
from fairseq_syntax.pictures.graphs import WIDEST, draw_graph

WORDS = [*"a mm $5 and $6 Donaudampfschifffahrtsgesellschaft , i W_x^2 <b> & {x} \\frac \u00e4".split()] * 2


def random_graph(size, seed=0):
    graph = np.exp(2 * np.random.default_rng(seed).standard_normal((size, size + 1)))
    graph[np.arange(size), np.arange(1, size + 1)] = 0.0
    return graph / graph.sum(axis=1, keepdims=True)


ARCS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda arc: arc[0] != arc[1]), max_size=25)


@given(ARCS)
def test_levels(arcs):
    found = levels(arcs)
    assert len(found) == len(arcs) and min(found, default=1) == 1
    for i, arc in enumerate(arcs):
        for j, other in enumerate(arcs):
            (low, high), (left, right) = sorted(arc), sorted(other)
            if i != j and low < right and left < high:
                assert found[i] != found[j]
            if low <= left and right <= high and right - left < high - low:
                assert found[i] > found[j]


@pytest.mark.parametrize("threshold", [0.1, 0.45])
def test_where_arcs_are_and_what_they_say(threshold):
    size = len(WORDS)
    graph = random_graph(size, 1)
    gold = [int(row.argmax()) - 1 if word % 2 else (word + 1) % size for word, row in enumerate(graph)]
    options = dict(
        tags=["PROPN"] * size, labels=["nsubj"] * size, gold=gold, gold_labels=["_", "acl:relcl"] * (size // 2)
    )
    figure = draw_graph(WORDS, graph, threshold=threshold, **options)
    (axis,) = figure.axes
    renderer = figure.canvas.get_renderer()
    texts = {text.get_gid(): text for text in axis.texts if text.get_gid()}
    assert [texts[f"word-{i}"].get_text() for i in range(size + 1)] == ["ROOT", *WORDS]
    assert [text.get_text() for text in axis.texts].count("PROPN") == size
    arcs = {patch.get_gid(): patch for patch in axis.patches}
    above = [(word + 1, head) for word, head in zip(*np.nonzero(graph > threshold), strict=True)]
    assert set(arcs) == {f"arc-{d}-{h}" for d, h in above} | {f"gold-{w + 1}-{h + 1}" for w, h in enumerate(gold)}
    for name, arc in arcs.items():
        kind, dependent, head = name.split("-")
        if kind == "arc":
            right = gold[int(dependent) - 1] == int(head) - 1
            assert (arc.get_linestyle() in ("-", "solid")) == right
            row = graph[int(dependent) - 1]
            assert arc.get_linewidth() == pytest.approx(WIDEST * row[int(head)])
            *label, said = texts[f"probability-{dependent}-{head}"].get_text().split()
            assert float(said) == pytest.approx(row[int(head)], abs=0.005 + 1e-9)
            assert label == ["nsubj"] * int(row.argmax() == int(head)), "at the most probable arc"
    assert len([gid for gid in texts if gid.startswith("probability")]) == len(above) > 0
    relations = {gid: text for gid, text in texts.items() if gid.startswith("label-gold")}
    assert {gid: text.get_text() for gid, text in relations.items()} == {
        f"label-gold-{word + 1}-{head + 1}": "acl:relcl" for word, head in enumerate(gold) if word % 2
    }
    numbers = [text.get_window_extent(renderer) for gid, text in texts.items() if gid.startswith("probability")]
    assert not any(one.overlaps(other) for i, one in enumerate(numbers) for other in numbers[:i])


def test_certain_arcs_have_no_number():
    figure = draw_graph(["a", "b"], np.array([[0.996, 0, 0.004], [0, 0.99, 0.01]]), threshold=0.1, labels=["x", "y"])
    texts = {text.get_gid(): text.get_text() for text in figure.axes[0].texts}
    assert (texts["probability-1-0"], texts["probability-2-1"]) == ("x", "y .99")
    assert {arc.get_linestyle() for arc in figure.axes[0].patches} <= {"-", "solid"}, "without a tree, none is dashed"

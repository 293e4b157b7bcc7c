"""Buckets of sentences by source length, and their picture."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_syntax.evaluate.length_buckets import draw_buckets, length_buckets


def as_lists(buckets):
    return {bucket.label: bucket.sentences.tolist() for bucket in buckets}


def test_edges():
    lengths = [1, 10, 11, 20, 21, 40, 41, 50, 51, 300, 0]
    assert as_lists(length_buckets(lengths)) == {
        "1-10": [0, 1, 10],
        "11-20": [2, 3],
        "21-30": [4],
        "31-40": [5],
        "41-50": [6, 7],
        ">50": [8, 9],
    }
    assert as_lists(length_buckets([3, 4, 6, 7], width=3, longest=6)) == {"1-3": [0], "4-6": [1, 2], ">6": [3]}


def test_empty_buckets_stay_in_between_and_go_at_the_end():
    assert as_lists(length_buckets([25, 5])) == {"1-10": [1], "11-20": [], "21-30": [0]}
    assert length_buckets([]) == []


@given(st.lists(st.integers(0, 90), min_size=1), st.integers(1, 12), st.integers(1, 6))
def test_every_sentence_is_in_its_bucket(lengths, width, closed):
    buckets = length_buckets(lengths, width, width * closed)
    assert sorted(np.concatenate([bucket.sentences for bucket in buckets])) == list(range(len(lengths)))
    assert len(buckets[-1]) > 0
    for bucket in buckets:
        for sentence in bucket.sentences:
            if bucket.label.startswith(">"):
                assert lengths[sentence] > int(bucket.label[1:]) == width * closed
            else:
                low, high = map(int, bucket.label.split("-"))
                assert low <= max(lengths[sentence], 1) <= high == low + width - 1


@pytest.mark.parametrize(("width", "longest"), [(10, 55), (10, 5), (7, 10)])
def test_last_bucket_begins_where_another_ends(width, longest):
    with pytest.raises(ValueError, match=f"{longest} words, which is no multiple of the width {width}"):
        length_buckets([1], width, longest)


def test_picture():
    buckets = length_buckets([5, 6, 25, 60], longest=50)
    values = [[30.0, np.nan, 20.0, np.nan, np.nan, 10.0], [31.0, np.nan, 22.0, np.nan, np.nan, 15.0]]
    intervals = [[(value - 3.0, value + 1.5) for value in of_system] for of_system in values]
    intervals[1][0] = (31.5, 33.0)  # the score is outside
    figure = draw_buckets(buckets, ["_base$1", "a$b$"], values, intervals)
    (axis,) = figure.axes
    assert [tick.get_text() for tick in axis.get_xticklabels()] == [
        *("1-10\nn = 2", "11-20\nn = 0", "21-30\nn = 1", "31-40\nn = 0", "41-50\nn = 0", ">50\nn = 1")
    ]
    assert axis.get_xticks().tolist() == [0, 1, 2, 3, 4, 5]
    assert axis.get_xlabel() == "source words, n sentences"
    assert axis.get_ylabel() == "BLEU, 95 % intervals (bootstrap)"
    legend = axis.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["_base$1", "a$b$"]
    drawn = np.array([line.get_ydata() for line in axis.get_lines()], dtype=float)
    np.testing.assert_array_equal(drawn, values)
    colours = {line.get_color() for line in axis.get_lines()}
    assert len(colours) == 2
    for line, bars, of_system, ends in zip(axis.get_lines(), axis.collections, values, intervals, strict=True):
        assert np.abs(line.get_xdata() - np.arange(6)).max() < 0.2
        for place, score, bar, (low, high) in zip(line.get_xdata(), of_system, bars.get_segments(), ends, strict=True):
            if np.isfinite(score):
                assert bar[:, 0].tolist() == [place, place]
                assert bar[:, 1] == pytest.approx([min(low, score), high])
    first, second = (line.get_xdata() for line in axis.get_lines())
    assert (first != second).all(), "the bars of systems stand beside one another"
    figure.canvas.draw()  # `$` is no formula
    plt.close(figure)

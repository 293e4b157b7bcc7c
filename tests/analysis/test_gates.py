"""Gate norms: who has the highest, and the coloured page."""

import math
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import numpy as np
import pytest

from fairseq_syntax.analysis.gates import GatedSentence, count_highest, draw_gates, gates_page, relative_entropy

SENTENCES = [
    GatedSentence(0, ["er", "sch@@", "läft", "</s>"], np.array([1.0, 2.0, 3.0, 0.5])),
    GatedSentence(1, ["<b>", "geht", "&", "</s>"], np.array([1.0, 4.0, 4.0, 1.0])),
    GatedSentence(2, ["ja", "</s>"], np.array([1.5, 2.5])),
]
TAGS = [["PRON", "VERB", "VERB", "</s>"], ["X", "VERB", "X", "</s>"], ["INTJ", "</s>"]]


def test_highest_norms_are_counted():
    assert [sentence.highest for sentence in SENTENCES] == [2, 1, 1]
    counts = count_highest(SENTENCES, TAGS)
    assert counts == {"VERB": (2, 3), "</s>": (1, 3), "X": (0, 2), "INTJ": (0, 1), "PRON": (0, 1)}
    assert list(counts) == ["VERB", "</s>", "X", "INTJ", "PRON"], "most frequent first"
    expected = 2 / 3 * math.log2((2 / 3) / 0.3) + 1 / 3 * math.log2((1 / 3) / 0.3)
    assert relative_entropy(counts) == pytest.approx(expected)
    assert relative_entropy({"A": (3, 30), "B": (1, 10)}) == pytest.approx(0)


class Page(HTMLParser):
    """The spans of the table: (text, style, bold)."""

    def __init__(self, text):
        super().__init__()
        self.spans, self.open, self.outside = [], [], []
        self.feed(text)
        self.close()
        assert not self.open, "all elements are closed"

    def handle_starttag(self, tag, attributes):
        if tag != "meta":
            self.open.append(tag)
        if tag == "span":
            self.spans.append(["", dict(attributes), False])
        for name, value in attributes:
            if name in ("src", "href"):
                self.outside.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "span" in self.open:
            self.spans[-1][0] += data
            self.spans[-1][2] = "b" in self.open


def darkness(style):
    """Of the background: 0 white, 1 black."""
    red, green, blue = (int(x) for x in style.split("rgb(")[1].split(")")[0].split(","))
    return 1 - (red + green + blue) / (3 * 255)


def test_the_page_shows_every_token_darker_for_a_higher_norm():
    page = Page(gates_page(SENTENCES, "a < b"))
    assert page.outside == [], "nothing is loaded"
    spans = page.spans[2:]  # after the legend
    assert [text for text, _, _ in spans] == [token for s in SENTENCES for token in s.tokens]
    norms = np.concatenate([s.norms for s in SENTENCES])
    shades = np.array([darkness(attributes["style"]) for _, attributes, _ in spans])
    for one in range(len(norms)):
        assert ((norms[one] > norms) == (shades[one] > shades)).all()
    assert [bold for _, _, bold in spans] == [i == s.highest for s in SENTENCES for i in range(len(s.tokens))]
    assert [attributes["title"] for _, attributes, _ in spans] == [f"{norm:.3f}" for norm in norms]


def test_a_page_of_equal_norms_or_of_nothing():
    assert len(Page(gates_page([GatedSentence(0, ["a", "b"], np.ones(2))], "t")).spans) == 4
    assert len(Page(gates_page([], "t")).spans) == 2


def test_the_picture_shows_every_token_darker_for_a_higher_norm_and_none_over_another():
    long = GatedSentence(3, [f"word{i}" for i in range(40)] + ["</s>"], np.linspace(0, 3, 41))
    sentences = [*SENTENCES, long]
    figure = draw_gates(sentences, "$title$")
    title, *texts = figure.axes[0].texts
    assert title.get_text() == "$title$: norm 0.00 (white) to 4.00, the highest of a sentence in bold"
    assert [text.get_text() for text in texts] == [token for s in sentences for token in s.tokens]
    norms = np.concatenate([s.norms for s in sentences])
    shades = np.array([-sum(text.get_bbox_patch().get_facecolor()[:3]) for text in texts])
    order = np.argsort(norms, kind="stable")
    assert (np.diff(shades[order]) >= 0).all() and shades[order[-1]] > shades[order[0]] + 1
    assert [text.get_weight() == "bold" for text in texts] == [
        i == s.highest for s in sentences for i in range(len(s.tokens))
    ]
    renderer = figure.canvas.get_renderer()
    boxes = [text.get_window_extent(renderer) for text in texts]
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])
    page = figure.bbox
    assert all(page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1 for box in boxes)
    plt.close(figure)

"""Gate norms: who has the highest, and the coloured page."""

import html
import math
import re
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import numpy as np
import pytest

from fairseq_syntax.tools.gate_drawing import draw_gates, gates_page
from fairseq_syntax.tools.gate_norms import GatedSentence, count_highest, relative_entropy

SENTENCES = [
    GatedSentence(0, ["er", "sch@@", "läft", "</s>"], np.array([1.0, 2.0, 3.0, 0.5]), ["he", "sleeps"]),
    GatedSentence(1, ["<b>", "geht", "&", "</s>"], np.array([1.0, 4.0, 4.0, 1.0]), ["$<b>", "goes", "&quot;", "$"]),
    GatedSentence(2, ["ja", "</s>"], np.array([1.5, 2.5]), ["yes"]),
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
    spans = page.spans[1:]  # after the bar of the colours
    assert [text for text, _, _ in spans] == [token for s in SENTENCES for token in s.tokens]
    norms = np.concatenate([s.norms for s in SENTENCES])
    shades = np.array([darkness(attributes["style"]) for _, attributes, _ in spans])
    for one in range(len(norms)):
        assert ((norms[one] > norms) == (shades[one] > shades)).all()
    assert [bold for _, _, bold in spans] == [i == s.highest for s in SENTENCES for i in range(len(s.tokens))]
    assert [attributes["title"] for _, attributes, _ in spans] == [f"{norm:.3f}" for norm in norms]


def test_a_page_of_equal_norms_or_of_nothing():
    assert len(Page(gates_page([GatedSentence(0, ["a", "b"], np.ones(2), [])], "t")).spans) == 3
    assert len(Page(gates_page([], "t")).spans) == 1


def test_the_page_shows_the_source_and_its_colours():
    page = gates_page(SENTENCES, "t")
    assert re.findall(r'<div class="source">(.*?)</div>', page) == ["he sleeps", "$&lt;b&gt; goes &quot; $", "yes"]
    assert re.search(r'0\.500<span class="bar"></span>4\.000', page)
    assert "linear-gradient(to right, rgb(255, 255, 255), rgb(8, 48, 107))" in page
    controls = gates_page([GatedSentence(0, ["a\x01"], np.ones(1), ["\x00"])], "\x1b")
    assert not re.search("[\x00-\x09\x0b-\x1f]", controls) and "a\u2401" in controls


def test_the_picture_shows_every_token_darker_for_a_higher_norm_and_none_over_another():
    source = [f"source{i}" for i in range(30)]
    long = GatedSentence(3, [f"word{i}" for i in range(40)] + ["</s>"], np.linspace(0, 3, 41), source)
    sentences = [*SENTENCES, long, GatedSentence(4, ["</s>"], np.array([1.0]), [])]
    figure = draw_gates(sentences, "$title$")
    title, *texts = figure.axes[0].texts
    assert title.get_text() == "$title$; the highest norm of a sentence in bold, the source in grey"
    sources = {text.get_gid(): text for text in texts if text.get_gid()}
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
    boxes = [text.get_window_extent(renderer) for text in [title, *texts]]
    bar = figure.axes[1].get_tightbbox(renderer)
    assert not any(one.overlaps(other) for i, one in enumerate([bar, *boxes]) for other in [bar, *boxes][:i])
    page = figure.bbox
    for box in (bar, *boxes):
        assert page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1
    # a source stands above its translation
    first = {n: boxes[1 + texts.index(sources[f"source-{n}-0"])] for n in range(4)}
    starts = np.cumsum([0] + [len(s.tokens) for s in sentences])
    for n in range(4):
        token = tokens[starts[n]].get_window_extent(renderer)
        assert first[n].y0 > token.y1 and (n == 0 or first[n].y1 < tokens[starts[n] - 1].get_window_extent(renderer).y0)
    plt.close(figure)


@pytest.mark.parametrize("norms", [[0.5, 4.0], [2.0, 2.0]])
def test_the_picture_has_a_bar_of_its_colours(norms):
    figure = draw_gates([GatedSentence(0, ["a", "b"], np.array(norms), ["c"])], "t")
    figure.canvas.draw()
    text, bar = figure.axes
    low, high = bar.get_xlim()
    assert low == norms[0] and high == (norms[1] if norms[1] > norms[0] else low + 1)
    colours = bar.collections[-1].cmap
    for token, norm in zip(text.texts[-2:], norms, strict=True):
        expected = colours((norm - low) / (high - low))
        assert token.get_bbox_patch().get_facecolor() == pytest.approx(expected, abs=0.01)
    plt.close(figure)

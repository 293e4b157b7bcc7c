"""fairseq-syntax report: the page holds what the records say, none of it is markup, and a real browser shows it."""

import shutil
from html.parser import HTMLParser

import numpy as np
import pytest

from fairseq_syntax.evaluate.comparison import Evaluation
from fairseq_syntax.evaluate.corpus import Corpus, System
from fairseq_syntax.evaluate.metrics import METRICS
from fairseq_syntax.evaluate.report import _sentences, marked, most_different
from fairseq_syntax.tools import report

EVIL = "<script>alert(1)</script> \"q\" 'a' & \x07 \u202eאבג </td></table>"
SOURCES = ["the dog sees the cat", "a bird sings", f"the {EVIL}"]

REFERENCES = ["der hund sieht die katze .", "ein vogel singt im wald .", "das wort steht hier so ."]
OUTPUTS = {
    "plain": [REFERENCES[0], "ein vogel singt im baum .", "das wort steht da ."],
    EVIL: ["der hund sah die katze .", REFERENCES[1], f"{EVIL} wort"],
}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page whose title, systems, texts and references have markup."""
    folder = tmp_path_factory.mktemp("report")
    texts = {"source": SOURCES, "reference": REFERENCES, "mine": OUTPUTS[EVIL], "plain": OUTPUTS["plain"]}
    texts |= {"kind.a": ["a", "b", "a"], "kind.b": ["c", "c", "d"]}
    for name, lines in texts.items():
        (folder / name).write_text("".join(line + "\n" for line in lines), encoding="utf8")
    shutil.copy(folder / "mine", folder / "again")
    systems = ["--system", "plain", folder / "plain", "--system", EVIL, folder / "mine", folder / "again"]
    options = ["--reference", folder / "reference", "--source", folder / "source", "--min-bucket", "1"]
    options += ["--by", f"label:{folder}/kind.a", "--by", f"label:{folder}/kind.b"]
    options += ["--title", EVIL, "--trials", "100", "--bootstrap", "100", "--output", folder / "report.html"]
    assert report.main([*map(str, [*systems, *options])]) == 0
    assert report.main([*map(str, [*systems, *options])]) == 1, "it is not replaced unasked"
    return folder / "report.html"


class Reader(HTMLParser):
    """Tags that are opened and not closed, and all text that is no style."""

    VOID = ("meta", "img", "input", "link", "br")

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.said = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.said.append(data)


def test_nothing_in_the_data_is_markup(page):
    assert marked("a x c", "a b c") == [("a", True), ("x", False), ("c", True)] and marked("", "a") == []
    reader = Reader()
    content = page.read_text(encoding="utf8")
    reader.feed(content)
    assert not reader.open
    assert "script" not in [tag for tag, _ in reader.tags] and "\x07" not in content
    assert not any(name.startswith("on") for _, attributes in reader.tags for name in attributes)
    # nothing is fetched
    assert all(a.get("src", "data:").startswith("data:") and a.get("href", "#").startswith("#") for _, a in reader.tags)
    said = "".join(reader.said)
    assert said.count("<script>alert(1)</script>") > 10
    assert said.count("BLEU by kind") == 2, "one for each file of labels"
    for words in ("Scores and tests", "Where systems differ", "Sentences", "Settings", "sentences are too few"):
        assert words in said


def evaluated(systems, metric):
    corpus = Corpus(systems, [[reference] for reference in REFERENCES], [0, 1, 2], None)
    return Evaluation(corpus, [METRICS[metric](False, "none")], 10, 10)


def test_sentences_come_by_how_far_systems_are_apart():
    systems = [System(name, ["1", "2"], ["", ""], [lines, REFERENCES]) for name, lines in OUTPUTS.items()]
    found = evaluated(systems, "chrF")
    means = [found.sentence_scores("chrF", system.name).mean(axis=0) for system in systems]
    spread = np.abs(means[0] - means[1])
    expected = [(i, pytest.approx(spread[i])) for i in np.argsort(-spread)[:2].tolist()]
    assert most_different(found, "chrF", 2) == expected
    # where all agree, there is nothing to show; equal translations of several seeds stand once
    assert not list(_sentences(evaluated([System("a", ["1"], [""], [REFERENCES])], "chrF"), "chrF", 2))
    first = next(each for each in _sentences(found, "chrF", 3) if each["number"] == 0)
    assert [each[:2] for each in first["translations"]] == [("plain", ["1", "2"]), (EVIL, ["1"]), (EVIL, ["2"])]


def test_scores_of_sentences_have_the_digits_of_their_metric():
    others = ["guten tag", *REFERENCES[1:]]
    systems = [System("right", ["1"], [""], [REFERENCES]), System("wrong", ["1"], [""], [others])]
    for metric, best in (("BLEU", "100.00"), ("RIBES", "1.0000")):
        [found] = _sentences(evaluated(systems, metric), metric, 5)
        right, wrong = (each[2] for each in found["translations"])
        assert right == best and float(found["spread"]) == pytest.approx(float(right) - float(wrong))


@pytest.fixture(scope="module")
def browser():
    """Debian's Chromium, without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no page is looked at")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("chromium is not installed: no page is looked at (apt-get install chromium)")
    with playwright.sync_playwright() as running:
        found = running.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


def test_a_browser_shows_it(page, browser):
    tab = browser.new_page(viewport={"width": 1200, "height": 900})
    complaints = []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("dialog", lambda dialog: complaints.append("a script of the data was run"))
    tab.on("request", lambda request: request.url.startswith(("file:", "data:")) or complaints.append(request.url))
    tab.goto(page.as_uri())

    # nothing is wider than a phone, nor than paper
    wide = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
    for width in (360, 1200):
        tab.set_viewport_size({"width": width, "height": 800})
        assert not tab.evaluate(wide), width
    tab.emulate_media(media="print")
    tab.set_viewport_size({"width": 700, "height": 1000})  # A4 less its margins
    cut = "(tables) => tables.filter((table) => table.getBoundingClientRect().right > innerWidth).length"
    assert tab.locator("table").evaluate_all(cut) == 0
    assert not complaints

"""fairseq-syntax report: the page holds what the records say, none of it is markup, and a real browser shows it."""

import gzip
import json
import shutil
from html.parser import HTMLParser

import numpy as np
import pytest

from fairseq_syntax.evaluate.comparison import Chance, Comparison, Evaluation
from fairseq_syntax.evaluate.corpus import Corpus, System
from fairseq_syntax.evaluate.metrics import METRICS
from fairseq_syntax.evaluate.report import _sentences, marked, most_different
from fairseq_syntax.tools import report
from fairseq_syntax.trees import Sentence

EVIL = "<script>alert(1)</script> \"q\" 'a' & \x07 \u202eאבג </td></table>"
SOURCES = ["the dog sees the cat", "a bird sings", f"the {EVIL}"]

REFERENCES = ["der hund sieht die katze .", "ein vogel singt im wald .", "das wort steht hier so ."]
OUTPUTS = {
    "plain": [REFERENCES[0], "ein vogel singt im baum .", "das wort steht da ."],
    EVIL: ["der hund sah die katze .", REFERENCES[1], f"{EVIL} wort"],
}


def _score(value: float) -> dict:
    return {"score": value, "signature": "other"}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page whose records, texts and references have markup in every field."""
    folder = tmp_path_factory.mktemp("report")
    results = folder / "results"
    results.mkdir()
    for number, (system, lines) in enumerate(OUTPUTS.items()):
        for seed in (1, 2):
            record = {
                **{"corpus": EVIL, "system": system, "family": EVIL, "seed": seed, "trees": EVIL, "stopped": "cap"},
                "scores": {split: {"BLEU": _score(1.0)} for split in ("test", EVIL)},
            }
            # the name of a file cannot hold the name of this system
            name = system if number == 0 else "evil"
            record["system"] = name if number == 0 else "evil"
            (results / f"{name}-{seed}.json").write_text(json.dumps(record), encoding="utf8")
            text = "".join(line + "\n" for line in lines)
            (results / f"{name}-{seed}.test.txt.gz").write_bytes(gzip.compress(text.encode()))
    texts = {"source": SOURCES, "reference": REFERENCES, "mine": OUTPUTS[EVIL], "again": OUTPUTS[EVIL]}
    for name, lines in texts.items():
        (folder / name).write_text("".join(line + "\n" for line in lines), encoding="utf8")
    output = folder / "report.html"
    arguments = [str(results), "--split", "test", "--reference", str(folder / "reference"), "--min-bucket", "1"]
    arguments += ["--source", str(folder / "source"), "--system", "plain", "--system", "evil"]
    arguments += ["--system", EVIL, str(folder / "mine"), str(folder / "again")]
    arguments += ["--title", EVIL, "--trials", "100", "--bootstrap", "100"]
    assert report.main([*arguments, "--output", str(output)]) == 0
    assert report.main([*arguments, "--output", str(output)]) == 1, "it is not replaced unasked"
    return output


class Reader(HTMLParser):
    """Tags that are opened and not closed, and all text that is no script and no style."""

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
        if self.open and self.open[-1] not in ("script", "style"):
            self.said.append(data)


def test_nothing_in_the_data_is_markup(page):
    reader = Reader()
    content = page.read_text(encoding="utf8")
    reader.feed(content)
    assert not reader.open
    assert [tag for tag, _ in reader.tags].count("script") == 1 and "\x07" not in content
    assert "alert(1)" not in content.split("<script>")[1].split("</script>")[0]
    assert not any(name.startswith("on") for _, attributes in reader.tags for name in attributes)
    # nothing is fetched
    assert all(a.get("src", "data:").startswith("data:") and a.get("href", "#").startswith("#") for _, a in reader.tags)
    said = "".join(reader.said)
    assert said.count("<script>alert(1)</script>") > 15
    for words in ("Scores and tests", "Where systems differ", "Sentences", "Settings", "sentences are too few"):
        assert words in said


@pytest.fixture
def small(tmp_path, capsys):
    """Function: options -> exit status, stderr and page of a folder with a record of PASCAL."""
    results = tmp_path / "results"
    results.mkdir()
    record = {"corpus": "the record's", "system": "pascal", "seed": 1, "scores": {"test": {"BLEU": _score(1.0)}}}
    (results / "pascal-1.json").write_text(json.dumps(record))
    (results / "pascal-1.test.txt.gz").write_bytes(gzip.compress("\n".join(REFERENCES).encode()))
    (tmp_path / "reference").write_text("\n".join(REFERENCES))
    (tmp_path / "mine").write_text("\n".join([*REFERENCES[:2], ""]) + "\n")

    def make(*options):
        given = [results, "--split", "test", "--reference", tmp_path / "reference", "--trials", 9, "--bootstrap", 9]
        output = tmp_path / "page.html"
        status = report.main([*map(str, given), *map(str, options), "--output", str(output), "--overwrite"])
        return status, capsys.readouterr().err, output.read_text(encoding="utf8") if status == 0 else ""

    return make


def test_own_translations_have_no_record_of_the_same_name(small, tmp_path):
    assert "<title>the record&#39;s: test</title>" in small()[2]
    status, said, own = small("--system", "pascal", tmp_path / "mine")
    assert status == 0 and "record&#39;s" not in own
    assert said == f"fairseq-syntax report: {tmp_path / 'mine'}: 1 of 3 lines are empty\n"


def test_words_that_the_reference_has_not_are_marked():
    assert marked("a x c", "a b c") == [("a", True), ("x", False), ("c", True)] and marked("", "a") == []


def compared(systems, *metrics, parses=None):
    corpus = Corpus(systems, [[reference] for reference in REFERENCES], [0, 1, 2], None)
    evaluation = Evaluation(corpus, [METRICS[name](False, "none") for name in metrics], Chance(10, 10))
    content = {"metrics": [{"name": metrics[0]}]}
    return Comparison(evaluation, content, parses)


def test_sentences_come_by_how_far_systems_are_apart():
    systems = [System(name, ["1", "2"], ["", ""], [lines, REFERENCES]) for name, lines in OUTPUTS.items()]
    tree = Sentence(["a", "b"], [-1, 0], ["root", "dep"], ["X", "X"])
    found = compared(systems, "chrF", parses=[tree] * 3)
    means = [found.evaluation.sentence_scores("chrF", system.name).mean(axis=0) for system in systems]
    spread = np.abs(means[0] - means[1])
    expected = [(i, pytest.approx(spread[i])) for i in np.argsort(-spread)[:2].tolist()]
    assert most_different(found.evaluation, "chrF", 2) == expected
    # their trees are drawn; where all agree, there is nothing to show
    shown = list(_sentences(found, "chrF", 3))
    assert all(each["tree"].startswith("data:image/svg+xml") for each in shown)
    assert not list(_sentences(compared([System("a", ["1"], [""], [REFERENCES])], "chrF"), "chrF", 2))
    # equal translations of several seeds stand once
    first = next(each for each in shown if each["number"] == 0)
    assert [(t["system"], t["runs"]) for t in first["translations"]] == [
        *(("plain", ["1", "2"]), (EVIL, ["1"]), (EVIL, ["2"]))
    ]


def test_scores_of_sentences_have_the_digits_of_their_metric():
    others = ["guten tag", *REFERENCES[1:]]
    systems = [System("right", ["1"], [""], [REFERENCES]), System("wrong", ["1"], [""], [others])]
    for metric, best in (("BLEU", "100.00"), ("RIBES", "1.0000")):
        [found] = _sentences(compared(systems, metric), metric, 5)
        right, wrong = (each["score"] for each in found["translations"])
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
    assert not complaints

    # tables sort: by name, and by number up and down
    table = tab.locator("#scores table").first
    names = lambda: table.locator("tbody td:first-child").all_inner_texts()  # noqa: E731
    column = table.locator("thead th", has_text="mean")
    before = names()
    column.get_by_role("button").focus()
    tab.keyboard.press("Enter")
    assert column.get_attribute("aria-sort") == "ascending"
    up = names()
    tab.keyboard.press("Enter")
    assert column.get_attribute("aria-sort") == "descending" and sorted(names()) == sorted(up) == sorted(before)
    scores = [float(text.split()[0]) for text in table.locator("tbody tr td:nth-child(3)").all_inner_texts()]
    assert scores == sorted(scores, reverse=True) and scores[0] > scores[-1]

    # sentences can be searched, systems hidden
    assert tab.locator("#found").inner_text() == "3 of 3 sentences"
    tab.get_by_label("Search").fill("baum")
    assert tab.locator("#found").inner_text() == "1 of 3 sentences"
    tab.get_by_role("checkbox", name="plain").uncheck()
    assert tab.locator("#found").inner_text() == "0 of 3 sentences"
    tab.get_by_label("Search").fill("")
    assert tab.locator("#found").inner_text() == "3 of 3 sentences"

    # nothing is wider than a phone, nor than paper; on paper everything is unfolded
    wide = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
    for width in (360, 1200):
        tab.set_viewport_size({"width": width, "height": 800})
        assert not tab.evaluate(wide), width
    tab.emulate_media(media="print")
    tab.set_viewport_size({"width": 700, "height": 1000})  # A4 less its margins
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.locator("details:not([open])").count() == 0
    cut = "(tables) => tables.filter((table) => table.getBoundingClientRect().right > innerWidth).length"
    assert tab.locator("table").evaluate_all(cut) == 0
    tab.emulate_media(media="screen", color_scheme="dark")
    dark = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark == "rgb(21, 22, 26)"
    assert not complaints


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--output", "report.txt"], "give a name that ends in .html"),
        (["--output", "r.html", "--system", "b", "b1", "--system", "b", "b2"], "--system b: is given twice; give all"),
    ],
)
def test_wrong_usage(options, said, capsys):
    with pytest.raises(SystemExit):
        report.main(["results", "--split", "test", "--reference", "r", *options])
    assert said in capsys.readouterr().err


def test_translations_of_any_origin(tmp_path, capsys):
    """Without records: scores, tests, what they say in words, and the sentences."""
    for name, lines in (("one", "a b c d\nb c\n"), ("two", "a b c d\nb d\n"), ("reference", "a b c d\nb d\n")):
        (tmp_path / name).write_text(lines, encoding="utf-8")
    given = ["--system", "one", str(tmp_path / "one"), "--system", "<two>", str(tmp_path / "two"), "--metrics", "chrF"]
    more = ["--bootstrap", "20", "--trials", "20", "--reference", str(tmp_path / "reference")]
    assert report.main([*given, *more, "--output", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<title>one, &lt;two&gt;" in page and "&lt;two&gt; and one cannot be told apart (+" in page
    for wrong, said in (
        ([*given, *more, "--split", "test"], "RESULTS and --split go together"),
        ([*given[:2], *more], "give RESULTS, or --system NAME FILE"),
    ):
        with pytest.raises(SystemExit):
            report.main([*wrong, "--output", str(tmp_path / "page.html")])
        assert said in capsys.readouterr().err

"""fairseq-syntax report: the page holds what the records say, none of it is markup, and a real browser shows it."""

import gzip
import json
import shutil
from html.parser import HTMLParser

import numpy as np
import pytest

from fairseq_syntax import pretrained
from fairseq_syntax.evaluate import comparison
from fairseq_syntax.evaluate.comparison import Chance, Evaluation
from fairseq_syntax.evaluate.corpus import Corpus, System
from fairseq_syntax.evaluate.curves import draw_parse_quality, parse_points
from fairseq_syntax.evaluate.metrics import METRICS
from fairseq_syntax.systems.parser.parse import OwnParser
from fairseq_syntax.tools import preprocess, report
from fairseq_syntax.tools.markup import marked
from fairseq_syntax.tools.sections import looks, most_different, sentences
from fairseq_syntax.trees import Sentence, format_sentence

EVIL = "<script>alert(1)</script> \"q\" 'a' & \x07 \u202eאבג </td></table>"
SOURCES = ["the dog sees the cat", "a bird sings", f"the {EVIL}"]

REFERENCES = ["der hund sieht die katze .", "ein vogel singt im wald .", "das wort steht hier so ."]
OUTPUTS = {
    "plain": [REFERENCES[0], "ein vogel singt im baum .", "das wort steht da ."],
    EVIL: ["der hund sah die katze .", REFERENCES[1], f"{EVIL} wort"],
}


def accuracy(share: float) -> dict:
    return {"overall": {"accuracy": share}}


def evil(field: str) -> str:
    """Markup that says which field it is of."""
    return f"{EVIL} {field}"


def _score(value: float) -> dict:
    return {"score": value, "signature": "other"}


def point(uas: float) -> dict:
    return {"parses": f"{EVIL}/{uas}", "UAS": uas, "BLEU": _score(uas), "chrF": _score(uas), "agreement": accuracy(0.5)}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page whose records, texts and minimal pairs have markup in every field."""
    folder = tmp_path_factory.mktemp("report")
    results = folder / "results"
    results.mkdir()
    for number, (system, lines) in enumerate(OUTPUTS.items()):
        for seed in (1, 2):
            record = {
                **{"corpus": EVIL, "system": system, "family": EVIL, "seed": seed, "trees": EVIL, "stopped": "cap"},
                "commands": {"train": EVIL, "generate": EVIL},
                **{"commit": EVIL, "processor": EVIL, "versions": {EVIL: EVIL}, "updates": 100 + number},
                "minutes": {"train": 2.5},
                "curve": [{"epoch": i, "updates": 10 * i, "loss": 5 / i} for i in (1, 2, 3)],
                "scores": {split: {"BLEU": _score(1.0), "agreement": accuracy(0.5)} for split in ("test", EVIL)},
                "curve_of_parses": [point(100), point(40)],
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
    contrast = {
        **{"format": 1, "name": EVIL, "digest": "0", "measure": "sum"},
        **{"correct": [-1.0, -2.0], "incorrect": [-2.0, -1.0], "details": {}},
    }
    (folder / "contrast.json").write_text(json.dumps(contrast), encoding="utf8")
    asked = {field: evil(field) for field in ("corpus", "commit", "processor")}
    asked["training"] = {"commit": EVIL, "command": EVIL}
    asked |= {"versions": {evil("package"): evil("version")}, "commands": [evil("command")]}
    pairs = {"format": 1, "name": evil("name"), "digest": evil("digest")}
    pairs["details"] = {evil("column"): ["a", evil("value")], "attractors": ["0", "1"]}
    shares = {"DA": 61.5, "UA": 71.5, "UAS": 81.5, "relations": {evil("relation"): {"words": 7, "DA": 91.5, "UA": 1.0}}}
    answers = {
        evil("probe").replace("/", "∕"): {**contrast, **pairs, "verb": "contrast"},
        "trees": {
            **{"verb": "whatif", "pairs": 2, "counts": {evil("count"): 1}, **pairs},
            **{"references": [[EVIL, "b"], ["c", "d"]], "translations": [[EVIL, "b"], ["c", EVIL]]},
            "scores": [[[-1.0, -2.0], [-2.0, -1.0]]] * 2,
        },
        "treebank": {
            **{"verb": "attachment", "format": 1, "digest": evil("digest")},
            "scores": dict.fromkeys(("trees", "L", "R"), shares),
        },
        "none": {"verb": "unparsed", "scores": {EVIL: {"BLEU": _score(77.7), "agreement": accuracy(0.125)}}},
    }
    for probe, answer in answers.items():
        (results / probe).mkdir()
        for seed in (1, 2):
            packed = gzip.compress(json.dumps({**asked, "system": "evil", "seed": seed, **answer}).encode())
            (results / probe / f"evil-{seed}.json.gz").write_bytes(packed)
    (folder / "look.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
    output = folder / "report.html"
    arguments = [str(results), "--split", "test", "--reference", str(folder / "reference"), "--min-bucket", "1"]
    arguments += ["--source", str(folder / "source"), "--system", "plain", "--system", "evil"]
    arguments += ["--system", EVIL, str(folder / "mine"), str(folder / "again")]
    arguments += ["--contrast", str(folder / "contrast.json")]
    arguments += ["--look", EVIL, str(folder / "look.svg"), "--title", EVIL, "--trials", "100", "--bootstrap", "100"]
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
    sections = ("Scores and tests", "Where systems differ", "Minimal pairs", "Two trees of a sentence", "Worse parses")
    for words in (*sections, "Trees that models find", "Training", "Sentences"):
        assert words in said
    # what the models were asked: of two pairs, one is right; two seeds; by what is known of the pairs
    for field in ("corpus", "commit", "processor", "package", "version", "command", "name", "digest", "count"):
        assert f"</td></table> {field}" in said, field
    for title in ("right pairs in percent, by attractors", "</td></table> column", "</td></table> value (1)"):
        assert title in said
    assert "</td></table> relation (7)" in said and "61.5 ± 0.0" in said and "91.5 ± 0.0" in said
    assert "<∕td><∕table> probe" in said and "77.7 ± 0.0" in said and "12.5 ± 0.0" in said and "100.0 ± 0.0" in said


@pytest.fixture
def small(tmp_path, capsys):
    """Function: options -> exit status, stderr and page of a folder with a record of PASCAL, and its probe."""
    results = tmp_path / "results"
    (results / "parsing").mkdir(parents=True)
    record = {"corpus": "c", "system": "pascal", "seed": 1, "updates": 4321, "minutes": {}, "commit": "x"}
    record |= {"commands": {"train": "y"}, "verb": "unparsed", "scores": {"test": {"BLEU": _score(1.0)}}}
    (results / "pascal-1.json").write_text(json.dumps(record))
    (results / "pascal-1.test.txt.gz").write_bytes(gzip.compress("\n".join(REFERENCES).encode()))
    probe = record | {"training": {"commit": "x", "command": "y"}, "scores": {"test": {"BLEU": _score(77.7)}}}
    (results / "parsing" / "pascal-1.json.gz").write_bytes(gzip.compress(json.dumps(probe).encode()))
    (tmp_path / "reference").write_text("\n".join(REFERENCES))
    (tmp_path / "mine").write_text("\n".join([*REFERENCES[:2], ""]) + "\n")

    def make(*options):
        given = [results, "--split", "test", "--reference", tmp_path / "reference", "--trials", 9, "--bootstrap", 9]
        output = tmp_path / "page.html"
        status = report.main([*map(str, given), *map(str, options), "--output", str(output), "--overwrite"])
        return status, capsys.readouterr().err, output.read_text(encoding="utf8") if status == 0 else ""

    return make


def test_own_translations_have_no_record_of_the_same_name(small, tmp_path):
    _, said, recorded = small()
    assert all(words in recorded for words in ("4321", "77.7")), said
    status, said, own = small("--system", "pascal", tmp_path / "mine")
    assert status == 0 and not any(words in own for words in ("4321", "77.7"))
    assert said == f"fairseq-syntax report: {tmp_path / 'mine'}: 1 of 3 lines are empty\n"


def test_bad_files_are_said_before_anything_is_scored(small, tmp_path, monkeypatch):
    monkeypatch.setattr(comparison, "compare", None)
    (tmp_path / "damaged.pt").touch()
    model = pretrained.folder("agreement-pascal") / "model.pt"
    for options, expected in (
        (["--look", "a", "none.svg"], "No such file or directory: 'none.svg'"),
        (["--look", "a", "none.pt", tmp_path, "test"], "none.pt: no such checkpoint"),
        (["--look", "a", tmp_path / "damaged.pt", tmp_path, "test"], "damaged.pt: not a checkpoint"),
        (["--look", "a", model, "none", "test"], "none: no such data directory"),
        (["--look", "a", model, model.parent, "other"], "--subset other"),
        (["--contrast", "none.json"], "none.json"),
    ):
        status, said, _ = small(*options)
        assert status == 1 and expected in said


def test_parses_that_are_alone_in_their_folder_are_no_part_of_the_series():
    def titles(*parses):
        curve = [{"parses": file, "UAS": uas} for file, uas in parses]
        return [str(each) for each in parse_points({"a": {"1": {"curve_of_parses": curve}}, "b": {"1": {}}})["a"]]

    worse = ("./worse/20/t", 80), ("./worse/40/t", 60)
    assert titles(("parser/t", 81), ("gold/t", 100), *worse) == ["UAS 100", "UAS 80", "UAS 60", "UAS 81, parser"]
    assert titles(("t60", 60), ("t100", 100)) == ["UAS 100", "UAS 60"]
    assert titles(("t60", 60), ("gold/t", 100)) == ["UAS 100", "UAS 60"]


def test_parses_that_are_alone_have_a_panel():
    curve = [{**point(uas), "parses": file} for file, uas in (("gold/t", 100), ("w/1", 60), ("w/2", 40), ("p/t", 81))]
    found = parse_points({"a": {"1": {"curve_of_parses": curve}}})
    series, alone = draw_parse_quality(found).axes
    assert [list(line.get_xdata()) for line in series.lines] == [[100, 60, 40]]
    assert [(list(line.get_xdata()), list(line.get_ydata())) for line in alone.lines] == [([0], [81])]
    assert [label.get_text() for label in alone.get_xticklabels()] == ["p\n(UAS 81)"]
    assert [text.get_text() for axis in (series, alone) for text in axis.texts] == ["a", "a"]


def test_words_that_the_reference_has_not_are_marked():
    assert marked("a x c", "a b c") == "<bdi>a <mark>x</mark> c</bdi>"
    assert marked("", "a") == "<i>empty</i>" and marked("a <b>", "a <b>") == "<bdi>a &lt;b&gt;</bdi>"


def test_sentences_come_by_how_far_systems_are_apart():
    systems = [System(name, ["1", "2"], ["", ""], [lines, REFERENCES]) for name, lines in OUTPUTS.items()]
    corpus = Corpus(systems, [[reference] for reference in REFERENCES], [0, 1, 2], None)
    evaluation = Evaluation(corpus, [METRICS["chrF"](False, None)], Chance(10, 10))
    found = most_different(evaluation, "chrF", 2)
    means = [evaluation.sentence_scores("chrF", system.name).mean(axis=0) for system in systems]
    spread = np.abs(means[0] - means[1])
    assert [each.index for each in found] == np.argsort(-spread)[:2].tolist()
    assert [each.spread for each in found] == pytest.approx(np.sort(spread)[::-1][:2])
    # their trees are drawn; where all agree, there is nothing to show
    tree = Sentence(["a", "b"], [-1, 0], ["root", "dep"], ["X", "X"])
    assert "".join(sentences(evaluation, "chrF", 2, [tree] * 3)).count("<img ") == 2
    alike = Corpus([System("a", ["1"], [""], [REFERENCES])], corpus.references, [0, 1, 2], None)
    assert not list(sentences(Evaluation(alike, [METRICS["chrF"](False, None)], Chance(10, 10)), "chrF", 2, None))
    # equal translations of several seeds stand once
    first = next(each for each in most_different(evaluation, "chrF", 3) if each.index == 0)
    assert [(t.system, t.runs) for t in first.translations] == [("plain", ["1", "2"]), (EVIL, ["1"]), (EVIL, ["2"])]


def test_sentences_of_two_words_differ_too():
    systems = [System("right", ["1"], [""], [["guten tag"]]), System("wrong", ["1"], [""], [["schlechter tag"]])]
    corpus = Corpus(systems, [["guten tag"]], [0], None)
    evaluation = Evaluation(corpus, [METRICS[name](False, "none") for name in ("BLEU", "RIBES")], Chance())
    (found,) = most_different(evaluation, "BLEU", 5)
    right, wrong = found.translations
    assert right.score == pytest.approx(100) and 0 < wrong.score < 50
    assert found.spread == pytest.approx(right.score - wrong.score)
    # scores from 0 to 1 are not rounded to 0 or 1
    (found,) = most_different(evaluation, "RIBES", 5)
    shown = "".join(sentences(evaluation, "RIBES", 5, None))
    assert f"RIBES {found.spread:.4f}" in shown and f">{found.translations[1].score:.4f}<" in shown


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
    table = tab.locator("#systems table")
    names = lambda: table.locator("tbody th").all_inner_texts()  # noqa: E731
    column = table.locator("thead th", has_text="BLEU")
    before = names()
    column.get_by_role("button").focus()
    tab.keyboard.press("Enter")
    assert column.get_attribute("aria-sort") == "ascending"
    up = names()
    tab.keyboard.press("Enter")
    assert column.get_attribute("aria-sort") == "descending" and sorted(names()) == sorted(up) == sorted(before)
    scores = [float(text.split()[0]) for text in table.locator("tbody tr td:nth-child(7)").all_inner_texts()]
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
        (["--output", "r.html", "--look", "a"], "--look a: give a picture, or CHECKPOINT DATA SUBSET"),
        (["--output", "r.html", "--look", "a", "b.gif"], "is not .svg or .png"),
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


def test_what_a_model_looks_at(tmp_path):
    folder = pretrained.folder("agreement-pascal")
    words = "the dogs near the cat see the bird .".split()
    (tree,) = OwnParser("agreement-parser", device="cpu").parse([words])
    for name, text in (("en", " ".join(words)), ("de", "die hunde sehen den vogel .")):
        (tmp_path / f"test.{name}").write_text(text + "\n", encoding="utf8")
    (tmp_path / "test.en.conllu").write_text(format_sentence(tree), encoding="utf8")
    data = tmp_path / "data"
    given = ["--source-lang", "en", "--target-lang", "de", "--testpref", str(tmp_path / "test"), "--destdir", str(data)]
    given += ["--srcdict", str(folder / "dict.en.txt"), "--tgtdict", str(folder / "dict.de.txt")]
    assert preprocess.main([*given, "--syntax-dicts", str(folder)]) == 0
    (group,) = looks([("pascal", str(folder / "model.pt"), str(data), "test")], [0])
    assert group.startswith("<h3>Sentence 0</h3>") and group.count("<img ") == 2
    assert "pascal: heads" in group and "pascal: translation" in group

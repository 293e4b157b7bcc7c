"""fairseq-syntax compare: what the program prints against sacrebleu, and what it says of files that do not fit.

Metrics, tests, buckets and files by themselves: unit/evaluate.
"""

import json
import random
import re
import statistics
from functools import partial

import programs
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER

from fairseq_syntax.evaluate.verdicts import translating, verdicts
from fairseq_syntax.tools import compare

LETTERS = "abcdefghijklmnopqrst"
QUICK = ("--bootstrap", "100", "--trials", "200")
ONLY_BLEU = ("--metrics", "BLEU")


def spoilt(sentences, share, seed):
    rng = random.Random(seed)
    return [" ".join("Quark" if rng.random() < share else word for word in text.split()) for text in sentences]


class World:
    """Text of 120 sentences and two translations; files of them."""

    def __init__(self, folder):
        self.folder = folder
        rng = random.Random(0)
        self.references = [" ".join(rng.choices(LETTERS, k=rng.randint(4, 20))) for _ in range(120)]
        self.sources = [" ".join(["wort"] * rng.choice([3, 10, 11, 20, 21, 51, 90])) for _ in range(120)]
        self.worse = spoilt(self.references, 0.4, 1)
        self.better = spoilt(self.references, 0.2, 2)

    def text(self, name, sentences):
        path = self.folder / name
        path.write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
        return path

    def generated(self, name, hypotheses, seed=0, references=True, left_out=()):
        """As fairseq-generate prints it, sentences in any order."""
        order = [i for i in range(len(hypotheses)) if i not in left_out]
        random.Random(seed).shuffle(order)
        lines = []
        for i in order:
            lines += [f"S-{i}\t{self.sources[i]}", f"T-{i}\t{self.references[i]}"] if references else []
            lines += [f"H-{i}\t-0.5\t{hypotheses[i]}", f"D-{i}\t-0.5\t{hypotheses[i]}", f"P-{i}\t-0.5 -0.5"]
        return self.text(name, lines)

    def pair(self, **options):
        base = self.generated("base.generated", self.worse, 1, **options)
        return base, self.generated("sys.generated", self.better, 2, **options)


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


run = programs.runner(compare, "--format", "json", *QUICK, read=json.loads)


def two(base, system, *options):
    """Arguments for systems `base` and `sys`."""
    return "--system", "base", base, "--system", "sys", system, *options


@pytest.fixture
def refused(capsys):
    """Function: arguments -> the one message of the program."""
    return partial(programs.refused, compare, capsys)


@pytest.fixture
def printed(capsys):
    """Function: arguments -> the tables."""

    def call(*options):
        assert compare.main([*QUICK, *map(str, options)]) == 0
        return capsys.readouterr().out

    return call


def means(found, metric="BLEU"):
    return [system["scores"][metric]["mean"] for system in found["systems"]]


def figures(found):
    """What does not depend on names and files."""
    systems = [system["scores"] for system in found["systems"]]
    tests = [{**test, "baseline": "", "system": ""} for test in found["tests"]]
    groups = [[(g["label"], g["size"], g["sentences"]) for g in table["groups"]] for table in found["buckets"]]
    return systems, tests, groups, found["metrics"]


def test_systems(world, run):
    references = [[text.upper() for text in world.references], world.references]
    files = [word for i, lines in enumerate(references) for word in ("--reference", world.text(f"r{i}", lines))]
    found = run(*two(*world.pair(), *files, "--metrics", "BLEU", "chrF", "chrF++", "TER"))
    theirs = [BLEU(tokenize="none", force=True), CHRF(), CHRF(word_order=2), TER()]
    for metric, described in zip(theirs, found["metrics"], strict=True):
        expected = [metric.corpus_score(h, references).score for h in (world.worse, world.better)]
        assert means(found, described["name"]) == pytest.approx(expected)
        assert described["signature"] == str(metric.get_signature())
        assert described["higher_is_better"] == (described["name"] != "TER")
        (test,) = [test for test in found["tests"] if test["metric"] == described["name"]]
        assert test["delta"] == pytest.approx(expected[1] - expected[0])
        assert test["interval"][0] < test["delta"] < test["interval"][1]
        assert test["p"]["randomization"] < 0.01 and test["p"]["runs"] is None is test["holm"]["runs"]
    assert (found["sentences"], found["references"], found["baselines"]) == (120, 2, ["base"])
    assert found["chance"] == {"trials": 200, "resamples": 100, "seed": 12345}


def test_seeds(world, run):
    """Files of a system are its seeds: statistics over their scores, and differences of the means of all."""
    base = [world.text(f"b{k}", spoilt(world.references, 0.4, k)) for k in range(3)]
    system = [world.text(f"s{k}", spoilt(world.references, 0.37, 10 + k)) for k in range(3)]
    reference = ("--reference", world.text("ref", world.references), *ONLY_BLEU)
    found = run("--system", "base", *base, "--system", "sys", *system, *reference)
    single = [[means(run("--system", "x", path, *reference))[0] for path in files] for files in (base, system)]
    for summary, scores in zip((each["scores"]["BLEU"] for each in found["systems"]), single, strict=True):
        assert summary["runs"] == scores and summary["mean"] == pytest.approx(statistics.mean(scores))
        assert summary["sd"] == pytest.approx(statistics.stdev(scores))
        assert (summary["minimum"], summary["maximum"]) == (min(scores), max(scores))
    # systems may differ in the number of seeds
    fewer = run("--system", "base", *base, "--system", "sys", *system[:2], *reference)
    for scored, runs in ((found, 3), (fewer, 2)):
        [test] = scored["tests"]
        assert test["delta"] == pytest.approx(statistics.mean(single[1][:runs]) - statistics.mean(single[0]))
        low, high = test["interval"]
        assert low < test["delta"] < high and 0 < test["p"]["runs"] < 1 and test["detectable"] > (high - low) / 2


def test_baselines_and_holm(world, run):
    third = world.generated("third.generated", spoilt(world.references, 0.38, 4), 9)
    files = two(*world.pair(), "--system", "third", third, *ONLY_BLEU)
    found = run(*files, "--baseline", "third", "--baseline", "base", "--baseline", "third")
    pairs = [(test["baseline"], test["system"]) for test in found["tests"]]
    assert pairs == [("third", "base"), ("third", "sys"), ("base", "sys"), ("base", "third")]
    # corrected for the systems of a baseline, each kind of test by itself
    for first, second in (found["tests"][:2], found["tests"][2:]):
        low, high = sorted((first["p"]["randomization"], second["p"]["randomization"]))
        holm = sorted((first["holm"]["randomization"], second["holm"]["randomization"]))
        assert holm == [min(1, 2 * low), max(high, min(1, 2 * low))]


def test_buckets(world, run):
    base, system = world.pair()
    (table,) = run(*two(base, system, "--metrics", "BLEU", "TER", "--min-bucket", 1))["buckets"]
    assert (table["by"], table["title"]) == ("length", "source words")
    lengths = [len(source.split()) for source in world.sources]
    assert [group["label"] for group in table["groups"]] == ["1-10", "11-20", "21-30", ">50"]
    for group in table["groups"]:
        low, high = (51, 1000) if group["label"] == ">50" else map(int, group["label"].split("-"))
        chosen = [i for i, length in enumerate(lengths) if low <= length <= high]
        assert group["sentences"] == chosen and group["size"] == len(chosen)
        references = [[world.references[i] for i in chosen]]
        for name, metric in (("BLEU", BLEU(tokenize="none", force=True)), ("TER", TER())):
            parts = ([texts[i] for i in chosen] for texts in (world.worse, world.better))
            expected = [metric.corpus_score(part, references).score for part in parts]
            scores = group["scores"][name]
            assert [scores[each]["mean"] for each in ("base", "sys")] == pytest.approx(expected)
            assert all(score["interval"][0] < score["mean"] < score["interval"][1] for score in scores.values())
            assert group["deltas"][name]["sys"]["mean"] == pytest.approx(expected[1] - expected[0])
    labels = world.text("kind.txt", ["rare" if i < 50 else "usual" for i in range(120)])
    options = ("--by", "length", "--longest", 50, "--min-bucket", 30, "--by", f"label:{labels}")
    whole, own = run(*two(base, system, *options))["buckets"]
    assert all(group["size"] >= 30 for group in whole["groups"]) and len(whole["groups"]) == 3
    assert own["title"] == "kind"
    groups = [(group["label"], group["sentences"]) for group in own["groups"]]
    assert groups == [("rare", [*range(50)]), ("usual", [*range(50, 120)])]


TREE = "1\tdogs\t_\tNOUN\t_\tNumber=Plur\t2\tnsubj\t_\t_\n2\tbark\t_\tVERB\t_\t_\t0\troot\t_\tScore=0.{}\n"


def test_trees(world, run, refused):
    world.sources = ["dogs bark"] * 120
    path = world.text("trees.conllu", [TREE.format(i % 7 + 1) for i in range(120)])
    options = ("--parse", path, "--by", "depth", "--by", "relation:nsubj", "--min-bucket", 20)
    found = run(*two(*world.pair(), *ONLY_BLEU, *options))
    assert [[group["label"] for group in table["groups"]] for table in found["buckets"]] == [["2"], ["present"]]
    said = refused(*two(*world.pair(), "--by", "depth"))
    assert said == "--by depth: trees are needed; give --parse FILE.conllu with parses"


def test_text_is_as_good_as_generated(world, run):
    expected = figures(run(*two(*world.pair())))
    base, system = world.text("a.txt", world.worse), world.text("b.txt", world.better)
    options = ("--reference", world.text("ref", world.references))
    assert figures(run(*two(base, system, *options, "--source", world.text("src", world.sources)))) == expected
    assert figures(run(*two(base, world.pair()[1], *options))) == expected, "the source is in the other file"
    assert run(*two(base, system, *options))["buckets"] == []


def test_case_and_tokens(world, run):
    world.references = ["He said: no, never!", "Yes."]
    base = world.text("a", ["he said : no , never !", "yes ."])
    options = ("--system", "base", base, "--reference", world.text("ref", world.references))
    found = run(*options, "--lowercase", "--tokenize", "13a")
    assert [means(found, name) for name in ("BLEU", "chrF", "RIBES")] == [[pytest.approx(100)]] * 2 + [[1]]
    assert "case:lc|eff:no|tok:13a" in found["metrics"][0]["signature"]
    assert means(run(*options, "--tokenize", "none"))[0] < 50


@pytest.mark.parametrize(
    ("kind", "cut"),
    [
        ("subword_nmt", lambda word: f"{word[:2]}@@ {word[2:]}" if len(word) > 2 else word),
        ("sentencepiece", lambda word: f"▁{word[:2]} {word[2:]}" if len(word) > 2 else f"▁{word}"),
    ],
)
def test_pieces(world, run, kind, cut):
    expected = figures(run(*two(*world.pair())))
    references = world.text("ref", world.references)
    for name in ("references", "sources", "worse", "better"):
        setattr(world, name, [" ".join(map(cut, text.split())) for text in getattr(world, name)])
    base, system = world.pair()
    assert figures(run(*two(base, system, "--remove-bpe", kind))) == expected
    # text of words stays as it is
    assert figures(run(*two(base, system, "--reference", references, "--remove-bpe", kind))) == expected
    assert "give --remove-bpe" not in run.said
    assert figures(run(*two(base, system))) != expected
    assert run.said.count("have pieces, which are counted as words; give --remove-bpe") >= 2


def test_text_without_spaces_has_no_ter(world, run):
    files = [world.text(name, ["นี่เป็นตัวอย่างที่ดีมาก"] * 9) for name in "abc"]
    found = run(*two(*files[:2], "--reference", files[2]))
    assert [metric["name"] for metric in found["metrics"]] == ["chrF", "BLEU", "RIBES"]


def test_tables(world, printed):
    """Columns for seeds and Holm's correction where there are any; a row a bucket and system."""
    base, system = world.pair()
    again = world.generated("again.generated", world.better)
    text = printed("--system", "ba_se", base, system, "--system", "sys", again, system)
    lines = text.splitlines()
    assert lines[0].startswith("sys and ba_se cannot be told apart (+")
    assert lines[2].split()[:6] == ["BLEU", "seeds", "mean", "SD", "min", "max"] and lines[4].split()[1] == "2"
    assert "p AR" in text and "Holm" not in text
    # what is said beside a table is not part of it
    several = [*two(base, again), "--system", "third", base, *ONLY_BLEU]
    latex, html = (printed(*several, "--format", form) for form in ("latex", "html"))
    assert "% sys is better than base (+" in latex and "<p>sys is better than base (+" in html and "Holm" in latex
    rows = printed(*several, "--format", "tsv", "--min-bucket", "1").split("\n\n")[-2].splitlines()
    assert rows[0].split("\t")[:5] == ["source words", "sentences", "system", "BLEU", "95 % interval"]
    assert [row.split("\t")[0:3:2] for row in rows[1:4]] == [["1-10", "base"], ["1-10", "sys"], ["1-10", "third"]]
    assert rows[1].split("\t")[5:7] == ["-", "-"] and rows[3].split("\t")[5] == "0.00"


# --- what is told ---------------------------------------------------------------------------------------------------


def test_texts_that_may_be_wrong_are_told_of(world, run):
    base, _ = world.pair()
    run(*two(*world.pair(left_out=(7, 8))))
    assert f"{base}: no translation of 2 of the sentences 0 to 119; scores are of the others" in run.said
    world.references[3], world.references[4] = "a <<unk>> b", ""
    run(*two(*world.pair()))
    assert "references: 1 of 120 lines have words that the model does not know" in run.said
    assert "references: 1 of 120 lines are empty" in run.said and "no translation" not in run.said
    assert "the same translations" not in run.said
    run("--system", "a", *(world.generated(name, world.worse) for name in "ab"), *ONLY_BLEU)
    assert "a: runs have the same translations; give those of different seeds" in run.said


def test_references_of_other_text_are_told_of(world, run):
    """Those of other sentences, or in another order; of a poor system, nothing is said."""
    poor = world.text("poor", spoilt(world.references, 0.9, 3))
    said = "poor: translations are as close to the references of other sentences"
    run("--system", "a", poor, "--reference", world.text("right", world.references))
    assert said not in run.said
    run("--system", "a", poor, "--reference", world.text("shifted", world.references[5:] + world.references[:5]))
    assert said in run.said


def test_brevity_is_in_every_table(world, run, printed):
    """Without the penalty, the shorter system is better; sacrebleu's score is its precision times the penalty."""
    short = [text if i % 2 else " ".join(text.split()[: len(text) // 3]) for i, text in enumerate(world.references)]
    files = two(world.text("short", short), world.text("worse", spoilt(world.references, 0.06, 1)), *ONLY_BLEU)
    files += ("--reference", world.text("ref", world.references), "--source", world.text("src", world.sources))
    found = run(*files)
    scores = [system["scores"]["BLEU"] for system in found["systems"]]
    group = found["buckets"][0]["groups"][0]
    for score, sentences in ((scores[0], range(120)), (group["scores"]["BLEU"]["base"], group["sentences"])):
        hyps, refs = ([side[i] for i in sentences] for side in (short, world.references))
        theirs = BLEU(tokenize="none", force=True).corpus_score(hyps, [refs])
        assert score["without_brevity_penalty"] == pytest.approx(theirs.score / theirs.bp)
        assert score["length_ratio"] == pytest.approx(theirs.ratio)
    bare = scores[1]["without_brevity_penalty"] - scores[0]["without_brevity_penalty"]
    assert bare < 0 < found["tests"][0]["delta"]
    verdict, scored, tested, *buckets = printed(*files, "--format", "tsv").split("\n\n")
    assert verdict.startswith("sys is better than base") and "no BP\tlength\n" in scored
    assert f"\t{bare:.2f}\t1.0" in tested and "no BP\tlength\n" in "".join(buckets)


def compared(bleu, chrf=(2, 1, 3), runs=(2, 2), sentences=1000, score=(10.0, 1.0)):
    """A comparison of two metrics; each: delta, ends of its interval; BLEU and ratio of lengths of the system."""
    tests = [
        {"metric": name, "baseline": "base", "system": "sys", "delta": delta, "interval": [low, high]}
        | {"detectable": 1.0, "holm": {"randomization": 0.01, "runs": 0.01}}
        for name, (delta, low, high) in (("BLEU", bleu), ("chrF", chrf))
    ]
    systems = [
        {"name": name, "runs": ["1", "2"][:number]} | {"scores": {"BLEU": {"mean": mean, "length_ratio": ratio}}}
        for name, number, (mean, ratio) in zip(("base", "sys"), runs, ((10.0, 1.0), score), strict=True)
    ]
    metrics = [{"name": name, "digits": 2, "higher_is_better": True} for name in ("BLEU", "chrF")]
    return {"sentences": sentences, "systems": systems, "tests": tests, "metrics": metrics}


BETTER = "sys is better than base (+1.00 BLEU, +0.50 to +1.50)"
FOUND = "; a true difference of 1.00 would be found four times in five"
NONE = "sys and base: one of them does not translate yet; nothing is compared"


@pytest.mark.parametrize(
    ("comparison", "said"),
    [
        (compared((1, 0.5, 1.5)), BETTER),
        (compared((1, 0.5, 1.5), sentences=1), f"{BETTER}; 1 sentences are too few to conclude much"),
        (compared((1, 0.5, 1.5), (-2, -3, -1)), f"{BETTER}; but -2.00 chrF, -3.00 to -1.00"),
        (compared((-1, -1.5, -0.5), (1, -1, 3)), "sys is worse than base (-1.00 BLEU, -1.50 to -0.50)"),
        (
            compared((0.2, -0.5, 1), (-2, -3, -1)),
            f"sys and base cannot be told apart (+0.20 BLEU, -0.50 to +1.00){FOUND}; but -2.00 chrF, -3.00 to -1.00",
        ),
        # as they print, these have no sign
        (
            compared((0.004, 0.001, 0.007), (-0.003, -0.004, -0.001)),
            f"sys and base cannot be told apart (0.00 BLEU, 0.00 to +0.01){FOUND}",
        ),
        (compared((1, 0.5, 1.5), runs=(1, 1)), f"{BETTER}; with one seed each, so other seeds may say otherwise"),
        (compared((1, 0.5, 1.5), score=(1.5, 1.0)), f"{NONE} (sys: 1.50 BLEU, below 2)"),
        (compared((1, 0.5, 1.5), score=(9, 2)), f"{NONE} (sys: 2.00 times the words of the references)"),
    ],
)
def test_a_verdict_is_of_all_that_is_known(comparison, said):
    assert verdicts(comparison) == [said]
    assert bool(translating(comparison)["tests"]) is (NONE not in said), "no difference, interval or p"


def test_files_that_do_not_fit(world, refused):
    bare = world.generated("a.generated", world.worse, references=False)
    assert "a.generated: no references (T- lines); give --reference" in refused(*two(bare, bare))
    base, other = world.pair()
    other.write_text(other.read_text(encoding="utf-8").replace("\nT-7\t", "\nT-7\tnot "), encoding="utf-8")
    assert f"{other}: T- lines differ from those of {base}; give --reference" in refused(*two(base, other))
    options = ("--reference", world.text("ref", world.references), "--by", "length")
    said = "--by length: the source is not known; give --source or --parse"
    assert refused(*two(bare, bare, *options)) == said


def keys_of(value):
    """All names of fields of what was found, but not those that are names of systems and metrics."""
    if isinstance(value, dict):
        return {*value} - {"base", "sys", "BLEU"} | set().union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()


def test_the_page_names_every_field(world, run, repository):
    page = (repository / "docs" / "api" / "evaluate.md").read_text(encoding="utf8")
    section = page.split("## JSON of compare\n")[1].split("\n::: ")[0]
    assert keys_of(run(*two(*world.pair(), *ONLY_BLEU))) <= set(re.findall(r"`(\w+)`", section))

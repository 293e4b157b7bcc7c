"""fairseq-syntax compare: what the program prints against sacrebleu, and what it says of files that do not fit.

Metrics, tests, buckets and files by themselves: unit/evaluate.
"""

import json
import random
import re
import statistics
import sys
from functools import partial
from types import ModuleType, SimpleNamespace

import programs
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.tokenizers import tokenizer_ja_mecab

from fairseq_syntax.evaluate.comparison import tables
from fairseq_syntax.evaluate.verdicts import verdicts
from fairseq_syntax.tools import compare

LETTERS = "abcdefghijklmnopqrst"
QUICK = ("--bootstrap", "100", "--trials", "200", "--sign-test")
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
    systems = [(system["repeated"], system["scores"]) for system in found["systems"]]
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
        assert test["better"] > 2 * test["worse"] and max(filter(None, test["p"].values())) < 0.01
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
    # a seed more of the baseline counts, too, but the sign test has no pairs then
    fewer = run("--system", "base", *base, "--system", "sys", *system[:2], *reference)
    assert [fewer["tests"][0][key] for key in ("better", "worse", "ties")] == [None] * 3
    assert fewer["tests"][0]["p"]["sign"] is None is fewer["tests"][0]["holm"]["sign"]
    assert found["tests"][0]["p"]["sign"]
    for scored, runs in ((found, 3), (fewer, 2)):
        [test] = scored["tests"]
        assert test["delta"] == pytest.approx(statistics.mean(single[1][:runs]) - statistics.mean(single[0]))
        low, high = test["interval"]
        assert low < test["delta"] < high and 0 < test["p"]["runs"] < 1 and test["detectable"] > (high - low) / 2
    alone = run("--system", "base", base[0], "--system", "sys", system[0], *reference)["tests"][0]
    assert alone["p"]["runs"] is None is alone["holm"]["runs"]


def test_baselines_and_holm(world, run):
    third = world.generated("third.generated", spoilt(world.references, 0.38, 4), 9)
    files = two(*world.pair(), "--system", "third", third, *ONLY_BLEU)
    found = run(*files, "--baseline", "third", "--baseline", "base", "--baseline", "third")
    pairs = [(test["baseline"], test["system"]) for test in found["tests"]]
    assert pairs == [("third", "base"), ("third", "sys"), ("base", "sys"), ("base", "third")]
    # corrected for the systems of a baseline, each kind of test by itself
    for first, second in (found["tests"][:2], found["tests"][2:]):
        low, high = sorted((first["p"]["bootstrap"], second["p"]["bootstrap"]))
        holm = sorted((first["holm"]["bootstrap"], second["holm"]["bootstrap"]))
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
        assert group["sentences"] == chosen and group["size"] == len(chosen) and not group["merged"]
        references = [[world.references[i] for i in chosen]]
        for name, metric in (("BLEU", BLEU(tokenize="none", force=True)), ("TER", TER())):
            parts = ([texts[i] for i in chosen] for texts in (world.worse, world.better))
            expected = [metric.corpus_score(part, references).score for part in parts]
            scores = group["scores"][name]
            assert [scores[each]["mean"] for each in ("base", "sys")] == pytest.approx(expected)
            assert all(score["interval"][0] < score["mean"] < score["interval"][1] for score in scores.values())
            assert group["deltas"][name]["sys"]["mean"] == pytest.approx(expected[1] - expected[0])
    (other,) = run(*two(base, system, "--buckets", 5, "--longest", 20, "--min-bucket", 1))["buckets"]
    assert [group["label"] for group in other["groups"]] == ["1-5", "6-10", "11-15", "16-20", ">20"]
    labels = world.text("kind.txt", ["rare" if i < 50 else "usual" for i in range(120)])
    picture = world.folder / "new" / "buckets.svg"
    whole, own = run(*two(base, system, "--by", "length", "--by", f"label:{labels}", "--draw", picture))["buckets"]
    assert "(95 % intervals)" in picture.read_text(encoding="utf-8")
    assert all(group["size"] >= 50 for group in whole["groups"]) and any(group["merged"] for group in whole["groups"])
    assert own["title"] == "kind"
    groups = [(group["label"], group["sentences"]) for group in own["groups"]]
    assert groups == [("rare", [*range(50)]), ("usual", [*range(50, 120)])]


TREE = "1\tdogs\t_\tNOUN\t_\tNumber=Plur\t2\tnsubj\t_\t_\n2\tbark\t_\tVERB\t_\t_\t0\troot\t_\tScore=0.{}\n"


def test_trees(world, run, refused):
    world.sources = ["dogs bark"] * 120
    path = world.text("trees.conllu", [TREE.format(i % 7 + 1) for i in range(120)])
    options = [word for kind in ("depth", "relation:nsubj", "longest-dependency") for word in ("--by", kind)]
    found = run(*two(*world.pair(), *ONLY_BLEU, "--parse", path, *options, "--min-bucket", 20))
    labels = [[group["label"] for group in table["groups"]] for table in found["buckets"]]
    assert labels == [["2"], ["present"], ["0-4"]]
    said = refused(*two(*world.pair(), "--by", "depth"))
    assert said == "--by depth: trees are needed; give --parse FILE.conllu"


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
    # the references have words of one letter, which sentencepiece marks, too
    cut_files = ["source", str(base), str(system)] + ["reference"] * (kind == "sentencepiece")
    warnings = [line for line in run.said.splitlines() if line.endswith("; give --remove-bpe")]
    assert sorted(line.split(": ")[1] for line in warnings) == sorted(cut_files)


def test_notes_on_tests(world, printed):
    """What is known of other seeds, what Holm's correction is over, and a sign test that contradicts the score."""
    # most sentences of "a" are right, and a quarter are wrong altogether
    longer = [text if i % 4 else "x y z u v w x y" for i, text in enumerate(world.references)]
    shorter = [" ".join(text.split()[:-1]) for text in world.references]
    a, b, c = (world.text(name, text) for name, text in (("a", longer), ("b", shorter), ("c", shorter)))
    again = world.text("again", [text + " y" for text in longer])
    options = ("--reference", world.text("r", world.references), *ONLY_BLEU)

    alone = printed("--system", "a", a, "--system", "b", b, *options)
    said = r"^b is better than a \(\+[0-9.]+ BLEU, \+[0-9.]+ to \+[0-9.]+\).*; with one seed each"
    assert re.search(said, alone, re.MULTILINE)
    assert "one seed each, so nothing is known about other seeds" in alone and "Holm" not in alone
    signed = printed("--system", "b", b, "--system", "a", a, *options)
    assert "a is worse than b (-" in signed and "p sign of a contradicts delta in BLEU" in signed
    several = printed("--system", "a", a, again, "--system", "b", b, "--system", "c", c, b, *options)
    assert "delta: its interval, p and detectable are about other sentences and other seeds" in several
    assert "Holm: corrected for the systems that have this p" in several and "cannot be below" not in several
    assert "p AR is not exact where systems differ in the number of seeds" in several
    equal = printed("--system", "b", b, c, "--system", "c", c, b, *options)
    assert "c and b cannot be told apart (0.00 BLEU, 0.00 to 0.00)\n" in equal and "one seed" not in equal
    few = printed("--system", "a", a, "--system", "b", b, "--system", "c", c, *options, "--trials", "19")
    assert "Holm of p AR cannot be below 0.05: give --trials 40 or more" in few


def test_formats(world, printed):
    base, system = world.pair()
    again = world.generated("again.generated", world.better)
    text = printed("--system", "ba_se", base, system, "--system", "sys", again, system)
    lines = text.splitlines()
    assert lines[0].startswith("sys and ba_se cannot be told apart (+")
    assert lines[2].split()[:6] == ["BLEU", "seeds", "mean", "SD", "min", "max"] and lines[4].split()[1] == "2"
    assert re.search(r"^source words \S+: .*, merged because some have fewer than 50 sentences$", text, re.MULTILINE)
    # notes below a table are not part of it
    assert re.search(r"^% source words \S+: ", printed(*two(base, again), "--format", "latex"), re.MULTILINE)
    assert re.search(r"^<p>source words \S+: .*</p>$", printed(*two(base, again), "--format", "html"), re.MULTILINE)
    # with more systems than fit side by side, buckets do
    more = [argument for name in "abcd" for argument in ("--system", name, system)]
    rows = printed(*more, "--format", "tsv", *ONLY_BLEU, "--min-bucket", "1")
    assert "source words\t1-10\t11-20\t21-30\t>50\n" in rows


# --- what is told ---------------------------------------------------------------------------------------------------


def test_texts_that_may_be_wrong_are_told_of(world, run):
    base, system = world.pair()
    copy = world.text("copy", world.better)
    run("--system", "base", base, "--system", "sys", system, copy)
    assert f"--system sys: {copy} has the translations of {system}; is it another seed?" in run.said
    assert "no translation" not in run.said
    run(*two(*world.pair(left_out=(7, 8))))
    assert f"{base}: no translation of 2 of the sentences 0 to 119; scores are of the others" in run.said

    # letter case, and words that the model does not know, make no other source
    world.sources[2], world.sources[5], world.references[3] = "ein <unk> wort", "ein <unk> wort", "a <<unk>> b"
    files = two(*world.pair())
    world.sources[:4] = ["Wort , Wort", world.sources[1].upper(), "ein anderes wort", "andere , Wörter"]
    run(*files, "--source", world.text("src", world.sources))
    assert f"{base}: 1 of 120 references have words that the model does not know (<<unk>>)" in run.said
    assert "src:1: sentence 0 is 'Wort , Wort', but 'wort wort" in run.said
    assert ", and 2 of 120 differ; give the source that was translated" in run.said
    world.references[4] = ""
    run(*files, "--reference", reference := world.text("ref", world.references))
    assert f"{reference}: 1 of 120 lines are empty" in run.said
    assert "does not know" not in run.said and "another seed" not in run.said


def test_references_of_other_text_are_told_of(world, run):
    """Those of other sentences, or in another order; of a poor system, nothing is said."""
    poor = world.text("poor", spoilt(world.references, 0.9, 3))
    run("--system", "a", poor, "--reference", world.text("right", world.references))
    assert "as close" not in run.said
    run("--system", "a", poor, "--reference", world.text("shifted", world.references[5:] + world.references[:5]))
    said = "poor: translations are as close to the references of other sentences as to their own; are these"
    assert said in run.said
    # from line 201 on, a line is missing
    three = [f"{text} {last}" for last in "abc" for text in world.references]
    short = world.text("short", [*three[:200], *three[201:], "end"])
    run("--system", "a", world.text("good", three), "--reference", short)
    assert "as to their own in sentences 200 to 299; are these" in run.said


def test_systems_that_do_not_translate_are_not_compared(world, run):
    """By their BLEU, the length of their output, and its repetitions, which a reference may have, too."""
    texts = {
        "right": world.references,
        "upper": [text.upper() for text in world.references],
        "long": [f"{text} {text}" for text in world.references],
        "loops": [f"{text[:-13]} q q q q q q" if i % 9 == 0 else text for i, text in enumerate(world.references)],
    }
    files = {name: world.text(name, lines) for name, lines in texts.items()}
    named = [word for name, file in files.items() for word in ("--system", name, file)]
    found = run(*named, "--reference", files["right"], *ONLY_BLEU)
    assert [system["repeated"] for system in found["systems"]] == [0, 0, 0, 14 / 120]
    said = "{} and right: one of them does not translate yet; nothing is compared ({})"
    assert verdicts(found) == [
        said.format("upper", "upper: 0.00 BLEU"),
        said.format("long", "long: 2.00 times the words of the references"),
        said.format("loops", "loops: 12% of the lines repeat themselves"),
    ]
    shown = "\n".join(tables(found, "text"))
    assert "loops" in shown and "delta" not in shown, "no difference, interval or p"
    found = run(*two(files["upper"], files["upper"], "--reference", files["right"], *ONLY_BLEU))
    assert "sys and base: these models do not translate yet; nothing is compared (base: 0.00" in verdicts(found)[0]
    found = run(*two(files["right"], files["loops"], "--reference", files["loops"], *ONLY_BLEU))
    assert found["systems"][1]["repeated"] == 0 and verdicts(found)[0].startswith("sys is better than base")


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
    assert f"; without brevity penalty, {bare:.2f} BLEU;" in verdicts(found)[0]
    verdict, scored, tested, *buckets = printed(*files, "--format", "tsv").split("\n\n")
    assert verdict.startswith("sys is better than base") and "no BP\tlength\n" in scored
    assert f"\t{bare:.2f}\t1.0" in tested
    assert "\tno BP base\tlength base\tno BP sys\tlength sys\n" in "".join(buckets)


def compared(bleu, chrf, runs=([9.0, 11.0], [10.0, 12.0]), sentences=1000):
    """A comparison of two metrics; each: delta, ends of its interval."""
    tests = [
        {"metric": name, "baseline": "base", "system": "sys", "delta": delta, "interval": [low, high]}
        | {"detectable": 1.0, "holm": {"randomization": 0.01, "runs": 0.01}}
        for name, (delta, low, high) in (("BLEU", bleu), ("chrF", chrf))
    ]
    systems = [
        {"name": name, "runs": of, "repeated": 0}
        | {"scores": {"BLEU": {"mean": 10.0, "runs": of, "sd": statistics.pstdev(of), "length_ratio": 1.0}}}
        for name, of in zip(("base", "sys"), runs, strict=True)
    ]
    metrics = [{"name": name, "digits": 2, "higher_is_better": True} for name in ("BLEU", "chrF")]
    return {"sentences": sentences, "systems": systems, "tests": tests, "metrics": metrics}


BETTER, ONE_SEED = "sys is better than base (+1.00 BLEU, +0.50 to +1.50)", ([10.0], [10.0, 12.0])
UNEQUAL = ([10.0, 10.1, 9.9], [10.0, 12.0, 11.0])
FOUND = "; a true difference of 1.00 would be found four times in five"


@pytest.mark.parametrize(
    ("comparison", "said"),
    [
        (compared((1, 0.5, 1.5), (2, 1, 3)), BETTER),
        (compared((1, 0.5, 1.5), (2, 1, 3), sentences=1), f"{BETTER}; 1 sentences are too few to conclude much"),
        (
            compared((1, 0.5, 1.5), (-2, -3, -1)),
            "BLEU and chrF disagree about sys and base (+1.00 BLEU, +0.50 to +1.50; -2.00 chrF, -3.00 to -1.00)",
        ),
        (
            compared((-1, -1.5, -0.5), (1, -1, 3)),
            "sys is worse than base (-1.00 BLEU, -1.50 to -0.50); chrF cannot tell them apart",
        ),
        (
            compared((0.2, -0.5, 1), (-2, -3, -1)),
            "sys and base cannot be told apart (+0.20 BLEU, -0.50 to +1.00); sys is worse in -2.00 chrF, -3.00 to "
            f"-1.00{FOUND}",
        ),
        # as they print, these have no sign
        (
            compared((0.004, 0.001, 0.007), (-0.003, -0.004, -0.001)),
            f"sys and base cannot be told apart (0.00 BLEU, 0.00 to +0.01){FOUND}",
        ),
        (
            compared((1, 0.5, 1.5), (2, 1, 3), ONE_SEED),
            f"{BETTER}; base has one seed, assumed to vary as those of the other do",
        ),
        (
            compared((1, 0.5, 1.5), (2, 1, 3), UNEQUAL),
            f"{BETTER}; their seeds vary unequally (SD 0.08 and 0.82), so the interval may be too narrow",
        ),
    ],
)
def test_a_verdict_is_of_all_that_is_known(comparison, said):
    assert verdicts(comparison) == [said]


def test_files_that_do_not_fit(world, refused, monkeypatch):
    bare = world.generated("a.generated", world.worse, references=False)
    assert "a.generated: no references (T- lines); give --reference" in refused(*two(bare, bare))
    options = ("--reference", world.text("ref", world.references), "--draw", world.folder / "x.png")
    assert refused(*two(bare, bare, *options)) == "--draw: the length of the source is not known; give --source"
    monkeypatch.setattr(tokenizer_ja_mecab, "MeCab", None)
    said = refused(*two(*world.pair(), "--tokenize", "ja-mecab"))
    assert said.startswith("--tokenize ja-mecab: ") and "sacrebleu[ja]" in said


def keys_of(value):
    """All names of fields of what was found, but not those that are names of systems, metrics and tests."""
    if isinstance(value, dict):
        named = {key for key in value if key not in ("base", "sys", "COMET", "randomization", "bootstrap", "sign")}
        return named.union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()


def test_comet_is_another_metric_and_the_page_names_every_field(world, run, monkeypatch, repository):
    package = ModuleType("comet")
    model = SimpleNamespace(predict=lambda samples, **options: SimpleNamespace(scores=[1.0] * len(samples)))
    package.download_model, package.load_from_checkpoint = str, lambda path: model
    monkeypatch.setitem(sys.modules, "comet", package)
    found = run(*two(*world.pair(), "--comet", "Unbabel/any", *ONLY_BLEU))
    assert [metric["name"] for metric in found["metrics"]] == ["BLEU", "COMET"]
    assert means(found, "COMET") == [1, 1] and found["tests"][1]["metric"] == "COMET"
    page = (repository / "docs" / "api" / "evaluate.md").read_text(encoding="utf8")
    section = page.split("## JSON of compare\n")[1].split("\n::: ")[0]
    assert keys_of(found) - {"BLEU"} <= set(re.findall(r"`(\w+)`", section))
    assert {"randomization", "bootstrap", "sign"} <= set(re.findall(r"`(\w+)`", section))

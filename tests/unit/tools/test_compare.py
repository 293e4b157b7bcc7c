"""fairseq-syntax compare: what the program prints against sacrebleu, and what it says of files that do not fit."""

import json
import random
import re
import statistics
import sys
import xml.etree.ElementTree
from functools import partial
from itertools import pairwise
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

    def generated(self, name, hypotheses, seed=0, references=True, sources=True, end="\n"):
        """As fairseq-generate prints it, sentences in any order."""
        order = list(range(len(hypotheses)))
        random.Random(seed).shuffle(order)
        lines = []
        for i in order:
            lines += [f"S-{i}\t{self.sources[i]}"] if sources else []
            lines += [f"T-{i}\t{self.references[i]}"] if references else []
            lines += [f"H-{i}\t-0.5\t{hypotheses[i]}", f"D-{i}\t-0.5\t{hypotheses[i]}", f"P-{i}\t-0.5 -0.5"]
        path = self.folder / name
        path.write_bytes("".join(line + end for line in lines).encode())
        return path

    def pair(self):
        return self.generated("base.generated", self.worse, 1), self.generated("sys.generated", self.better, 2)


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


def means(found, metric="BLEU"):
    return [system["scores"][metric]["mean"] for system in found["systems"]]


def figures(found):
    """What does not depend on names and files."""
    systems = [(system["repeated"], system["scores"]) for system in found["systems"]]
    tests = [{**test, "baseline": "", "system": ""} for test in found["tests"]]
    groups = [[(g["label"], g["size"], g["sentences"]) for g in table["groups"]] for table in found["buckets"]]
    return systems, tests, groups, found["metrics"]


def test_systems(world, run):
    found = run(*two(*world.pair(), "--metrics", "BLEU", "chrF", "chrF++", "TER"))
    theirs = [BLEU(tokenize="none", force=True), CHRF(), CHRF(word_order=2), TER()]
    for metric, described in zip(theirs, found["metrics"], strict=False):
        expected = [metric.corpus_score(h, [world.references]).score for h in (world.worse, world.better)]
        assert means(found, described["name"]) == pytest.approx(expected)
        assert described["signature"] == str(metric.get_signature())
        assert described["higher_is_better"] == (described["name"] != "TER")
        (test,) = [test for test in found["tests"] if test["metric"] == described["name"]]
        assert test["delta"] == pytest.approx(expected[1] - expected[0])
        assert test["interval"][0] < test["delta"] < test["interval"][1]
        assert test["better"] > 2 * test["worse"] and max(filter(None, test["p"].values())) < 0.01
    assert found["sentences"] == 120 and found["baselines"] == ["base"]
    assert found["chance"] == {"trials": 200, "resamples": 100, "seed": 12345}
    assert [system["scores"]["BLEU"]["length_ratio"] for system in found["systems"]] == [1, 1]
    assert found["systems"][0]["scores"]["chrF"]["length_ratio"] is None


def test_seeds(world, run):
    """Files of a system are its seeds: statistics over their scores, and differences of the means of all."""
    base = [world.text(f"b{k}", spoilt(world.references, 0.4, k)) for k in range(3)]
    system = [world.text(f"s{k}", spoilt(world.references, 0.37, 10 + k)) for k in range(3)]
    reference = ("--reference", world.text("ref", world.references), "--metrics", "BLEU")
    found = run("--system", "base", *base, "--system", "sys", *system, *reference)
    single = [[means(run("--system", "x", path, *reference))[0] for path in files] for files in (base, system)]
    for summary, scores in zip((each["scores"]["BLEU"] for each in found["systems"]), single, strict=True):
        assert summary["runs"] == scores and summary["mean"] == pytest.approx(statistics.mean(scores))
        assert summary["sd"] == pytest.approx(statistics.stdev(scores))
        assert (summary["minimum"], summary["maximum"]) == (min(scores), max(scores))
    (test,) = found["tests"]
    assert test["delta"] == pytest.approx(statistics.mean(single[1]) - statistics.mean(single[0]))
    # a seed more of the baseline counts, too
    fewer = run("--system", "base", *base, "--system", "sys", *system[:2], *reference)
    assert [fewer["tests"][0][key] for key in ("better", "worse", "ties")] == [None] * 3
    assert fewer["tests"][0]["p"]["sign"] is None is fewer["tests"][0]["holm"]["sign"] and test["p"]["sign"]
    assert fewer["tests"][0]["delta"] == pytest.approx(statistics.mean(single[1][:2]) - statistics.mean(single[0]))
    # over runs and sentences, an interval is no narrower than over sentences alone
    for scored in (found, fewer, run("--system", "base", *base, "--system", "sys", system[0], *reference)):
        [test] = scored["tests"]
        low, high = test["interval"]
        assert low < test["delta"] < high and 0 < test["p"]["runs"] < 1 and test["detectable"] > (high - low) / 2
    alone = run("--system", "base", base[0], "--system", "sys", system[0], *reference)["tests"][0]
    assert alone["p"]["runs"] is None is alone["holm"]["runs"]


def test_baselines_and_holm(world, run):
    base, system = world.pair()
    third = world.generated("third.generated", spoilt(world.references, 0.38, 4), 9)
    files = ("--system", "base", base, "--system", "sys", system, "--system", "third", third, "--metrics", "BLEU")
    found = run(*files, "--baseline", "third", "--baseline", "base", "--baseline", "third")
    assert [(test["baseline"], test["system"]) for test in found["tests"]] == [
        *(("third", "base"), ("third", "sys"), ("base", "sys"), ("base", "third"))
    ]
    assert found["tests"][0]["delta"] == -found["tests"][3]["delta"]
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
        for name, metric in (("BLEU", BLEU(tokenize="none", force=True)), ("TER", TER())):
            expected = [
                metric.corpus_score([h[i] for i in chosen], [[world.references[i] for i in chosen]]).score
                for h in (world.worse, world.better)
            ]
            scores = group["scores"][name]
            assert [scores[each]["mean"] for each in ("base", "sys")] == pytest.approx(expected)
            assert all(score["interval"][0] < score["mean"] < score["interval"][1] for score in scores.values())
            assert group["deltas"][name]["sys"]["mean"] == pytest.approx(expected[1] - expected[0])
    (whole,) = run(*two(base, system))["buckets"]
    assert all(group["size"] >= 50 for group in whole["groups"]) and any(group["merged"] for group in whole["groups"])
    (other,) = run(*two(base, system, "--buckets", 5, "--longest", 20, "--min-bucket", 1))["buckets"]
    assert [group["label"] for group in other["groups"]] == ["1-5", "6-10", "11-15", "16-20", ">20"]
    labels = world.text("kind.txt", ["rare" if i < 50 else "usual" for i in range(120)])
    (own,) = run(*two(base, system, "--by", f"label:{labels}"))["buckets"]
    assert own["title"] == "kind"
    assert [(group["label"], group["sentences"]) for group in own["groups"]] == [
        *(("rare", [*range(50)]), ("usual", [*range(50, 120)]))
    ]


TREE = "1\tdogs\t_\tNOUN\t_\tNumber=Plur\t2\tnsubj\t_\t_\n2\tbark\t_\tVERB\t_\t_\t0\troot\t_\tScore=0.{}\n"


def test_trees(world, run, refused):
    world.sources = ["dogs bark"] * 120
    path = world.text("trees.conllu", [TREE.format(i % 7 + 1) for i in range(120)])
    options = [word for kind in ("depth", "relation:nsubj", "longest-dependency") for word in ("--by", kind)]
    found = run(*two(*world.pair(), "--metrics", "BLEU", "--parse", path, *options, "--min-bucket", 20))
    labels = [[group["label"] for group in table["groups"]] for table in found["buckets"]]
    assert labels == [["2"], ["present"], ["0-4"]]
    said = refused(*two(*world.pair(), "--by", "depth"))
    assert said == "--by depth: trees are needed; give --parse FILE.conllu"


def test_a_multi_word_token_is_one_word(world, run):
    rows = (("1-2\tim", "_\t_"), ("1\tin", "3\tcase"), ("2\tdem", "3\tdet"), ("3\tHaus", "0\troot"))
    tree = "".join(f"{word}\t_\t_\t_\t_\t{arc}\t_\t_\n" for word, arc in rows)
    world.sources = ["im Haus"] * 120
    base, system = (
        world.generated(name, texts, sources=False) for name, texts in (("a", world.worse), ("b", world.better))
    )
    options = two(base, system, "--metrics", "BLEU", "--buckets", "1", "--by", "length")
    for source in (
        ("--source", world.text("src", world.sources)),
        ("--parse", world.text("src.conllu", [tree] * 120)),
    ):
        (table,) = run(*options, *source)["buckets"]
        assert [group["label"] for group in table["groups"]] == ["2"]


def test_another_source_is_told_of(world, run):
    world.sources[2] = "ein <unk> wort"
    files = two(*world.pair())
    world.sources[:4] = ["Wort , Wort", world.sources[1].upper(), "ein anderes wort", "andere , Wörter"]
    run(*files, "--source", world.text("src", world.sources))
    assert "src:1: sentence 0 is 'Wort , Wort', but 'wort wort" in run.said
    assert ", and 2 of 120 differ; give the source that was translated" in run.said


def test_text_is_as_good_as_generated(world, run):
    expected = figures(run(*two(*world.pair())))
    base, system = world.text("a.txt", world.worse), world.text("b.txt", world.better)
    options = ("--reference", world.text("ref", world.references))
    assert figures(run(*two(base, system, *options, "--source", world.text("src", world.sources)))) == expected
    assert figures(run(*two(base, world.pair()[1], *options))) == expected, "the source is in the other file"
    without = run(*two(base, system, *options))
    assert without["buckets"] == [] and means(without) == means(run(*two(*world.pair())))


def test_case_and_tokens(world, run):
    world.references = ["He said: no, never!", "Yes."]
    base = world.text("a", ["he said : no , never !", "yes ."])
    system = world.text("b", ["He said: no, never!", "Yes."])
    options = two(base, system, "--reference", world.text("ref", world.references))
    found = run(*options, "--lowercase", "--tokenize", "13a")
    assert means(found) == pytest.approx([100, 100])
    assert means(found, "RIBES") == [1, 1], "RIBES is of the same words"
    assert means(found, "chrF") == pytest.approx([100, 100])
    assert "case:lc|eff:no|tok:13a" in found["metrics"][0]["signature"]
    plain = means(run(*options, "--tokenize", "none"))
    assert plain[0] < 50 and plain[1] == pytest.approx(100)


def test_several_references(world, run):
    other = spoilt(world.references, 0.5, 5)
    files = ("--reference", world.text("r0", other), "--reference", world.text("r1", world.references))
    files += ("--metrics", "BLEU")
    found = run(*two(*world.pair(), *files))
    expected = BLEU(tokenize="none", force=True).corpus_score(world.worse, [other, world.references]).score
    assert means(found)[0] == pytest.approx(expected)
    assert found["references"] == 2 and found["metrics"][0]["signature"].startswith("nrefs:2|")


@pytest.mark.parametrize(
    ("kind", "cut"),
    [
        ("subword_nmt", lambda word: f"{word[:2]}@@ {word[2:]}" if len(word) > 2 else word),
        ("sentencepiece", lambda word: f"▁{word[:2]} {word[2:]}" if len(word) > 2 else f"▁{word}"),
    ],
)
def test_pieces(world, run, kind, cut):
    expected = figures(run(*two(*world.pair())))
    references, sources, better = world.references, world.sources, world.better

    def pieces(texts):
        return [" ".join(map(cut, text.split())) for text in texts]

    world.references, world.sources = pieces(references), pieces(sources)
    base = world.generated("base.generated", pieces(world.worse))
    system = world.generated("sys.generated", pieces(better))
    assert figures(run(*two(base, system, "--remove-bpe", kind))) == expected
    # text of words stays as it is
    reference = world.text("ref", references)
    assert figures(run(*two(base, system, "--reference", reference, "--remove-bpe", kind))) == expected
    assert "give --remove-bpe" not in run.said
    assert figures(run(*two(base, system))) != expected
    # the references have words of one letter, which sentencepiece marks, too
    cut_files = ["source", str(base), str(system)] + ["reference"] * (kind == "sentencepiece")
    warnings = [line for line in run.said.splitlines() if line.endswith("; give --remove-bpe")]
    assert sorted(line.split(": ")[1] for line in warnings) == sorted(cut_files)


def test_copies_and_empty_lines_are_told(world, run):
    base, system = world.pair()
    copy = world.text("copy", world.better)
    run("--system", "base", base, "--system", "sys", system, copy)
    assert f"--system sys: {copy} has the translations of {system}; is it another seed?" in run.said
    world.references[4] = ""
    run(*two(base, system, "--reference", reference := world.text("ref", world.references)))
    assert f"{reference}: 1 of 120 lines are empty" in run.said and "another seed" not in run.said


def test_unknown_words(world, run):
    world.references[3], world.sources[5] = "a <<unk>> b", "ein <unk> wort"
    base, system = world.pair()
    run(*two(base, system))
    assert "base.generated: 1 of 120 references have words that the model does not know (<<unk>>)" in run.said
    run(*two(base, system, "--reference", world.text("ref", world.references)))
    assert "unk" not in run.said


def test_seed(world, run):
    files = world.generated("a", world.worse), world.generated("b", spoilt(world.references, 0.4, 77))
    found = [run(*two(*files, "--metrics", "BLEU", "--seed", seed))["tests"][0]["p"] for seed in (0, 1, 2, 0)]
    assert len({p["randomization"] for p in found}) > 1 and len({p["bootstrap"] for p in found}) > 1
    assert found[0] == found[3]


def test_picture(world, run, refused):
    base, system = world.pair()
    picture = world.folder / "new" / "lengths.svg"
    options = ("--draw", picture, "--min-bucket", 1, "--metrics", "chrF")

    def texts() -> set[str]:
        root = xml.etree.ElementTree.parse(picture).getroot()
        return {line for element in root.iter("{http://www.w3.org/2000/svg}text") for line in element.itertext()}

    labels = world.text("labels", ["$x$" if i % 2 else "b_1$ $c" for i in range(len(world.sources))])
    run("--system", "the base", base, "--system", "_a$b$", system, *options, "--by", f"label:{labels}")
    assert {"the base", "_a$b$", "chrF", "(95 % intervals)", "$x$", "b_1$ $c"} <= texts()
    assert f"{picture}: exists already; give --overwrite" in refused(*two(base, system), *options)
    assert [path.name for path in picture.parent.iterdir()] == ["lengths.svg"]


def test_notes_on_tests(world, capsys):
    """What is known of other seeds, what Holm's correction is over, and a sign test that contradicts the score."""
    references = world.references
    # most sentences are right, and a quarter are wrong altogether
    longer = [text if i % 4 else "x y z u v w x y" for i, text in enumerate(references)]
    shorter = [" ".join(text.split()[:-1]) for text in references]
    options = ["--reference", world.text("r", references), "--metrics", "BLEU", *QUICK]
    texts = {"a": longer, "again": [text + " y" for text in longer]} | dict.fromkeys(
        ("b", "c", "copy", "same"), shorter
    )
    files = {name: world.text(name, text) for name, text in texts.items()}

    def notes(*more):
        given = [each if before == "--system" else files.get(each, each) for before, each in pairwise(("", *more))]
        assert compare.main([*map(str, (*options, *given))]) == 0
        return capsys.readouterr().out

    alone = notes("--system", "a", "a", "--system", "b", "b")
    said = (
        r"^b is better than a \(\+[0-9.]+ BLEU, \+[0-9.]+ to \+[0-9.]+\).*; with one seed each, so other seeds may say"
    )
    assert re.search(said, alone, re.MULTILINE)
    assert "a is worse than b (-" in notes("--system", "b", "b", "--system", "a", "a")
    same = notes("--system", "b", "b", "--system", "c", "c")
    assert "c and b cannot be told apart (0.00 BLEU, 0.00 to 0.00); with one seed each, so other seeds" in same
    assert "one seed each, so nothing is known about other seeds" in alone and "Holm" not in alone
    several = notes("--system", "a", "a", "again", "--system", "b", "b", "--system", "c", "c", "b")
    assert "delta: its interval, p and detectable are about other sentences and other seeds" in several
    assert "Holm: corrected for the systems that have this p" in several and "cannot be below" not in several
    assert "p AR is not exact where systems differ in the number of seeds" in several
    equal = notes("--system", "b", "b", "copy", "--system", "c", "c", "same")
    assert "c and b cannot be told apart (0.00 BLEU, 0.00 to 0.00)\n" in equal and "one seed" not in equal
    few = notes("--system", "a", "a", "--system", "b", "b", "--system", "c", "c", "--trials", "19")
    assert "Holm of p AR cannot be below 0.05: give --trials 40 or more" in few
    signed = notes("--system", "b", "b", "--system", "a", "a", "--sign-test")
    assert "p sign of a contradicts delta in BLEU" in signed


def test_formats(world, capsys):
    base, system = map(str, world.pair())
    again = str(world.generated("again.generated", world.better))

    def output(form, *more):
        files = ["--system", "ba_se", base, *more, "--system", "sys", again, *more]
        assert compare.main([*files, "--format", form, *QUICK]) == 0
        return capsys.readouterr().out

    text = output("text")
    lines = text.splitlines()
    assert lines[0].startswith("sys is better than ba_se (+") and lines[2].split()[:2] == ["BLEU", "score"]
    assert re.search(r"^source words \S+: .*, merged because some have fewer than 50 sentences$", text, re.MULTILINE)
    seeds = output("text", system).splitlines()
    assert seeds[2].split()[:6] == ["BLEU", "seeds", "mean", "SD", "min", "max"]
    assert seeds[4].split()[1:4] == ["2", lines[4].split()[1], "0.00"]
    # notes below a table are not part of it
    assert re.search(r"^% source words \S+: ", output("latex"), re.MULTILINE)
    assert re.search(r"^<p>source words \S+: .*</p>$", output("html"), re.MULTILINE)
    # with more systems than fit side by side, buckets do
    more = [argument for name in "abcd" for argument in ("--system", name, system)]
    assert compare.main([*more, "--format", "tsv", "--metrics", "BLEU", "--min-bucket", "1", *QUICK]) == 0
    assert "source words\t1-10\t11-20\t21-30\t>50\n" in capsys.readouterr().out


# --- refusals -----------------------------------------------------------------------------------------------------


def test_a_part_of_the_sentences_is_told_of(world, run):
    """Some are skipped for their length, say; where a shard was forgotten, all systems lack the same ones."""
    base, better = world.pair()
    run(*two(base, better))
    assert "no translation" not in run.said
    for path in (base, better):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(line for line in lines if not re.match("[STHDP]-[34]\t", line)), encoding="utf-8")
    run(*two(base, better))
    assert f"{base}: no translation of 2 of the sentences 0 to 119; scores are of the others" in run.said


def test_references_of_other_text_are_told_of(world, run):
    """Those of other sentences, or in another order; of a poor system, nothing is said."""
    poor = world.text("poor", spoilt(world.references, 0.9, 3))
    right = world.text("right", world.references)
    run("--system", "a", poor, "--reference", right)
    assert "as close" not in run.said
    shifted = world.text("shifted", [*world.references[5:], *world.references[:5]])
    run("--system", "a", poor, "--reference", shifted)
    said = "poor: translations are as close to the references of other sentences as to their own; are these"
    assert said in run.said
    # from line 201 on, a line is missing
    three = [f"{text} {last}" for last in "abc" for text in world.references]
    short = world.text("short", [*three[:200], *three[201:], "end"])
    run("--system", "a", world.text("good", three), "--reference", short)
    assert "as to their own in sentences 200 to 299; are these" in run.said


def test_few_sentences_say_little(world, run):
    files = [
        world.text(name, [text]) for name, text in (("r", "a b c d e f"), ("a", "a b c d e g"), ("b", "a b c d e f"))
    ]
    found = run("--system", "a", files[1], "--system", "b", files[2], "--reference", files[0], "--metrics", "BLEU")
    assert verdicts(found) == [
        "b and a cannot be told apart (+24.02 BLEU, +24.02 to +24.02); with one seed each, so other seeds may say "
        "otherwise; 1 sentences are too few to conclude much"
    ]


def test_systems_that_do_not_translate_are_not_compared(world, run):
    """By their BLEU, the length of their output, and its repetitions, which a reference may have, too."""
    texts = {
        "right": world.references,
        "upper": [text.upper() for text in world.references],
        "long": [f"{text} {text}" for text in world.references],
        "loops": [f"{text[:-13]} q q q q q q" if i % 9 == 0 else text for i, text in enumerate(world.references)],
    }
    files = {name: world.text(name, lines) for name, lines in texts.items()}
    more = [word for name, file in files.items() for word in ("--system", name, file)]
    found = run(*more, "--reference", files["right"], "--metrics", "BLEU")
    assert [system["repeated"] for system in found["systems"]] == [0, 0, 0, 14 / 120]
    said = "{} and right: one of them does not translate yet; nothing is compared ({})"
    assert verdicts(found) == [
        said.format("upper", "upper: 0.00 BLEU"),
        said.format("long", "long: 2.00 times the words of the references"),
        said.format("loops", "loops: 12% of the lines repeat themselves"),
    ]
    shown = "\n".join(tables(found, "text"))
    assert "loops" in shown and "delta" not in shown, "no difference, interval or p"
    found = run(*two(files["upper"], files["upper"], "--reference", files["right"], "--metrics", "BLEU"))
    assert "sys and base: these models do not translate yet; nothing is compared (base: 0.00" in verdicts(found)[0]
    found = run(*two(files["right"], files["loops"], "--reference", files["loops"], "--metrics", "BLEU"))
    assert found["systems"][1]["repeated"] == 0 and verdicts(found)[0].startswith("sys is better than base")


def test_brevity_is_in_every_table(world, run, capsys):
    """Without the penalty, the shorter system is better; sacrebleu's score is its precision times the penalty."""
    short = [text if i % 2 else " ".join(text.split()[: len(text) // 3]) for i, text in enumerate(world.references)]
    files = two(world.text("short", short), world.text("worse", spoilt(world.references, 0.06, 1)))
    files += ("--reference", world.text("ref", world.references), "--source", world.text("src", world.sources))
    found = run(*files, "--metrics", "BLEU")
    scores = [system["scores"]["BLEU"] for system in found["systems"]]
    theirs = [BLEU(tokenize="none", force=True).corpus_score(text, [world.references]) for text in (short, world.worse)]
    assert scores[0]["without_brevity_penalty"] == pytest.approx(theirs[0].score / theirs[0].bp)
    assert scores[0]["length_ratio"] == pytest.approx(theirs[0].ratio)
    group = found["buckets"][0]["groups"][0]
    chosen = [[side[i] for i in group["sentences"]] for side in (short, world.references)]
    part = BLEU(tokenize="none", force=True).corpus_score(chosen[0], [chosen[1]])
    score = group["scores"]["BLEU"]["base"]
    assert score["without_brevity_penalty"] == pytest.approx(part.score / part.bp)
    assert score["length_ratio"] == pytest.approx(part.ratio)
    bare = scores[1]["without_brevity_penalty"] - scores[0]["without_brevity_penalty"]
    assert bare < 0 < found["tests"][0]["delta"]
    assert f"; without brevity penalty, {bare:.2f} BLEU;" in verdicts(found)[0]
    assert compare.main([*map(str, files), "--metrics", "BLEU", "--format", "tsv", *QUICK]) == 0
    verdict, scored, tested, *buckets = capsys.readouterr().out.split("\n\n")
    assert verdict.startswith("sys is better than base") and "no BP\tlength\n" in scored
    assert f"\t{bare:.2f}\t1.0" in tested
    assert "\tno BP base\tlength base\tno BP sys\tlength sys\n" in "".join(buckets)


def compared(bleu, chrf, runs=([9.0, 11.0], [10.0, 12.0]), digits=2):
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
    metrics = [{"name": name, "digits": digits, "higher_is_better": True} for name in ("BLEU", "chrF")]
    return {"sentences": 1000, "systems": systems, "tests": tests, "metrics": metrics}


@pytest.mark.parametrize(
    ("comparison", "said"),
    [
        ((compared((1, 0.5, 1.5), (2, 1, 3))), "sys is better than base (+1.00 BLEU, +0.50 to +1.50)"),
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
            "-1.00; a true difference of 1.00 would be found four times in five",
        ),
        # as they print, these have no sign
        (
            compared((0.004, 0.001, 0.007), (-0.003, -0.004, -0.001)),
            "sys and base cannot be told apart (0.00 BLEU, 0.00 to +0.01); a true difference of 1.00 would be found "
            "four times in five",
        ),
        (
            compared((1, 0.5, 1.5), (2, 1, 3), ([10.0], [10.0, 12.0])),
            "sys is better than base (+1.00 BLEU, +0.50 to +1.50); base has one seed, assumed to vary as those of the "
            "other do",
        ),
        (
            compared((1, 0.5, 1.5), (2, 1, 3), ([10.0, 10.1, 9.9], [10.0, 12.0, 11.0])),
            "sys is better than base (+1.00 BLEU, +0.50 to +1.50); their seeds vary unequally (SD 0.08 and 0.82), so "
            "the interval may be too narrow",
        ),
    ],
)
def test_a_verdict_is_of_all_that_is_known(comparison, said):
    assert verdicts(comparison) == [said]


def test_files_that_do_not_fit(world, refused):
    base, system = world.pair()
    bare = world.generated("a.generated", world.worse, references=False, sources=False)
    assert "a.generated: no references (T- lines); give --reference" in refused(*two(bare, bare))
    reference = world.text("ref", world.references)
    picture = world.folder / "x.png"
    said = refused(*two(bare, bare, "--reference", reference, "--draw", picture))
    assert said == "--draw: the length of the source is not known; give --source" and not picture.exists()
    assert "pip install 'unbabel-comet>=2'" in refused(*two(base, system, "--comet", "Unbabel/wmt22-comet-da"))


def test_tokenizer_that_is_not_installed(world, refused, monkeypatch):
    monkeypatch.setattr(tokenizer_ja_mecab, "MeCab", None)
    said = refused(*two(*world.pair(), "--tokenize", "ja-mecab"))
    assert said.startswith("--tokenize ja-mecab: ") and "sacrebleu[ja]" in said


def test_comet(world, run, monkeypatch):
    """As another metric, from a package with unbabel-comet's interface."""

    class Model:
        def predict(self, samples, **options):
            return SimpleNamespace(scores=[len(sample["src"]) + len(sample["mt"]) for sample in samples])

    package = ModuleType("comet")
    package.download_model, package.load_from_checkpoint = str, lambda path: Model()
    monkeypatch.setitem(sys.modules, "comet", package)
    found = run(*two(*world.pair(), "--comet", "Unbabel/any", "--metrics", "BLEU"))
    assert [metric["name"] for metric in found["metrics"]] == ["BLEU", "COMET"]
    expected = [sum(map(len, world.sources + texts)) / 120 for texts in (world.worse, world.better)]
    assert means(found, "COMET") == pytest.approx(expected)
    assert found["tests"][1]["metric"] == "COMET" and found["buckets"][0]["groups"][0]["scores"]["COMET"].keys()


def keys_of(value):
    """All names of fields of what was found, but not those that are names of systems, metrics and tests."""
    if isinstance(value, dict):
        named = {key for key in value if key not in ("base", "sys", "BLEU", "randomization", "bootstrap", "sign")}
        return named.union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()


def test_the_page_names_every_field(world, run, repository):
    page = (repository / "docs" / "api" / "evaluate.md").read_text(encoding="utf8")
    section = page.split("## JSON of compare\n")[1].split("\n::: ")[0]
    found = run(*two(*world.pair(), "--metrics", "BLEU"))
    assert keys_of(found) - set(re.findall(r"`(\w+)`", section)) == set()
    assert {"randomization", "bootstrap", "sign"} <= set(re.findall(r"`(\w+)`", section))

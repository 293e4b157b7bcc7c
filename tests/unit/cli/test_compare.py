"""fairseq-syntax compare: tables of the program against sacrebleu, and what it says of files that do not fit."""

import random
import sys
import xml.etree.ElementTree
from functools import partial

import programs
import pytest
from sacrebleu.metrics import BLEU

from fairseq_syntax.cli import compare
from fairseq_syntax.evaluate.ribes import sentence_ribes

LETTERS = "abcdefghijklmnopqrst"
SYSTEMS = ["system", "BLEU", "delta", "ratio", "RIBES", "better", "worse", "p sign", "p bootstrap"]


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


@pytest.fixture
def run(capsys):
    """Function: arguments -> the tables on stdout, rows of cells; stderr is in `run.said`."""

    def call(*arguments):
        status = compare.main([*map(str, arguments), "--format", "tsv", "--bootstrap", "100"])
        output = capsys.readouterr()
        call.said = output.err
        assert status == 0, output.err
        return [[line.split("\t") for line in table.splitlines()] for table in output.out.split("\n\n")]

    return call


@pytest.fixture
def refused(capsys):
    """Function: arguments -> the one message of the program."""
    return partial(programs.refused, compare, capsys)


def test_systems(world, run):
    table, _, settings = run(*world.pair())
    bleu = BLEU(tokenize="none", force=True)
    base = bleu.corpus_score(world.worse, [world.references])
    system = bleu.corpus_score(world.better, [world.references])
    assert table[0] == SYSTEMS
    ribes = [
        sum(
            sentence_ribes(hypothesis.lower().split(), [reference.split()])
            for hypothesis, reference in zip(hypotheses, world.references, strict=True)
        )
        / 120
        for hypotheses in (world.worse, world.better)
    ]
    assert table[1] == ["base", f"{base.score:.2f}", "-", "1.000", f"{ribes[0]:.4f}", "-", "-", "-", "-"]
    assert table[2][:5] == [
        *("sys", f"{system.score:.2f}", f"{system.score - base.score:.2f}", "1.000", f"{ribes[1]:.4f}")
    ]
    better, worse, p_sign, p_bootstrap = table[2][5:]
    assert int(better) > 2 * int(worse) and float(p_sign) < 0.01 and float(p_bootstrap) < 0.01
    assert dict(settings) == {
        "setting": "value",
        "sentences": "120",
        "BLEU": str(bleu.get_signature()),
        "RIBES": "alpha:0.25|beta:0.10|case:lc|tok:none",
        "bootstrap": "resamples:100|seed:12345",
    }


def test_buckets(world, run):
    _, table, _ = run(*world.pair(), "--names", "a", "b")
    assert table[0] == ["source words", "sentences", "a", "b", "delta b"]
    assert [row[0] for row in table[1:]] == ["1-10", "11-20", "21-30", "31-40", "41-50", ">50"]
    bleu = BLEU(tokenize="none", force=True)
    lengths = [len(source.split()) for source in world.sources]
    for label, count, *scores in table[1:]:
        low, high = (51, 1000) if label == ">50" else map(int, label.split("-"))
        chosen = [i for i, length in enumerate(lengths) if low <= length <= high]
        assert int(count) == len(chosen)
        if not chosen:
            assert scores == ["-", "-", "-"]
            continue
        expected = [
            bleu.corpus_score([system[i] for i in chosen], [[world.references[i] for i in chosen]]).score
            for system in (world.worse, world.better)
        ]
        assert scores == [f"{value:.2f}" for value in (*expected, expected[1] - expected[0])]
    few = ", ".join(row[0] for row in table[1:] if 0 < int(row[1]) < 50)
    assert f"fewer than 50 sentences in bucket {few}: BLEU there says little" in run.said


def test_enough_sentences_need_no_warning(world, run):
    world.sources = ["ein wort"] * 120
    _, table, _ = run(*world.pair())
    assert [row[:2] for row in table[1:]] == [["1-10", "120"]]
    assert run.said == ""


def test_other_buckets(world, run):
    _, table, _ = run(*world.pair(), "--buckets", 5, "--longest", 20)
    assert [row[0] for row in table[1:]] == ["1-5", "6-10", "11-15", "16-20", ">20"]


def test_identical_systems(world, run):
    base, _ = world.pair()
    table, _, _ = run(base, base)
    assert table[1][0] == str(base), "the same names become paths"
    assert table[2][2:] == ["0.00", *table[1][3:5], "0", "0", "1", "1"]


def test_several_systems_and_order_of_lines(world, run):
    base, system = world.pair()
    two, _, _ = run(base, system)
    other = world.generated("other.generated", world.better, 9)
    three, buckets, _ = run(base, other, system, base, "--names", "base", "other", "sys", "again")
    assert three[2][1:] == three[3][1:] == two[2][1:]
    assert three[4][7:] == ["1", "1"]
    names = ["base", "other", "sys", "again"]
    assert buckets[0] == ["source words", "sentences", *names, "delta other", "delta sys", "delta again"]


def test_against_any_system(world, run):
    """As if that system were the baseline; without the option, the same tables but that one."""
    base, system = world.pair()
    other = world.generated("other.generated", spoilt(world.references, 0.3, 4), 9)
    files = (base, system, other)
    plain = run(*files, "--names", "base", "sys", "other")
    first, sys, base_again, *rest = run(
        *files, "--names", "base", "sys", "other", "--against", "sys", "--against", "base", "--against", "sys"
    )
    assert [first, *rest] == plain
    columns = [0, 2, 5, 6, 7, 8]
    turned, *_ = run(system, base, other, "--names", "sys", "base", "other")
    tests = ["delta", "better", "worse", "p sign", "p bootstrap"]
    assert sys == [["against sys", *tests], *([row[i] for i in columns] for row in turned[2:])]
    assert base_again == [["against base", *tests], *([row[i] for i in columns] for row in plain[0][2:])]
    assert float(sys[1][1]) == -float(base_again[1][1]) < 0


def test_line_ends_of_windows(world, run):
    base, system = world.pair()
    assert run(base, world.generated("sys.generated", world.better, 3, end="\r\n")) == run(base, system)


def test_text_is_as_good_as_generated(world, run):
    expected = run(*world.pair(), "--names", "a", "b")
    base, system = world.text("a.txt", world.worse), world.text("b.txt", world.better)
    reference, source = world.text("ref", world.references), world.text("src", world.sources)
    options = ("--names", "a", "b", "--reference", reference)
    assert run(base, system, *options, "--source", source) == expected
    assert run(base, world.pair()[1], *options) == expected, "the source is in the other file"
    tables = run(base, system, *options)
    assert len(tables) == 2 and tables[0] == expected[0]
    assert "no BLEU by length: the source is not known; give --source" in run.said


def test_case_and_tokens(world, run):
    world.references = ["He said: no, never!", "Yes."]
    base = world.text("a", ["he said : no , never !", "yes ."])
    system = world.text("b", ["He said: no, never!", "Yes."])
    options = (base, system, "--reference", world.text("ref", world.references))
    table, settings = run(*options, "--lowercase", "--tokenize", "13a")
    assert [row[1] for row in table[1:]] == ["100.00", "100.00"]
    assert table[1][4] == "1.0000", "RIBES is of the same words"
    assert "case:lc|eff:no|tok:13a" in settings[2][1] and settings[3][1].endswith("tok:13a")
    table, _ = run(*options)
    assert float(table[1][1]) < 50 and table[2][1] == "100.00"


def test_several_references(world, run):
    other = spoilt(world.references, 0.5, 5)
    base, system = world.pair()
    files = ("--reference", world.text("r0", other), "--reference", world.text("r1", world.references))
    table, _, settings = run(base, system, *files)
    expected = BLEU(tokenize="none", force=True).corpus_score(world.worse, [other, world.references]).score
    assert table[1][1] == f"{expected:.2f}"
    assert settings[2][1].startswith("nrefs:2|")


@pytest.mark.parametrize(
    ("kind", "cut"),
    [
        ("subword_nmt", lambda word: f"{word[:2]}@@ {word[2:]}" if len(word) > 2 else word),
        ("sentencepiece", lambda word: f"▁{word[:2]} {word[2:]}" if len(word) > 2 else f"▁{word}"),
    ],
)
def test_pieces(world, run, kind, cut):
    expected = run(*world.pair())
    references, sources, better = world.references, world.sources, world.better

    def pieces(texts):
        return [" ".join(map(cut, text.split())) for text in texts]

    world.references, world.sources = pieces(references), pieces(sources)
    base = world.generated("base.generated", pieces(world.worse))
    system = world.generated("sys.generated", pieces(better))
    assert run(base, system, "--remove-bpe", kind) == expected
    # text of words stays as it is
    reference = world.text("ref", references)
    assert run(base, system, "--reference", reference, "--remove-bpe", kind) == expected
    assert "give --remove-bpe" not in run.said
    assert run(base, system) != expected
    # the references have words of one letter, which sentencepiece marks, too
    cut_files = ["source", str(base), str(system)] + ["reference"] * (kind == "sentencepiece")
    warnings = [line for line in run.said.splitlines() if line.endswith("; give --remove-bpe")]
    assert sorted(line.split(": ")[1] for line in warnings) == sorted(cut_files)


def test_remove_bpe_alone(world, run):
    base = world.text("a", ["a do@@ g ru@@ ns of@@"])
    _, settings = run(base, base, "--reference", world.text("ref", ["a dog runs of"]), "--remove-bpe")
    assert settings[1] == ["sentences", "1"]
    assert "--remove-bpe" not in run.said


def test_unknown_words_of_references(world, run):
    world.references[3] = "a <<unk>> b"
    base, system = world.pair()
    run(base, system)
    assert "base.generated: 1 of 120 references have words that the model does not know (<<unk>>)" in run.said
    run(base, system, "--reference", world.text("ref", world.references))
    assert "unk" not in run.said


def test_empty_translations(world, run):
    base, _ = world.pair()
    table, buckets, _ = run(base, world.generated("none.generated", [""] * 120))
    assert table[2][1] == "0.00" and table[2][3:5] == ["0.000", "0.0000"]
    assert {row[3] for row in buckets[1:]} <= {"0.00", "-"}
    assert "none.generated: 120 of 120 translations are empty" in run.said


def test_one_sentence(world, run):
    world.references, world.sources = ["a b c d e"], ["eins zwei"]
    base = world.generated("a.generated", ["a b c x e"])
    table, buckets, _ = run(base, world.generated("b.generated", ["a b c d e"]))
    assert table[2][1] == "100.00" and table[2][5:8] == ["1", "0", "1"]
    assert buckets[1][:2] == ["1-10", "1"]


def test_seed(world, run):
    base = world.generated("base.generated", world.worse)
    other = world.generated("other.generated", spoilt(world.references, 0.4, 77))
    found = {seed: run(base, other, "--seed", seed)[0][2][8] for seed in (0, 1, 2, 3)}
    assert len(set(found.values())) > 1
    assert run(base, other, "--seed", 0)[0][2][8] == found[0]


def test_picture(world, run, refused):
    base, system = world.pair()
    picture = world.folder / "new" / "lengths.svg"
    run(base, system, "--draw", picture, "--names", "the base", "SDAtt")
    root = xml.etree.ElementTree.parse(picture).getroot()
    texts = [line for element in root.iter("{http://www.w3.org/2000/svg}text") for line in element.itertext()]
    counts = [sum(low < len(s.split()) <= low + 10 for s in world.sources) for low in (0, 10, 20)]
    axis = "BLEU, 95 % intervals (bootstrap)"
    assert {"the base", "SDAtt", axis, ">50", *(f"n = {count}" for count in counts)} <= set(texts)
    assert f"{picture}: exists already; give --overwrite" in refused(base, system, "--draw", picture)
    run(base, system, "--draw", picture, "--overwrite")
    assert [path.name for path in picture.parent.iterdir()] == ["lengths.svg"]


def test_formats(world, capsys):
    base, system = map(str, world.pair())
    assert compare.main([base, system, "--bootstrap", "10"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["system", "BLEU", "delta"] and lines[3] == ""
    assert len(lines[0]) == len(lines[1]) == len(lines[2])
    assert compare.main([base, system, "--bootstrap", "10", "--format", "markdown"]) == 0
    assert capsys.readouterr().out.startswith("| system | BLEU | delta | ratio |")


# --- refusals -----------------------------------------------------------------------------------------------------


def test_other_sentences(world, refused):
    base, _ = world.pair()
    short = world.generated("short.generated", world.better[:-2])
    said = refused(base, short)
    assert "short.generated: no translation of sentence 118, 119, which " in said and "base.generated:" in said
    assert "short.generated: no translation of sentence 118, 119" in refused(short, base)


def test_other_references(world, refused):
    base, _ = world.pair()
    world.references[7] = "quite another"
    other = world.generated("other.generated", world.better, 0)
    said = refused(base, other)
    line = other.read_text().splitlines().index("T-7\tquite another") + 1
    assert f"other.generated:{line}: the reference of sentence 7 is 'quite another', but in " in said
    reference = world.text("ref", world.references)
    assert compare.main([str(base), str(other), "--reference", str(reference), "--bootstrap", "5"]) == 0


def test_no_references(world, refused):
    base = world.generated("a.generated", world.worse, references=False)
    assert "a.generated: no references (T- lines); give --reference" in refused(base, base)


def test_reference_and_source_of_other_length(world, refused):
    base, system = world.pair()
    short = world.text("ref", world.references[:-3])
    said = refused(base, system, "--reference", short)
    assert "ref: no reference of sentence 117, 118, 119; it has 117 for 120 sentences" in said
    long = world.text("src", [*world.sources, "more"])
    assert "src:121: a source of sentence 120, which has no translation" in refused(base, system, "--source", long)


def test_against_a_system_that_is_not_there(world, refused):
    base, system = world.pair()
    given = (base, system, base, "--against")
    said = refused(*given, "chen17", "--names", "a", "b", "b")
    assert said == "--against chen17: no system has this name; give one of a, b, b, or other --names"
    said = refused(*given, "b", "--names", "a", "b", "b")
    assert said == "--against b: several systems have this name; give one of a, b, b, or other --names"


def test_picture_without_source(world, refused):
    base = world.generated("a.generated", world.worse, sources=False)
    said = refused(base, base, "--draw", world.folder / "x.png")
    assert said == "--draw: the length of the source is not known; give --source"
    assert not (world.folder / "x.png").exists()


def test_tokenizer_that_is_not_installed(world, refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "MeCab", None)
    monkeypatch.delitem(sys.modules, "sacrebleu.tokenizers.tokenizer_ja_mecab", raising=False)
    said = refused(*world.pair(), "--tokenize", "ja-mecab")
    assert said.startswith("--tokenize ja-mecab: ") and "sacrebleu[ja]" in said


def test_missing_file(world, refused):
    base, _ = world.pair()
    assert "nowhere" in refused(base, world.folder / "nowhere")

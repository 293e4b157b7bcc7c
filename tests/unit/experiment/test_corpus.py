"""Raw text of an experiment: what is left out of training, and which text is refused."""

import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from sacrebleu.tokenizers import tokenizer_ja_mecab

from fairseq_syntax import progress
from fairseq_syntax.experiment import corpus as module
from fairseq_syntax.experiment.corpus import check, check_needs, clean, doubts
from fairseq_syntax.experiment.plan import Cleaning, CorpusSettings, Family, Plan, Split, SystemSettings, TextSettings

PAIRS = [
    ("one two three", "eins zwei drei"),
    ("four five six", "vier fünf sechs"),
    ("", "leer"),
    ("leer", ""),
    ("one two three", "eins zwei drei"),  # repeated
    ("seven", "sieben und noch viele andere Worte dazu"),
    ("Berlin 2024", "berlin 2024"),
    ("a test", "ein Satz"),  # its source is in the test set
    ("a sentence", "EINE  prüfung"),  # its target is, in other case and spacing
    ("x" * 40, "y" * 40),
]
HELD_OUT = [("A test", "eine Prüfung")]


def test_each_pair_that_is_left_out_has_its_reason():
    kept, left_out = clean(PAIRS, HELD_OUT, Cleaning(longest=39))
    assert kept == PAIRS[:2]
    assert left_out == {
        "empty": 2,
        "repeated": 1,
        "length ratio": 1,
        "target = source": 1,
        "in a test set": 2,
        "too long": 1,
    }


def test_a_ratio_is_that_to_the_usual_one():
    """Japanese has half as many characters as English."""
    pairs = [(f"abcdefg{i}", f"あいう{i}") for i in range(9)] + [("abcdefghabcdefgh", "あい")]
    kept, left_out = clean(pairs, [], Cleaning(ratio=3))
    assert len(kept) == 9 and left_out == {"length ratio": 1}


def corpus_of(folder: Path, source: str = "en", target: str = "de", **texts: tuple[str, str]) -> CorpusSettings:
    default = {
        "train": ("the dog sleeps\nthe cat eats\n", "der Hund schläft\ndie Katze frisst\n"),
        "valid": ("the dog eats\n", "der Hund frisst\n"),
        "test": ("the cat sleeps\n", "die Katze schläft\n"),
    }
    for name, sides in {**default, **texts}.items():
        for language, text in zip((source, target), sides, strict=True):
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")
    return CorpusSettings(source, target, str(folder / "train"), str(folder / "valid"), {"test": str(folder / "test")})


def test_texts_are_read_normalized(tmp_path):
    text = "\ufeffthe\u00a0dog\tsleeps\r\nthe cat\u200b eats\r\n"
    pairs = check(corpus_of(tmp_path, train=(text, "der Hund schläft\ndie Katze frisst\n")))
    assert [source for source, _ in pairs["train"]] == ["the dog sleeps", "the cat eats"]


def test_a_text_that_is_used_twice_is_named(tmp_path):
    corpus = corpus_of(tmp_path)
    with pytest.raises(ValueError, match=r"train: is given as both train and test"):
        check(CorpusSettings("en", "de", corpus.train, corpus.valid, {"test": corpus.train}))
    (tmp_path / "raw").mkdir()
    with pytest.raises(ValueError, match=r"train: the experiment writes its own text into .*raw; give another folder"):
        check(corpus_of(tmp_path / "raw"), tmp_path)


@pytest.mark.parametrize(
    ("languages", "texts", "said"),
    [
        (("en", "de"), {"valid": ("a\nb\n", "a\n")}, r"valid\.en: 2 lines, but .*valid\.de has 1"),
        (("en", "de"), {"test": ("", "")}, r"test\.en: has no sentences"),
        (
            ("en", "de"),
            {"test": ("A dog\na cat\n", "a  dog\na cat\n")},
            "test: both sides are the same in 2 of 2 pairs",
        ),
        (("en", "de"), {"valid": ("der Hund frisst\n", "the dog eats\n")}, "valid: its languages are swapped"),
        (("en", "de"), {"test": ("# global.columns = ID FORM\n", "a\n")}, r"test\.en:1: CoNLL-U .* give a sentence"),
    ],
)
def test_texts_that_do_not_fit_are_named(languages, texts, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        check(corpus_of(tmp_path, *languages, **texts))


def corpus_of_numbers(folder: Path, shift: int, first: int, lines: int = 1200) -> CorpusSettings:
    """Pairs that have numbers in common; from line `first` on, counted from 0, translations are shifted."""
    draw = random.Random(1)
    numbers = [" ".join(str(draw.randrange(50)) for _ in range(draw.randrange(1, 9))) for _ in range(lines + 1)]
    moved = [number + shift if number >= first else number for number in range(lines)]
    sides = [f"the {number} dogs\n" for number in numbers[:lines]], [f"{numbers[line]} Hunde\n" for line in moved]
    return corpus_of(folder, train=("".join(sides[0]), "".join(sides[1])))


@pytest.mark.parametrize(
    ("shift", "first", "said"),
    [(1, 0, ":1: from about here on, lines translate the source line below; "), (-1, 600, ":501: .* above; ")],
)
def test_translations_that_are_shifted_by_a_line_are_found(tmp_path, shift, first, said):
    check(corpus_of_numbers(tmp_path, 0, 0))
    with pytest.raises(ValueError, match=rf"train\.de{said}find the line that is missing, or one too many"):
        check(corpus_of_numbers(tmp_path, shift, first))


@pytest.mark.parametrize("target", "cs de eu fi fr hu ja ko tr".split())
def test_real_text_is_not_shifted(real_data, target):
    folder = real_data / "libreoffice"
    corpus = CorpusSettings("en", target, *(str(folder / name) for name in ("valid", "test")), {})
    assert not list(doubts(corpus, check(corpus)))


def test_what_is_small_or_shuffled_is_doubted(tmp_path):
    corpus = corpus_of_numbers(tmp_path, 0, 0)
    pairs = check(corpus)
    small = [
        f"{corpus.valid}: 1 pairs; give 500 or more to choose checkpoints",
        f"{tmp_path}/test: 1 pairs; give 1,000 or more to compare systems",
    ]
    assert list(doubts(corpus, pairs)) == small
    said = f"{corpus.valid}: a sentence of 1,024 characters; Transformers read 1,023 pieces"
    assert said in doubts(corpus, pairs | {"valid": [("a" * 1024, "b")]})
    targets = [target for _, target in pairs["train"]]
    random.Random(1).shuffle(targets)
    pairs["train"] = [(source, target) for (source, _), target in zip(pairs["train"], targets, strict=True)]
    assert list(doubts(corpus, pairs))[1:] == small


def test_latin_1_is_named_with_its_line(tmp_path):
    corpus = corpus_of(tmp_path)
    Path(f"{corpus.train}.de").write_bytes("der Hund schläft\n".encode("latin-1") * 2)
    with pytest.raises(ValueError, match=r"train\.de:?.*1.*UTF-8"):
        check(corpus)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokenize": "ja-mecab"}, r"--tokenize ja-mecab: .*pip install"),
        ({"text": TextSettings(target_tokenizer="mosses")}, "tokenizer mosses: choose from words"),
        ({"text": TextSettings(parser="spacy", parser_model="no_such")}, "--parser-model no_such: spaCy .* cannot"),
        ({}, "tokenize = '13a', but .* has no spaces: 'zh'"),
        ({"tokenize": "zh", "seeds": tuple(range(9))}, r"1\.1 GB are free, but runs take 1\.8; give another folder"),
    ],
)
def test_what_the_last_step_needs_is_asked_for_before_the_first(tmp_path, monkeypatch, change, message):
    monkeypatch.setattr(tokenizer_ja_mecab, "MeCab", None)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda path: SimpleNamespace(free=2**30))
    corpus = corpus_of(tmp_path, test=("a\n", "这是一个很好的例子。\n"))
    systems = {"transformer": SystemSettings("transformer", "f", "")}
    families = {"f": Family("--lr 1", "", 9)}
    plan = Plan("x", tmp_path / "x.toml", (1,), families, systems, corpus=corpus, tokenize="13a")
    with pytest.raises(ValueError, match=message):
        check_needs(replace(plan, **change), tmp_path / "out")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        ("raise ValueError('train.en:3: odd')", "train.en:3: odd$"),
        ("raise OSError('no model of Stanza')", "no model of Stanza$"),
        ("raise type('Odd', (Exception,), {})('of a parser')", "Odd: of a parser$"),
    ],
)
def test_why_no_data_were_made_is_told(tmp_path, monkeypatch, make, said):
    monkeypatch.setattr(module, "_make", lambda *_: exec(make))
    splits = {name: Split(name, f"raw/{name}.de") for name in ("valid", "test")}
    plan = Plan("x", tmp_path / "x.toml", (1,), {}, {}, splits, corpus=corpus_of(tmp_path))
    with pytest.raises(ValueError, match=f"^the data could not be made: {said}"):
        module.prepare(plan, tmp_path / "out")
    assert not (tmp_path / "out" / "prepared").exists()


def test_cleaning_says_how_far_it_is(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SECONDS", 0)
    monkeypatch.setattr(progress, "FIRST", 0)
    clean(PAIRS, HELD_OUT, Cleaning())
    assert "cleaning: 100%|" in capsys.readouterr().err

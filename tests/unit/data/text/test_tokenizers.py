"""Tokenisers and their inverses."""

import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_syntax.data.parsers import ParserOptions, load_parser
from fairseq_syntax.data.text.tokenizers import load_tokenizer, normalize


def test_normalize():
    line = "\ufeffa\u00a0b\u202fc\td\u2028e\u0085f\u0000g\u200bh \r\n cafe\u0301 \u0645\u06cc\u200c\u062e\u0648\u0627"
    assert normalize(line) == "a b c d e fgh caf\u00e9 \u0645\u06cc\u200c\u062e\u0648\u0627"


def test_what_is_not_seen_goes_from_between_a_letter_and_its_accent():
    assert normalize("e\u00ad\u0301 \u2066a\u2069 b\u2063c\u2066") == "\u00e9 a bc"


@given(st.text() | st.text(st.sampled_from("e\u00ad\u0301\u200b \u2066\u1100\u1161\u200d")))
def test_normalized_text_stays(text):
    once = normalize(text)
    assert normalize(once) == once and once.split() == [word for word in once.split(" ") if word]


TEXT = "I don't like Mr. Smith's dog (much), & that's it: 3.50 <b>!"
TOKENS = {
    "moses": "I don 't like Mr. Smith 's dog ( much ) , & that 's it : 3.50 < b > !",
    "spacy": "I do n't like Mr. Smith 's dog ( much ) , & that 's it : 3.50 < b > !",
    "none": TEXT,
}


@pytest.mark.parametrize("name", TOKENS)
def test_english(name):
    """Nothing is escaped: to a parser, &apos;s is a word that it has never seen."""
    tokenizer = load_tokenizer(name, "en")
    assert tokenizer.tokenize([TEXT, "", "A bird."]) == [
        TOKENS[name].split(),
        [],
        "A bird .".split() if name != "none" else ["A", "bird."],
    ]
    assert tokenizer.detokenize(TOKENS[name].split()).replace(" < b >!", " <b>!") == TEXT


def test_folders_are_given_as_paths(tmp_path, monkeypatch):
    """What happens to be in the current folder has no part in it: spaCy would run what is there."""
    pipeline = pytest.importorskip("spacy").blank("en")
    monkeypatch.chdir(tmp_path)
    for name in ("en", "my_pipeline"):
        pipeline.to_disk(tmp_path / name)
    for name in ("en", "./my_pipeline", str(tmp_path / "my_pipeline")):
        assert load_tokenizer(f"spacy:{name}", "fr").tokenize(["don't"]) == [["do", "n't"]]
    with pytest.raises(ValueError, match=r"my_pipeline cannot be loaded .no such package is installed; for a folder"):
        load_tokenizer("spacy:my_pipeline", "en")
    for name in ("en", "my_pipeline"):
        with pytest.raises(ValueError, match=f"OSError: no such package is installed; for a folder, give ./{name}"):
            load_parser("spacy", ParserOptions(parser_model=name))


def test_japanese():
    tokenizer = load_tokenizer("mecab", "ja")
    assert tokenizer.tokenize(["私はPython 3が好きです。"]) == ["私 は Python 3 が 好き です 。".split()]
    assert tokenizer.detokenize("私 は Python 3 が 好き です 。".split()) == "私はPython 3が好きです。"


def test_stanza(monkeypatch):
    """A multi-word token stays whole, because trees stand over the words of the text; empty lines keep their place."""
    token = SimpleNamespace

    class Pipeline:
        def __init__(self, language, **options):
            assert (language, options["processors"], options["tokenize_no_ssplit"]) == ("fr", "tokenize", True)

        def bulk_process(self, lines):
            return [
                SimpleNamespace(sentences=[SimpleNamespace(tokens=[token(text=word) for word in line.split()])])
                for line in lines
            ]

    monkeypatch.setitem(sys.modules, "stanza", SimpleNamespace(Pipeline=Pipeline))
    assert load_tokenizer("stanza", "fr").tokenize(["du pain", "", "oui"]) == [["du", "pain"], [], ["oui"]]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mosses", "tokenizer mosses: choose from moses, "),
        ("moses:x", "tokenizer moses:x: choose from "),
        ("spacy:no_such_pipeline", "tokenizer spacy: no_such_pipeline cannot be loaded"),
    ],
)
def test_no_such_tokenizer(name, message):
    with pytest.raises(ValueError, match=message):
        load_tokenizer(name, "en")

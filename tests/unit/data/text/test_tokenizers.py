"""Tokenisers and their inverses."""

import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_syntax.data.parsers import ParserOptions, load_parser
from fairseq_syntax.data.text.tokenizers import (
    add_joiners,
    detokenize,
    escape,
    form_of,
    load_detokenizer,
    load_tokenizer,
    normalize,
    unicode_words,
)
from fairseq_syntax.trees.subwords import JOINER


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
    "words": "I don't like Mr . Smith's dog ( much ) , & that's it : 3.50 < b > !",
    "none": TEXT,
}


@pytest.mark.parametrize("name", TOKENS)
def test_english(name):
    """Nothing is escaped: to a parser, &apos;s is a word that it has never seen."""
    assert load_tokenizer(name, "eng_Latn")([TEXT, "", "A bird."]) == [
        TOKENS[name].split(),
        [],
        "A bird .".split() if name != "none" else ["A", "bird."],
    ]


def test_former_tokens_without_joiners():
    assert load_detokenizer("moses", "en")(TOKENS["moses"].split()).replace(" < b >!", " <b>!") == TEXT
    assert load_detokenizer("mecab", "ja")("私 は Python 3 が 好き です 。".split()) == "私はPython 3が好きです。"


# line -> its tokens, from the Unicode standard's notion of a word; ~ is the joiner
WORDS = {
    "Ọ̀pọ̀ farapa, lẹ́yìn náà.": "Ọ̀pọ̀ farapa ~, lẹ́yìn náà ~.",
    "bala'in yunwa": "bala'in yunwa",
    "b’ububanyi n’amahanga": "b’ububanyi n’amahanga",
    "“Stop!” she said. “No.”": "“~ Stop ~! ~” she said ~. “~ No ~. ~”",
    "US-Dollar http://x.y": "US ~-~ Dollar http ~: ~//~ x ~.~ y",
    "1,000.50円 it's 5%": "1,000.50円 it's 5 ~%",
    "می‌خواهم mʉ̀ꞌ ˥a ❤️‍🔥🇹🇿...": "می‌خواهم mʉ̀ꞌ ˥a ❤️‍🔥 ~🇹🇿 ~...",
    "café au 東京タワー": "café au 東京タワー",
}


@pytest.mark.parametrize(("line", "tokens"), WORDS.items())
def test_words_of_unicode(line, tokens):
    joined = tokens.replace("~", JOINER)
    assert add_joiners(line, unicode_words(line)) == joined.split() and detokenize(joined) == line


@given(st.text() | st.text(st.sampled_from("a1é'’.-@ \u0301\uffed\uffee\u2581\u200d猫ก😀")))
def test_tokens_with_joiners_are_the_line(text):
    line = normalize(text)
    cut = escape(line)
    tokens = add_joiners(cut, unicode_words(cut))
    assert tokens is not None and detokenize(" ".join(tokens)) == line
    assert not any("@@" in token or "\u2581" in token or JOINER in token.strip(JOINER) for token in tokens)
    assert add_joiners(f"{cut}x", unicode_words(cut)) is None  # a tokeniser that changes the text


def test_form_of_a_text():
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    assert form_of([composed, composed, decomposed, "a", "\u1ecd\u0301"]) == "NFC"
    assert form_of([composed, decomposed, decomposed, composed + decomposed]) == "NFD" and form_of([]) == "NFC"


@pytest.mark.parametrize("line", ["", " \u00a0", "\u200c", "\ufe0f", "\u3164 \u2800", "\u200d\u00ad", "\u115f\uffa0"])
def test_nothing_to_be_seen(line):
    assert normalize(line) == "" and normalize(f"{line}x").endswith("x")


def test_folders_are_given_as_paths(tmp_path, monkeypatch):
    """What happens to be in the current folder has no part in it: spaCy would run what is there."""
    pipeline = pytest.importorskip("spacy").blank("en")
    monkeypatch.chdir(tmp_path)
    for name in ("en", "my_pipeline"):
        pipeline.to_disk(tmp_path / name)
    for name in ("en", "./my_pipeline", str(tmp_path / "my_pipeline")):
        assert load_tokenizer(f"spacy:{name}", "fr")(["don't"]) == [["do", "n't"]]
    with pytest.raises(ValueError, match=r"my_pipeline cannot be loaded .no such package is installed; for a folder"):
        load_tokenizer("spacy:my_pipeline", "en")
    for name in ("en", "my_pipeline"):
        with pytest.raises(ValueError, match=f"OSError: no such package is installed; for a folder, give ./{name}"):
            load_parser("spacy", ParserOptions(parser_model=name))


def test_japanese():
    assert load_tokenizer("mecab", "jpn")(["私はPython 3が好きです。"]) == ["私 は Python 3 が 好き です 。".split()]


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
    assert load_tokenizer("stanza", "fr")(["du pain", "", "oui"]) == [["du", "pain"], [], ["oui"]]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mosses", "tokenizer mosses: choose from words, moses, "),
        ("moses:x", "tokenizer moses:x: choose from "),
        ("spacy:no_such_pipeline", "tokenizer spacy: no_such_pipeline cannot be loaded"),
    ],
)
def test_no_such_tokenizer(name, message):
    with pytest.raises(ValueError, match=message):
        load_tokenizer(name, "en")

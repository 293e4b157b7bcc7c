"""Words from subwords: whatever was cut must come back, piece by piece; of real codes, see data/text/test_recipe.py."""

import io

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st
from strategies import cut_words

from fairseq_syntax.trees.subwords import SubwordType, join_subwords

MARK = "\u2581"


def owners(cut):
    """Word of each piece, from words in pieces."""
    return [word for word, pieces in enumerate(cut) for _ in pieces]


@given(cut_words())
def test_subword_nmt_round_trip(cut):
    tokens = [piece + "@@" * (i < len(p) - 1) for p in cut for i, piece in enumerate(p)]
    words, word_of_token = join_subwords(tokens, SubwordType.subword_nmt)
    assert words == ["".join(pieces) for pieces in cut]
    assert word_of_token == owners(cut)


@pytest.mark.parametrize(
    ("subword_type", "tokens", "message"),
    [
        ("subword_nmt", ["a", "b@@", "c@@"], r"ends inside a word \('c@@'\)"),
        ("subword_nmt", ["@@"], "ends inside a word"),
        ("sentencepiece", [f"{MARK}a", f"{MARK}of{MARK}the"], f"'{MARK}of{MARK}the' .*split_by_whitespace=true"),
        ("sentencepiece", [MARK + MARK], "several words"),
        ("sentencepiece", [MARK, MARK], "no word"),
        ("bpe", ["a"], "'bpe'.*choose one of subword_nmt, sentencepiece, none"),
    ],
    ids=str,
)
def test_what_is_no_text(subword_type, tokens, message):
    with pytest.raises(ValueError, match=message):
        join_subwords(tokens, subword_type)


@pytest.mark.parametrize(
    ("subword_type", "tokens", "words", "word_of_token"),
    [
        # the mark of an inner piece is taken off once, and may stand alone
        ("subword_nmt", ["@@@", "a", "x@y", "@", "b@"], ["@a", "x@y", "@", "b@"], [0, 0, 1, 2, 3]),
        ("subword_nmt", ["@@", "a", "b"], ["a", "b"], [0, 0, 1]),
        ("sentencepiece", [f"{MARK}a", MARK, f"{MARK}b"], ["a", "b"], [0, 1, 1]),
        ("sentencepiece", [MARK, MARK, "a", "b"], ["ab"], [0, 0, 0, 0]),
        ("sentencepiece", [f"{MARK}a", MARK, MARK], ["a"], [0, 0, 0]),
        ("sentencepiece", ["a", "b", f"{MARK}c"], ["ab", "c"], [0, 0, 1]),
        ("sentencepiece", [f"{MARK}a", "@@", f"{MARK}b@@"], ["a@@", "b@@"], [0, 0, 1]),
        (
            "sentencepiece",
            [f"{MARK}<0x", "41>", MARK, "<0xE7>", "<0x8C>", "<0xAB>"],
            ["<0x41>", "猫"],
            [0, 0, 1, 1, 1, 1],
        ),
        (
            "subword_nmt",
            ["“\uffed", "S@@", "top", "\uffed@@", "!", "\uffed"],
            ["“", "Stop", "!", "\uffed"],
            [0, 1, 1, 2, 2, 3],
        ),
        ("none", ["a@@", f"{MARK}b", "c"], ["a@@", f"{MARK}b", "c"], [0, 1, 2]),
    ],
    ids=str,
)
def test_marks_alone_and_other_peoples(subword_type, tokens, words, word_of_token):
    assert join_subwords(tokens, subword_type) == (words, word_of_token)


@given(cut_words(), st.data())
def test_sentencepiece_round_trip(cut, data):
    tokens, expected = [], []
    for word, pieces in enumerate(cut):
        alone = data.draw(st.booleans())
        marked = [MARK, *pieces] if alone else [MARK + pieces[0], *pieces[1:]]
        tokens += marked
        expected += [word] * len(marked)
    words, word_of_token = join_subwords(tokens, SubwordType.sentencepiece)
    assert words == ["".join(pieces) for pieces in cut]
    assert word_of_token == expected


@pytest.fixture(scope="module")
def byte_pieces():
    """A processor that cuts unknown characters into bytes."""
    model = io.BytesIO()
    options = {"model_type": "bpe", "byte_fallback": True, "minloglevel": 2, "num_threads": 1}
    text = iter(["the dog and the cat saw a house ."] * 9)
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=text, model_writer=model, vocab_size=290, **options)
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


@given(st.lists(st.integers(0x21, 0xFF), min_size=1, max_size=6))
def test_bytes_that_are_no_text_are_those_of_sentencepiece(byte_pieces, content):
    tokens = [MARK, *(f"<0x{byte:02X}>" for byte in content)]
    assert join_subwords(tokens, "sentencepiece")[0] == [byte_pieces.decode_pieces(tokens)]


@pytest.mark.parametrize("subword_type", SubwordType)
def test_empty_text(subword_type):
    assert join_subwords([], subword_type) == ([], [])

"""Words from subwords: whatever was cut must come back, piece by piece."""

import contextlib
import gzip
import io
from itertools import islice

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st
from strategies import cut_words
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

from fairseq_syntax.trees.subwords import SubwordType, join_subwords

MARK = "\u2581"


def owners(cut):
    """Word of each piece, from words in pieces."""
    return [word for word, pieces in enumerate(cut) for _ in pieces]


@pytest.fixture(scope="module")
def english(real_data):
    """Tokenized lines of Multi30k, 2,000 of them."""
    with gzip.open(real_data / "multi30k" / "train.en.gz", "rt", encoding="utf8") as lines:
        return [line.strip() for line in islice(lines, 2000)]


def test_subword_nmt():
    assert join_subwords(["pre@@", "train", "it"], "subword_nmt") == (["pretrain", "it"], [0, 0, 1])
    assert join_subwords(["a@@", "b@@", "c", "d@@", "e"], "subword_nmt") == (["abc", "de"], [0, 0, 0, 1, 1])


def test_subword_nmt_strips_the_mark_once():
    assert join_subwords(["@@@", "a", "x@y", "@", "b@"], "subword_nmt") == (["@a", "x@y", "@", "b@"], [0, 0, 1, 2, 3])


def test_subword_nmt_mark_alone_is_an_empty_piece():
    assert join_subwords(["@@", "a", "b"], "subword_nmt") == (["a", "b"], [0, 0, 1])


@given(cut_words())
def test_subword_nmt_round_trip(cut):
    tokens = [piece + "@@" * (i < len(p) - 1) for p in cut for i, piece in enumerate(p)]
    words, word_of_token = join_subwords(tokens, SubwordType.subword_nmt)
    assert words == ["".join(pieces) for pieces in cut]
    assert word_of_token == owners(cut)


def test_real_subword_nmt(english):
    learnt = io.StringIO()
    with contextlib.redirect_stderr(io.StringIO()):  # a progress bar
        learn_bpe(english[:200], learnt, num_symbols=300)
    learnt.seek(0)
    bpe = BPE(learnt)
    cut = 0
    for line in english[:400]:  # half of them unseen
        tokens = bpe.process_line(line).split()
        words, word_of_token = join_subwords(tokens, "subword_nmt")
        assert words == line.split()
        assert word_of_token == owners([bpe.segment_tokens([word]) for word in line.split()])
        cut += len(tokens) > len(words)
    assert cut > 300


@pytest.mark.parametrize("tokens", [["a@@"], ["a", "b@@"], ["a", "b@@", "c@@"], ["@@"]], ids=str)
def test_subword_nmt_text_ends_inside_a_word(tokens):
    with pytest.raises(ValueError, match="ends inside a word") as error:
        join_subwords(tokens, "subword_nmt")
    assert repr(tokens[-1]) in str(error.value)


def test_sentencepiece():
    assert join_subwords([f"{MARK}pre", "train", f"{MARK}it"], "sentencepiece") == (["pretrain", "it"], [0, 0, 1])


@pytest.mark.parametrize(
    ("tokens", "words", "word_of_token"),
    [
        ([MARK, "a", "b"], ["ab"], [0, 0, 0]),
        ([f"{MARK}a", MARK, "b"], ["a", "b"], [0, 1, 1]),
        ([f"{MARK}a", MARK, f"{MARK}b"], ["a", "b"], [0, 1, 1]),
        ([MARK, MARK, "a", "b"], ["ab"], [0, 0, 0, 0]),
        ([f"{MARK}a", MARK], ["a"], [0, 0]),
        ([f"{MARK}a", MARK, MARK], ["a"], [0, 0, 0]),
        (["a", "b", f"{MARK}c"], ["ab", "c"], [0, 0, 1]),
        ([f"{MARK}a", "@@", f"{MARK}b@@"], ["a@@", "b@@"], [0, 0, 1]),
    ],
    ids=str,
)
def test_sentencepiece_marks_alone(tokens, words, word_of_token):
    assert join_subwords(tokens, "sentencepiece") == (words, word_of_token)


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


def test_byte_pieces_are_put_together(byte_pieces):
    line = "the 猫 and ß猫x 🐈 ."
    tokens = byte_pieces.encode(line, out_type=str)
    assert sum(token.startswith("<0x") for token in tokens) > 10
    words, word_of_token = join_subwords(tokens, "sentencepiece")
    assert words == line.split() and len(word_of_token) == len(tokens)


@given(st.lists(st.integers(0x21, 0xFF), min_size=1, max_size=6))
def test_bytes_that_are_no_text_are_those_of_sentencepiece(byte_pieces, content):
    tokens = [MARK, *(f"<0x{byte:02X}>" for byte in content)]
    assert join_subwords(tokens, "sentencepiece")[0] == [byte_pieces.decode_pieces(tokens)]


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_real_sentencepiece(english, model_type):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(english),
        model_writer=model,
        vocab_size=500,
        model_type=model_type,
        minloglevel=2,
        num_threads=1,
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    cut = lone = 0
    for line in english[:200]:
        # An unknown letter at the start of a word leaves its mark alone.
        line = line + " \u8a9e \u8a9ex"
        tokens = processor.encode(line, out_type=str)
        words, word_of_token = join_subwords(tokens, "sentencepiece")
        assert words == line.split()
        assert len(word_of_token) == len(tokens)
        for word in range(len(words)):
            pieces = [t for t, owner in zip(tokens, word_of_token, strict=True) if owner == word]
            assert "".join(pieces) == MARK + words[word]
        cut += len(tokens) > len(words)
        lone += MARK in tokens
    assert cut > 150
    assert lone == 200


def test_sentencepiece_piece_over_several_words():
    with pytest.raises(ValueError, match="split_by_whitespace=true") as error:
        join_subwords([f"{MARK}a", f"{MARK}of{MARK}the"], "sentencepiece")
    assert repr(f"{MARK}of{MARK}the") in str(error.value)
    with pytest.raises(ValueError, match="several words"):
        join_subwords([MARK + MARK], "sentencepiece")


@pytest.mark.parametrize("tokens", [[MARK], [MARK, MARK]], ids=str)
def test_sentencepiece_text_without_a_word(tokens):
    with pytest.raises(ValueError, match="no word"):
        join_subwords(tokens, "sentencepiece")


def test_none_leaves_the_tokens_alone():
    tokens = ["a@@", f"{MARK}b", "c"]
    words, word_of_token = join_subwords(tokens, "none")
    assert (words, word_of_token) == (tokens, [0, 1, 2])
    assert words is not tokens


@pytest.mark.parametrize("subword_type", [*SubwordType, *map(str, SubwordType)])
def test_empty_text(subword_type):
    assert join_subwords([], subword_type) == ([], [])


@pytest.mark.parametrize("subword_type", ["bpe", "", "Sentencepiece", None])
def test_unknown_type(subword_type):
    with pytest.raises(ValueError, match="choose one of subword_nmt, sentencepiece, none") as error:
        join_subwords(["a"], subword_type)
    assert repr(subword_type) in str(error.value)

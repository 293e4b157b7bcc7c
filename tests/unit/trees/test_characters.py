"""Text as characters and back, without repeated pairs of words; and through fairseq's dictionaries."""

import pytest
from fairseq.data.data_utils import post_process
from fairseq.tokenizer import tokenize_line
from hypothesis import given
from hypothesis import strategies as st
from oracles import characters as oracle

from fairseq_syntax.trees.characters import SPACE, Dedup, remove_repeats, to_characters, to_text

# all there is but surrogates, which are no text, with blanks of many kinds
LINES = st.text(
    st.one_of(st.sampled_from(" \t\u00a0\u2009\u3000\u2028\x1c▁_()ab"), st.characters(exclude_categories=["Cs"]))
)
FEW_WORDS = st.lists(st.sampled_from("abc"), max_size=14)


@pytest.mark.parametrize(
    ("line", "characters", "text"),
    [
        ("Eine Gruppe", "E i n e ▁ G r u p p e", "Eine Gruppe"),
        ("  im\u00a0 Park \t.\n", "i m ▁ P a r k ▁ .", "im Park ."),
        ("a▁b", "a _ b", "a_b"),
        ("ｓ　ｔ", "ｓ ▁ ｔ", "ｓ ｔ"),
        (" \u3000\r\n", "", ""),
    ],
)
def test_text_to_characters_and_back(line, characters, text):
    assert to_characters(line) == characters
    assert to_text(characters) == text
    assert to_text("▁ ▁ a <unk> ▁ ▁ b ▁") == "a<unk> b"  # as a model may write


@given(LINES)
def test_nothing_is_lost_but_blanks(line):
    characters = to_characters(line)
    assert to_text(characters) == " ".join(line.replace(SPACE, "_").split())
    # every symbol is one character, for fairseq too
    assert [len(symbol) for symbol in tokenize_line(characters)] == [1] * len(tokenize_line(characters))
    assert tokenize_line(characters) == (characters.split(" ") if characters else [])
    assert to_characters(to_text(characters)) == characters
    # what fairseq's --post-process sentencepiece makes of it
    assert post_process(characters, "sentencepiece") == to_text(characters)


@given(FEW_WORDS)
def test_equals_the_slow_twin(words):
    twins = {Dedup.adjacent: oracle.without_adjacent_repeats, Dedup.seen: oracle.without_seen_repeats}
    for rule, twin in twins.items():
        assert remove_repeats(" ".join(words), rule).split() == twin(words)
    assert remove_repeats(" ".join(words), Dedup.none).split() == words

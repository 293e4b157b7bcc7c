"""n-grams against index arithmetic, their vocabulary against counts by hand, bags against loops."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles.ngrams import indexed_ngrams, known_ngrams, ngram_counts

from fairseq_syntax.systems.parser.char_ngrams import NgramVocabulary, bag_table, character_ngrams

# few letters, so that n-grams come again; also letters beyond 16 bits, combining and special ones
LETTERS = st.one_of(st.sampled_from("abcé字𝔘\u0301#"), st.characters())
WORDS = st.text(LETTERS, min_size=1, max_size=12)
COUNTED = st.dictionaries(WORDS, st.integers(0, 4), max_size=8).map(lambda words: list(words.items()))


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("a", "2gram-#BEGIN#a 2gram-a#END# 3gram-#BEGIN#a#END#"),
        ("ab", "2gram-#BEGIN#a 2gram-ab 2gram-b#END# 3gram-#BEGIN#ab 3gram-ab#END# 4gram-#BEGIN#ab#END#"),
        (
            "Cat",
            "2gram-#BEGIN#C 2gram-Ca 2gram-at 2gram-t#END# 3gram-#BEGIN#Ca 3gram-Cat 3gram-at#END# "
            "4gram-#BEGIN#Cat 4gram-Cat#END#",
        ),
    ],
)
def test_ngrams_of_short_words(word, expected):
    assert character_ngrams(word) == expected.split()


@given(WORDS | st.sampled_from(["a", "ab", "abc", "Cat", "hello", "x-y"]))
def test_ngrams_are_those_of_charngram2vec(word):
    found = character_ngrams(word)
    assert found == indexed_ngrams(word)
    assert character_ngrams(word, (3,)) == [key for key in found if key.startswith("3gram-")]


@given(COUNTED, st.integers(0, 6))
def test_vocabulary_equals_counting_by_hand(words, minimum):
    vocabulary = NgramVocabulary.build(words, minimum)
    counts = ngram_counts(words)
    assert set(vocabulary.keys) == {key for key, count in counts.items() if count >= minimum}
    for before, after in zip(vocabulary.keys, vocabulary.keys[1:], strict=False):
        assert counts[before] > counts[after] or (counts[before] == counts[after] and before < after)
    assert [vocabulary.index(key) for key in vocabulary.keys] == list(range(1, len(vocabulary) + 1))


@given(COUNTED, st.lists(WORDS), st.randoms())
def test_numbers_do_not_depend_on_words_of_count_0_nor_on_order(words, unseen, random):
    vocabulary = NgramVocabulary.build(words, 2)
    more = words + [(word, 0) for word in unseen]
    assert NgramVocabulary.build(more, 2).keys == vocabulary.keys
    random.shuffle(more)
    assert NgramVocabulary.build(more, 2).keys == vocabulary.keys


def test_a_vocabulary_is_extended_at_its_end():
    vocabulary = NgramVocabulary(["b", "a"])
    assert vocabulary.extended(["c", "a", "0"]).keys == ["b", "a", "c", "0"]
    assert vocabulary.keys == ["b", "a"]


def test_a_key_has_one_number():
    with pytest.raises(ValueError, match="'a' is in the list more than once"):
        NgramVocabulary(["a", "b", "a"])


@given(COUNTED, st.lists(st.one_of(WORDS, st.just("")), max_size=6), st.integers(1, 12))
def test_bags_equal_loops(words, rows, width):
    vocabulary = NgramVocabulary.build(words, 2)
    rows += [word for word, _ in words]
    table, cut = bag_table(rows, vocabulary, width)
    expected = [[1 + vocabulary.keys.index(key) for key in known_ngrams(word, vocabulary.keys)] for word in rows]
    longest = max([1, *(min(width, len(bag)) for bag in expected)])
    assert table.dtype == torch.int32 and table.shape == (len(rows), longest)
    assert cut == sum(len(bag) > width for bag in expected)
    for row, bag in zip(table.tolist(), expected, strict=True):
        kept = bag[:width]
        assert row == kept + [0] * (longest - len(kept))


def test_a_bag_without_room_is_refused():
    with pytest.raises(ValueError, match="allow at least 1"):
        bag_table(["a"], NgramVocabulary([]), 0)

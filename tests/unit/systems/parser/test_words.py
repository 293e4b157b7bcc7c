"""Words: n-grams against index arithmetic, representations against loops over strings, growth, files of vectors."""

import gzip
import itertools

import pytest
import torch
from fairseq.data import Dictionary
from hypothesis import given
from hypothesis import strategies as st
from oracles.ngrams import indexed_ngrams, mean_vector, ngram_counts

from fairseq_syntax.systems.parser.words import (
    WordRepresentation,
    bag_table,
    character_ngrams,
    frequent_ngrams,
    load_vectors,
    read_vectors,
)

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
BOS, PAD, EOS, UNK = range(4)
SIZE = 5
LEXICON = [("the", 9), ("The", 4), ("cat", 3), ("cats", 2), ("Japan", 2), ("hat", 1), ("hats", 1), ("xyz", 1)]

# few letters, so that n-grams come again; also letters beyond 16 bits, combining and special ones
LETTERS = st.one_of(st.sampled_from("abcé字𝔘\u0301#"), st.characters())
STRINGS = st.text(LETTERS, min_size=1, max_size=12)
COUNTED = st.dictionaries(STRINGS, st.integers(0, 4), max_size=8).map(lambda words: list(words.items()))
WORDS = st.text(st.sampled_from("abAB字ß"), min_size=1, max_size=7)
DICTIONARIES = st.dictionaries(WORDS, st.integers(0, 4), max_size=8).map(lambda words: list(words.items()))


# --- n-grams ------------------------------------------------------------------------------------------------------


@given(STRINGS | st.sampled_from(["a", "ab", "abc", "Cat", "hello", "x-y"]))
def test_ngrams_are_those_of_charngram2vec(word):
    assert character_ngrams(word) == indexed_ngrams(word)


@given(COUNTED, st.integers(0, 6), st.lists(STRINGS), st.randoms())
def test_ngrams_equal_counting_by_hand(words, minimum, unseen, random):
    """Neither the order of words nor those of count 0 matter."""
    keys = frequent_ngrams(words, minimum)
    counts = ngram_counts(words)
    assert set(keys) == {key for key, count in counts.items() if count >= minimum}
    for before, after in itertools.pairwise(keys):
        assert counts[before] > counts[after] or (counts[before] == counts[after] and before < after)
    more = words + [(word, 0) for word in unseen]
    random.shuffle(more)
    assert frequent_ngrams(more, minimum) == keys


def test_a_bag_has_the_first_ngrams_of_a_word(monkeypatch):
    monkeypatch.setattr("fairseq_syntax.systems.parser.words.MAX_NGRAMS", 2)
    numbers = {"2gram-ab": 3, "2gram-bc": 1, "3gram-abc": 2}
    assert bag_table(["abc", "bc", "x"], numbers).tolist() == [[3, 1], [1, 0], [0, 0]]


# --- representations ----------------------------------------------------------------------------------------------


def build(words=LEXICON, unseen=(), minimum=2, **options) -> WordRepresentation:
    """In float64, with drawn weights."""
    words = [*words, *((word, 0) for word in unseen)]
    dictionary = Dictionary()
    for word, count in words:
        dictionary.add_symbol(word, n=count)
    torch.manual_seed(1)
    return WordRepresentation(dictionary, size=SIZE, minimum=minimum, **options).double()


@given(DICTIONARIES, st.integers(0, 3), st.booleans(), st.data())
def test_forward_equals_loops(words, minimum, train, data):
    module = build(words, minimum=minimum).train(train)
    numbers = st.integers(0, 3 + len(words))
    tokens = data.draw(st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=1, max_size=3))
    with torch.set_grad_enabled(train):
        found = module(torch.tensor(tokens))
    assert found.shape == (len(tokens), 3, 2 * SIZE)

    frequent = [word for word, count in words if count >= max(1, minimum)]
    rows, ngrams = module.words.weight.tolist(), module.ngrams.weight.tolist()
    assert len(rows) == len(module.row_symbols) == 4 + len(frequent)
    for sentence, vectors in zip(tokens, found, strict=True):
        for token, vector in zip(sentence, vectors, strict=True):
            word = words[token - 4][0] if token >= 4 else ""
            if token < 4:
                row = token
            else:
                row = 4 + frequent.index(word) if word in frequent else UNK
            mean = mean_vector(word, module.ngram_keys, ngrams, len(module.ngram_keys))
            torch.testing.assert_close(vector, torch.tensor(rows[row] + mean, dtype=torch.double), atol=1e-12, rtol=0)


def test_lower_cased_words_share_a_row_and_keep_their_ngrams():
    words = [*LEXICON, ("Dog", 1), ("DOG", 1), ("<PAD>", 5)]
    module = build(words, unseen=["THE", "JAPAN", "Ox"], lowercase=True)
    assert module.row_symbols == [*SPECIALS, "the", "cat", "cats", "japan", "dog", "<pad>"]
    symbols = [*SPECIALS, *(word for word, _ in words), "THE", "JAPAN", "Ox"]
    row = dict(zip(symbols, module.word_row.tolist(), strict=True))
    assert row["The"] == row["THE"] == row["the"] == 4
    assert row["Japan"] == row["JAPAN"] == 7
    assert row["Dog"] == row["DOG"] == 8 and row["Ox"] == UNK
    # a word that is spelled like padding is a word
    assert row["<PAD>"] == 9 and row["<pad>"] == PAD and module.words.padding_idx == PAD
    bags = dict(zip(symbols, module.bag.tolist(), strict=True))
    assert bags["The"] != bags["the"]


@given(DICTIONARIES, st.lists(WORDS, max_size=5, unique=True), st.booleans())
def test_added_words_are_as_if_there_from_the_start(words, unseen, lowercase):
    unseen = [word for word in unseen if word not in dict(words)]
    whole, grown = build(words, unseen, lowercase=lowercase).eval(), build(words, lowercase=lowercase).eval()
    tokens = torch.arange(4 + len(words) + len(unseen)).unsqueeze(0)
    with torch.no_grad():
        for new in (unseen[:1], unseen[1:]):
            grown._symbols += new
            grown.follow()
        assert torch.equal(grown.word_row, whole.word_row)
        assert torch.equal(grown(tokens), whole(tokens))


def test_tables_start_between_minus_and_plus_a_tenth():
    many = [(f"{n}word{n * n}", 2) for n in range(2000)]
    module = build(many)
    assert len(module.words.weight) == 2004 and len(module.ngrams.weight) == len(module.ngram_keys) + 1
    for table, empty in ((module.words, PAD), (module.ngrams, 0)):
        assert table.weight[empty].abs().sum() == 0
        others = table.weight[torch.arange(len(table.weight)) != empty].detach()
        assert others.abs().max() <= 0.1 and others.max() > 0.0999 and others.min() < -0.0999
        # the standard deviation of U[-0.1, 0.1]
        assert others.std().item() == pytest.approx(0.1 / 3**0.5, rel=0.02) and others.mean().abs() < 1e-3


# --- files of vectors ---------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path):
    """Function: text or bytes -> path of a file that has it."""

    def write(content, name="vectors.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return str(path)

    return write


def as_lists(vectors):
    return {token: vector.tolist() for token, vector in vectors.items()}


@pytest.mark.parametrize(
    ("content", "wanted", "expected"),
    [
        ("a 1 2\nb 3 4\nc 5 6\n", {"c", "a", "x"}, {"a": [1, 2], "c": [5, 6]}),
        ("a 1 2\nNew York 3 4\n. . . 5 6\n", None, {"a": [1, 2], "New York": [3, 4], ". . .": [5, 6]}),
        ("a 1 2\na 3 4\n", None, {"a": [1, 2]}),
        # charNgram2vec cuts characters in two
        (b"2gram-\xe3\x81 1 2\n2gram-ab 3 4\n", {"2gram-ab"}, {"2gram-ab": [3, 4]}),
        (gzip.compress(b"a 1 2\r\n\r\nb 3 4", mtime=0), None, {"a": [1, 2], "b": [3, 4]}),
    ],
    ids=["only wanted", "tokens with blanks", "the first of two", "no UTF-8", "gzip and other line ends"],
)
def test_what_is_read(file, content, wanted, expected):
    path = file(content, "v.gz" if content[:2] == b"\x1f\x8b" else "v.txt")
    assert as_lists(read_vectors(path, 2, wanted)) == expected


def test_wrong_lines_are_passed_over_and_reported(file, caplog):
    path = file("a 1 2\nshort 1\nnone\ninfinite 1 nan\nletters 1 x\nb 3 4\n")
    assert as_lists(read_vectors(path, 2)) == {"a": [1, 2], "b": [3, 4]}
    assert f"{path}: 4 lines do not end in 2 numbers, the first of them line 2" in caplog.text


def test_a_representation_starts_from_files(file):
    module = build([*LEXICON, *((f"word{n}", 2) for n in range(99))], lowercase=True)
    # padding stays 0 whatever the file says
    lines = {name: f"{name} " + " ".join([str(value)] * SIZE) for value, name in enumerate(("the", "The", "<pad>"), 2)}
    load_vectors(module, file("\n".join(lines.values()), "words"), file("1gram-c 6 6 6 6 6\n3gram-cat 7 7 7 7 7\n"))
    cat = 1 + module.ngram_keys.index("3gram-cat")
    for table, filled in ((module.words.weight, {4: 2.0, PAD: 0.0}), (module.ngrams.weight, {cat: 7.0, 0: 0.0})):
        assert module.row_symbols[4] == "the"
        for row, value in filled.items():
            assert (table[row] == value).all()
        rest = table[[row for row in range(len(table)) if row not in filled]].detach().abs()
        assert 0.9 / SIZE < rest.max() <= 1 / SIZE and rest.amax(1).min() > 0

"""Words: n-grams against index arithmetic, representations against loops over strings, growth, files of vectors."""

import gzip
import itertools

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from hypothesis import given
from hypothesis import strategies as st
from oracles.ngrams import indexed_ngrams, known_ngrams, mean_vector, ngram_counts
from torch import nn

from fairseq_syntax.systems.parser.words import (
    WordRepresentation,
    bag_table,
    character_ngrams,
    fill_rows,
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
# anything but line ends, and blanks at the start, which would look like an empty first field
TOKENS = st.text(st.characters(exclude_characters=" \n\r", exclude_categories=["Cs"]), min_size=1, max_size=6)


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


@given(COUNTED, st.lists(st.one_of(STRINGS, st.just("")), max_size=6), st.integers(1, 12))
def test_bags_equal_loops(words, rows, width):
    keys = frequent_ngrams(words, 2)
    rows += [word for word, _ in words]
    table = bag_table(rows, {key: number for number, key in enumerate(keys, 1)}, width)
    expected = [[1 + keys.index(key) for key in known_ngrams(word, keys)][:width] for word in rows]
    longest = max([1, *map(len, expected)])
    assert table.dtype == torch.int32 and table.shape == (len(rows), longest)
    assert table.tolist() == [bag + [0] * (longest - len(bag)) for bag in expected]


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
        (gzip.compress(b"a 1 2\r\n\r\nb 3 4"), None, {"a": [1, 2], "b": [3, 4]}),
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


@given(st.lists(st.one_of(st.none(), TOKENS), max_size=6), st.lists(TOKENS, max_size=6), st.booleans())
def test_rows_with_a_vector_are_filled(strings, others, tensors):
    names = [string for string in strings if string][::2] + others
    vectors = {name: np.arange(2, dtype=np.float32) + 3 * number for number, name in enumerate(names)}
    table = nn.Embedding(len(strings), 2).double()
    before = table.weight.tolist()
    sources = {name: torch.from_numpy(vector) for name, vector in vectors.items()} if tensors else vectors
    hits = fill_rows(table.weight, strings, sources)
    expected = [vectors[s].tolist() if s in vectors else row for s, row in zip(strings, before, strict=True)]
    assert table.weight.tolist() == expected
    assert hits == sum(s in vectors for s in strings)
    assert table.weight.requires_grad and table.weight.is_leaf


def representation(**options):
    dictionary = Dictionary()
    for word in ("The", "cat", *(f"word{n}" for n in range(300))):
        dictionary.add_symbol(word, n=2)
    return WordRepresentation(dictionary, size=50, minimum=2, **options)


def line_of(token, value):
    return " ".join([token, *[str(value)] * 50]) + "\n"


def test_a_representation_starts_from_files(file):
    module = representation(lowercase=True)
    # padding stays 0 whatever the file says
    words = file(line_of("the", 2) + line_of("The", 3) + line_of("<pad>", 4) + line_of("</s>", 5), "words")
    ngrams = file(line_of("1gram-c", 6) + line_of("3gram-cat", 7), "ngrams")
    load_vectors(module, words, ngrams)
    filled = {"the": 2.0, "</s>": 5.0, "<pad>": 0.0}
    for row, string in enumerate(module.row_symbols):
        weight = module.words.weight[row].detach()
        if string in filled:
            assert (weight == filled[string]).all()
        else:
            assert 0 < weight.abs().max() <= 1 / 50
    cat = 1 + module.ngram_keys.index("3gram-cat")
    others = [number for number in range(1, len(module.ngram_keys) + 1) if number != cat]
    assert (module.ngrams.weight[cat] == 7).all() and (module.ngrams.weight[0] == 0).all()
    rest = module.ngrams.weight[others].detach()
    assert 0.9 / 50 < rest.abs().max() <= 1 / 50

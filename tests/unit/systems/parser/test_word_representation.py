"""Word representations against loops over the strings of tokens, and what a growing dictionary may not change."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles.ngrams import mean_vector
from torch import nn

from fairseq_syntax.systems.parser.word_representation import UNK_NGRAM, WordRepresentation

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
BOS, PAD, EOS, UNK = range(4)
SIZE = 5
LEXICON = [("the", 9), ("The", 4), ("cat", 3), ("cats", 2), ("Japan", 2), ("hat", 1), ("hats", 1), ("xyz", 1)]
UNSEEN = ["chat", "ξ", "THE", "madeupword0000"]

WORDS = st.text(st.sampled_from("abAB字ß"), min_size=1, max_size=7)
DICTIONARIES = st.dictionaries(WORDS, st.integers(0, 4), max_size=8).map(lambda words: list(words.items()))


def build(words=LEXICON, unseen=(), minimum=2, **options) -> WordRepresentation:
    """In float64, with drawn weights."""
    words = [*words, *((word, 0) for word in unseen)]
    symbols = SPECIALS + [word for word, _ in words]
    counts = [1] * 4 + [count for _, count in words]
    torch.manual_seed(1)
    module = WordRepresentation(symbols, counts, range(4), pad=PAD, unk=UNK, size=SIZE, minimum=minimum, **options)
    return module.double()


def symbols_of(words, unseen=()):
    return SPECIALS + [word for word, _ in words] + list(unseen)


@given(DICTIONARIES, st.integers(0, 3), st.integers(1, 9), st.booleans(), st.data())
def test_forward_equals_loops(words, minimum, width, train, data):
    module = build(words, minimum=minimum, max_ngrams=width).train(train)
    numbers = st.integers(0, 3 + len(words))
    tokens = data.draw(st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=1, max_size=3))
    with torch.set_grad_enabled(train):
        found = module(torch.tensor(tokens))
    assert found.shape == (len(tokens), 3, 2 * SIZE)

    frequent = [word for word, count in words if count >= max(1, minimum)]
    rows, ngrams = module.words.weight.tolist(), module.ngrams.weight.tolist()
    assert len(rows) == module.num_rows == 4 + len(frequent)
    for sentence, vectors in zip(tokens, found, strict=True):
        for token, vector in zip(sentence, vectors, strict=True):
            word = words[token - 4][0] if token >= 4 else ""
            if token < 4:
                row = token
            else:
                row = 4 + frequent.index(word) if word in frequent else UNK
            mean = mean_vector(word, module.vocabulary.keys, ngrams, width)
            torch.testing.assert_close(vector, torch.tensor(rows[row] + mean, dtype=torch.double), atol=1e-12, rtol=0)


def test_lower_cased_words_share_a_row_and_keep_their_ngrams():
    words = [*LEXICON, ("Dog", 1), ("DOG", 1), ("<PAD>", 5)]
    module = build(words, unseen=["THE", "JAPAN", "Ox"], lowercase=True)
    assert module.row_symbols == [*SPECIALS, "the", "cat", "cats", "japan", "dog", "<pad>"]
    symbols = symbols_of(words, ["THE", "JAPAN", "Ox"])
    row = dict(zip(symbols, module.word_row.tolist(), strict=True))
    assert row["The"] == row["THE"] == row["the"] == 4
    assert row["Japan"] == row["JAPAN"] == 7
    assert row["Dog"] == row["DOG"] == 8 and row["Ox"] == UNK
    # a word that is spelled like padding is a word
    assert row["<PAD>"] == 9 and row["<pad>"] == PAD and module.words.padding_idx == PAD
    bags = dict(zip(symbols, module.bag.tolist(), strict=True))
    assert bags["The"] != bags["the"]


def test_an_unknown_ngram_for_words_without_known_ones():
    module = build(unseen=UNSEEN, unk_ngram=True)
    assert module.vocabulary.keys == [*build().vocabulary.keys, UNK_NGRAM]
    module.add_symbols(["ω", "cat's"])
    number = len(module.vocabulary)
    bags = dict(zip([*symbols_of(LEXICON, UNSEEN), "ω", "cat's"], module.bag.tolist(), strict=True))
    for word in ("xyz", "ξ", "<unk>", "ω"):
        assert bags[word] == [number] + [0] * (module.bag.shape[1] - 1)
    for word in ("<pad>", "</s>", "<s>", "madeupword0000"):
        assert not any(bags[word])
    for word in ("cat", "chat", "cat's"):
        assert number not in bags[word] and any(bags[word])


def test_long_words_are_cut_and_reported(caplog):
    with caplog.at_level("INFO"):
        module = build([("abcdefgh", 2), ("ab", 2)], max_ngrams=7)
    assert "1 words have more than 7 known n-grams" in caplog.text
    assert module.bag.shape[1] == 7
    keys = [module.vocabulary.keys[number - 1] for number in module.bag[4].tolist()]
    assert keys == [f"2gram-{pair}" for pair in ("#BEGIN#a", "ab", "bc", "cd", "de", "ef", "fg")]


@given(DICTIONARIES, st.lists(WORDS, max_size=5, unique=True), st.booleans(), st.booleans(), st.booleans())
def test_added_words_are_as_if_there_from_the_start(words, unseen, lowercase, unk_ngram, cached):
    unseen = [word for word in unseen if word not in dict(words)]
    options = {"lowercase": lowercase, "unk_ngram": unk_ngram, "max_ngrams": 9}
    whole, grown = build(words, unseen, **options).eval(), build(words, **options).eval()
    tokens = torch.arange(4 + len(words) + len(unseen)).unsqueeze(0)
    with torch.no_grad():
        if cached:
            grown(tokens[:, : 4 + len(words)])
        for word in unseen[:1]:
            grown.add_symbols([word])
        grown.add_symbols(unseen[1:])
        assert torch.equal(grown.word_row, whole.word_row)
        assert torch.equal(grown(tokens), whole(tokens))


def test_words_are_added_without_copying_the_tables():
    words = [f"cat{number}" for number in range(40)]
    whole, grown = build(unseen=words).eval(), build().eval()
    tokens = torch.arange(len(whole.bag)).unsqueeze(0)
    places = set()
    with torch.no_grad():
        expected = whole(tokens)
        grown(tokens[:, : len(grown.bag)])
        for word in words:
            before = grown.bag
            copy = before.clone()
            grown.add_symbols([word])
            assert torch.equal(before, copy)
            places.add((grown.bag.data_ptr(), grown.word_row.data_ptr(), grown._means.data_ptr()))
        assert torch.equal(grown.word_row, whole.word_row) and torch.equal(grown(tokens), expected)
    assert len(places) < 16
    # and when the dictionary is cut back, as the parser for raw text does it
    grown.word_row, grown.bag = grown.word_row[:-9], grown.bag[:-9]
    grown.train().add_symbols(words[-9:])
    assert torch.equal(grown.eval()(tokens), expected)


class Counted(nn.EmbeddingBag):
    """Counts the bags that it computed."""

    bags = 0

    def forward(self, *args):
        self.bags += len(args[0])
        return super().forward(*args)


def counting(module):
    module.ngrams.__class__ = Counted
    return module.ngrams


def test_only_distinct_words_are_computed_in_training():
    module = build()
    table = counting(module)
    module(torch.tensor([[4, 5, 4, 4], [5, 5, 5, 9]]))
    assert table.bags == 3


def test_in_evaluation_the_dictionary_is_computed_once():
    module = build().eval()
    table = counting(module)
    tokens = torch.tensor([[4, 5, 9]])
    with torch.no_grad():
        first = module(tokens)
        module.eval()  # as fairseq before every batch
        assert torch.equal(module(tokens), first)
        assert table.bags == len(module.bag)
        module.add_symbols(["new"])
        module(torch.tensor([[len(module.bag) - 1]]))
        assert table.bags == len(module.bag)  # that one only
    assert module(tokens).requires_grad  # who wants gradients gets them, also in evaluation


def in_place(module):
    with torch.no_grad():
        module.ngrams.weight.add_(1)


def step(module):
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    with torch.enable_grad():
        module(torch.tensor([[4]])).sum().backward()
    optimizer.step()


def assign(module):
    other = copy.deepcopy(module)
    in_place(other)
    module.load_state_dict(other.state_dict(), assign=True)


def train_behind_the_counter(module):
    """As fairseq's optimizer of 16 bits writes."""
    module.train()
    module.ngrams.weight.data.add_(1)
    module.eval()


@pytest.mark.parametrize("change", [in_place, step, assign, train_behind_the_counter])
def test_kept_means_follow_the_weights(change):
    module = build().eval()
    tokens = torch.tensor([[4]])
    with torch.no_grad():
        before = module.ngram_means(tokens)
        change(module)
        after = module.ngram_means(tokens)
    assert not torch.equal(before, after)
    torch.testing.assert_close(after, module.train().ngram_means(tokens).detach())


def test_kept_means_follow_a_cast():
    module = build().eval()
    with torch.no_grad():
        module(torch.tensor([[4]]))
        assert module.float()(torch.tensor([[4]])).dtype == torch.float32
    assert module.bag.dtype == torch.int32 and module.word_row.dtype == torch.int64


def test_the_state_is_floating_point_only():
    state = build().state_dict()
    assert set(state) == {"words.weight", "ngrams.weight"}
    assert all(value.is_floating_point() for value in state.values())


def test_tables_start_between_minus_and_plus_a_tenth():
    many = [(f"{n}word{n * n}", 2) for n in range(2000)]
    module = build(many)
    assert len(module.words.weight) == 2004 and len(module.ngrams.weight) == len(module.vocabulary) + 1
    for table, empty in ((module.words, PAD), (module.ngrams, 0)):
        assert table.weight[empty].abs().sum() == 0
        others = table.weight[torch.arange(len(table.weight)) != empty].detach()
        assert others.abs().max() <= 0.1 and others.max() > 0.0999 and others.min() < -0.0999
        # the standard deviation of U[-0.1, 0.1]
        assert others.std().item() == pytest.approx(0.1 / 3**0.5, rel=0.02) and others.mean().abs() < 1e-3


@pytest.mark.parametrize("train", [True, False])
def test_gradients(train):
    """Of both tables, with words that come again, and padding, whose rows stay 0; in evaluation, too."""
    module = build([("the", 2), ("cat", 2)]).train(train)
    tokens = torch.tensor([[4, 5, 4, 5, EOS], [5, UNK, EOS, PAD, PAD]])

    def function(words, ngrams):
        none = words.new_zeros(1, SIZE)
        weights = {
            "words.weight": torch.cat((words[:PAD], none, words[PAD:])),
            "ngrams.weight": torch.cat((none, ngrams)),
        }
        return torch.func.functional_call(module, weights, (tokens,))

    rows = [module.num_rows - 1, len(module.vocabulary)]
    weights = [torch.randn(count, SIZE, dtype=torch.double, requires_grad=True) for count in rows]
    assert torch.autograd.gradcheck(function, weights)

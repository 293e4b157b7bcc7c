"""Dependency units against loops over words."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles.directed_translation import unit_of, unit_vectors
from strategies import split_forests

from fairseq_syntax.systems.sdatt.units import DependencyUnits, dependency_units
from fairseq_syntax.trees.piece_parents import parent_first_pieces

SENTENCES = st.lists(split_forests(max_words=16, unparsed=True), min_size=1, max_size=4)


def columns_of(sentences, left_pad):
    """(word_mask, word_starts, parents), (B, T) each, of (heads, words of tokens); and the first column of each."""
    width = max(len(words) for _, words in sentences) + 1
    mask, starts = torch.zeros(2, len(sentences), width, dtype=torch.bool)
    parents = torch.full(mask.shape, -1)
    first = []
    for b, (heads, words) in enumerate(sentences):
        start = width - len(words) if left_pad else 0
        pieces = torch.from_numpy(parent_first_pieces(heads, words))
        parents[b, start : start + len(words)] = torch.where(pieces < 0, pieces, pieces + start)
        mask[b, start : start + len(words) - 1] = True
        starts[b, [start + t for t in range(len(words)) if t == 0 or words[t] != words[t - 1]]] = True
        first.append(start)
    return mask, starts, parents, first


@given(SENTENCES, st.booleans())
def test_units_equal_loops(sentences, left_pad):
    mask, starts, parents, first = columns_of(sentences, left_pad)
    units = dependency_units(parents, starts & mask)
    assert units.shape == (*mask.shape, 10)
    for b, (heads, words) in enumerate(sentences):
        pieces = [first[b] + words.index(word) for word in range(len(heads))]
        for word, column in enumerate(pieces):
            expected = [pieces[other] for other in unit_of(word, heads)]
            assert units[b, column].tolist() == expected + [-1] * (10 - len(expected))
        others = [column for column in range(mask.shape[1]) if column not in pieces]
        assert (units[b, others] == -1).all()


@given(SENTENCES, st.booleans())
def test_vectors_equal_loops(sentences, left_pad):
    torch.manual_seed(1)
    module = DependencyUnits(2).double()
    torch.nn.init.normal_(module.filler)
    mask, starts, parents, first = columns_of(sentences, left_pad)
    embedded = torch.randn(*mask.shape, 2, dtype=torch.double)
    with torch.no_grad():
        found = module(embedded, mask, starts, parents, mask.numel())
        for b, (heads, words) in enumerate(sentences):
            table = embedded[b, first[b] : first[b] + len(words)]
            expected = unit_vectors(module.state_dict(), table, range(len(words)), heads, words)
            torch.testing.assert_close(found[b, first[b] : first[b] + len(words)], torch.stack(expected))


def test_the_convolution_sees_few_sizes(monkeypatch):
    """Regression: for each of them, memory is kept on a CPU, which were gigabytes in the end."""
    module, seen = DependencyUnits(2), set()
    convolve = module._convolve
    monkeypatch.setattr(module, "_convolve", lambda units: (seen.add(len(units)), convolve(units))[1])
    for words in range(0, 200, 7):
        mask, starts, parents, _ = columns_of([(list(range(-1, words - 1)), list(range(words + 1)))], False)
        module(torch.randn(*mask.shape, 2), mask, starts, parents, mask.numel())
    assert seen == {64, 128, 192, 256}

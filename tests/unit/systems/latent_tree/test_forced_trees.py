"""Trees that are made of the characters: actions against a loop, and the limits of trees."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles.characters import actions_of_words
from oracles.transitions import legal_actions
from small_models import dictionary

from fairseq_syntax.systems.latent_tree.growing import forced_actions
from fairseq_syntax.systems.latent_tree.transitions import Action, Limits
from fairseq_syntax.trees.characters import SPACE

PAD, EOS = 1, 2
SYMBOLS = ["a", "b", SPACE]
SENTENCES = st.lists(st.lists(st.sampled_from([*SYMBOLS, "?"]), max_size=9), min_size=1, max_size=5)


DICTIONARY = dictionary(SYMBOLS)


def batch_of(sentences, left, extra=0):
    """(tokens padded on one side, lengths without the end); `?` is unknown."""
    rows = [[*map(DICTIONARY.index, sentence), EOS] for sentence in sentences]
    width = max(map(len, rows)) + extra
    rows = [[PAD] * (width - len(row)) * left + row + [PAD] * (width - len(row)) * (not left) for row in rows]
    return torch.tensor(rows), torch.tensor(list(map(len, sentences)))


def names(actions):
    """Names of the actions of each row, without NOP, which stands behind only."""
    rows = [[Action(a).name for a in row] for row in actions.tolist()]
    found = [[name for name in row if name != "NOP"] for row in rows]
    assert rows == [row + ["NOP"] * (len(full) - len(row)) for row, full in zip(found, rows, strict=True)]
    return found


@given(SENTENCES, st.booleans(), st.integers(0, 2))
def test_equals_the_slow_twin(sentences, left, extra):
    tokens, lengths = batch_of(sentences, left, extra)
    space = tokens == DICTIONARY.index(SPACE)
    actions = forced_actions(tokens, ~space, PAD, EOS)
    assert names(actions) == [actions_of_words(sentence, SPACE) for sentence in sentences]
    # as tight as it goes: two open constituents, no NT behind another, two actions a symbol
    legal_actions(actions.numpy(), lengths.numpy(), Limits(max_open=2, max_consecutive=1, actions_per_symbol=2))

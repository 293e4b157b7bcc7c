"""Random trees over given words: the control for "does it matter that the parse is right?"."""

import random

from .conllu import ROOT


def random_heads(words: int, generator: random.Random) -> list[int]:
    """Heads of a tree with one root, uniform over all `words ** (words - 1)` of them, non-projective ones included.

    A random walk over the words; the first step into a word makes the word it came from its head (Aldous 1990,
    Broder 1989): O(J log J) draws on average.
    """
    if words == 0:
        return []
    at = generator.randrange(words)
    heads = {at: ROOT}
    while len(heads) < words:
        to = generator.randrange(words)
        if to not in heads:
            heads[to] = at
        at = to
    return [heads[word] for word in range(words)]

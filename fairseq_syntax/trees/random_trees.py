"""Random trees: the control for whether it matters that a parse is correct."""

import random

from .conllu import ROOT


def random_heads(words: int, generator: random.Random) -> list[int]:
    """The heads of a random tree with one root, uniform over all `words ** (words - 1)` trees, in O(J log J).

    In a random walk over the words, the head of each word is the one from which the walk first reaches it (Aldous 1990,
    Broder 1989).
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

"""Trees made worse on purpose, to test how much a model depends on a correct parse.

Every result is a tree with one root. Sentences without a parse are left unchanged.
"""

import random
from collections.abc import Callable
from dataclasses import replace

from .conllu import ROOT, Sentence, TreeFormatError
from .random_trees import random_heads
from .universal_dependencies import universal_labels


class Quota:
    """Quota of words to change in each sentence, so that the share of the whole corpus is exact to one word.

    Attributes:
        seen: number of words so far.
        taken: number of words changed so far, kept by the caller; a shortfall is made up for by later sentences.
    """

    def __init__(self, share: float):
        self.share = share
        self.seen = self.taken = 0

    def due(self, size: int) -> int:
        """Number of words to change in a sentence of `size` words."""
        self.seen += size
        return min(size, int(self.share * self.seen + 0.5) - self.taken)


def root_of(heads: list[int], place: str) -> int:
    """The root of a tree. Raises TreeFormatError unless there is exactly one."""
    if heads.count(ROOT) != 1:
        raise TreeFormatError(
            f"{place}: the tree has {heads.count(ROOT)} roots, and perturbed trees have one; give HEAD 0 to exactly one"
        )
    return heads.index(ROOT)


def reattached_heads(heads: list[int], count: int, generator: random.Random) -> list[int]:
    """Random heads of a tree with one root that differ from the given ones at exactly `count` words, 0 to J.

    The set of changed words is uniform over the possible sets. Two are impossible: the root alone, and exactly all
    dependents of the root. If the root is in the set, any other word of the set is equally likely to become the new
    root. Given the set and the root, the tree is uniform: it is the loop-erased walk in which chosen words step to any
    word except their old head and all others to their head (Wilson 1996).

    A sentence of one word keeps its heads, and so does one of two words for `count` 1: no such tree exists.

    Raises TreeFormatError: the tree has no root, or several.
    """
    words = range(len(heads))
    if not count or len(heads) == 1 or (len(heads), count) == (2, 1):
        return list(heads)
    root = root_of(heads, f"heads {heads}")
    impossible = {root}, {word for word in words if heads[word] == root}
    while (chosen := set(generator.sample(words, count))) in impossible:
        pass
    top = generator.choice(sorted(chosen - {root})) if root in chosen else root
    new = list(heads)
    new[top] = ROOT
    reached = {top}
    for start in words:
        word = start
        while word not in reached:
            if word in chosen:
                while (head := generator.randrange(len(heads))) in (word, heads[word]):
                    pass
                new[word] = head
            word = new[word]
        word = start
        while word not in reached:
            reached.add(word)
            word = new[word]
    return new


def reattached(sentence: Sentence, count: int, generator: random.Random) -> Sentence:
    """The sentence with `reattached_heads`. Words keep their labels, but an old and a new root exchange theirs."""
    heads = reattached_heads(sentence.heads, count, generator)
    deprels = list(sentence.deprels)
    before, now = sentence.heads.index(ROOT), heads.index(ROOT)
    deprels[before], deprels[now] = deprels[now], deprels[before]
    return replace(sentence, heads=heads, deprels=deprels)


def with_heads(sentence: Sentence, heads: list[int], generator: random.Random) -> Sentence:
    """The same words and tags with unrelated heads.

    The root keeps its label, and the other words have theirs shuffled, so the labels of a sentence may still reveal
    something of its old tree.
    """
    top = sentence.heads.index(ROOT)
    others = sentence.deprels[:top] + sentence.deprels[top + 1 :]
    generator.shuffle(others)
    others.insert(heads.index(ROOT), sentence.deprels[top])
    return replace(sentence, heads=heads, deprels=universal_labels(heads, others))


KINDS: dict[str, Callable[[int, random.Random], list[int]]] = {
    "random": random_heads,
    "left": lambda length, _: [*range(1, length), ROOT][:length],  # the head of every word is the next one
    "right": lambda length, _: list(range(ROOT, length - 1)),  # the head of every word is the one before
}
"""Trees that can replace a sentence's own: name -> function from the number of words J to J heads."""


class Perturbation:
    """Perturbation of the trees of a corpus, sentence by sentence.

    `reattach` is a share of the words, 0 to 1. Each sentence has its own random generator and so does not depend on the
    draws for earlier ones.
    """

    def __init__(self, reattach: float, seed: int):
        self.reattach, self.seed = Quota(reattach), seed

    def __call__(self, number: int, before: Sentence, kind: str | None = None) -> Sentence:
        """Perturb the tree of a sentence, numbered from 0: replace it by one of `KINDS`, if set, then reattach words.

        Raises TreeFormatError: the tree has no root, or several.
        """
        if not before.is_parsed or not before.forms:
            return before
        generator = random.Random(f"{self.seed} {number}")
        root_of(before.heads, f"sentence {number}")
        after = before
        if kind:
            after = with_heads(before, KINDS[kind](len(before), generator), generator)
        heads = after.heads
        after = reattached(after, self.reattach.due(len(before)), generator)
        self.reattach.taken += sum(a != b for a, b in zip(heads, after.heads, strict=True))
        return after

"""Trees made worse on purpose: how much does a model need the parse, and how right must it be?

Every result is a tree with one root. What has no parse stays without.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from .conllu import ROOT, Sentence, TreeFormatError
from .random_trees import random_heads
from .universal_dependencies import universal_labels


class Quota:
    """How many of what comes in portions are due, so that of all of them the share, 0 to 1, is exact, to one.

    Attributes:
        seen: how many came.
        taken: how many were taken, which whoever asks has to add up: what a portion could not give is due from the
            next ones.
    """

    def __init__(self, share: float):
        self.share = share
        self.seen = self.taken = 0

    def due(self, size: int) -> int:
        """How many of a portion of `size` are to be taken, at most all."""
        self.seen += size
        return min(size, int(self.share * self.seen + 0.5) - self.taken)


def root_of(heads: list[int], place: str) -> int:
    """The root of a tree; TreeFormatError if there is none, or several."""
    if heads.count(ROOT) != 1:
        raise TreeFormatError(
            f"{place}: the tree has {heads.count(ROOT)} roots, and perturbed trees have one; leave HEAD 0 to one word"
        )
    return heads.index(ROOT)


def reattached_heads(heads: list[int], count: int, generator: random.Random) -> list[int]:
    """Heads of a tree with one root in which exactly `count` words, 0 to J, have another head.

    Which words: every set of so many is as likely as any other of those that can all get another head. All sets can
    but the root alone and the dependents of the root, all of them and no other word (two words are such a pair).
    If the root is one of them, each of the others is as likely to become the new one. Given these, every tree is as
    likely as any other: a walk over the words in which those that were chosen step to any word but their old head, all
    others to their head; its steps without the loops are the tree (Wilson 1996).

    Of one word, and of two of which one is to change, the heads are those that were given: there is no such tree.

    Raises TreeFormatError: there is no root, or several.
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


def exchanged_labels(sentence: Sentence, count: int, generator: random.Random) -> list[str]:
    """J labels of which those of `count` words, the root not among them, have changed places so that none stays.

    Fewer are exchanged where too many of the words have the same label: no more than half of those that take part can.
    """
    words = [word for word, head in enumerate(sentence.heads) if head != ROOT]
    labels = list(sentence.deprels)
    numbers = Counter(labels[word] for word in words).values()
    count = min(count, len(words))
    while count and sum(min(number, count // 2) for number in numbers) < count:
        count -= 1
    generator.shuffle(words)
    by_label: dict[str, list[int]] = {}
    left = count
    for word in words:
        group = by_label.setdefault(labels[word], [])
        if left and len(group) < count // 2:
            group.append(word)
            left -= 1
    # label by label, a step as long as the longest run of one label leads out of every run
    order = [word for group in by_label.values() for word in group]
    step = max(map(len, by_label.values()), default=0)
    for word, other in zip(order, order[step:] + order[:step], strict=True):
        labels[word] = sentence.deprels[other]
    return labels


def reattached(sentence: Sentence, count: int, generator: random.Random) -> Sentence:
    """The same words of which `count` have another head, as by `reattached_heads`.

    Labels stay with their words, but an old and a new root exchange theirs.
    """
    heads = reattached_heads(sentence.heads, count, generator)
    deprels = list(sentence.deprels)
    before, now = sentence.heads.index(ROOT), heads.index(ROOT)
    deprels[before], deprels[now] = deprels[now], deprels[before]
    return replace(sentence, heads=heads, deprels=deprels)


def with_heads(sentence: Sentence, heads: list[int], generator: random.Random) -> Sentence:
    """The same words and tags under a tree that has nothing to do with them.

    The root has the label `root`; the other labels are shuffled over the other words, so that their frequencies stay
    what they were. Which labels a sentence has may still tell something about its old tree.
    """
    top = sentence.heads.index(ROOT)
    others = sentence.deprels[:top] + sentence.deprels[top + 1 :]
    generator.shuffle(others)
    others.insert(heads.index(ROOT), sentence.deprels[top])
    return replace(sentence, heads=heads, deprels=universal_labels(heads, others))


def left_chain(words: int) -> list[int]:
    """Heads of J words: of every word the next one; the last is the root."""
    return [*range(1, words), ROOT][:words]


def right_chain(words: int) -> list[int]:
    """Heads of J words: of every word the one before; the first is the root."""
    return list(range(ROOT, words - 1))


KINDS: dict[str, Callable[[int, random.Random], list[int]]] = {
    "random": random_heads,
    "left": lambda words, _: left_chain(words),
    "right": lambda words, _: right_chain(words),
}
"""Trees that can take the place of a sentence's own: name -> heads of so many words."""


class Perturbation:
    """Callable: the sentences of a corpus, one after the other -> the same with worse trees.

    `reattach` and `relabel` are shares of words, 0 to 1, and then the `Quota` of each. Each sentence has a generator of
    its own, so that what is drawn for it does not depend on the sentences before it.
    """

    def __init__(self, reattach: float, relabel: float, seed: int):
        self.reattach, self.relabel = Quota(reattach), Quota(relabel)
        self.seed = seed

    def __call__(self, number: int, before: Sentence, other: Sentence | str | None = None) -> Sentence:
        """The sentence of this number, from 0, with a new tree; it has one root, or no parse, which it keeps.

        `other` says whose heads and labels, or which of `KINDS`, take the place of its own first; None leaves it.

        Raises TreeFormatError: the tree, or that of `other`, has no root or several.
        """
        if not before.is_parsed or not before.forms:
            return before
        generator = random.Random(f"{self.seed} {number}")
        after = before
        if isinstance(other, Sentence):
            after = replace(before, heads=other.heads, deprels=other.deprels)
        root_of(after.heads, f"sentence {number}")
        if isinstance(other, str):
            after = with_heads(before, KINDS[other](len(before), generator), generator)
        heads = after.heads
        after = reattached(after, self.reattach.due(len(before)), generator)
        self.reattach.taken += sum(a != b for a, b in zip(heads, after.heads, strict=True))
        labels = exchanged_labels(after, self.relabel.due(len(before)), generator)
        self.relabel.taken += sum(a != b for a, b in zip(after.deprels, labels, strict=True))
        return replace(after, deprels=labels)

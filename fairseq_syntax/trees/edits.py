"""Trees changed by hand: some words get other heads or labels, and the result is a tree with one root or an error."""

from collections.abc import Mapping
from dataclasses import replace

from .conllu import ROOT, Sentence, TreeFormatError, find_cycle, quoted


def edited(sentence: Sentence, heads: Mapping[int, int], labels: Mapping[int, str] | None = None) -> Sentence:
    """The same words under a tree in which some have other heads and labels.

    Labels that are not given stay with their words, but an old and a new root exchange theirs.

    Args:
        sentence: a tree.
        heads: words -> their new heads, both numbered from 1 as in CoNLL-U; 0 makes a root.
        labels: words -> their new labels.

    Raises:
        TreeFormatError: the sentence has no tree, there is no such word, or the result is not a tree with one root; the
            message names the words.
    """
    named = [f"{number} {quoted(form)}" for number, form in enumerate(sentence.forms, 1)]
    size = len(named)
    for option, numbers in (("--head", heads), ("--label", labels or {})):
        for word, value in numbers.items():
            if not 1 <= word <= size:
                raise TreeFormatError(f"{option} {word}={value}: there is no word {word}; {_range(named)}")
    if ROOT not in sentence.heads:
        raise TreeFormatError("the sentence has no tree (HEAD is _) to be changed; parse it")
    new, deprels = list(sentence.heads), list(sentence.deprels)
    for word, head in heads.items():
        if not 0 <= head <= size:
            raise TreeFormatError(
                f"--head {word}={head}: there is no word {head} to be the head of {named[word - 1]}; {_range(named)}; "
                "0 makes it the root"
            )
        if head == word:
            raise TreeFormatError(f"--head {word}={head}: {named[word - 1]} cannot be its own head")
        new[word - 1] = head - 1
    before, roots = sentence.heads.index(ROOT), [word for word, head in enumerate(new) if head == ROOT]
    if len(roots) > 1:
        raise TreeFormatError(
            f"--head: the tree would have {len(roots)} roots, {' and '.join(named[word] for word in roots)}; give all "
            "but one of them a head"
        )
    if (cycle := find_cycle(new)) is not None:
        steps = " <- ".join(named[word] for word in (*cycle, cycle[0]))
        raise TreeFormatError(f"--head: the heads form a cycle, {steps}; give one of these words a head outside it")
    deprels[before], deprels[roots[0]] = deprels[roots[0]], deprels[before]
    for word, label in (labels or {}).items():
        deprels[word - 1] = label
    return replace(sentence, heads=new, deprels=deprels)


def _range(named: list[str]) -> str:
    return f"words go from {named[0]} to {named[-1]}" if named else "the sentence has no words"

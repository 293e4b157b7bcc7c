"""Trees with heads and labels edited by hand."""

from collections.abc import Mapping
from dataclasses import replace

from .conllu import ROOT, Sentence, TreeFormatError, find_cycle, quoted


def edited(sentence: Sentence, heads: Mapping[int, int], labels: Mapping[int, str] | None = None) -> Sentence:
    """The sentence with new heads and labels for some of its words.

    The other words keep their labels, except that an old and a new root exchange theirs.

    Args:
        heads: words -> their new heads, both numbered from 1 as in CoNLL-U; 0 makes a root.
        labels: words -> their new labels.

    Raises TreeFormatError: the sentence has no parse, a word does not exist, or the result is not a tree with one root.
    """
    named = [f"{number} {quoted(form)}" for number, form in enumerate(sentence.forms, 1)]
    size = len(named)
    span = f"words go from {named[0]} to {named[-1]}" if named else "the sentence has no words"
    for option, edits in (("--head", heads), ("--label", labels or {})):
        for word, value in edits.items():
            if not 1 <= word <= size or (isinstance(value, int) and not 0 <= value <= size):
                raise TreeFormatError(f"{option} {word}={value}: {span}; --head {word}=0 makes a root")
    if ROOT not in sentence.heads:
        raise TreeFormatError("the sentence has no tree (HEAD is _) to be changed; parse it")
    new, deprels = list(sentence.heads), list(sentence.deprels)
    for word, head in heads.items():
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

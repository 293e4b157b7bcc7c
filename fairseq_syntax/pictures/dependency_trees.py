"""Pictures of dependency trees, as arcs over words (Tran & Bisk 2018, Figure 5)."""

from collections.abc import Sequence

from ..trees.conllu import ROOT
from .arcs import Arc, draw_arcs
from .figures import shown


def draw_tree(
    words: Sequence[str],
    heads: Sequence[int],
    *,
    labels: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    gold: Sequence[int] | None = None,
    gold_labels: Sequence[str] | None = None,
):
    """A matplotlib figure of a tree, with arcs from head to dependent above the words, and into a root from above.

    Args:
        heads: J heads, 0-based, `ROOT` for roots; they may have cycles.
        labels: J relations, at the tops of the arcs; `_` means no label, or `root` for roots.
        tags: J tags, in small print below the words.
        gold: J heads of a second tree, drawn below the words; arcs of `heads` that it lacks are orange and dashed.
        gold_labels: J relations of the second tree.

    Texts never overlap; the width grows with them. The gid of the arc of word I, from 0, is `arc-I`, or `gold-I` in
    the second tree; that of its label is `label-arc-I` or `label-gold-I`.
    """
    other = [gold is not None and gold[word] != head for word, head in enumerate(heads)]
    above = tree_arcs("arc", heads, labels, other)
    below = None if gold is None else tree_arcs("gold", gold, gold_labels, [False] * len(words))
    return draw_arcs([words] if tags is None else [words, tags], above, below)


def tree_arcs(kind: str, heads: Sequence[int], labels: Sequence[str] | None, other: Sequence[bool]) -> list[Arc]:
    """The arcs of a tree, whose gids begin with `kind`."""
    arcs = []
    for word, (head, label) in enumerate(zip(heads, labels or ["_"] * len(heads), strict=True)):
        label = shown(label) if label != "_" else "root" if head == ROOT else ""
        gid = f"{kind}-{word}"
        arcs.append(Arc(word, None if head == ROOT else head, label, gid, f"label-{gid}", other=other[word]))
    return arcs

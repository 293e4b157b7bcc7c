"""Dependency trees as pictures: arcs over words (Tran & Bisk 2018, Figure 5)."""

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
    title: str = "",
):
    """A tree drawn as arcs from head to dependent above the words; that of a root comes from above.

    Args:
        heads: J heads, 0-based, `ROOT` for roots. Any heads can be drawn, cycles too.
        labels: J relations, at the tops of the arcs; `_` means no label. Roots are called `root` if they have none.
        tags: in small print under the words.
        gold: J heads of a second tree, drawn below the words; the arcs of `heads` that it has not are then dashed.
        gold_labels: J relations of these.

    Returns a matplotlib figure in which no text covers another. Its width grows with the text. The gid of the arc of
    word I, from 0, is `arc-I`, in the second tree `gold-I`; that of its label is `label-arc-I` or `label-gold-I`.
    """
    dashed = [gold is not None and gold[word] != head for word, head in enumerate(heads)]
    above = tree_arcs("arc", heads, labels, dashed)
    below = None if gold is None else tree_arcs("gold", gold, gold_labels, [False] * len(words))
    return draw_arcs([words] if tags is None else [words, tags], above, below, title)


def tree_arcs(kind: str, heads: Sequence[int], labels: Sequence[str] | None, dashed: Sequence[bool]) -> list[Arc]:
    """The arcs of a tree, with gids of this kind."""
    arcs = []
    for word, (head, label) in enumerate(zip(heads, labels or ["_"] * len(heads), strict=True)):
        label = shown(label) if label != "_" else "root" if head == ROOT else ""
        gid = f"{kind}-{word}"
        arcs.append(Arc(word, None if head == ROOT else head, label, gid, f"label-{gid}", dashed=dashed[word]))
    return arcs

"""A sentence under several trees, one below the other, each with the translation under it."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from .arcs import OTHER, ArcPicture, wrapped
from .dependency_trees import tree_arcs
from .figures import plt, shown

_SIZE, _LINE, _GAP = 10.0, 16.0, 9.0  # font size, distance of lines, and margin, in points


@dataclass(frozen=True)
class Variant:
    """A sentence of J words under one tree.

    Attributes:
        name: name of the tree.
        heads: J heads, 0-based, `ROOT` for roots; None without a tree.
        labels: J relations; `_` means no label.
        translation: words of the translation.
        score: text after the translation.
    """

    name: str
    heads: Sequence[int] | None
    labels: Sequence[str] | None
    translation: Sequence[str]
    score: str = ""


def draw_variants(words: Sequence[str], variants: Sequence[Variant]):
    """A matplotlib figure of one or more trees of a sentence, and of the translation under each.

    Words are numbered from 1. Arcs that another of the trees lacks are orange and dashed, and words that another
    translation lacks are orange. Texts never overlap. In variant P, from 0, the arc of word I has the gid `arc-P-I`,
    and word I of the translation `translation-P-I`.
    """
    trees = [_arcs(variant) for variant in variants if variant.heads is not None]
    pictures = []
    for number, variant in enumerate(variants):
        arcs = []
        if variant.heads is not None:
            other = [any(tree[word] != arc for tree in trees) for word, arc in enumerate(_arcs(variant))]
            arcs = tree_arcs(f"arc-{number}", variant.heads, variant.labels, other)
        pictures.append(ArcPicture([list(words), [str(i) for i in range(1, len(words) + 1)]], arcs))
    width = max(picture.width for picture in pictures)
    places = [
        list(wrapped([*variant.translation, variant.score], _SIZE, width - 2 * _GAP, _SIZE * 0.4))
        for variant in variants
    ]
    lines = [1 + max((line for _, line in row), default=0) for row in places]
    heights = [2 * _LINE + picture.height + _LINE * count for picture, count in zip(pictures, lines, strict=True)]
    height = sum(heights)
    figure = plt.figure(figsize=(width / 72, height / 72))
    top = height
    for number, (variant, picture) in enumerate(zip(variants, pictures, strict=True)):
        style = dict(fontsize=_SIZE, va="center", parse_math=False)
        figure.text(_GAP / width, (top - _LINE / 2) / height, shown(variant.name), weight="bold", **style)
        bottom = top - _LINE - picture.height
        picture.draw(figure.add_axes((0, bottom / height, picture.width / width, picture.height / height)))
        differs = _differs(variants, number)
        for i, (middle, line) in enumerate(places[number]):
            where = ((_GAP + middle) / width, (bottom - (line + 0.5) * _LINE) / height)
            if i < len(variant.translation):
                colour, gid = OTHER if i in differs else "0.35", f"translation-{number}-{i}"
                figure.text(*where, shown(variant.translation[i]), ha="center", color=colour, gid=gid, **style)
            elif variant.score:
                figure.text(*where, variant.score, ha="center", style="italic", color="0.35", **style)
        top -= heights[number]
    return figure


def _differs(variants: Sequence[Variant], number: int) -> set[int]:
    """Positions of the words of a translation that another translation lacks."""
    own, places = variants[number].translation, set()
    for other in variants:
        blocks = SequenceMatcher(None, own, other.translation, autojunk=False).get_matching_blocks()
        places |= set(range(len(own))) - {block.a + i for block in blocks for i in range(block.size)}
    return places


def _arcs(variant: Variant) -> list[tuple[int, str]]:
    """The head and the relation of each word."""
    return list(zip(variant.heads, variant.labels or ["_"] * len(variant.heads), strict=True))

"""Constituent trees as nested tuples of symbols, and what can be said of them, by recursion and counting one by one.

A tree is what the root has in it: a tuple of children, each of them a symbol (str) or likewise a tuple.
"""

import math
from functools import cache

SPACE = "\u2581"


def brackets(tree) -> str:
    """The line of a tree file."""
    return " ".join(["(X", *(child if isinstance(child, str) else brackets(child) for child in tree), ")"])


def leaves(tree) -> list[str]:
    return [leaf for child in tree for leaf in ([child] if isinstance(child, str) else leaves(child))]


def nodes(tree, start=0, around=None, place=0) -> list[tuple]:
    """(start, end, children, children of what is around it, place among these) of the root and all constituents, in the
    order of opening."""
    found = [(start, start + len(leaves(tree)), tree, around, place)]
    for place, child in enumerate(tree):
        if isinstance(child, str):
            start += 1
        else:
            found += nodes(child, start, tree, place)
            start += len(leaves(child))
    return found


def height(tree) -> int:
    return 1 + max([0, *(height(child) for child in tree if not isinstance(child, str))])


@cache
def all_trees(symbols: str, constituents: int) -> list[tuple]:
    """Every tree with so many constituents beside the root over a text of one symbol or more."""
    found = []
    for size in range(1, len(symbols) + 1):
        # the first child holds `size` symbols, and so many constituents, itself one of them if it is no symbol
        for inside in range(constituents + 1):
            first = [symbols[0]] if size == 1 and not inside else []
            first += all_trees(symbols[:size], inside - 1) if inside else []
            rest = constituents - inside
            if size == len(symbols):
                found += [(child,) for child in first if not rest]
            else:
                found += [(child, *others) for child in first for others in all_trees(symbols[size:], rest)]
    return found


def right_branching(text) -> tuple:
    return tuple(text) if len(text) < 3 else (text[0], right_branching(text[1:]))


def left_branching(text) -> tuple:
    return tuple(text) if len(text) < 3 else (left_branching(text[:-1]), text[-1])


def ratio(part, whole):
    return part / whole if whole else math.nan


def shape(trees) -> dict:
    """Numbers of one corpus, under the names of `constituency.Shape`."""
    constituents = [node for tree in trees for node in nodes(tree)[1:]]
    branching = [node for node in constituents if len(node[3]) > 1]
    return {
        "height": ratio(sum(map(height, trees)), len(trees)),
        "highest": max(map(height, trees)),
        "per_symbol": ratio(len(constituents), sum(len(leaves(tree)) for tree in trees)),
        "children": ratio(sum(len(node[2]) for node in constituents), len(constituents)),
        "unary": 100 * ratio(sum(len(node[2]) == 1 for node in constituents), len(constituents)),
        "flat": 100 * ratio(sum(len(nodes(tree)) == 1 for tree in trees), len(trees)),
        "right": 100 * ratio(sum(node[4] == len(node[3]) - 1 for node in branching), len(branching)),
        "left": 100 * ratio(sum(node[4] == 0 for node in branching), len(branching)),
    }


def common_spans(found, given) -> tuple[int, int, int]:
    """Spans in both, in the first and in the second of two lists of trees over the same sentences."""
    result = [0, 0, 0]
    for one, other in zip(found, given, strict=True):
        sets = [
            {(start, end) for start, end, *_ in nodes(tree) if 1 < end - start < len(leaves(tree))}
            for tree in (one, other)
        ]
        for i, value in enumerate((sets[0] & sets[1], *sets)):
            result[i] += len(value)
    return tuple(result)


def words(text, lengths=None) -> set[frozenset]:
    """The words of a text as sets of positions: without spaces between, or of these lengths, spaces not counted."""
    positions = [i for i, symbol in enumerate(text) if symbol != SPACE]
    if lengths is None:
        found = []
        for i in positions:
            if found and found[-1][-1] == i - 1:
                found[-1].append(i)
            else:
                found.append([i])
    else:
        found = []
        for length in lengths:
            found.append(positions[:length])
            positions = positions[length:]
    return {frozenset(word) for word in found}


def segments(tree) -> list[tuple[int, int]]:
    return [
        (start, end)
        for start, end, children, *_ in nodes(tree)[1:]
        if all(isinstance(child, str) for child in children)
    ]


def score(text, spans, lengths=None) -> tuple[int, int, int]:
    """(hits, found, given) of spans against words."""
    gold = words(text, lengths)
    found = {frozenset(i for i in range(*span) if text[i] != SPACE) for span in spans} - {frozenset()}
    return len(found & gold), len(found), len(gold)


def segmentation(trees, lengths=None) -> list[tuple[int, int, int]]:
    """(hits, found, given) of segments, and of all constituents."""
    totals = [[0, 0, 0] for _ in range(2)]
    for number, tree in enumerate(trees):
        text, own = leaves(tree), None if lengths is None else lengths[number]
        all_spans = [node[:2] for node in nodes(tree)[1:]]
        for total, spans in zip(totals, (segments(tree), all_spans), strict=True):
            for i, count in enumerate(score(text, spans, own)):
                total[i] += count
    return [tuple(total) for total in totals]


def attention(tables) -> dict:
    """Numbers of attention, under the names of `constituency.Attention`; tables are lists of rows, and a width."""
    highest, entropies, losses, sums = [], [], [], []
    for rows, width in tables:
        for row in rows:
            highest.append(max(row))
            entropies.append(-sum(p * math.log(p) for p in row if p > 0))
        totals = [sum(row[i] for row in rows) for i in range(width)]
        sums += totals[1:]
        total = (totals[0] ** 2 + sum((1 - value) ** 2 for value in totals[1:])) / width
        attended = [(1 - max([0, *(row[i] for row in rows)])) ** 2 for i in range(1, width)]
        attending = [(1 - max(row[1:])) ** 2 for row in rows] if width > 1 else []
        losses.append([total, *(sum(part) / len(part) if part else 0 for part in (attended, attending))])
    return {
        "constituents": len(highest),
        "highest": ratio(sum(highest), len(highest)),
        "entropy": ratio(sum(entropies), len(entropies)),
        **{
            name: ratio(sum(loss[i] for loss in losses), len(losses))
            for i, name in enumerate(("total", "attended", "attending"))
        },
        "covered": 100 * ratio(sum(0.5 <= value <= 1.5 for value in sums), len(sums)),
    }

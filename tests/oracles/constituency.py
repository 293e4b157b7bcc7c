"""Constituent trees as nested tuples of symbols, and their parts, by recursion.

A tree is what the root has in it: a tuple of children, each of them a symbol (str) or likewise a tuple.
"""


def brackets(tree) -> str:
    """The line of a tree file."""
    return " ".join(["(X", *(child if isinstance(child, str) else brackets(child) for child in tree), ")"])


def leaves(tree) -> list[str]:
    return [leaf for child in tree for leaf in ([child] if isinstance(child, str) else leaves(child))]


def nodes(tree, start=0) -> list[tuple[int, int]]:
    """(start, end) of the root and all constituents, in the order of opening."""
    found = [(start, start + len(leaves(tree)))]
    for child in tree:
        if isinstance(child, str):
            start += 1
        else:
            found += nodes(child, start)
            start += len(leaves(child))
    return found


def height(tree) -> int:
    return 1 + max([0, *(height(child) for child in tree if not isinstance(child, str))])

"""Dependency forests by enumeration and search. Heads are 0-based, negative = root."""

from collections import deque
from itertools import product


def climbs_out(heads: list[int], word: int) -> bool:
    """Whether the way up from `word` reaches a root, rather than going round in a cycle."""
    for _ in range(len(heads) + 1):
        if word < 0:
            return True
        word = heads[word]
    return False


def is_forest(heads: list[int]) -> bool:
    """Whether the heads are in range and every word leads to a root."""
    if any(not -1 <= head < len(heads) for head in heads):
        return False
    return all(climbs_out(heads, word) for word in range(len(heads)))


def all_forests(words: int) -> list[list[int]]:
    """Every forest over so many words; there are (words + 1) ** (words - 1)."""
    candidates = (list(heads) for heads in product(range(-1, words), repeat=words))
    return [heads for heads in candidates if is_forest(heads)]


def distances(heads: list[int]) -> list[list[int]]:
    """Arcs between any two words by breadth-first search; the virtual root is the last node."""
    root = len(heads)
    neighbours: list[list[int]] = [[] for _ in range(root + 1)]
    for word, head in enumerate(heads):
        above = root if head < 0 else head
        neighbours[word].append(above)
        neighbours[above].append(word)
    rows = []
    for start in range(root + 1):
        row = {start: 0}
        queue = deque([start])
        while queue:
            node = queue.popleft()
            for other in neighbours[node]:
                if other not in row:
                    row[other] = row[node] + 1
                    queue.append(other)
        rows.append([row[node] for node in range(root + 1)])
    return rows


def ancestors(heads: list[int], word: int) -> set[int]:
    """The word, its head, its head's head and so on."""
    found = set()
    while word >= 0:
        found.add(word)
        word = heads[word]
    return found

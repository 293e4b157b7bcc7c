"""The best tree of each sentence, projective or not.

Everywhere, sentences are lists of arrays `arc_scores[dependent, head]` (J, J) and of root scores (J,). Higher is
better, -inf is forbidden (do not use -1e9, next to which small differences are lost), and the diagonal is ignored.
Results are lists of J heads, 0-based, `ROOT` for the root.
"""

from collections.abc import Callable, Sequence

import numpy as np

from .conllu import ROOT
from .decoders import TreeDecoder

_AT_ONCE = 32  # sentences decoded together, few enough for their charts to stay in the cache


def chu_liu_edmonds(arc_scores: Sequence[np.ndarray], root_scores: Sequence[np.ndarray]) -> list[list[int]]:
    """The best tree with exactly one root, crossing arcs allowed, in O(J²) (Chu & Liu 1965, Edmonds 1967; Tarjan 1977).

    A root costs more than all arcs can gain, so the best tree has one (Stanojević & Cohen 2021, A Root of a Problem).
    Ties are broken arbitrarily.

    Raises ValueError: shapes disagree, a score is NaN or +inf, or every tree of a sentence is forbidden.
    """
    trees: list[list[int]] = []
    for number, arcs, roots in _checked(arc_scores, root_scores):
        if not len(roots):
            trees.append([])
            continue
        words = np.arange(len(roots))
        scores = np.concatenate([arcs, roots[:, None]], axis=1)  # the last column is the root
        # shifts every word's best score to 0, which keeps the order of trees and makes the costs small
        best = scores.max(1, keepdims=True)
        scores -= np.where(best == -np.inf, 0.0, best)
        allowed = scores > -np.inf
        root_cost = (1 - scores.min(where=allowed, initial=0.0)) * (len(words) + 1)
        forbidden_cost = 2 * (root_cost + 1) * (len(words) + 1)  # finite, because -inf - -inf is NaN
        scores = np.where(allowed, scores, -forbidden_cost)
        scores[:, -1] -= root_cost
        scores[words, words] = -np.inf
        heads = _best_tree(scores)
        if not allowed[words, heads].all() or heads.count(len(words)) != 1:
            raise ValueError(_no_tree(number))
        trees.append([ROOT if head == len(words) else head for head in heads])
    return trees


def _best_tree(scores: np.ndarray) -> list[int]:
    """The J heads of the best tree under node J, for scores (J, J + 1); it may have several roots.

    A path leads from each node to its best head. Where it closes a cycle, the nodes of the cycle are contracted into
    one, whose head is the one for which leaving the cycle costs least.
    """
    words = scores.shape[1] - 1
    rows, columns = list(scores), np.arange(words + 1)
    dependents = [np.full(words + 1, word) for word in range(words)]  # of each node: its word that each head would get
    members = [np.array([word]) for word in range(words)]
    node_of = np.append(np.arange(words), ROOT)  # each word's node, which may be contracted
    arcs: dict[int, tuple[int, int]] = {}  # node -> its word with a head outside, and that head
    cycles: dict[int, list[int]] = {}  # contracted node -> the nodes of its cycle
    attached = {ROOT}
    for word in range(words):
        path: list[int] = []
        node = int(node_of[word])
        while node not in attached:
            if node in path:
                cycle = path[path.index(node) :]
                del path[-len(cycle) :]
                loss = np.stack([rows[inner] - rows[inner][arcs[inner][1]] for inner in cycle])
                leaving = loss.argmax(0)
                node = len(rows)
                cycles[node] = cycle
                members.append(np.concatenate([members[inner] for inner in cycle]))
                node_of[members[node]] = node
                rows.append(loss[leaving, columns])
                rows[node][members[node]] = -np.inf
                dependents.append(np.stack([dependents[inner] for inner in cycle])[leaving, columns])
            path.append(node)
            head = int(rows[node].argmax())
            arcs[node] = int(dependents[node][head]), head
            node = int(node_of[head])
        attached.update(path)
    return _expanded(arcs, cycles, set(node_of[:-1].tolist()), words)


def _expanded(arcs: dict, cycles: dict, nodes: set[int], words: int) -> list[int]:
    """The heads of all words in the top `nodes`: in each cycle, every node but one keeps its head in the cycle."""
    above = {inner: node for node, cycle in cycles.items() for inner in cycle}
    heads = [words] * words
    pending = list(nodes)
    while pending:
        node = pending.pop()
        inner, heads[arcs[node][0]] = arcs[node]
        while inner != node:
            pending += [sibling for sibling in cycles[above[inner]] if sibling != inner]
            inner = above[inner]
    return heads


def eisner(arc_scores: Sequence[np.ndarray], root_scores: Sequence[np.ndarray]) -> list[list[int]]:
    """The best projective tree with exactly one root, in O(J³) (Eisner 1996): no arc crosses another or spans the root.

    Spans of equal length in sentences of similar length are computed together. Ties are broken arbitrarily. Raises
    ValueError: shapes disagree, a score is NaN or +inf, or every projective tree of a sentence is forbidden.
    """
    sentences = sorted(_checked(arc_scores, root_scores), key=lambda sentence: len(sentence[2]))
    trees: list[list[int]] = [[] for _ in sentences]
    sentences = [sentence for sentence in sentences if len(sentence[2])]
    for start in range(0, len(sentences), _AT_ONCE):
        group = sentences[start : start + _AT_ONCE]
        length = len(group[-1][2])
        padded = np.full((len(group), length, length), -np.inf)
        for row, (_, arcs, _) in enumerate(group):
            padded[row, : len(arcs), : len(arcs)] = arcs
        right, left, splits = _spans(padded)
        for row, (number, _, roots) in enumerate(group):
            last = len(roots) - 1
            # the root heads everything to its left and everything to its right
            totals = roots + left[row, 0, : last + 1] + right[row, : last + 1, last]
            root = int(totals.argmax())
            if totals[root] == -np.inf:
                raise ValueError(_no_tree(number, "projective tree"))
            heads = [ROOT] * (last + 1)
            _follow(splits[:, row], root, last, heads)
            trees[number] = heads
    return trees


# Kinds of spans, as indices of `splits`: "right" has the head at the left end of the span, "left" at the right end. A
# complete span has all descendants of the head up to its other end; in an incomplete one, an arc joins both ends.
_COMPLETE_RIGHT, _COMPLETE_LEFT, _INCOMPLETE = range(3)


def _spans(arcs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eisner's chart for arcs (B, J, J): scores [b, i, j], i <= j, of complete spans with the head at i and at j, and
    the splits (3, B, J, J) of every kind of span."""
    batch, length, _ = arcs.shape
    right, left, open_right, open_left = np.full((4, batch, length, length), -np.inf)
    splits = np.zeros((3, batch, length, length), dtype=np.int64)
    words = np.arange(length)
    right[:, words, words] = left[:, words, words] = 0
    for width in range(1, length):
        i = words[: length - width]
        j = i + width
        begin, end = i[:, None], j[:, None]
        k = begin + np.arange(width)  # (spans, width), from i to j - 1

        def best(kind: int, candidates: np.ndarray, first: np.ndarray, i=i, j=j) -> np.ndarray:
            chosen = candidates.argmax(-1)  # (B, spans)
            splits[kind][:, i, j] = first + chosen
            return candidates.max(-1)

        between = best(_INCOMPLETE, right[:, begin, k] + left[:, k + 1, end], i)
        open_right[:, i, j] = between + arcs[:, j, i]
        open_left[:, i, j] = between + arcs[:, i, j]
        right[:, i, j] = best(_COMPLETE_RIGHT, open_right[:, begin, k + 1] + right[:, k + 1, end], i + 1)
        left[:, i, j] = best(_COMPLETE_LEFT, left[:, begin, k] + open_left[:, k, end], i)
    return right, left, splits


def _follow(splits: np.ndarray, root: int, last: int, heads: list[int]) -> None:
    """Fill in the heads of the best tree with this root from the splits (3, J, J)."""
    todo = [(_COMPLETE_LEFT, 0, root), (_COMPLETE_RIGHT, root, last)]
    while todo:
        kind, i, j = todo.pop()
        if i == j:
            continue
        k = int(splits[kind, i, j])
        # an incomplete span, and the complete span of the dependent at its end
        if kind == _COMPLETE_RIGHT:
            heads[k] = i
            first, end = i, k
            todo.append((_COMPLETE_RIGHT, k, j))
        else:
            heads[k] = j
            first, end = k, j
            todo.append((_COMPLETE_LEFT, i, k))
        middle = int(splits[_INCOMPLETE, first, end])
        todo += [(_COMPLETE_RIGHT, first, middle), (_COMPLETE_LEFT, middle + 1, end)]


DECODERS: dict[str, Callable[..., list[list[int]]]] = {
    TreeDecoder.mst: chu_liu_edmonds,
    TreeDecoder.eisner: eisner,
}


def _checked(arc_scores: Sequence[np.ndarray], root_scores: Sequence[np.ndarray]):
    """Yield each sentence's number, arc scores and root scores, in float64 with -inf on the diagonal."""
    for number, (arcs, roots) in enumerate(zip(arc_scores, root_scores, strict=True)):
        arcs, roots = np.array(arcs, dtype=np.float64), np.array(roots, dtype=np.float64)
        if roots.ndim != 1 or arcs.shape != (len(roots), len(roots)):
            raise ValueError(
                f"sentence {number}: arc scores {arcs.shape} and root scores {roots.shape}; expected (J, J) and (J,)"
            )
        np.fill_diagonal(arcs, -np.inf)
        if not ((arcs < np.inf).all() and (roots < np.inf).all()):
            raise ValueError(f"sentence {number}: a score is NaN or +inf; scores have to be finite, or -inf to forbid")
        yield number, arcs, roots


def _no_tree(number: int, tree: str = "tree") -> str:
    return f"sentence {number}: the scores forbid every {tree}; allow some arcs and a root"

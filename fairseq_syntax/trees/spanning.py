"""The best tree of each sentence under scores of arcs: any tree, a projective one, or just every word's best head.

Everywhere: sentences are lists of (J, J) arrays `arc_scores[dependent, head]` and of (J,) arrays of root scores; higher
is better, -inf is forbidden (better than -1e9, beside which small differences are lost), the diagonal is ignored.
Results are lists of J ints, 0-based, `ROOT` for the one root.
"""

from collections.abc import Callable, Sequence

import numpy as np

from .conllu import ROOT
from .decoders import TreeDecoder

_AT_ONCE = 32  # sentences whose projective trees are computed together: their charts stay in the cache


def chu_liu_edmonds(arc_scores: Sequence[np.ndarray], root_scores: Sequence[np.ndarray]) -> list[list[int]]:
    """The best tree with exactly one root, crossing arcs allowed (Chu & Liu 1965, Edmonds 1967; Tarjan 1977).

    A root costs more than all arcs can win back, so the best tree has one (Stanojević & Cohen 2021, A Root of a
    Problem). Which of several best trees it is, is not defined. O(J^2).

    Raises ValueError: shapes disagree, a score is NaN or +inf, or every tree of a sentence is forbidden.
    """
    trees: list[list[int]] = []
    for number, arcs, roots in _checked(arc_scores, root_scores):
        if not len(roots):
            trees.append([])
            continue
        words = np.arange(len(roots))
        scores = np.concatenate([arcs, roots[:, None]], axis=1)  # the last column is the root
        # every word's best is 0, which changes no comparison of trees and keeps the costs small
        best = scores.max(1, keepdims=True)
        scores -= np.where(best == -np.inf, 0.0, best)
        allowed = scores > -np.inf
        root_cost = (1 - scores.min(where=allowed, initial=0.0)) * (len(words) + 1)
        forbidden_cost = 2 * (root_cost + 1) * (len(words) + 1)  # finite, for -inf less -inf is not a number
        scores = np.where(allowed, scores, -forbidden_cost)
        scores[:, -1] -= root_cost
        scores[words, words] = -np.inf
        heads = _best_tree(scores)
        if not allowed[words, heads].all() or heads.count(len(words)) != 1:
            raise ValueError(_no_tree(number))
        trees.append([ROOT if head == len(words) else head for head in heads])
    return trees


def _best_tree(scores: np.ndarray) -> list[int]:
    """The best heads (J,) under scores (J, J + 1) that form a tree under the node J; with several roots, too.

    A path goes from node to best head. Where it meets itself, the words of the cycle become one node, whose head is the
    one for which leaving the cycle costs least.
    """
    words = scores.shape[1] - 1
    rows, columns = list(scores), np.arange(words + 1)
    dependents = [np.full(words + 1, word) for word in range(words)]  # of a node: which word of it a head would get
    members = [np.array([word]) for word in range(words)]
    node_of = np.append(np.arange(words), ROOT)  # words, then what they were made part of
    arcs: dict[int, tuple[int, int]] = {}  # node -> word of it that gets a head outside, and the head
    cycles: dict[int, list[int]] = {}  # node -> nodes that it was made of
    attached = {ROOT}
    for word in range(words):
        path: list[int] = []
        node = int(node_of[word])
        while node not in attached:
            if node in path:
                cycle = path[path.index(node) :]
                del path[-len(cycle) :]
                loss = np.stack([rows[part] - rows[part][arcs[part][1]] for part in cycle])
                leaving = loss.argmax(0)
                node = len(rows)
                cycles[node] = cycle
                members.append(np.concatenate([members[part] for part in cycle]))
                node_of[members[node]] = node
                rows.append(loss[leaving, columns])
                rows[node][members[node]] = -np.inf
                dependents.append(np.stack([dependents[part] for part in cycle])[leaving, columns])
            path.append(node)
            head = int(rows[node].argmax())
            arcs[node] = int(dependents[node][head]), head
            node = int(node_of[head])
        attached.update(path)
    return _expanded(arcs, cycles, set(node_of[:-1].tolist()), words)


def _expanded(arcs: dict, cycles: dict, nodes: set[int], words: int) -> list[int]:
    """Heads of the words in `nodes`, which are attached by `arcs`: within a cycle, all parts but one keep theirs."""
    above = {part: node for node, cycle in cycles.items() for part in cycle}
    heads = [words] * words
    pending = list(nodes)
    while pending:
        node = pending.pop()
        part, heads[arcs[node][0]] = arcs[node]
        while part != node:
            pending += [other for other in cycles[above[part]] if other != part]
            part = above[part]
    return heads


def eisner(arc_scores: Sequence[np.ndarray], root_scores: Sequence[np.ndarray]) -> list[list[int]]:
    """The best projective tree with exactly one root (Eisner 1996): no arc crosses another, or runs above the root.

    Which of several best trees it is, is not defined. O(J^3), all spans of one length in sentences of about one length
    at once. Raises ValueError: shapes disagree, a score is NaN or +inf, or every projective tree of a sentence is
    forbidden.
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
            # the root has everything on its left, and everything on its right
            totals = roots + left[row, 0, : last + 1] + right[row, : last + 1, last]
            root = int(totals.argmax())
            if totals[root] == -np.inf:
                raise ValueError(_no_tree(number, "projective tree"))
            heads = [ROOT] * (last + 1)
            _follow(splits[:, row], root, last, heads)
            trees[number] = heads
    return trees


# Kinds of spans, as indices of `splits`: of both, the head is at the left (right) end; a complete span has all of the
# head's dependents, and theirs, up to the other end; an incomplete one has an arc from the head to the other end.
_COMPLETE_RIGHT, _COMPLETE_LEFT, _INCOMPLETE = range(3)


def _spans(arcs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eisner's chart for arcs (B, J, J): scores of complete spans [b, i, j], i <= j, with the head at i, those with the
    head at j, and where each kind of span is split (3, B, J, J)."""
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
    """Fill in the heads along the splits (3, J, J) of the best tree with this root."""
    todo = [(_COMPLETE_LEFT, 0, root), (_COMPLETE_RIGHT, root, last)]
    while todo:
        kind, i, j = todo.pop()
        if i == j:
            continue
        k = int(splits[kind, i, j])
        # the incomplete span inside, and the complete one of the dependent at its end
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


def greedy(arc_scores: Sequence[np.ndarray], root_scores: Sequence[np.ndarray]) -> list[list[int]]:
    """Every word's best head, or `ROOT` where that scores highest: no tree in general.

    There may be cycles, and no root or several: what a model believes of each word alone. Where scores are equal, the
    root comes before words, and earlier words before later ones.

    Raises ValueError: shapes disagree, a score is NaN or +inf, or a word has no allowed head.
    """
    result = []
    for number, arcs, roots in _checked(arc_scores, root_scores):
        scores = np.concatenate([roots[:, None], arcs], axis=1)
        if len(roots) and (scores.max(1) == -np.inf).any():
            raise ValueError(_no_tree(number))
        result.append([int(best) - 1 if best else ROOT for best in scores.argmax(1)] if len(roots) else [])
    return result


DECODERS: dict[str, Callable[..., list[list[int]]]] = {
    TreeDecoder.mst: chu_liu_edmonds,
    TreeDecoder.eisner: eisner,
    TreeDecoder.greedy: greedy,
}


def _checked(arc_scores: Sequence[np.ndarray], root_scores: Sequence[np.ndarray]):
    """(number of the sentence, arcs, roots) in float64, the diagonal -inf."""
    if len(arc_scores) != len(root_scores):
        raise ValueError(f"arc scores of {len(arc_scores)} sentences, root scores of {len(root_scores)}")
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

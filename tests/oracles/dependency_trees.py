"""Distributions over dependency trees with one root, by enumeration and in extended precision.

Scores are nested lists: `arcs[dependent][head]`, `roots[word]`; heads are 0-based, -1 = root.
"""

import math
from functools import cache
from itertools import product

import mpmath

from .forests import climbs_out

DIGITS = 60  # of every computation by enumeration; sums of few terms lose none of them


@cache
def all_trees(words: int) -> tuple[tuple[int, ...], ...]:
    """Every tree with exactly one root; there are words ** (words - 1)."""
    one_root = (heads for heads in product(range(-1, words), repeat=words) if heads.count(-1) == 1)
    return tuple(heads for heads in one_root if all(climbs_out(heads, word) for word in range(words)))


def is_projective(heads: tuple[int, ...]) -> bool:
    """Whether every word between a head and its dependent hangs on that head, directly or not."""
    for dependent, head in enumerate(heads):
        if head < 0:
            continue
        for between in range(min(dependent, head) + 1, max(dependent, head)):
            word = between
            while word not in (-1, head):
                word = heads[word]
            if word != head:
                return False
    return True


def tree_score(heads, arcs, roots):
    """Sum of the scores of a tree's arcs and of its root."""
    return sum(roots[word] if head < 0 else arcs[word][head] for word, head in enumerate(heads))


def probabilities(arcs, roots) -> dict[tuple[int, ...], mpmath.mpf]:
    """Every tree's probability."""
    with mpmath.workdps(DIGITS):
        scores = {heads: mpmath.mpf(tree_score(heads, arcs, roots)) for heads in all_trees(len(roots))}
        best = max(scores.values())
        weights = {heads: mpmath.exp(score - best) for heads, score in scores.items()}
        total = mpmath.fsum(weights.values())
        return {heads: weight / total for heads, weight in weights.items()}


def marginals(arcs, roots) -> tuple[list[list[float]], list[float]]:
    """Probability of each arc and of each root."""
    return expectation(probabilities(arcs, roots), lambda heads: 1)


def marginals_gradient(arcs, roots, arc_weights, root_weights) -> tuple[list[list[float]], list[float]]:
    """Gradient, with respect to the scores, of the sum of all marginals times these weights.

    The gradient of one part's marginal with respect to another part's score is the covariance of both being in the
    tree.
    """
    chances = probabilities(arcs, roots)
    with mpmath.workdps(DIGITS):
        value = {heads: mpmath.mpf(tree_score(heads, arc_weights, root_weights)) for heads in chances}
        mean = mpmath.fsum(chances[heads] * value[heads] for heads in chances)
    return expectation(chances, lambda heads: value[heads] - mean)


def expectation(chances, value) -> tuple[list[list[float]], list[float]]:
    """For each arc and each root, the sum of probability times value over the trees that have it."""
    words = len(next(iter(chances)))
    with mpmath.workdps(DIGITS):
        arc_sums = [[mpmath.mpf(0)] * words for _ in range(words)]
        root_sums = [mpmath.mpf(0)] * words
        for heads, chance in chances.items():
            for word, head in enumerate(heads):
                if head < 0:
                    root_sums[word] += chance * value(heads)
                else:
                    arc_sums[word][head] += chance * value(heads)
        return [[float(x) for x in row] for row in arc_sums], [float(x) for x in root_sums]


def laplacian_marginals(arcs, roots) -> tuple[list[list[float]], list[float]]:
    """Marginals of longer sentences: eqs. 12-15 of Tran & Bisk as they stand there, with as many digits as it takes.

    Their phi[i, j] has the head first and the root on the diagonal.
    """
    words = len(roots)
    spread = max(map(abs, [*roots, *(x for row in arcs for x in row)]))
    with mpmath.workdps(40 + int(2 * spread * words / math.log(10))):
        a = [[mpmath.exp(roots[j] if i == j else arcs[j][i]) for j in range(words)] for i in range(words)]
        laplacian = mpmath.matrix(words)
        for i, j in product(range(words), repeat=2):
            if i == 0:
                laplacian[i, j] = a[j][j]
            elif i == j:
                laplacian[i, j] = mpmath.fsum(a[k][j] for k in range(words) if k != j)
            else:
                laplacian[i, j] = -a[i][j]
        inverse = mpmath.inverse(laplacian)
        arc_marginals = [[0.0] * words for _ in range(words)]
        for i, j in product(range(words), repeat=2):
            if i != j:
                beta = (a[i][j] * inverse[j, j] if j else 0) - (a[i][j] * inverse[j, i] if i else 0)
                arc_marginals[j][i] = float(beta)
        return arc_marginals, [float(a[k][k] * inverse[k, 0]) for k in range(words)]

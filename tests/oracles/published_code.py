"""What published code computes where it departs from its paper, written anew from descriptions of its behaviour.

Nothing of ours uses this. It shows, beside the equations, what the departures amount to: docs/fidelity.md.
"""

import torch
from torch import Tensor


def pascal_scores(scores: Tensor, weights: Tensor, heads: int) -> Tensor:
    """Scores scaled by parents: rows are ordered by sentence, then head, and the last `heads` x B of them are scaled.

    Args:
        scores: (B, H, T, T).
        weights: dist(p, j) of each sentence, (B, T, T); each is repeated for `heads` consecutive rows.
        heads: h.

    Returns:
        (B, H, T, T).
    """
    batch, total, length, _ = scores.shape
    rows = scores.reshape(batch * total, length, length).clone()
    rows[-heads * batch :] *= weights.repeat_interleave(heads, dim=0)
    return rows.view_as(scores)


def pascal_rows(batch: int, total: int, heads: int) -> list[tuple[int, int, int]]:
    """(sentence, head, sentence whose parents scale it) of every head that is scaled."""
    first = batch * (total - heads)
    return [(*divmod(first + i, total), i // heads) for i in range(heads * batch)]


def lisa_loss(logits: Tensor, parents: Tensor) -> Tensor:
    """Cross entropy of heads over the dependents, of probabilities as if they were scores, padding and all.

    Args:
        logits: (B, dependents, heads).
        parents: (B, T), 0 at padding.
    """
    wrong = logits.softmax(-1).log_softmax(1)
    return -wrong.gather(2, parents.unsqueeze(-1)).sum()


def lisa_attention(logits: Tensor) -> Tensor:
    """Weights (B, dependents, heads) of the parsing head: every column takes part, padding too."""
    return logits.softmax(-1)


def clamped_diagonal(phi: Tensor) -> Tensor:
    """Scores of SA-NMT's release: the mask that should take the diagonal out leaves nothing else; then a clamp.

    Args:
        phi: (T, T), heads by dependents, roots on the diagonal.
    """
    return (phi * torch.eye(len(phi), dtype=phi.dtype)).clamp(-5, 7)


def dasa_weights(distances: list[Tensor], columns: int, epsilon: float = 1e-9) -> Tensor:
    """W (B, columns, columns) of DASA_NMT: filled from row and column 0, whatever the padding side of the tokens.

    Args:
        distances: one matrix (J, J) a sentence.
        epsilon: what is added to distances.
    """
    weights = torch.zeros(len(distances), columns, columns)
    for row, matrix in zip(weights, distances, strict=True):
        inverse = 1 / (matrix.float() + epsilon)
        row[: len(matrix), : len(matrix)] = inverse / inverse.sum(-1, keepdim=True)
    return weights


def marginals_with_epsilon(arcs: Tensor, roots: Tensor, epsilon: float = 1e-5) -> tuple[Tensor, Tensor]:
    """Matrix-Tree marginals of libraries that add a number to the Laplacian's diagonal.

    Args:
        arcs: (T, T), dependents by heads, natural log; the diagonal is not looked at.
        roots: (T,).

    Returns:
        arc marginals (T, T) and root marginals (T,).
    """
    length = len(arcs)
    # heads by dependents, as in the literature
    weights = arcs.exp().T * (1 - torch.eye(length, dtype=arcs.dtype))
    laplacian = torch.diag(weights.sum(0) + epsilon) - weights
    laplacian[0] = roots.exp()
    inverse = torch.linalg.inv(laplacian)
    own = weights * inverse.diagonal()
    other = weights * inverse.T
    own[:, 0] = 0
    other[0] = 0
    return (own - other).T, roots.exp() * inverse[:, 0]

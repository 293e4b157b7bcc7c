"""Marginals of non-projective dependency trees with exactly one root.

Matrix-Tree Theorem (Tutte 1984) as in Koo et al. (2007), Structured Prediction Models via the Matrix-Tree Theorem, and
Tran & Bisk (2018), Inducing Grammars with and for NMT, eqs. 12-15. A tree's probability is proportional to the
exponential of the sum of its arc scores and its one root score.

Everywhere, for B sentences and T positions: `arc_scores[b, dependent, head]` (B, T, T) and `root_scores` (B, T) are in
nats, -inf if forbidden; `word_mask` (B, T) is True at the words of the tree, wherever they are. The diagonal and scores
of other positions are ignored. Results are computed in float64 and returned in the type of `arc_scores`.

Arcs more than `FORBIDDEN_BELOW` nats below a word's best arc or root score count as forbidden, and so do root scores as
far below the best root: -1e9 means the same as -inf. If every tree has a forbidden arc, the distribution is over the
trees with the fewest of them, so that marginals are always probabilities, even in a sentence of punctuation.

Scores above `LARGEST`, including +inf, count as `LARGEST`; small differences between other scores may then be lost in
rounding. NaN in a sentence makes its own results NaN and does not affect other sentences.

There are two algorithms. Inverting the Laplacian is fast, but it subtracts: when words strongly prefer each other as
heads, the matrix is nearly singular and all precision is lost. So sentences with a large inverse are computed again by
an elimination in the log domain, which only adds and multiplies.
"""

import torch
from torch import Tensor

FORBIDDEN_BELOW = 1e4
"""Nats below the best score at which a score counts as -inf."""

LARGEST = 1e300
"""Upper limit of scores in nats; sums of such scores over a sentence are still finite."""

_LARGEST_INVERSE = 1e6
"""Largest entry of a trusted inverse. For 5 to 50 words and scores of standard deviation 1 to 100, errors of marginals
and their gradients are at most 1e-15 times the largest entry. Rows of the Laplacian have entries of about 1, whatever
the scale of the scores."""


def head_marginals(arc_scores: Tensor, root_scores: Tensor, word_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Probability of every arc, and of every word being the root (Tran & Bisk, eqs. 12-15). Differentiable.

    Returns arc marginals (B, T, T) and root marginals (B, T): `arcs.sum(-1) + roots` is 1 for words; rows and columns
    of other positions are 0.
    """
    arcs, roots = _prepare(arc_scores, root_scores, word_mask)
    if not arcs.shape[-1]:
        return arc_scores, root_scores
    arc_weights, root_weights, matrix = _laplacian(arcs, roots, word_mask)
    inverse, trusted = _TrustedInverse.apply(matrix)
    # derivatives of the log-determinant; relu, because rounding may leave a difference that should be 0 below it
    diagonal = inverse.diagonal(dim1=-2, dim2=-1)
    arc_marginals = arc_weights * (diagonal[:, :, None] - inverse.mT).relu()
    count = word_mask.sum(-1, keepdim=True).clamp(min=1)
    root_marginals = root_weights * ((word_mask[:, None, :].to(arcs) @ inverse).squeeze(1) / count).relu()
    if not trusted.all():
        again = trusted.logical_not().nonzero().squeeze(-1)
        arcs_again, roots_again = _eliminated_marginals(arcs[again], roots[again], word_mask[again])
        arc_marginals = arc_marginals.index_copy(0, again, arcs_again)
        root_marginals = root_marginals.index_copy(0, again, roots_again)
    return arc_marginals.to(arc_scores.dtype), root_marginals.to(arc_scores.dtype)


def _prepare(arc_scores: Tensor, root_scores: Tensor, word_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Scores in float64, with -inf for impossible arcs, shifted so that every word's best arc and the best root are 0.

    Shifts do not change the distribution, since every word has one arc or is the root, and there is one root.
    """
    batch, length = root_scores.shape
    if arc_scores.shape != (batch, length, length) or word_mask.shape != (batch, length):
        raise ValueError(
            f"shapes do not agree: arc scores {tuple(arc_scores.shape)}, root scores {tuple(root_scores.shape)}, word "
            f"mask {tuple(word_mask.shape)}; expected (B, T, T), (B, T) and (B, T)"
        )
    arcs, roots = (scores.double().clamp(max=LARGEST) for scores in (arc_scores, root_scores))
    no_arc = ~(word_mask[:, :, None] & word_mask[:, None, :])
    no_arc = no_arc | torch.eye(length, dtype=torch.bool, device=arcs.device)
    arcs, roots = arcs.masked_fill(no_arc, -torch.inf), roots.masked_fill(~word_mask, -torch.inf)
    best = _finite_maximum(torch.cat([arcs, roots[..., None]], dim=-1))
    arcs = arcs.masked_fill(arcs < best[..., None] - FORBIDDEN_BELOW, -torch.inf)
    # a word without an arc has to be the root: the shift makes its root score the best
    none = (arcs == -torch.inf).all(-1)
    shift = torch.where(none, best - FORBIDDEN_BELOW, _finite_maximum(arcs)).masked_fill(~word_mask, 0.0)
    arcs, roots = arcs - shift[..., None], roots - shift
    roots = roots - _finite_maximum(roots)[..., None]
    return arcs, roots.masked_fill(roots < -FORBIDDEN_BELOW, -torch.inf)


def _finite_maximum(scores: Tensor) -> Tensor:
    """The maximum over the last dimension, without gradient; 0 if it is -inf or the dimension is empty."""
    if not scores.shape[-1]:
        return scores.new_zeros(scores.shape[:-1])
    maximum = scores.detach().amax(-1)
    return maximum.masked_fill(maximum == -torch.inf, 0.0)


class _TrustedInverse(torch.autograd.Function):
    """Inverses of matrices that are far from singular; zeros for all others.

    With plain autograd, the gradient of an unused inverse would be 0 * inf.
    """

    @staticmethod
    def forward(ctx, matrices: Tensor) -> tuple[Tensor, Tensor]:
        """Inverses (B, T, T), and whether each is trusted (B,)."""
        inverse, _ = torch.linalg.inv_ex(matrices)
        trusted = inverse.abs().amax((-1, -2)) <= _LARGEST_INVERSE  # False for NaN
        inverse = torch.where(trusted[:, None, None], inverse, 0.0)
        ctx.save_for_backward(inverse)
        ctx.mark_non_differentiable(trusted)
        return inverse, trusted

    @staticmethod
    def backward(ctx, gradient: Tensor, _) -> Tensor:
        (inverse,) = ctx.saved_tensors
        transposed = inverse.mT
        return -(transposed @ gradient @ transposed)


def _laplacian(arcs: Tensor, roots: Tensor, word_mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Arc weights A, root weights r, and the matrix D - A + r uᵀ, with D the row sums of A and u the mean over words.

    Its determinant is Z. Koo et al. replace one column of the Laplacian D - A by r. Since its rows sum to 0, adding any
    r uᵀ whose u sums to 1 gives the same determinant, and this u singles out no word. Other positions have the row and
    column of the identity matrix.
    """
    arc_weights, root_weights = arcs.exp(), roots.exp()
    words = word_mask.to(arcs)
    mean = words / words.sum(-1, keepdim=True).clamp(min=1)
    matrix = root_weights[:, :, None] * mean[:, None, :] - arc_weights
    return arc_weights, root_weights, matrix + torch.diag_embed(arc_weights.sum(-1) + 1 - words)


def _penalized(arcs: Tensor, roots: Tensor, word_mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Scores with a finite penalty (B,) instead of -inf, and that penalty.

    n words have at most n^n trees, and trees of allowed arcs score at least n times the worst arc. Half the penalty
    exceeds both together, so trees with a forbidden arc weigh nothing next to any tree without.
    """
    scores = torch.cat([arcs.flatten(1), roots], dim=-1)
    worst = _finite_maximum((-scores).masked_fill(scores == -torch.inf, -torch.inf))
    count = word_mask.sum(-1)
    penalty = 2 * count * (worst + (count + 1).to(worst).log()) + 100
    arcs = torch.where(arcs == -torch.inf, -penalty[:, None, None], arcs)
    return arcs, torch.where(roots == -torch.inf, -penalty[:, None], roots), penalty


class _LogAddExp(torch.autograd.Function):
    """log(exp x + exp y), with finite second derivatives however far apart x and y are."""

    @staticmethod
    def forward(ctx, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return torch.logaddexp(x, y)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        share = torch.sigmoid(x - y)
        return gradient * share, gradient * (1 - share)


def _eliminate(arcs: Tensor, roots: Tensor, word_mask: Tensor) -> Tensor:
    """log Z (B,) of penalized, finite scores, by eliminating one word after the other.

    The dependents of word k are passed on: with p the sum of its weights to the remaining words,
    w[i, j] += w[i, k] w[k, j] / p and r[i] += w[i, k] r[k] / p. Z is the product of all p and of the last word's r.
    This is the elimination of Grassmann, Taksar & Heyman (1985) for the stationary distribution of a Markov chain,
    which consists of trees by the Markov chain tree theorem. Nothing is subtracted and self-loops are never read; in
    the log domain nothing overflows or underflows, and all derivatives are between 0 and 1.
    """
    # words first, in their order: the last to remain, at position 0, has to be a word
    order = (~word_mask).long().argsort(dim=-1, stable=True)
    length = max(1, int(word_mask.sum(-1).max()))
    order = order[:, :length]
    arcs = arcs.gather(1, order[:, :, None].expand(-1, -1, arcs.shape[-1]))
    arcs = arcs.gather(2, order[:, None, :].expand(-1, length, -1))
    roots, words = roots.gather(1, order), word_mask.gather(1, order)
    # other positions depend on position 0 with weight 1 and have no dependents: factors of 1
    first = torch.arange(length, device=arcs.device) == 0
    arcs = torch.where(words[:, None, :] | ~words[:, :, None], arcs, -1e30)
    arcs = torch.where(words[:, :, None], arcs, torch.where(first, 0.0, -1e30).to(arcs))
    roots = torch.where(words, roots, torch.where(first, 0.0, -1e30).to(arcs))
    log_z = roots.new_zeros(roots.shape[0])
    for last in range(length - 1, 0, -1):
        weights = arcs[:, last, :last]  # (B, last)
        total = weights.logsumexp(-1)
        log_z = log_z + total
        below, shares = arcs[:, :last, last], weights - total[:, None]
        roots = _LogAddExp.apply(roots[:, :last], below + (roots[:, last] - total)[:, None])
        arcs = _LogAddExp.apply(arcs[:, :last, :last], below[:, :, None] + shares[:, None, :])
    return log_z + roots[:, 0]


def _eliminated_marginals(arcs: Tensor, roots: Tensor, word_mask: Tensor) -> tuple[Tensor, Tensor]:
    """`head_marginals` of prepared scores, as the gradient of log Z by elimination."""
    differentiable = torch.is_grad_enabled() and (arcs.requires_grad or roots.requires_grad)
    with torch.inference_mode(False), torch.enable_grad():
        if not differentiable:
            arcs, roots, word_mask = arcs.detach().clone(), roots.detach().clone(), word_mask.clone()
        arcs, roots = (scores if scores.requires_grad else scores.requires_grad_() for scores in (arcs, roots))
        finite_arcs, finite_roots, penalty = _penalized(arcs, roots, word_mask)
        log_z = _eliminate(finite_arcs, finite_roots, word_mask)
        inputs = finite_arcs, finite_roots
        marginals = torch.autograd.grad(
            log_z.sum(), inputs, create_graph=differentiable, allow_unused=True, materialize_grads=True
        )
        # removes rounding errors: values below 0, and those of forbidden arcs unless every tree has some
        impossible = (log_z < -penalty / 2)[:, None]  # False for NaN
        arc_mask, root_mask = (arcs != -torch.inf) | impossible[..., None], (roots != -torch.inf) | impossible
        return marginals[0].masked_fill(~arc_mask, 0.0).relu(), marginals[1].masked_fill(~root_mask, 0.0).relu()

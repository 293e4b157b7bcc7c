"""The BlackOut loss of an output layer, from target words and sampled noise words (Ji et al. 2016).

With logits u, a noise distribution Q and q = 1/Q, the target y and the noise words s_1..s_K have

    p_w = q_w e^{u_w} / (q_y e^{u_y} + Σ_j q_{s_j} e^{u_{s_j}}),     loss = -log p_y - Σ_j log(1 - p_{s_j}).

A *score* below is u + log q, so that p is the softmax of the scores.
"""

from enum import StrEnum
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

NoiseSharing = StrEnum("NoiseSharing", "batch sentence")
"""The target words that share noise words."""


class Noise(NamedTuple):
    """The distribution of noise words."""

    probabilities: Tensor  # Q (V,), float64; 0 for words that are never drawn
    # log q (V,), natural, float64; words that are never drawn have that of the rarest other word, so that the loss of
    # such a target is finite
    log_weights: Tensor

    def draw(self, *shape: int) -> Tensor:
        """Independent word ids of this shape, from PyTorch's global generator."""
        count = int(np.prod(shape))
        return torch.multinomial(self.probabilities, count, replacement=True).view(shape)

    def to(self, device: torch.device) -> "Noise":
        """The distribution on a device."""
        return Noise(*(tensor.to(device) for tensor in self))


class OutputLayer(NamedTuple):
    """A linear map from features to logits."""

    weight: Tensor  # (V, C)
    bias: Tensor | None  # (V,) or None


def noise_distribution(counts: np.ndarray, alpha: float, never: list[int]) -> Noise:
    """Q(w) ∝ count(w)^alpha over the words with nonzero counts (V,), except those in `never`.

    An `alpha` of 0 gives a uniform distribution, 1 the relative frequencies. Raises ValueError: no word is left.
    """
    counts = torch.as_tensor(counts, dtype=torch.float64).clone()
    counts[never] = 0
    drawn = counts > 0
    if not drawn.any():
        raise ValueError("no word of the target side can be drawn: the training data holds no text")
    log_q = -alpha * counts.clamp(min=counts[drawn].min()).log()
    # not 0 ** alpha, which is 1 for alpha = 0
    probabilities = torch.where(drawn, (-log_q).exp(), 0)
    return Noise(probabilities / probabilities.sum(), log_q + probabilities.sum().log())


def blackout_loss(target: Tensor, noise: Tensor) -> Tensor:
    """-log p_y - Σ_j log(1 - p_j), natural, for scores of targets (...) and of their noise words (..., K), K > 0.

    It is exact even if a p is almost 1. A noise score of -inf leaves that word out; other infinite scores count as
    large numbers, so that the loss is finite. NaN gives a loss of NaN, as in cross entropy.

    Only the largest p can exceed ½. Its 1 - p is computed as the sum of the others, since rounding p would lose it; for
    all others, log1p(-p) is exact.
    """
    limit = torch.finfo(target.dtype).max / 16  # sums of a few are finite
    target, noise = target.clamp(-limit, limit), noise.clamp(-4 * limit, limit)
    # a shift of all scores does not change p, but next to 1e30 their differences would be lost
    shared = torch.maximum(target, noise.amax(dim=-1)).detach()
    target, noise = target - shared, noise - shared.unsqueeze(-1)
    top, place = noise.max(dim=-1)
    target_leads = target >= top
    best, lesser = torch.where(target_leads, target, top), torch.where(target_leads, top, target)
    # all scores except the best: if that is a noise word, the target replaces it
    others = noise.scatter(-1, place.unsqueeze(-1), lesser.unsqueeze(-1))
    others_total = others.logsumexp(dim=-1)
    margin = best - others_total
    # softplus; F.softplus returns arguments above 20 unchanged
    above, below = -F.logsigmoid(-margin), -F.logsigmoid(margin)
    total = others_total + above
    rejections = -torch.log1p(-(others - total.unsqueeze(-1)).exp())
    rejected = rejections.sum(dim=-1)
    if_target_leads = below + rejected
    # the best noise word: -log(1 - p) = softplus(margin); the target among `others` is not rejected
    if_noise_leads = (total - target) + above + rejected - rejections.gather(-1, place.unsqueeze(-1)).squeeze(-1)
    return torch.where(target_leads, if_target_leads, if_noise_leads)


def _shared_scores(features: Tensor, target: Tensor, words: Tensor, layer: OutputLayer, log_q: Tensor):
    """Scores of targets (G, T) and noise (G, T, K), for features (G, T, C) of G groups that share words (G, K)."""
    ids = torch.cat([words, target], dim=1)
    sizes = [words.shape[1], target.shape[1]]
    # one look-up for both, because every look-up has a gradient of the size of the matrix
    noise_rows, target_rows = F.embedding(ids, layer.weight).to(features.dtype).split(sizes, dim=1)
    offsets = log_q[ids]
    if layer.bias is not None:
        offsets = offsets + F.embedding(ids, layer.bias.unsqueeze(1)).squeeze(2).to(features.dtype)
    noise_offsets, target_offsets = offsets.split(sizes, dim=1)
    noise = torch.baddbmm(noise_offsets.unsqueeze(1), features, noise_rows.transpose(1, 2))
    return (features * target_rows).sum(dim=2) + target_offsets, noise


def sampled_losses(
    features: Tensor,
    target: Tensor,
    counted: Tensor,
    layer: OutputLayer,
    noise: Noise,
    size: int,
    share: NoiseSharing = NoiseSharing.batch,
) -> Tensor:
    """The BlackOut losses (N,) of an output layer, natural, in float32 or higher precision, with newly drawn noise.

    Noise words equal to the target count like others.

    Args:
        features: (B, T, C) input of the output layer.
        target: (B, T) word ids.
        counted: (B, T), True at N targets, False at padding.
        size: number K of noise words per target.
        share: one sample for the batch, or per sentence.
    """
    features = features.to(torch.promote_types(features.dtype, torch.float32))
    log_q = noise.log_weights.to(features.dtype)
    # no half precision below, even with --amp
    with torch.autocast(features.device.type, enabled=False):
        if share == NoiseSharing.batch:
            features, target = features[counted].unsqueeze(0), target[counted].unsqueeze(0)
        words = noise.draw(len(target), size)
        target_scores, noise_scores = _shared_scores(features, target, words, layer, log_q)
        if share == NoiseSharing.batch:
            return blackout_loss(target_scores.squeeze(0), noise_scores.squeeze(0))
        return blackout_loss(target_scores[counted], noise_scores[counted])

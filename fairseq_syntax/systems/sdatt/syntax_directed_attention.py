"""Syntax-directed attention: a window in the tree instead of the sentence (Chen et al., AAAI 2018)."""

from collections.abc import Callable
from enum import StrEnum
from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor

from ...data.collating import SourceSyntax
from ...trees.distances import PAD_DISTANCE
from .additive_attention import AdditiveMemory, PositionNet, SourceWeights, global_weights, positions_of
from .window_attention import centre_row


class Combine(StrEnum):
    """How the tree distance changes a score e; G = exp(-d^2 / 2 sigma^2)."""

    mul = "mul"  # e G, as published (eq. 10)
    add = "add"  # e + log G: always a penalty, whatever the sign of e
    post = "post"  # softmax(e) G, not renormalised


class PositionGradient(StrEnum):
    """How the predicted position, of which a row of distances is chosen, gets a gradient. The paper gives it none."""

    smooth = "smooth"  # the row's weights, with the gradient of all rows, mixed by a Gaussian around the position
    ste = "ste"  # the row's weights, with the gradient of `mix`
    hard = "hard"  # none: the literal formula; the position is never learned
    mix = "mix"  # the weights of the two nearest rows, mixed


POSITION_HELP = (
    "gradient of the predicted position, of which the paper says nothing: smooth, from all words, those near it the "
    "most; ste, from the words to its left and right; hard, none; mix: both neighbours' weights, even to translate"
)
SMOOTH_SIGMA = 3.0
"""Standard deviation of the Gaussian of `PositionGradient.smooth`, in tokens."""


class PositionGuide(StrEnum):
    """What plain attention, the softmax of the same scores, has to say about the position; ours."""

    none = "none"  # nothing, as published
    loss = "loss"  # training pulls the predicted position to where plain attention looks
    centres = "centres"  # the centre is where plain attention looks; nothing is predicted


class MissingParse(StrEnum):
    """What stands in for the distances of a sentence without a parse."""

    all_equal = "global"  # 0 everywhere: global attention
    linear = "linear"  # distance in the sentence
    error = "error"


class SyntaxDirectedMemory(AdditiveMemory):
    """Besides what `AdditiveMemory` holds: "distances" (B, T, T) uint8, `PAD_DISTANCE` at padding.

    Raises (in `forward`):
        ValueError: no distances; or a sentence without a parse, unless missing parses are allowed.
    """

    def __init__(
        self,
        source_size: int,
        attention_size: int,
        double_context: bool = False,
        missing: MissingParse = MissingParse.all_equal,
    ):
        super().__init__(source_size, attention_size, double_context)
        self.missing = missing

    def forward(self, states, source):
        memory = super().forward(states, source)
        memory["distances"] = complete_distances(source.syntax, memory["keep"], self.missing)
        return memory


def complete_distances(syntax: Optional[SourceSyntax], keep: Tensor, missing: MissingParse) -> Tensor:
    """(B, T, T) tree distances of a batch, those of sentences without a parse filled in.

    Args:
        syntax: with "distances" (B, T, T) uint8, `PAD_DISTANCE` at padding, all 0 in sentences without a parse.
        keep: (B, T), True at real tokens.
        missing: what to fill in.

    Raises ValueError: no distances, or a sentence has none and `missing` is `error`.
    """
    distances = syntax["distances"]
    if missing == MissingParse.all_equal:
        return distances
    real = keep.unsqueeze(1) & keep.unsqueeze(2)
    # EOS is at least one arc from every word of a parsed sentence
    unparsed = (keep.sum(dim=1) > 1) & ~((distances > 0) & real).flatten(1).any(dim=1)
    if missing == MissingParse.error:
        refuse_unparsed(unparsed, "global or linear")
        return distances
    columns = torch.arange(keep.shape[1], device=keep.device)
    linear = (columns.unsqueeze(0) - columns.unsqueeze(1)).abs().clamp(max=PAD_DISTANCE - 1)
    return torch.where(real & unparsed[:, None, None], linear.to(distances.dtype), distances)


def refuse_unparsed(unparsed: Tensor, others: str) -> None:
    """On a CPU, raise ValueError if a sentence of a batch has no parse. A GPU would wait to hear of it in every batch.

    Data are checked when they are loaded.

    Args:
        unparsed: (B,).
        others: values of --sdatt-missing that accept such sentences.
    """
    if not unparsed.is_cuda and unparsed.any():
        raise ValueError(
            f"{int(unparsed.sum())} of {len(unparsed)} sentences of a batch have no parse; parse them, or choose "
            f"--sdatt-missing {others}"
        )


class SyntaxDirectedWeights(SourceWeights):
    """Softmax over the words within n arcs of the token at a position (eqs. 5, 9-11).

    Args:
        window: n, in arcs; may be infinite.
        sigma: of the Gaussian, in arcs; may be infinite. None: n / 2.
        combine: how distance changes scores.
        gradient, guide: how the position learns, where it comes from, and what else it learns from.
        guide_weight: of the term of the loss, where there is one.
    """

    def __init__(
        self,
        query_size: int,
        window: float = 4.0,
        sigma: Optional[float] = None,
        combine: Combine = Combine.mul,
        gradient: PositionGradient = PositionGradient.smooth,
        guide: PositionGuide = PositionGuide.none,
        guide_weight: float = 1.0,
    ):
        super().__init__()
        self.position = None if guide == PositionGuide.centres else PositionNet(query_size)
        self.window = window
        self.combine = combine
        self.gradient = gradient
        self.guide = guide
        self.guide_weight = guide_weight
        self.sigma = window / 2 if sigma is None else sigma
        if gradient == PositionGradient.hard and guide == PositionGuide.none:
            # training in several processes wants to know of parameters without a gradient
            self.position.requires_grad_(False)

    def _around(self, scores: Tensor, distances: Tensor, keep: Tensor) -> Tensor:
        """Weights (…, T) of scores (…, T), of tokens that are kept, at these distances from the centre."""
        # squares of uint8 would overflow
        distances = distances.to(scores.dtype)
        inside = keep & (distances <= self.window)
        log_gaussian = distances.square() * (-0.5 / self.sigma**2)
        if self.combine == Combine.mul:
            # before any masking or shift of the scores: the product is not invariant to either
            return global_weights(scores * log_gaussian.exp(), inside)
        if self.combine == Combine.add:
            return global_weights(scores + log_gaussian, inside)
        return global_weights(scores, inside) * log_gaussian.exp()

    def _rows(self, scores: Tensor, memory, rows: Tensor) -> Tensor:
        """Weights (B, R, T) with each of the tokens (B, R) `rows`, counted from the sentence's first, in the centre."""
        index = (rows + memory["start"].unsqueeze(1)).unsqueeze(2).expand(-1, -1, scores.shape[1])
        return self._around(scores.unsqueeze(1), memory["distances"].gather(1, index), memory["keep"].unsqueeze(1))

    def forward(self, scores, query, memory, state):
        length = memory["length"]
        if self.guide == PositionGuide.centres:
            weights, position = self._around_plain(scores, memory)
            return weights, {"position": position}, state
        predicted = self.position.score(query)
        position = length * torch.sigmoid(predicted)
        shown = {"position": position}
        if self.guide == PositionGuide.loss and self.training:
            target = expected_position(scores.detach(), memory)
            shown["guide_loss"] = self.guide_weight * guide_loss(predicted, target, length)
        return self.weigh(scores, position, memory), shown, state

    def weigh(self, scores: Tensor, position: Tensor, memory) -> Tensor:
        """Weights (B, T) of scores (B, T) around real-valued positions (B,)."""
        return weights_around(
            position, memory["length"], self.gradient, self.training, lambda rows: self._rows(scores, memory, rows)
        )

    def _around_plain(self, scores: Tensor, memory) -> tuple[Tensor, Tensor]:
        """Weights (B, T) around where plain attention is strongest, and that position (B,).

        The weights of all centres, mixed by the plain attention to these, are the weights of `mix`, and what `ste` and
        `smooth` have their gradient from: scores learn of all centres, not only of the neighbours in the sentence.
        """
        plain = global_weights(scores, memory["keep"])
        if self.gradient == PositionGradient.mix:
            return _mix(plain, self._all_rows(scores, memory)), expected_position(scores, memory)
        row = plain.argmax(dim=1) - memory["start"]
        weights = self._rows(scores, memory, row.unsqueeze(1)).squeeze(1)
        if self.gradient != PositionGradient.hard and self.training:
            with torch.no_grad():
                rows = self._all_rows(scores, memory)
            weights = weights + _mix(plain - plain.detach(), rows)
        return weights, row + scores.new_tensor(0.5)

    def _all_rows(self, scores: Tensor, memory) -> Tensor:
        """Weights (B, T, T) with each token in the centre, whatever they are at padding."""
        keep = memory["keep"]
        # padding is nobody's centre, but its weights must be numbers
        distances = memory["distances"].masked_fill(~keep.unsqueeze(2), 0)
        return self._around(scores.unsqueeze(1), distances, keep.unsqueeze(1))


def _mix(shares: Tensor, rows: Tensor) -> Tensor:
    """(…, T) of shares (…, R) and rows (…, R, T)."""
    return (shares.unsqueeze(-2) @ rows).squeeze(-2)


def expected_position(scores: Tensor, memory) -> Tensor:
    """(B,) where plain attention looks, on the average: token j is at j + 1/2."""
    return (global_weights(scores, memory["keep"]) * (positions_of(memory) + 0.5)).sum(dim=1)


def guide_loss(predicted: Tensor, target: Tensor, length: Tensor) -> Tensor:
    """L KL(t/L || p/L) (B,) of p = L sigmoid(predicted): its gradient to `predicted` is the error in tokens, p - t."""
    share = target / length
    cross = F.binary_cross_entropy_with_logits(predicted, share, reduction="none")
    return length * (cross + torch.xlogy(share, share) + torch.xlogy(1 - share, 1 - share))


def weights_around(
    position: Tensor,
    length: Tensor,
    gradient: PositionGradient,
    training: bool,
    weigh: Callable[[Tensor], Tensor],
    mix: Optional[Callable[[Tensor], Tensor]] = None,
) -> Tensor:
    """(B, …, T) weights around a real-valued position: those around the token there, or around the two nearest ones.

    Args:
        position: (B, …), from 0 to the length of the sentence.
        length: tokens of the sentence, of a shape that broadcasts to that of `position`.
        gradient: how the position learns.
        training: whether gradients are needed.
        weigh: long (B, …, R) -> weights (B, …, R, T) around each of these tokens, counted from the sentence's first.
        mix: shares (B, …, T) of the sentence's tokens, from its first -> the mean (B, …, T) of the weights around each,
            which are constants; None: found with `weigh`.
    """
    row = centre_row(position, length)
    if gradient != PositionGradient.mix:
        weights = weigh(row.unsqueeze(-1)).squeeze(-2)
        if gradient == PositionGradient.hard or not training:
            return weights
    if gradient == PositionGradient.smooth:
        tokens = torch.arange(weights.shape[-1], device=position.device)
        last = (length - 1).unsqueeze(-1)
        log_gaussian = (tokens + 0.5 - position.unsqueeze(-1)).square() * (-0.5 / SMOOTH_SIGMA**2)
        shares = torch.softmax(log_gaussian.masked_fill(tokens > last, float("-inf")), dim=-1)
        shares = shares - shares.detach()
        if mix is not None:
            return weights + mix(shares)
        with torch.no_grad():
            rows = weigh(torch.minimum(tokens, last).expand_as(shares))
        return weights + _mix(shares, rows)
    # between the middles of two tokens; the clamp lets gradients through, or positions under 1/2 could not move
    middle = position - 0.5
    last = (length - 1).to(position)
    inner = middle + (torch.minimum(middle.clamp(min=0), last) - middle).detach()
    low = torch.minimum(inner.detach().floor(), (last - 1).clamp(min=0)).long().clamp(min=0)
    high = torch.minimum(low + 1, length - 1)
    high_share = inner - low
    shares = torch.stack((1 - high_share, high_share), dim=-1)
    neighbours = torch.stack((low, high), dim=-1)
    if gradient == PositionGradient.mix:
        return _mix(shares, weigh(neighbours))
    with torch.no_grad():
        rows = weigh(neighbours)
    return weights + _mix(shares - shares.detach(), rows)

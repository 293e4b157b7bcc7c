"""Head selection: every source word looks at its likely heads (Tran & Bisk, Sec. 3.1)."""

from enum import StrEnum
from typing import Dict

import torch
from torch import Tensor, nn

from ...trees.matrix_tree import head_marginals
from ..recurrent.source_attention import SourceBatch


class HeadDistribution(StrEnum):
    """Functions from scores to a distribution over heads."""

    tree = "tree"  # marginals of single-root dependency trees, by the Matrix-Tree theorem
    flat = "flat"  # softmax over the words, each word by itself: self-attention


class RootScores(StrEnum):
    """Scores of a word as the root of the sentence."""

    diagonal = "diagonal"  # the word's own query, as the paper's formula has it
    query = "query"  # a learned vector instead of the head's query, as the authors' code has it


class HeadSelection(nn.Module):
    """Soft heads of the source words (eqs. 6-9, 12-15), or their most probable heads (eq. 21).

    The score of word i as the head of word j is (W_q s_i) . (W_k s_j), divided by sqrt(C) if scaled. Words are the
    pieces of the source; EOS and padding are excluded, and are their own heads.

    Args:
        size: C, of the annotations.
        distribution: trees, or plain self-attention. The latter has no root: a word may choose itself instead.
        root_scores: for trees; ignored by `flat`.
        hard: use the most probable head alone, with the straight-through gradient (Bengio et al. 2013).
        scaled: divide scores by sqrt(C), as the authors' code does; the paper does not write it.
        never_heads: (V,), True at token ids that may be neither head nor root (punctuation); sentences of only
            such tokens are unaffected. None allows all.
    """

    def __init__(
        self,
        size: int,
        distribution: HeadDistribution = HeadDistribution.tree,
        root_scores: RootScores = RootScores.diagonal,
        hard: bool = False,
        scaled: bool = False,
        never_heads: Tensor | None = None,
    ):
        super().__init__()
        self.distribution = distribution
        self.hard = hard
        self.scale = size**-0.5 if scaled else 1.0
        self.head_query = nn.Linear(size, size, bias=False)  # W_q
        self.dependent_key = nn.Linear(size, size, bias=False)  # W_k
        self.value = nn.Linear(size, size, bias=False)  # W_v
        # derived from the dictionary, so not saved in checkpoints
        self.register_buffer("never_heads", never_heads, persistent=False)
        self.root_query = None
        if distribution == HeadDistribution.tree and root_scores == RootScores.query:
            self.root_query = nn.Parameter(torch.empty(size))
            nn.init.uniform_(self.root_query, -(size**-0.5), size**-0.5)

    def scores(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Scores of arcs (B, T, T), [dependent, head], and of roots (B, T), of annotations (B, T, C)."""
        keys = self.dependent_key(states) * self.scale
        arcs = torch.bmm(keys, self.head_query(states).transpose(1, 2))
        if self.root_query is None:
            return arcs, arcs.diagonal(dim1=1, dim2=2)
        return arcs, keys @ self.root_query

    def heads(self, states: Tensor, source: SourceBatch) -> Dict[str, Tensor]:
        """Scores and distributions of the heads of words with annotations (B, T, C).

        Returns "arc_scores" and "arc_marginals" (B, T, T), [dependent, head]; "root_scores" and "root_marginals" (B,
        T); "word_mask". Marginals of a word sum to one over its heads and the root. For `flat` the diagonal, a word
        that chooses itself, takes the place of the root. If the syntax of the source has `piece_heads`, they replace
        the distributions.
        """
        arcs, roots = self.scores(states)
        word_mask = source.word_mask
        if self.never_heads is not None:
            never = self.never_heads[source.tokens]
            barred = never & (word_mask & ~never).any(dim=1, keepdim=True)
            arcs = arcs.masked_fill(barred.unsqueeze(1), float("-inf"))
            roots = roots.masked_fill(barred, float("-inf"))
        if self.distribution == HeadDistribution.tree:
            arc_marginals, root_marginals = head_marginals(arcs, roots, word_mask)
        else:
            arc_marginals, root_marginals = _flat_heads(arcs, roots, word_mask)
        if "piece_heads" in source.syntax:
            arc_marginals, root_marginals = _clamped(
                arc_marginals, root_marginals, source.syntax["piece_heads"], word_mask
            )
        return {
            "arc_scores": arcs,
            "root_scores": roots,
            "arc_marginals": arc_marginals,
            "root_marginals": root_marginals,
            "word_mask": word_mask,
        }

    def forward(self, states: Tensor, source: SourceBatch) -> Tensor:
        """Syntactic annotations M (B, T, C), eq. 8: the values of each word's heads; its own value for the root."""
        heads = self.heads(states, source)
        own = torch.where(source.word_mask, heads["root_marginals"], 1.0)
        weights = heads["arc_marginals"] + torch.diag_embed(own)
        if self.hard:
            best = torch.zeros_like(weights).scatter_(2, weights.argmax(dim=2, keepdim=True), 1.0)
            weights = best + (weights - weights.detach())
        return torch.bmm(weights.type_as(states), self.value(states))


def _flat_heads(arcs: Tensor, roots: Tensor, word_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Softmax over the words of the sentence, the word itself included (its score is its root score)."""
    itself = torch.eye(arcs.shape[1], dtype=torch.bool, device=arcs.device)
    scores = torch.where(itself, roots.unsqueeze(2), arcs)
    # rows that are not words have no candidates: scores of 0 keep them finite, also in the backward pass
    both = word_mask.unsqueeze(1) & word_mask.unsqueeze(2)
    scores = scores.masked_fill(word_mask.unsqueeze(2) & ~word_mask.unsqueeze(1), float("-inf"))
    scores = scores.masked_fill(~word_mask.unsqueeze(2), 0.0)
    wide = torch.promote_types(scores.dtype, torch.float32)
    # +inf is the greatest number, not inf - inf
    weights = torch.softmax(scores.clamp(max=torch.finfo(scores.dtype).max), dim=2, dtype=wide) * both
    return weights.masked_fill(itself, 0.0), weights.diagonal(dim1=1, dim2=2)


def _clamped(arcs: Tensor, roots: Tensor, heads: Tensor, word_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Marginals (B, T, T) and (B, T) of given trees, the head of roots EOS; sentences without a parse keep theirs."""
    columns = torch.arange(heads.shape[1], device=heads.device)
    has_head = (heads >= 0) & word_mask
    chosen = (heads.unsqueeze(2) == columns) & word_mask.unsqueeze(1)
    arcs = torch.where(has_head.unsqueeze(2), chosen.to(arcs), arcs)
    return arcs, torch.where(has_head, (~chosen.any(dim=2)).to(roots), roots)

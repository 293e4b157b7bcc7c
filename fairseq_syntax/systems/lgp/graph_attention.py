"""Attention to two sequences of annotations at once: words, and words with their heads (Hashimoto & Tsuruoka 2017)."""

from typing import Optional

import torch
from torch import Tensor

from ..recurrent.source_attention import Memory, SourceAttention


def graph_memory(states: Tensor, padding_mask: Tensor, graph: Optional[Tensor] = None, words: Optional[Tensor] = None):
    """What `GraphAttention` attends to.

    Args:
        states: (B, T, D) of the encoder; all of a sentence is attended to, EOS too.
        padding_mask: (B, T), True at padding.
        graph: (B, T, D) dep of eq. 3, if there is a graph; only words are attended to.
        words: (B, T), True at words.

    Returns "values" (B, K, T, D) and "bias" (B, 1, K T) of scores, K = 2 with a graph, else 1.
    """
    values, attended = [states], [~padding_mask]
    if graph is not None:
        values.append(graph.masked_fill(~words.unsqueeze(2), 0.0))
        # without any word all weights go to zeros: the context is 0, and nothing is NaN
        attended.append(words | ~words.any(dim=1, keepdim=True))
    bias = torch.zeros(states.shape[0], len(values), states.shape[1], dtype=states.dtype, device=states.device)
    bias = bias.masked_fill_(~torch.stack(attended, dim=1), float("-inf"))
    return {"values": torch.stack(values, dim=1), "bias": bias.flatten(1).unsqueeze(1)}


class GraphAttention(SourceAttention):
    """Weights exp(h . value), normalised over each of the K sequences (eqs. 4 to 7); no parameters."""

    def forward(self, query, memory: Memory, state):
        """As in `SourceAttention`: the context is [a_t; a'_t] (B, K D), "attn" the weights of the first sequence."""
        values = memory["values"]  # (B, K, T, D)
        scores = torch.baddbmm(memory["bias"], query.unsqueeze(1), values.flatten(1, 2).transpose(1, 2))
        scores = scores.view(values.shape[:3])
        wide = torch.promote_types(scores.dtype, torch.float32)
        weights = torch.softmax(scores, dim=2, dtype=wide).to(values.dtype)
        context = torch.bmm(weights.flatten(0, 1).unsqueeze(1), values.flatten(0, 1))  # (B K, 1, D)
        return context.view(len(query), -1), {"attn": weights[:, 0]}, state

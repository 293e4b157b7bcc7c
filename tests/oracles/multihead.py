"""Attention of several heads one score at a time, whose weights a system makes its own way."""

import math

import torch


def softmax(scores: dict) -> dict:
    """Column -> weight, from column -> score."""
    top = max(scores.values())
    exps = {j: math.exp(score - top) for j, score in scores.items()}
    return {j: value / sum(exps.values()) for j, value in exps.items()}


def attend(attention, query, states, keep, weigh):
    """Output (T, B, C) and weights (H, B, T, J).

    Args:
        attention: whose projections are used.
        query: (T, B, C);  states: (J, B, E).
        keep: (B, J), True at real tokens.
        weigh: function: head, sentence, step, scores of the columns -> column -> weight.
    """
    q, k, v = attention.q_proj(query), attention.k_proj(states), attention.v_proj(states)
    heads, dim = attention.num_heads, attention.head_dim
    out, weights = torch.zeros_like(q), q.new_zeros(heads, keep.shape[0], len(q), len(states))
    for b, real in enumerate(keep.tolist()):
        for h in range(heads):
            part = slice(h * dim, (h + 1) * dim)
            for t in range(len(q)):
                scores = {
                    j: float(q[t, b, part] @ k[j, b, part]) / math.sqrt(dim)
                    for j, is_real in enumerate(real)
                    if is_real
                }
                for j, weight in weigh(h, b, t, scores).items():
                    weights[h, b, t, j] = weight
                    out[t, b, part] += weight * v[j, b, part]
    return attention.out_proj(out), weights

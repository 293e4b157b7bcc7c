"""The loss of attention heads that learn from trees: one sentence, one token, one head at a time."""

import math


def loss(logits, wanted, mask):
    """Σ over heads and tokens of -Σ_s u(s) log a(s), with u uniform over the wanted columns.

    Args:
        logits: (B, n, T, T) of n heads.
        wanted: function: sentence, token -> columns; none if the token does not count.
        mask: (B, T), True at padding.

    Returns the sum, the (sentence, head, token) whose best column is a wanted one, and how many count.
    """
    total, right, counted = 0.0, [], 0
    for b, padding in enumerate(mask.tolist()):
        real = [t for t, is_padding in enumerate(padding) if not is_padding]
        for h, head in enumerate(logits[b].tolist()):
            for t in real:
                columns = wanted(b, t)
                if not columns:
                    continue
                log_sum = math.log(sum(math.exp(head[t][s]) for s in real))
                total -= sum(head[t][s] - log_sum for s in columns) / len(columns)
                counted += 1
                if max(real, key=head[t].__getitem__) in columns:
                    right.append((b, h, t))
    return total, right, counted

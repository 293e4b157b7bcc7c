"""BlackOut, word by word, from its definition (Ji et al., 2016, eqs. 5-8); counts of words from text."""

import math


def probabilities(logits: list[float], target: int, noise: list[int], q: list[float]) -> list[list[float]]:
    """[p, 1 - p] of the target and of each noise word; 1 - p from the other words, where 1.0 - p would be 0."""
    parts = [q[word] * math.exp(logits[word]) for word in [target, *noise]]
    total = math.fsum(parts)
    result = []
    for i, part in enumerate(parts):
        others = math.fsum(other for j, other in enumerate(parts) if j != i)
        result.append([part / total, others / total])
    return result


def loss(logits: list[float], target: int, noise: list[int], q: list[float]) -> float:
    """-log p_y - Σ_j log(1 - p_j).

    Args:
        logits: of all words.
        target: y.
        noise: s_1 … s_K.
        q: 1/Q of all words, or a multiple.
    """
    found = probabilities(logits, target, noise, q)
    total = -math.log(found[0][0])
    for _, rejected in found[1:]:
        total -= math.log(rejected)
    return total


def gradient(logits: list[float], target: int, noise: list[int], q: list[float]) -> list[float]:
    """Derivatives of the loss by the logits of all words, by the formula, with f = 1 / (1 - p)."""
    found = probabilities(logits, target, noise, q)
    f = [1 / rejected for _, rejected in found[1:]]
    result = [0.0] * len(logits)
    result[target] += (len(noise) + 1 - math.fsum(f)) * found[0][0] - 1
    for j, word in enumerate(noise):
        others = math.fsum(value for k, value in enumerate(f) if k != j)
        result[word] += (len(noise) + 1 - others) * found[j + 1][0]
    return result


def count_words(lines: list[str], symbols: list[str]) -> list[int]:
    """How often each symbol of a dictionary, `<s> <pad> </s> <unk>` first, stands in binarized lines."""
    counts = {symbol: 0 for symbol in symbols}
    for line in lines:
        for word in line.split():
            counts[word if word in symbols[4:] else "<unk>"] += 1
        counts["</s>"] += 1
    return [counts[symbol] for symbol in symbols]

"""Probabilities of lengths pair by pair, and the best translation under eq. 10 of Hashimoto & Tsuruoka (2017)."""

import math
from itertools import product
from statistics import NormalDist, fmean, pstdev


def counts(pairs):
    """(source length, target length) -> how many pairs."""
    found = {}
    for pair in pairs:
        found[pair] = found.get(pair, 0) + 1
    return found


def raw(pairs, source, targets):
    """Relative frequencies of the lengths 0 … targets - 1 with this source length; None if it was not seen."""
    found = counts(pairs)
    row = [found.get((source, target), 0) for target in range(targets)]
    return [count / sum(row) for count in row] if sum(row) else None


def kernel(pairs, source, targets):
    """Weighted counts of lengths up to 2 away, and 5 pseudo-counts of the log-normal ratio; the last holds its tail.

    None if the length is not between those of the shortest and the longest sentence, or none up to 2 away has pairs.
    """
    found = counts(pairs)
    lengths = [length for length, _ in pairs]
    near = any(abs(length - source) <= 2 for length in lengths)
    if source > max(lengths) or source < min(lengths) or not near:
        return None
    ratios = [math.log((target + 1) / (source + 1)) for source, target in pairs]
    normal = NormalDist(fmean(ratios), max(pstdev(ratios), 0.01))
    row = []
    for target in range(targets):
        low = normal.cdf(math.log((target + 0.5) / (source + 1))) if target else 0.0
        high = normal.cdf(math.log((target + 1.5) / (source + 1))) if target < targets - 1 else 1.0
        count = 5 * (high - low)
        for distance in range(-2, 3):
            count += (1 - abs(distance) / 3) * found.get((source + distance, target), 0)
        row.append(count)
    return [count / sum(row) for count in row]


def floored(row, targets):
    """No probability below 1e-8, then normalised; 1 throughout, which adds nothing, of a length without a row."""
    if row is None:
        return [1.0] * targets
    row = [max(value, 1e-8) for value in row]
    return [value / sum(row) for value in row]


def translations(log_probability, symbols, longest):
    """Every translation of 1 … longest symbols and EOS, with the sum of its log-probabilities.

    Args:
        log_probability: function: symbols so far, next symbol or None for EOS -> log p.
        longest: EOS is all that is left after so many symbols, at its own probability.
    """
    for length in range(1, longest + 1):
        for words in product(symbols, repeat=length):
            total = sum(log_probability(words[:t], word) for t, word in enumerate(words))
            yield words, total + log_probability(words, None)


def best_translation(log_probability, log_prior, symbols, longest):
    """(symbols, score) that maximise eq. 10.

    Args:
        log_prior: function: length without EOS -> log p(L_y | L_x).
    """
    scored = (
        (words, (total + log_prior(len(words))) / (len(words) + 1))
        for words, total in translations(log_probability, symbols, longest)
    )
    return max(scored, key=lambda found: found[1])

"""Probabilities of lengths pair by pair, and the best translation under eq. 10 of Hashimoto & Tsuruoka (2017)."""

from itertools import product


def frequencies(pairs, source, targets):
    """Relative frequencies of the lengths 0 … targets - 1 with this source length; None if it was not seen."""
    row = [pairs.count((source, target)) for target in range(targets)]
    return [count / sum(row) for count in row] if sum(row) else None


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

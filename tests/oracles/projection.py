"""Token-level parents, one token at a time. Heads are 0-based, -1 = root, -2 = no parse."""

from fractions import Fraction


def tokens_of(word: int, word_of_token: list[int]) -> list[int]:
    """Positions of the pieces of a word."""
    return [token for token, owner in enumerate(word_of_token) if owner == word]


def parent_word(heads: list[int], word: int) -> int | None:
    """The word looked at: the head; oneself for a root and for EOS; None without a parse, for EOS, too."""
    if -2 in heads:
        return None
    if word == len(heads) or heads[word] == -1:
        return word
    return heads[word]


def parent_middles(heads: list[int], word_of_token: list[int]) -> list[Fraction | None]:
    """Mean position of the pieces of every token's parent."""
    middles: list[Fraction | None] = []
    for word in word_of_token:
        parent = parent_word(heads, word)
        if parent is None:
            middles.append(None)
        else:
            pieces = tokens_of(parent, word_of_token)
            middles.append(Fraction(sum(pieces), len(pieces)))
    return middles


def parent_first_pieces(heads: list[int], word_of_token: list[int]) -> list[int | None]:
    """Position of the first piece of every token's parent."""
    parents = [parent_word(heads, word) for word in word_of_token]
    return [None if p is None else min(tokens_of(p, word_of_token)) for p in parents]


def piece_heads(heads: list[int], word_of_token: list[int]) -> list[int]:
    """Position of the head of every token in a tree over pieces; -1 without a parse."""
    found = []
    for token, word in enumerate(word_of_token):
        pieces = tokens_of(word, word_of_token)
        if -2 in heads:
            found.append(-1)
        elif token != pieces[0]:
            found.append(pieces[0])
        elif word == len(heads) or heads[word] == -1:
            found.append(len(word_of_token) - 1)
        else:
            found.append(tokens_of(heads[word], word_of_token)[0])
    return found

"""Slow twins of what is done with characters: repeated pairs of words, and trees of words as actions."""


def without_adjacent_repeats(words: list[str]) -> list[str]:
    """The leftmost `a b a b` becomes `a b`, as long as there is one."""
    words = list(words)
    while True:
        found = [i for i in range(len(words) - 3) if words[i : i + 2] == words[i + 2 : i + 4]]
        if not found:
            return words
        del words[found[0] + 2 : found[0] + 4]


def without_seen_repeats(words: list[str]) -> list[str]:
    """The first pair of words that stands before itself too, without overlap, is deleted, as long as there is one."""
    words = list(words)
    while True:
        for end in range(4, len(words) + 1):
            pair = words[end - 2 : end]
            if any(words[i : i + 2] == pair for i in range(end - 3)):
                del words[end - 2 : end]
                break
        else:
            return words


def actions_of_words(symbols: list[str], space: str) -> list[str]:
    """Names of the actions that generate symbols, those between spaces in constituents."""
    actions, open_word = [], False
    for symbol in symbols:
        inside = symbol != space
        if inside and not open_word:
            actions.append("NT")
        if not inside and open_word:
            actions.append("REDUCE")
        actions.append("GEN")
        open_word = inside
    return actions + ["REDUCE"] * open_word + ["GEN"]

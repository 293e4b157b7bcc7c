"""Character n-grams and what is made of them, with loops over positions and strings."""

BEGIN, END = "#BEGIN#", "#END#"


def indexed_ngrams(word: str) -> list[str]:
    """n-grams of 2, 3 and 4 characters by the positions that charNgram2vec gives them.

    It numbers the windows of one size by their second character, and joins a marker to those at either end.
    """
    length = len(word)
    found = []
    for i in range(length + 1):
        if i == 0:
            window = BEGIN + word[0]
        elif i == length:
            window = word[length - 1] + END
        else:
            window = word[i - 1] + word[i]
        found.append("2gram-" + window)
    for size, last in ((3, length - 1), (4, length - 2)):
        for i in range(last + 1):
            # characters from i - 1 on, of which the first may be the marker at the start, the last that at the end
            window = ""
            for position in range(i - 1, i - 1 + size):
                if position < 0:
                    window += BEGIN
                elif position == length:
                    window += END
                else:
                    window += word[position]
            found.append(f"{size}gram-{window}")
    return found


def ngram_counts(words: list[tuple[str, int]]) -> dict[str, int]:
    """Occurrences of every n-gram in a text in which each word comes as often as its count says."""
    counts = {}
    for word, count in words:
        for _ in range(count):
            for key in indexed_ngrams(word):
                counts[key] = counts.get(key, 0) + 1
    return counts


def known_ngrams(word: str, keys: list[str]) -> list[str]:
    """Those of a word's n-grams that are among the keys, each once."""
    known = []
    for key in indexed_ngrams(word) if word else []:
        if key in keys and key not in known:
            known.append(key)
    return known


def mean_vector(word: str, keys: list[str], rows: list[list[float]], width: int) -> list[float]:
    """Mean of the rows of a word's known n-grams, the first `width` of them; row 0 belongs to no n-gram."""
    known = known_ngrams(word, keys)[:width]
    total = [0.0] * len(rows[0])
    for key in known:
        for column, value in enumerate(rows[1 + keys.index(key)]):
            total[column] += value
    return [value / len(known) if known else 0.0 for value in total]

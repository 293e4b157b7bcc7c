"""Made-up sentence pairs for benchmarks: 25 words with a tree, the rarer words in two subwords."""

from pathlib import Path

import numpy as np

WORDS = 25
TYPES, WHOLE = 60_000, 10_000  # different words, by Zipf's law; the rarer ones are cut in two
LETTERS = {"en": "etaoinshrdlu", "de": "enisratdhulc"}
TAGS = ["NOUN", "VERB", "ADP", "DET", "ADJ", "PUNCT"], ["nsubj", "obj", "case", "det", "amod", "punct", "obl", "conj"]


def spelled(rank: int, letters: str) -> str:
    """A word of letters for each number."""
    word = ""
    while rank >= 0:
        rank, letter = divmod(rank, len(letters))
        word += letters[letter]
        rank -= 1
    return word


def make_corpus(folder: Path, pairs: int) -> list[list[str]]:
    """Write train.en, train.de and train.en.conllu; the words of the English side, whole."""
    rng, shape = np.random.default_rng(1), (pairs, WORDS)
    chances = np.cumsum(1 / np.arange(1, TYPES + 1))
    texts = {}
    for language, letters in LETTERS.items():
        ranks = np.searchsorted(chances, rng.random(shape) * chances[-1]).tolist()
        texts[language] = [[spelled(rank, letters) for rank in sentence] for sentence in ranks]
        with open(folder / f"train.{language}", "w", encoding="utf-8") as file:
            for sentence in zip(texts[language], ranks, strict=True):
                cut = (w if rank < WHOLE else f"{w[:2]}@@ {w[2:]}" for w, rank in zip(*sentence, strict=True))
                file.write(" ".join(cut) + "\n")
    tags = [rng.choice(names, shape).tolist() for names in TAGS]
    with open(folder / "train.en.conllu", "w", encoding="utf-8") as file:
        for columns in zip(texts["en"], random_heads(rng, shape).tolist(), *tags, strict=True):
            rows = zip(range(1, WORDS + 1), *columns, strict=True)
            file.write("".join(f"{i}\t{w}\t_\t{u}\t_\t_\t{h}\t{d}\t_\t_\n" for i, w, h, u, d in rows) + "\n")
    return texts["en"]


def random_heads(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """HEAD of every word, in trees whose arcs are mostly short: each word hangs on one that is nearer to the root."""
    word, root = np.arange(shape[1]), rng.integers(shape[1], size=(shape[0], 1))
    way = root - word
    heads = word + np.sign(way) * (1 + (rng.random(shape) ** 3 * np.abs(way)).astype(int))
    return np.where(way == 0, 0, heads + 1)

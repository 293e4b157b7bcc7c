"""Made-up sentence pairs for benchmarks: 25 words with a tree, the rarer words in two subwords."""

from pathlib import Path

import numpy as np

WORDS = 25
TYPES, WHOLE = 60_000, 10_000  # different words, by Zipf's law; the rarer ones are cut in two
CHUNK = 1000
TAGS = np.array(["NOUN", "VERB", "ADP", "DET", "ADJ", "PUNCT"])
LABELS = np.array(["nsubj", "obj", "case", "det", "amod", "punct", "obl", "conj"])


def spelled(rank: int, letters: str) -> str:
    """A word of letters for each number."""
    word = ""
    while rank >= 0:
        rank, letter = divmod(rank, len(letters))
        word += letters[letter]
        rank -= 1
    return word


def make_corpus(folder: Path, pairs: int) -> None:
    """Write train.en, train.de, train.en.conllu, and train.words, whose words are whole."""
    rng = np.random.default_rng(1)
    chances = np.cumsum(1 / np.arange(1, TYPES + 1))
    whole = [[spelled(rank, letters) for rank in range(TYPES)] for letters in ("etaoinshrdlu", "enisratdhulc")]
    cut = [[w if rank < WHOLE else f"{w[:2]}@@ {w[2:]}" for rank, w in enumerate(words)] for words in whole]
    names = ("train.en", "train.de", "train.en.conllu", "train.words")
    files = [open(folder / name, "w", encoding="utf-8") for name in names]
    for start in range(0, pairs, CHUNK):
        shape = (min(CHUNK, pairs - start), WORDS)
        ranks = [np.searchsorted(chances, rng.random(shape) * chances[-1]).tolist() for _ in whole]
        for file, words, sentences in zip(files, cut, ranks, strict=False):
            file.writelines(" ".join([words[rank] for rank in sentence]) + "\n" for sentence in sentences)
        forms = [[whole[0][rank] for rank in sentence] for sentence in ranks[0]]
        files[3].writelines(" ".join(words) + "\n" for words in forms)
        tags = [rng.choice(names, shape).tolist() for names in (TAGS, LABELS)]
        for columns in zip(forms, random_heads(rng, shape).tolist(), *tags, strict=True):
            rows = zip(range(1, WORDS + 1), *columns, strict=True)
            files[2].write("".join(f"{i}\t{w}\t_\t{u}\t_\t_\t{h}\t{d}\t_\t_\n" for i, w, h, u, d in rows) + "\n")
    for file in files:
        file.close()


def random_heads(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """HEAD of every word, in trees whose arcs are mostly short: each word hangs on one that is nearer to the root."""
    word, root = np.arange(shape[1]), rng.integers(shape[1], size=(shape[0], 1))
    way = root - word
    heads = word + np.sign(way) * (1 + (rng.random(shape) ** 3 * np.abs(way)).astype(int))
    return np.where(way == 0, 0, heads + 1)

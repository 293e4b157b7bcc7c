"""Small parallel corpora with trees, written to disk, and what their arrays must be.

Use: `from corpora import write_split` (tests/conftest.py puts this folder on the path). Nothing here uses the code
that is under test.
"""

import gzip
import random
from pathlib import Path

from oracles import forests, projection

UPOS = ["NOUN", "VERB", "ADP", "DET"]


class Item:
    """One source sentence: its words, each a list of pieces, and their heads (0-based, -1 root, -2 no parse)."""

    def __init__(self, pieces, heads, deprels=None, upos=None):
        self.pieces = pieces
        self.heads = list(heads)
        self.deprels = deprels or [f"rel{len(p)}" for p in pieces]
        self.upos = upos or [UPOS[i % len(UPOS)] for i in range(len(pieces))]

    @property
    def words(self):
        return ["".join(pieces) for pieces in self.pieces]

    @property
    def word_of_token(self):
        """Word of each token, EOS last."""
        return [word for word, pieces in enumerate(self.pieces) for _ in pieces] + [len(self.pieces)]

    def text(self, subword_type="subword_nmt"):
        if subword_type == "subword_nmt":
            tokens = [p + "@@" * (k < len(ps) - 1) for ps in self.pieces for k, p in enumerate(ps)]
        elif subword_type == "sentencepiece":
            tokens = ["▁" * (k == 0) + p for ps in self.pieces for k, p in enumerate(ps)]
        else:
            tokens = [p for ps in self.pieces for p in ps]
        return " ".join(tokens)

    def tree(self):
        rows = []
        for i, word in enumerate(self.words):
            head = "_" if self.heads[i] == -2 else self.heads[i] + 1
            rows.append(f"{i + 1}\t{word}\t_\t{self.upos[i]}\t_\t_\t{head}\t{self.deprels[i]}\t_\t_\n")
        return "".join(rows) if rows else "# text =\n"


def random_heads(rng, size):
    """Any forest with one root."""
    order = list(range(size))
    rng.shuffle(order)
    heads = [-1] * size
    for rank, word in enumerate(order[1:], 1):
        heads[word] = order[rng.randrange(rank)]
    return heads


def random_items(count, seed=0, longest=9, pieces=3):
    """Sentences whose trees can be told from their tokens: words are numbered through."""
    rng = random.Random(seed)
    items = []
    for number in range(count):
        size = rng.randint(1, longest)
        words = [[f"w{(number * 7 + i) % 50}"] + ["x"] * rng.randrange(pieces) for i in range(size)]
        items.append(Item(words, random_heads(rng, size), [f"d{rng.randrange(6)}" for _ in range(size)]))
    return items


def write_split(prefix, items, subword_type="subword_nmt", *, suffix="conllu", packed=False, newline="\n"):
    """Write PREFIX.en, PREFIX.de and PREFIX.en.SUFFIX[.gz]; the target repeats the words backwards."""
    prefix = Path(prefix)
    prefix.parent.mkdir(parents=True, exist_ok=True)

    def write(name, lines):
        Path(f"{prefix}.{name}").write_bytes("".join(lines).replace("\n", newline).encode())

    write("en", [item.text(subword_type) + "\n" for item in items])
    write("de", [" ".join(reversed(item.words)) + "\n" for item in items])
    trees = "".join(item.tree() + "\n" for item in items).replace("\n", newline)
    path = Path(f"{prefix}.en.{suffix}")
    if packed:
        with gzip.open(f"{path}.gz", "wt", encoding="utf-8", newline="") as file:
            file.write(trees)
    else:
        path.write_bytes(trees.encode())


def expected_arrays(item, deprels, upos):
    """Name -> list, as they must stand on disk; `deprels` and `upos` map a tag to its index."""
    words = item.word_of_token
    middles = projection.parent_middles(item.heads, words)
    if item.heads[:1] == [-2]:
        rows = [[0] * (len(item.heads) + 1)] * (len(item.heads) + 1)
    else:
        rows = forests.distances(item.heads)
    return {
        "words": words,
        "heads": item.heads,
        "parents": [65535 if m is None else int(2 * m) for m in middles],
        "distances": [min(rows[i][j], 254) for i in range(len(rows)) for j in range(i + 1, len(rows))],
        "deprels": [deprels.get(tag, 3) for tag in item.deprels],
        "upos": [upos.get(tag, 3) for tag in item.upos],
    }


def read_tags(path):
    """Tag -> index of a dictionary file of fairseq, whose first four symbols are not in it."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return {line.rsplit(" ", 1)[0]: 4 + i for i, line in enumerate(lines)}

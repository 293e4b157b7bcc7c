"""The open dictionary of LGP-NMT is as fairseq would have it, with new words of other texts at its end."""

import gzip
import random
import subprocess
import sys
from collections import Counter

from contract.recipes import EXAMPLES
from fairseq.data import Dictionary

PROGRAM = [sys.executable, str(EXAMPLES / "lgp" / "dictionary.py")]


def test_the_dictionary_equals_counting(tmp_path):
    letters, rng = "abc é字#<>\t\n\u3000\u00a0\u2028\x85", random.Random(1)  # and spaces at which fairseq splits
    train, *others = ("".join(rng.choices(letters, k=size)) for size in (900, 200, 200))
    paths = [tmp_path / name for name in ("train", "valid", "test.gz")]
    for path, text in zip(paths, (train, *others), strict=True):
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    subprocess.run([*PROGRAM, tmp_path / "new" / "dict.txt", *paths], check=True)
    counts = Counter(train.split())
    expected = sorted(counts, key=lambda word: (-counts[word], word))
    for text in others:
        expected += sorted(set(text.split()) - set(expected))
    loaded = Dictionary.load(str(tmp_path / "new" / "dict.txt"))
    assert loaded.symbols[loaded.nspecial :] == expected and len(expected) > len(counts)
    assert loaded.count[loaded.nspecial :] == [counts[word] for word in expected]
    paths[1].write_text("a\n<s> b\n")
    done = subprocess.run([*PROGRAM, tmp_path / "dict.txt", *paths], capture_output=True, text=True)
    assert done.returncode == 1 and f"{paths[1]}:2: the word <s> is a symbol of fairseq's dictionaries" in done.stderr
    assert not (tmp_path / "dict.txt").exists()

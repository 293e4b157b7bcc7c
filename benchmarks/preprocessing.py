"""Preprocessing: adding the arrays against fairseq-preprocess; distances against networkx."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import networkx
import numpy as np
from timing import report, side_by_side

from fairseq_syntax.trees.distances import tree_distances

ROOT = Path(__file__).resolve().parent.parent


def arrays(sentences: int, rounds: int) -> None:
    """`--only-syntax` against fairseq-preprocess on the same text, as commands, start-up included."""
    folder = Path(tempfile.mkdtemp())
    try:
        subprocess.run(
            [
                sys.executable, ROOT / "examples/agreement/generate.py", "--output", folder / "corpus",
                "--train", str(sentences),
            ],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        common = ["--source-lang", "en", "--target-lang", "de", "--trainpref", folder / "corpus/train"]

        def stock():
            shutil.rmtree(folder / "stock", ignore_errors=True)
            command("fairseq_cli.preprocess", *common, "--destdir", folder / "stock")

        def added():
            command(
                "fairseq_syntax.cli.preprocess", "--only-syntax", "--overwrite", *common, "--destdir", folder / "data"
            )

        command("fairseq_cli.preprocess", *common, "--destdir", folder / "data")
        seconds = side_by_side({"fairseq-preprocess": stock, "adding the arrays": added}, rounds, warm_up=1)
        report(f"preprocessing {sentences} sentences", seconds, "fairseq-preprocess", ">= 1.0")
    finally:
        shutil.rmtree(folder)


def command(module: str, *arguments) -> None:
    """Run a program's module quietly; fail loudly."""
    code = f"from {module} import *; import {module} as m; (m.cli_main if hasattr(m, 'cli_main') else m.main)()"
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr[-2000:])


def random_heads(random: np.random.Generator, words: int) -> np.ndarray:
    """A random tree: every word hangs on one that came before it in a random order."""
    order = random.permutation(words)
    heads = np.full(words, -1)
    for i in range(1, words):
        heads[order[i]] = order[random.integers(0, i)]
    return heads


def networkx_distances(heads: np.ndarray) -> np.ndarray:
    """All-pairs distances by graph search, EOS as the virtual root."""
    graph = networkx.Graph()
    graph.add_nodes_from(range(len(heads) + 1))
    graph.add_edges_from((word, head if head >= 0 else len(heads)) for word, head in enumerate(heads))
    result = np.zeros((len(heads) + 1,) * 2, dtype=np.uint8)
    for word, row in networkx.all_pairs_shortest_path_length(graph):
        result[word, list(row)] = list(row.values())
    return result


def distances(rounds: int) -> None:
    """All-pairs distances of sentences of several lengths."""
    random = np.random.default_rng(1)
    for words in (10, 25, 50, 80):
        trees = [random_heads(random, words) for _ in range(100)]
        assert all((tree_distances(t) == networkx_distances(t)).all() for t in trees[:5])
        seconds = side_by_side(
            {
                "networkx": lambda trees=trees: [networkx_distances(t) for t in trees],
                "one sentence a call": lambda trees=trees: [tree_distances(t) for t in trees],
                "as preprocessing does it": lambda trees=trees: tree_distances(
                    np.concatenate(trees).reshape(len(trees), -1)
                ),
            },
            rounds,
        )
        report(f"distances of 100 trees of {words} words", seconds, "networkx", ">= 50")

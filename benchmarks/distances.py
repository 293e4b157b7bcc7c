"""Distances: computing them against networkx; reading stored ones against computing them; room on disk.

Real trees are read from the folder that the variable FAIRSEQ_SYNTAX_DATA names, or shared/data beside the checkout;
where there are none, random ones take their place.
"""

import os
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import networkx
import numpy as np
import torch
from fairseq.data import Dictionary, LanguagePairDataset
from fairseq.data.indexed_dataset import MMapIndexedDataset, data_file_path, index_file_path, make_builder
from timing import report, report_table, side_by_side

from fairseq_syntax.data.arrays import ARRAY_TYPES, ArrayWriter
from fairseq_syntax.data.binarize import packed_distances
from fairseq_syntax.data.collating import INPUTS
from fairseq_syntax.data.dataset import SplitSyntax, SyntaxPairDataset
from fairseq_syntax.trees.conllu import read_conllu
from fairseq_syntax.trees.distances import tree_distances

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("FAIRSEQ_SYNTAX_DATA", ROOT.parent / "shared" / "data"))
CORPORA = ("multi30k/train.en.conllu.gz", "ud/en_ewt.train.conllu.gz")
WORDS = (10, 25, 50, 80)
VOCABULARY = 8000


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


def computing(rounds: int) -> None:
    """All-pairs distances of sentences of several lengths."""
    random = np.random.default_rng(1)
    for words in WORDS:
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


def corpora(sentences: int) -> dict[str, list[np.ndarray]]:
    """Name -> heads of so many sentences, drawn from the whole file: real ones, or, without data, random ones."""
    random = np.random.default_rng(1)
    if found := [name for name in CORPORA if (DATA / name).is_file()]:
        result = {}
        for name in found:
            trees = [np.array(tree.heads) for tree in read_conllu(DATA / name) if tree.heads]
            result[name] = [trees[i] for i in random.permutation(len(trees))[:sentences]]
        return result
    print(f"no trees in {DATA} (FAIRSEQ_SYNTAX_DATA): random ones")
    return {
        f"random trees of {words} words": [random_heads(random, words) for _ in range(sentences)] for words in WORDS
    }


def store(prefix: Path, trees: list[np.ndarray], distances: bool) -> dict[str, int]:
    """Write the arrays of a split, one token a word; name -> bytes on disk."""
    arrays = {"words": [np.arange(len(tree) + 1) for tree in trees], "heads": trees}
    if distances:
        arrays["distances"] = packed_distances(trees)
    for name, values in arrays.items():
        with closing(ArrayWriter(f"{prefix}.{name}", ARRAY_TYPES[name])) as writer:
            writer.append(np.concatenate(values), np.array([len(value) for value in values]))
    return {
        name: sum(os.path.getsize(path(f"{prefix}.{name}")) for path in (data_file_path, index_file_path))
        for name in arrays
    }


def text_pairs(prefix: Path, trees: list[np.ndarray]) -> LanguagePairDataset:
    """Binarized random text as long as the trees, in both languages the same."""
    symbols = Dictionary()
    for i in range(VOCABULARY - len(symbols)):
        symbols.add_symbol(f"w{i}")
    random = np.random.default_rng(2)
    builder = make_builder(data_file_path(str(prefix)), "mmap", vocab_size=len(symbols))
    for tree in trees:
        words = random.integers(symbols.nspecial, len(symbols), len(tree))
        builder.add_item(torch.from_numpy(np.append(words, symbols.eos())))
    builder.finalize(index_file_path(str(prefix)))
    text = MMapIndexedDataset(str(prefix))
    return LanguagePairDataset(text, text.sizes, symbols, text, text.sizes, symbols, left_pad_source=False)


def every_example(split: SplitSyntax, order: list[int]) -> Callable[[], None]:
    """Fetches the distances of one example after the other."""

    def run() -> None:
        for i in order:
            INPUTS["distances"].make(split[i])

    return run


def every_batch(pairs: LanguagePairDataset, batches: list[np.ndarray]) -> Callable[[], None]:
    """Fetches and collates one batch after the other, as a worker of the data loader does."""

    def run() -> None:
        for batch in batches:
            pairs.collater([pairs[i] for i in batch])

    return run


def fetching(sentences: int, batch: int, rounds: int) -> None:
    """Stored distances against computing them when an example is fetched, and their room on disk.

    The files are new, so they are read from memory, not from the disk.

    Args:
        sentences: of each corpus. With 1000, milliseconds of a run are microseconds of a sentence.
        batch: sentences in a batch; those of a batch are of like length.
        rounds: see `side_by_side`.
    """
    for title, trees in corpora(sentences).items():
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            room = store(folder / "stored", trees, True)
            store(folder / "computed", trees, False)
            splits = {kind: SplitSyntax(folder / kind, ("distances",), folder) for kind in ("computed", "stored")}
            text = text_pairs(folder / "text", trees)
            assert all((splits["stored"][i].distances == networkx_distances(trees[i])).all() for i in range(5))
            assert splits["computed"][0].distances is None

            words = np.array([len(tree) for tree in trees])
            title = f"{len(trees)} sentences of {title}, {words.mean():.1f} words each"
            order = np.random.default_rng(3).permutation(len(trees)).tolist()
            seconds = side_by_side({kind: every_example(split, order) for kind, split in splits.items()}, rounds)
            report(f"distances of an example, one after the other: {title}", seconds, "computed")

            by_length = np.argsort(words, kind="stable")
            batches = [by_length[start : start + batch] for start in range(0, len(trees), batch)]
            contestants = {"text alone (fairseq)": every_batch(text, batches)}
            for kind, split in splits.items():
                pairs = SyntaxPairDataset.from_pairs(text, split, ("distances",))
                contestants[f"text and distances, {kind}"] = every_batch(pairs, batches)
            seconds = side_by_side(contestants, rounds)
            report(f"batches of {batch}, fetched and collated: {title}", seconds, "text and distances, computed")

            needed = {"words and heads, always kept": room["words"] + room["heads"]}
            needed["distances, if stored"] = room["distances"]
            report_table(
                f"room on disk for a million sentences of {words.mean():.1f} words, a token each, index included",
                ["", "MB"],
                [[name, f"{size / len(trees):.0f}"] for name, size in needed.items()],
            )

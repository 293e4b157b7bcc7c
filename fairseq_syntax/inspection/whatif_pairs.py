"""How often a model follows the tree: over sentences of which two trees, and the translation of each, are known."""

from argparse import Namespace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..evaluate.contrast import groups, wilson
from ..evaluate.minimal_pairs import Pairs, find_pairs, read_pairs
from ..evaluate.tables import format_table
from ..trees.alignment import align_tree
from ..trees.conllu import Sentence, TreeFormatError, read_conllu
from .forced_scores import total_scores
from .given_trees import GivenTrees
from .latent_trees import Cutter
from .preparation import of_source, preparation
from .sentences import encode_line, pieces_of, words_of
from .whatif import translations

TREES = ("trees", "other")
"""Names of the files of trees in a folder of pairs: of the correct translation, and of the other one."""


def read_trees(folder: str, words: list[list[str]], places: list[str]) -> list[tuple[Sentence, Sentence]]:
    """Both trees of every pair.

    Args:
        folder: of the pairs.
        words, places: of their sources.

    Raises:
        TreeFormatError: a file is missing, has other words, or a sentence without a parse.
    """
    sides = []
    for name in TREES:
        files = sorted(Path(folder).glob(f"{name}.*.conllu*"))
        if len(files) != 1:
            raise TreeFormatError(
                f"{folder}: {len(files)} files {name}.*.conllu; both trees of each pair have to be there, as "
                "examples/agreement/pairs.py writes them for attachment"
            )
        trees = list(read_conllu(files[0]))
        if len(trees) != len(words):
            raise TreeFormatError(f"{files[0]}: {len(trees)} trees, but there are {len(words)} pairs; give one each")
        for number, (tree, forms, place) in enumerate(zip(trees, words, places, strict=True)):
            trees[number] = align_tree(tree, forms, f"{place} ({files[0]}:{tree.line})")
            if not tree.is_parsed:
                raise TreeFormatError(f"{files[0]}:{tree.line}: the sentence has no parse (HEAD is _); parse it")
        sides.append(trees)
    return list(zip(*sides, strict=True))


@torch.no_grad()
def count(model: GivenTrees, args: Namespace) -> str:
    """Tables: how often the translation under each tree is that tree's, and has the higher score; by group.

    Args:
        args: options of `cli.whatif`.

    Raises:
        ValueError: files that do not go together, or do not fit the model.
    """
    files, details = find_pairs(args.pairs)
    pairs = read_pairs(**files, details=details)
    encoded, places = _encode(model, args, pairs)
    subword_type = model.loaded.subword_type(args.subword_type)
    dictionary = model.loaded.task.target_dictionary
    prepare = preparation(args, 1, model.loaded.task.cfg.target_lang)
    members = [(prepare(one), prepare(other)) for one, other in zip(pairs.correct, pairs.incorrect, strict=True)]
    expected = [[" ".join(words_of(text.split(), subword_type)[0]) for text in pair] for pair in members]
    found = [
        " ".join(words_of(pieces_of(dictionary, ids), subword_type)[0])
        for ids in translations(model, encoded, places, args, args.max_tokens)
    ]
    found = [found[i : i + 2] for i in range(0, len(found), 2)]
    scores = _scores(model, encoded, [[encode_line(dictionary, text) for text in pair] for pair in members], args)
    return _tables(args, pairs, np.array(expected, dtype=object), np.array(found, dtype=object), scores)


def _encode(model: GivenTrees, args: Namespace, pairs: Pairs) -> tuple[list[Tensor], list[str]]:
    """Every source under its tree and under the other one, one after the other, and their places."""
    cutter = Cutter(of_source(args), model.loaded)
    places = [f"{pairs.source_path}:{number}" for number in range(1, len(pairs) + 1)]
    cut = [cutter.of_tokens(text.split(), place) for text, place in zip(pairs.sources, places, strict=True)]
    both = read_trees(args.pairs, [words for words, _ in cut], places)
    encoded = [model.encode(source, tree) for (_, source), trees in zip(cut, both, strict=True) for tree in trees]
    return encoded, [place for place in places for _ in TREES]


def _scores(model: GivenTrees, encoded: list[Tensor], members: list[list[Tensor]], args: Namespace) -> np.ndarray:
    """(N, 2, 2) log-probabilities: [pair, tree, translation]; the four of a pair share a batch."""
    sources = [ids for ids in encoded for _ in range(2)]
    targets = [ids for pair in members for _ in range(2) for ids in pair]
    return total_scores(model.loaded, sources, targets, args.max_tokens, 4).reshape(-1, 2, 2)


def _tables(args: Namespace, pairs: Pairs, expected: np.ndarray, found: np.ndarray, scores: np.ndarray) -> str:
    """All tables; `expected` and `found` are (N, 2) texts."""
    right = expected == found
    higher = np.stack([scores[:, 0, 0] > scores[:, 0, 1], scores[:, 1, 1] > scores[:, 1, 0]], axis=1)
    measures = {
        "translation under the tree = its reference": right[:, 0],
        "translation under the other tree = its reference": right[:, 1],
        "both translations": right.all(1),
        "some translation = the reference of the other tree": (expected[:, ::-1] == found).any(1),
        "the same translation under both": found[:, 0] == found[:, 1],
        "its reference has the higher score, under the tree": higher[:, 0],
        "its reference has the higher score, under the other": higher[:, 1],
        "both scores": higher.all(1),
    }
    rows = [(name, len(pairs), int(hits.sum()), *_share(hits)) for name, hits in measures.items()]
    shown = [format_table(["", "pairs", "number", "%", "low", "high"], rows, args.format)]
    for name, parts in groups(pairs).items():
        header = [name, "pairs", "both translations", "low", "high", "both scores", "low", "high"]
        rows = [(label, len(part), *_share(right.all(1)[part]), *_share(higher.all(1)[part])) for label, part in parts]
        shown.append(format_table(header, rows, args.format))
    return "\n\n".join(shown)


def _share(hits: np.ndarray) -> tuple[float, float, float]:
    """Percent, and the ends of its 95 % interval."""
    return 100 * float(hits.mean()), *(100 * end for end in wilson(int(hits.sum()), len(hits)))

"""How often a model follows the tree: over sentences of which two trees, and the translation of each, are known."""

from argparse import Namespace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..evaluate.minimal_pairs import Pairs
from ..evaluate.tree_pairs import TreePairs
from ..trees.alignment import align_tree
from ..trees.conllu import Sentence, TreeFormatError, read_conllu
from .forced_scores import total_scores
from .given_trees import GivenTrees
from .latent_trees import Cutter
from .preparation import of_source, preparation
from .sentences import encode_line, pieces_of, words_of
from .whatif_work import translations

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
def count(model: GivenTrees, args: Namespace, pairs: Pairs) -> TreePairs:
    """What the model makes of pairs under both trees of each.

    Args:
        args: options of `cli.whatif`.
        pairs: those of `args.pairs`.

    Raises:
        ValueError: files that do not go together, or do not fit the model.
    """
    encoded, places = _encode(model, args, pairs)
    subword_type = model.loaded.subword_type(args.subword_type)
    dictionary = model.loaded.task.target_dictionary
    prepare = preparation(args, 1, model.loaded.task.cfg.target_lang)
    members = [[prepare(one), prepare(other)] for one, other in zip(pairs.correct, pairs.incorrect, strict=True)]
    expected = [[" ".join(words_of(text.split(), subword_type)[0]) for text in pair] for pair in members]
    found = [
        " ".join(words_of(pieces_of(dictionary, ids), subword_type)[0])
        for ids in translations(model, encoded, places, args, args.max_tokens)
    ]
    found = [found[i : i + 2] for i in range(0, len(found), 2)]
    scores = _scores(model, encoded, [[encode_line(dictionary, text) for text in pair] for pair in members], args)
    return TreePairs(model.loaded.name, pairs.digest, expected, found, scores.tolist(), pairs.details)


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

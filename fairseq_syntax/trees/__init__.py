"""Algorithms on trees, which need NumPy and PyTorch but not fairseq.

from fairseq_syntax.trees import eisner, head_marginals, read_conllu, tree_distances
"""

import importlib

# name -> its file, loaded on first use because only some files need PyTorch
_EXPORTS = {
    "TreeFormatError": "conllu",
    "Sentence": "conllu",
    "align_tree": "alignment",
    "are_trees": "well_formed",
    "chu_liu_edmonds": "spanning",
    "collapse_to_words": "word_scores",
    "edited": "edits",
    "eisner": "spanning",
    "format_sentence": "conllu",
    "head_marginals": "matrix_tree",
    "join_subwords": "subwords",
    "linearize": "linearization",
    "parent_positions": "piece_parents",
    "random_heads": "random_trees",
    "read_conllu": "conllu",
    "reattached_heads": "perturbation",
    "tree_distances": "distances",
}
__all__ = list(_EXPORTS)


def __getattr__(name: str):
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_EXPORTS[name]}", __name__), name)

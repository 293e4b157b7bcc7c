"""Trees of raw text, made when it is translated."""

from collections.abc import Mapping

import numpy as np

from ..trees.alignment import align_tree
from ..trees.conllu import TreeFormatError
from ..trees.subwords import join_subwords
from .inputs import TokenSyntax
from .parsers import Parser


class LiveSyntax:
    """Callable: encoded sentences -> `TokenSyntax` each.

    Args:
        parser: makes trees of words.
        subword_type: how the text is cut, a `SubwordType`.
        dictionaries: "deprels"/"upos" -> fairseq dictionary, where the model needs these.
    """

    def __init__(self, parser: Parser, subword_type: str, dictionaries: Mapping | None = None):
        self.parser = parser
        self.subword_type = subword_type
        self.dictionaries = dict(dictionaries or {})

    def __call__(self, texts: list[str]) -> list[TokenSyntax]:
        """Parse sentences given as subwords separated by spaces.

        Raises:
            TreeFormatError: a sentence cannot be parsed or ends inside a word.
        """
        joined = []
        for text in texts:
            try:
                joined.append(join_subwords(text.split(), self.subword_type))
            except ValueError as error:
                raise TreeFormatError(f"input {text!r}: {error}") from None
        trees = self.parser.parse([words for words, _ in joined])
        result = []
        for text, (words, word_of_token), tree in zip(texts, joined, trees, strict=True):
            tree = align_tree(tree, words, f"input {text!r}")
            if not tree.is_parsed:
                raise TreeFormatError(f"input {text!r}: the tree that was given has no heads; parse the sentence")
            indices = {
                name: np.array([dictionary.index(tag) for tag in getattr(tree, name)], dtype=np.int64)
                for name, dictionary in self.dictionaries.items()
            }
            result.append(
                TokenSyntax(
                    np.array([*word_of_token, len(words)]),
                    np.array(tree.heads, dtype=np.int64),
                    **indices,
                )
            )
        return result

"""Trees of raw text, made during translation."""

import logging
from collections.abc import Mapping, Sequence

import numpy as np

from ..trees.alignment import fit_tree
from ..trees.conllu import ROOT, Sentence, TreeFormatError, find_cycle, quoted
from ..trees.subwords import split_words
from .collating import TokenSyntax
from .parsers import Parser

logger = logging.getLogger(__name__)


def token_syntax(tree: Sentence, word_ids: Sequence[int], dictionaries: Mapping) -> TokenSyntax:
    """Align a tree to the tokens of its sentence.

    Args:
        tree: over J words, or without a parse.
        word_ids: word of each token, without EOS.
        dictionaries: "deprels"/"upos" -> fairseq dictionary, where these are needed.
    """
    indices = {
        name: np.array([dictionary.index(tag) for tag in getattr(tree, name)], dtype=np.int64)
        for name, dictionary in dictionaries.items()
    }
    return TokenSyntax(np.array([*word_ids, len(tree)]), np.array(tree.heads, dtype=np.int64), **indices)


class LiveSyntax:
    """Function from encoded sentences to their `TokenSyntax`.

    Args:
        parser: of tokenised sentences.
        subword_type: a `SubwordType`.
        dictionaries: "deprels"/"upos" -> fairseq dictionary, where the model needs these.

    Sentences without a parse are translated, with a warning each unless the parser withholds parses on purpose.
    """

    def __init__(self, parser: Parser, subword_type: str, dictionaries: Mapping | None = None):
        self.parser = parser
        self.subword_type = subword_type
        self.dictionaries = dict(dictionaries or {})
        self._warned = False

    def __call__(self, texts: list[str], trees: Sequence[Sentence] | None = None) -> list[TokenSyntax]:
        """Parse sentences of subwords separated by spaces, unless `trees` over their words are passed.

        Raises TreeFormatError: a sentence ends inside a word, or a tree is not one of its words.
        """
        if trees is not None and len(trees) != len(texts):
            raise TreeFormatError(f"{len(trees)} trees are given for {len(texts)} sentences; give one each")
        places = [f"input {quoted(text)}" for text in texts]
        cut = [split_words(text.split(), self.subword_type, place) for text, place in zip(texts, places, strict=True)]
        if trees is None:
            trees = self.parser.parse([words for words, _ in cut])
        syntax = []
        for tree, (words, word_ids), place in zip(trees, cut, places, strict=True):
            tree, owners = fit_tree(self._checked(tree, place), words, place)
            self._warn_unknown_tags(tree)
            syntax.append(token_syntax(tree, [owners[word] for word in word_ids], self.dictionaries))
        return syntax

    def _checked(self, tree: Sentence, place: str) -> Sentence:
        """Return the tree, with a warning if it has no parse; TreeFormatError if its heads form none."""
        if not tree.is_parsed and not getattr(self.parser, "withholds", False):
            logger.warning("translated without a parse: %s", place)
        in_range = len(tree.heads) == len(tree) and all(ROOT <= head < len(tree) for head in tree.heads)
        if tree.is_parsed and not (in_range and not find_cycle(tree.heads)):
            raise TreeFormatError(
                f"{place}: the given heads {quoted(str(tree.heads))[1:-1]} do not form a tree; correct them"
            )
        return tree

    def _warn_unknown_tags(self, tree: Sentence) -> None:
        """Warn once of a label or tag that the model does not know, perhaps from another parser."""
        for name, dictionary in self.dictionaries.items() if tree.is_parsed and not self._warned else ():
            unknown = [tag for tag in getattr(tree, name) if dictionary.index(tag) == dictionary.unk()]
            if unknown:
                self._warned = True
                message = "%s that the model does not know: %s; parse the text as the training data were parsed"
                logger.warning(message, name, unknown[0])

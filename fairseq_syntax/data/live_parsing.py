"""Trees of raw text, made when it is translated."""

import logging
from collections.abc import Mapping, Sequence

import numpy as np

from ..trees.alignment import fit_tree
from ..trees.conllu import MAX_WORDS, ROOT, Sentence, TreeFormatError, behind_tokens, find_cycle, quoted, without_parse
from ..trees.subwords import check_length, cut_control_tokens, split_words
from .collating import TokenSyntax
from .parsers import Parser

logger = logging.getLogger(__name__)


def token_syntax(tree: Sentence, word_of_token: Sequence[int], dictionaries: Mapping) -> TokenSyntax:
    """A tree, cut to the tokens of its sentence.

    Args:
        tree: over J words, or without a parse.
        word_of_token: word of each token, without EOS.
        dictionaries: "deprels"/"upos" -> fairseq dictionary, where these are needed.
    """
    indices = {
        name: np.array([dictionary.index(tag) for tag in getattr(tree, name)], dtype=np.int64)
        for name, dictionary in dictionaries.items()
    }
    return TokenSyntax(np.array([*word_of_token, len(tree)]), np.array(tree.heads, dtype=np.int64), **indices)


class LiveSyntax:
    """Callable: encoded sentences -> `TokenSyntax` each.

    Args:
        parser: makes trees of words.
        subword_type: how the text is cut, a `SubwordType`.
        dictionaries: "deprels"/"upos" -> fairseq dictionary, where the model needs these.
        accept_unparsed: whether sentences that cannot be parsed go without a parse, with a warning each.
        max_words: words of the longest sentence that is parsed.
        control_tokens: tokens at the beginning of a sentence that are not words of it.
    """

    def __init__(
        self,
        parser: Parser,
        subword_type: str,
        dictionaries: Mapping | None = None,
        accept_unparsed: bool = False,
        max_words: int = MAX_WORDS,
        control_tokens: Sequence[str] = (),
    ):
        self.parser = parser
        self.subword_type = subword_type
        self.dictionaries = dict(dictionaries or {})
        self.accept_unparsed = accept_unparsed
        self.max_words = max_words
        self.control_tokens = control_tokens
        self.sentences = self.unparsed = 0
        self._warned_of_unknown = False

    def __call__(self, texts: list[str], trees: Sequence[Sentence] | None = None) -> list[TokenSyntax]:
        """Parse sentences given as subwords separated by spaces, or take the `trees` of their words that are given.

        Raises TreeFormatError: a sentence cannot be parsed, unless that is accepted; it ends inside a word; or a tree
        is not one of its words.
        """
        if trees is not None and len(trees) != len(texts):
            raise TreeFormatError(f"{len(trees)} trees are given for {len(texts)} sentences; give one each")
        cut = [cut_control_tokens(text.split(), self.control_tokens) for text in texts]
        joined = [
            split_words(tokens, self.subword_type, f"input {quoted(text)}")
            for text, (_, tokens) in zip(texts, cut, strict=True)
        ]
        sentences = [words for words, _ in joined]
        if trees is not None:
            fitted = self._checked(texts, sentences, trees, self.accept_unparsed)
        else:
            fitted = (self._parse_or_not if self.accept_unparsed else self._parse)(texts, sentences)
        self._warn_of_unknown_tags([tree for tree, _ in fitted])
        return [
            token_syntax(
                behind_tokens(tree, control),
                [*range(len(control)), *(len(control) + owners[word] for word in word_of_token)],
                self.dictionaries,
            )
            for (control, _), (_, word_of_token), (tree, owners) in zip(cut, joined, fitted, strict=True)
        ]

    def _warn_of_unknown_tags(self, trees: Sequence[Sentence]) -> None:
        """Warn once of labels or tags that the model does not know: they may be another parser's."""
        if self._warned_of_unknown:
            return
        for name, dictionary in self.dictionaries.items():
            tags = dict.fromkeys(tag for tree in trees if tree.is_parsed for tag in getattr(tree, name))
            unknown = ", ".join([tag for tag in tags if dictionary.index(tag) == dictionary.unk()][:3])
            if unknown:
                self._warned_of_unknown = True
                message = "%s that the model does not know: %s; parse the text as the training data were parsed"
                logger.warning(message, name, unknown)
                return

    def _parse(self, texts: list[str], sentences: list[list[str]]) -> list[tuple[Sentence, list[int]]]:
        """A tree of each sentence, see `fit_tree`, or an error."""
        for text in texts:
            check_length(text, self.subword_type, self.max_words, f"input {quoted(text)}", "--parser-max-words")
        return self._checked(texts, sentences, self.parser.parse(sentences), accept=False)

    def _checked(
        self, texts: list[str], sentences: list[list[str]], trees: Sequence[Sentence], accept: bool
    ) -> list[tuple[Sentence, list[int]]]:
        """The trees of the words, see `fit_tree`, or an error; `accept` sentences without a parse."""
        fitted = []
        for text, words, tree in zip(texts, sentences, trees, strict=True):
            place = f"input {quoted(text)}"
            if not tree.is_parsed and not (accept or getattr(self.parser, "withholds", False)):
                raise TreeFormatError(
                    f"{place}: the given tree has no heads; parse the sentence, or give --parser-unparsed "
                    "accept to translate it without syntax"
                )
            in_range = len(tree.heads) == len(tree) and all(ROOT <= head < len(tree) for head in tree.heads)
            if tree.is_parsed and not (in_range and not find_cycle(tree.heads)):
                raise TreeFormatError(
                    f"{place}: the given heads {quoted(str(tree.heads))[1:-1]} do not form a tree; correct them"
                )
            fitted.append(fit_tree(tree, words, place))
        return fitted

    def _parse_or_not(self, texts: list[str], sentences: list[list[str]]) -> list[tuple[Sentence, list[int]]]:
        """A tree of each sentence that can be parsed, see `fit_tree`."""
        self.sentences += len(texts)
        # where trees of equal sentences are given out in turn, those of a call that fails would be skipped
        if not getattr(self.parser, "in_turn", False):
            try:
                return self._parse(texts, sentences)
            except Exception:  # of whatever sort: one sentence, or too many at once
                logger.info("some of %d sentences cannot be parsed; trying them one by one", len(texts))
        fitted, before = [], self.unparsed
        for text, words in zip(texts, sentences, strict=True):
            try:
                fitted += self._parse([text], [words])
            except Exception as error:
                logger.warning("translated without a parse: %s (%s: %s)", quoted(text), type(error).__name__, error)
                fitted.append((without_parse(words), list(range(len(words)))))
                self.unparsed += 1
        if self.unparsed > before:
            logger.warning("%d of %d sentences had no parse", self.unparsed, self.sentences)
        return fitted

"""No parse: text as it is, for models that translate with and without one."""

from ...trees.conllu import Sentence, without_parse
from . import Parser, ParserOptions

READS = ()


def load(options: ParserOptions) -> Parser:
    """See `load_parser`."""
    return NoParser()


class NoParser:
    """Gives every sentence the absence of a parse, which is not an error where it was asked for."""

    withholds = True

    def parse(self, sentences: list[list[str]]) -> list[Sentence]:
        """See `Parser.parse`."""
        return [without_parse(words) for words in sentences]

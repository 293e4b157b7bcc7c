"""No parser, for models that translate with and without a parse."""

from ...trees.conllu import Sentence, without_parse
from . import Parser, ParserOptions

READS = ()


def load(options: ParserOptions) -> Parser:
    """See `load_parser`."""
    return NoParser()


class NoParser:
    """Parser that leaves every sentence without a parse, which causes no warning."""

    withholds = True

    def parse(self, sentences: list[list[str]]) -> list[Sentence]:
        """See `Parser.parse`."""
        return [without_parse(words) for words in sentences]

"""Parsers of raw text: words in, dependency trees out.

A parser is the file of its name in this folder, or a module in `MODULES`, which is imported when the parser is loaded.
The module defines

    READS          the fields of `ParserOptions` that it reads
    NEEDS          those of them that must be given (may be left out)
    load           (options) -> `Parser`, as in `load_parser`

Other packages declare such a module by an entry point of the group `fairseq_syntax.parsers`.
"""

import importlib
import pkgutil
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import entry_points
from typing import Optional, Protocol

from ...trees.conllu import Sentence, TreeFormatError, quoted
from ...trees.universal_dependencies import universal_labels
from ..text.languages import language_of

GROUP = "fairseq_syntax.parsers"
"""Group of the entry points of parsers in other packages."""


MODULES: dict[str, str] = {
    "checkpoint": "fairseq_syntax.systems.parser.parse",
    **{module.name: f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)},
}
"""Name of every parser of the suite -> its module."""


def _option(help: str):
    return field(default=None, metadata={"help": help})


@dataclass
class ParserOptions:
    """Options of all parsers, each of which reads some."""

    parser_model: Optional[str] = _option(
        "model of the parser. stanza: file of a dependency parser, with --parser-tagger, instead of the language's; "
        "spacy: name or folder of a pipeline; checkpoint: parser trained with --task dependency_parsing, or "
        "agreement-parser; conllu: file with the tree of every sentence"
    )
    parser_tagger: Optional[str] = _option("stanza: file of a tagger, with --parser-model")
    parser_language: Optional[str] = _option("stanza: language of the models (default: the text's, or en)")
    parser_dir: Optional[str] = _option(
        "stanza: folder of the models, which are downloaded if missing (default: Stanza's own)"
    )
    parser_device: Optional[str] = _option("cpu, cuda, cuda:1, … (default: a GPU if the parser finds one)")


class Parser(Protocol):
    """Protocol of dependency parsers of tokenised sentences.

    It may have attributes: `longest`, the number of words that it reads at most; `in_turn`, True if it returns the
    trees of equal sentences one after the other, so that a second call returns others; `withholds`, True if it returns
    sentences without a parse on purpose; `without_tags`, a method to call, to save time, if tags are not needed.
    """

    def parse(self, sentences: list[list[str]]) -> list[Sentence]:
        """One tree for each sentence, in the same order, over exactly its words, without multi-word ranges.

        The empty sentence gets the empty tree. Raises TreeFormatError: a sentence has no tree or cannot be parsed.
        """
        ...


def find_parsers() -> dict[str, str]:
    """Parser names -> modules. Ours take precedence over parsers of the same name in other packages."""
    return dict(sorted(({point.name: point.value for point in entry_points(group=GROUP)} | MODULES).items()))


def load_parser(name: str, options: ParserOptions, language: str | None = None) -> Parser:
    """Load a parser of `find_parsers`.

    Args:
        options: any object with the fields of `ParserOptions`.
        language: of the text, where the options name none.

    Raises ValueError: no such parser, or options that it does not read, or lacks; TreeFormatError: it cannot be loaded.
    """
    modules = find_parsers()
    if name not in modules:
        raise ValueError(f"--parser {name}: no such parser; choose from {', '.join(modules)}")
    try:
        module = importlib.import_module(modules[name])
    except ImportError as error:
        raise TreeFormatError(f"--parser {name}: {modules[name]} cannot be imported ({error})") from None
    values = {option.name: getattr(options, option.name) for option in fields(ParserOptions)}
    for option, value in values.items():
        if value is not None and option not in module.READS:
            raise ValueError(f"--{option.replace('_', '-')} is not read by --parser {name}; leave it out")
        if value is None and option in getattr(module, "NEEDS", ()):
            raise ValueError(f"--parser {name}: needs --{option.replace('_', '-')}")
    chosen = ParserOptions(**values)
    code = chosen.parser_language or (language and language_of(language).stanza)
    return module.load(replace(chosen, parser_language=code))


def made_tree(program: str, words: list[str], forms: list[str], heads: list[int], labels, tags) -> Sentence:
    """The tree from a parser's output. Raises TreeFormatError: its `forms` are not the `words` of the text."""
    if forms != words:
        raise TreeFormatError(
            f"sentence {quoted(' '.join(words))}: {program} changed its words ({quoted(' '.join(forms))}); "
            "a tree must have the words of the text; clean the text"
        )
    return Sentence(forms, heads, universal_labels(heads, labels), tags)


def first_line(error: Exception) -> str:
    """An error of another program in one line, for the end of a message."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text if len(text) <= 150 else text[:150] + '…'}"

"""Parsers are found by their files and by entry points, and imported when they are asked for."""

import sys

import pytest

from fairseq_syntax.data.parsers import ParserOptions, find_parsers, load_parser
from fairseq_syntax.task import ParserChoice, SyntaxTranslationConfig
from fairseq_syntax.tools import parse
from fairseq_syntax.trees.conllu import Sentence, TreeFormatError

OURS = {
    "checkpoint": "fairseq_syntax.systems.parser.parse",
    "conllu": "fairseq_syntax.data.parsers.conllu",
    "none": "fairseq_syntax.data.parsers.none",
    "spacy": "fairseq_syntax.data.parsers.spacy",
    "stanza": "fairseq_syntax.data.parsers.stanza",
}
THIRD = """
from fairseq_syntax.trees.conllu import Sentence

READS = ("parser_model", "parser_language")


class Chain:
    def __init__(self, options):
        self.label = f"{options.parser_model}-{options.parser_language}"

    def parse(self, sentences):
        return [Sentence(w, [*range(-1, len(w) - 1)], [self.label] * len(w), ["X"] * len(w)) for w in sentences]


def load(options):
    return Chain(options)
"""


@pytest.fixture
def third(tmp_path, monkeypatch):
    """An installed distribution that declares the parser `chain`."""
    (tmp_path / "chain_parser.py").write_text(THIRD)
    metadata = tmp_path / "chain_parser-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: chain-parser\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[fairseq_syntax.parsers]\nchain = chain_parser\nconllu = chain_parser\nlost = no_such_module\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("chain_parser", None)


def test_ours_are_found_and_the_task_offers_all():
    assert OURS.items() <= find_parsers().items()
    assert {str(choice) for choice in ParserChoice} == find_parsers().keys()


def test_those_of_other_packages_are_found(third, tmp_path):
    assert find_parsers() == OURS | {"chain": "chain_parser", "lost": "no_such_module"}  # and ours stay ours
    (tmp_path / "text").write_text("a b\n")
    arguments = ["--input", tmp_path / "text", "--output", tmp_path / "out", "--parser", "chain", "--parser-model", "m"]
    assert parse.main([*map(str, arguments), "--parser-language", "ja"]) == 0
    assert (tmp_path / "out").read_text() == "1\ta\t_\tX\t_\t_\t0\tm-ja\t_\t_\n2\tb\t_\tX\t_\t_\t1\tm-ja\t_\t_\n\n"
    assert load_parser("chain", ParserOptions(), "de").parse([["x"]]) == [Sentence(["x"], [-1], ["None-de"], ["X"])]


def test_a_parser_that_cannot_be_imported(third):
    with pytest.raises(TreeFormatError, match="--parser lost: no_such_module cannot be imported"):
        load_parser("lost", ParserOptions())


def test_programs_and_task_have_the_same_options():
    flags = {flag for action in parse.main.build_parser()._actions for flag in action.option_strings}
    names = {"parser", *ParserOptions.__dataclass_fields__}
    assert names <= SyntaxTranslationConfig.__dataclass_fields__.keys()
    assert {f"--{name.replace('_', '-')}" for name in names} <= flags

"""docs/fidelity.md: the code, options and tests that it names exist, and every system is on it."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from contract.command_lines import REPOSITORY, make_options
from fairseq.models import MODEL_REGISTRY

PAGE = (REPOSITORY / "docs" / "fidelity.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`([^`\n]+)`", PAGE)
TESTS = sorted({part for part in NAMED if "::test_" in part})
CODE = sorted({part for part in NAMED if "::" in part} - set(TESTS))
FILES = sorted({part for part in NAMED if re.fullmatch(r"(docs|examples|tests|benchmarks)/[\w/.]+", part)})
OPTIONS = sorted({option for part in NAMED for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", part)})


@cache
def names_in(path: Path) -> set[str]:
    """Functions and classes of a module, also those that are assigned."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    return names | {
        node.targets[0].id for node in tree.body if isinstance(node, ast.Assign) and hasattr(node.targets[0], "id")
    }


def test_code_and_tests_that_it_names_exist():
    assert len(CODE) > 50 and len(TESTS) > 70
    for root, named in (("fairseq_syntax", CODE), ("tests", TESTS)):
        places = [one.split("::") for one in named]
        assert not [(path, name) for path, name in places if name not in names_in(REPOSITORY / root / path)]


def test_files_and_options_that_it_names_exist():
    assert len(FILES) > 1 and not [file for file in FILES if not (REPOSITORY / file).is_file()]
    listed = make_options.page() + make_options.verbs_page()
    of_fairseq = {"--share-decoder-input-output-embed"}
    assert len(OPTIONS) > 40 and {option for option in OPTIONS if f"`{option}`" not in listed} == of_fairseq


def test_equations_and_defects_have_a_test():
    """In tables with a column for it."""
    checked = 0
    for table in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE):
        head, _, *rows = table.splitlines()
        if head.endswith(("| test |", "| ours |")) and "the paper's" not in head:
            for row in rows:
                assert re.search(r"::test_\w+` \|$", row), row
                checked += 1
    assert checked > 60


# section -> its last equation
EQUATIONS = {"PASCAL": 3, "SA-NMT": 24, "Syntax-directed attention": 14, "Latent graph parsing": 10, "Latent trees": 5}


@pytest.mark.parametrize("section", EQUATIONS)
def test_every_equation_has_a_row(section):
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
    found = set()
    for row in re.findall(r"^\| ([^|]*) \|", text, re.MULTILINE):
        for numbers in re.findall(r"\beqs?\. ([\d–, ]+)", row):
            for first, last in re.findall(r"(\d+)(?:–(\d+))?", numbers):
                found.update(range(int(first), int(last or first) + 1))
    assert found == set(range(1, EQUATIONS[section] + 1))


def test_every_system_is_on_the_page():
    ours = [name for name, model in MODEL_REGISTRY.items() if model.__module__.startswith("fairseq_syntax.")]
    assert ours and not [name for name in ours if f"`{name}" not in PAGE]
